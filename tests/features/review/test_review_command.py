"""`mind review`: the items in its answer, and the commands that it suggests."""

import pytest

from mimo.cli.main import main
from mimo.features.review import Waiting
from mimo.features.review.actions import keys_of
from mimo.features.review.commands import review, settle
from mimo.memory.ids import handle_of
from tests.kit import memory, write

TWO = memory("d1", "Use JWT\n\n## Competing: the text\nUse sessions", type="decision")


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_suggested_command_resolves_the_item(call, number, capsys):
    import shlex

    write(call, "decisions/d1.md", TWO)
    line = review(call).items[0].actions[number]

    assert main(shlex.split(line)[1:], open=lambda _: call.mind.reopened()) == 0
    assert review(call).total == 0
    assert "the text: " in capsys.readouterr().out


def three(call):
    for name, others in {"one": (), "two": ("one",), "three": ("one", "two")}.items():
        links = "".join(f"- {{to: {other}, type: contradicts}}\n" for other in others)
        header = (
            f"id: {name}\ntype: fact\ncreated: 2026-11-19T08:00:00Z\n{links and 'links:'}\n{links}"
        )
        write(call, f"facts/{name}.md", f"---\n{header}---\nThe limit by {name}\n")


@pytest.mark.parametrize("number", range(9))
def test_a_suggested_command_resolves_one_of_several_items_of_a_memory(call, number):
    three(call)
    items = review(call).items
    actions = [action for item in items for action in item.actions]

    assert len(actions) == 9
    assert main(actions[number].split()[1:], open=lambda _: call.mind.reopened()) == 0
    assert items[number // 3] not in review(call).items


def test_a_key_resolves_one_of_several_items_of_a_memory(call, capsys):
    three(call)
    item = review(call).items[1]
    arguments = keys_of(item)["1"].arguments or {}
    settle(call, **{**arguments, "kind": Waiting(item.kind)})

    assert item not in review(call).items
    assert main(["review"], open=lambda _: call.mind.reopened()) == 0
    out = capsys.readouterr().out
    assert all(f"--against {handle_of('one')} --take {n}\n" in out for n in (1, 2, "both"))
