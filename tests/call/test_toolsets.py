"""Which tools a server lists, and in which order."""

import pytest

from mimo import config
from mimo.call.table import all_commands, listed
from mimo.config import TOOLSETS
from mimo.errors import Invalid

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


def test_the_default_has_a_name() -> None:
    assert listed(TOOLS, ("default",)) == listed(TOOLS, ())


def test_the_setting_takes_groups_and_nothing_else() -> None:
    declared = config.setting("mcp.toolsets")

    assert declared.parse("core, procedures") == ("core", "procedures")
    with pytest.raises(Invalid, match=r"`nope`"):
        declared.parse("core,nope")
