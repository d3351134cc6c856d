"""Which tools a server lists, and in which order."""

from mimo.commands import TOOLSETS, all_commands, listed

TOOLS = all_commands().tools()


def test_tools_are_in_the_order_of_their_groups() -> None:
    names = listed(TOOLS, ())
    groups = list(dict.fromkeys(TOOLS[name][0].toolset for name in names))

    assert groups == [name for name in TOOLSETS if name in groups]
    assert len(groups) == 10
    assert names[:4] == ["save/decision", "save/checkpoint", "save/insight", "load/checkpoint"]


def test_the_core_set_is_part_of_the_whole_in_the_same_order() -> None:
    core = listed(TOOLS, ("core",))

    assert core == [name for name in listed(TOOLS, ()) if name in core]
    assert set(core[-2:]) == {"mind_edges", "mind_status"}
