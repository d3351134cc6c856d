"""`mind review`: the items in its answer, and the commands that it suggests."""

import pytest

from mimo.call.spec import to_json
from mimo.cli.main import main
from mimo.features.review import Waiting
from mimo.features.review.actions import keys_of
from mimo.features.review.commands import keep, review, settle
from mimo.features.upkeep.status import status
from mimo.memory.ids import handle_of


def write(call, name, text):
    path = call.mind.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


def memory(id_, body, kind="fact"):
    return f"---\nid: {id_}\ntype: {kind}\ncreated: 2026-11-19T08:00:00Z\n---\n{body}\n"


TWO = memory("d1", "Use JWT\n\n## Competing: the text\nUse sessions", "decision")


def test_a_new_project_has_nothing_to_review(call):
    assert to_json(review(call)) == {"items": [], "total": 0, "counts": {}}


def test_fading_memories_are_one_line(call, clock, capsys):
    write(call, "decisions/d1.md", TWO)
    for number in range(12):
        write(call, f"facts/{number}.md", memory(f"f{number}", f"fact {number}"))
    clock.forward(days=400)

    listed = review(call)
    assert ([item.id for item in listed.items], listed.total, listed.fading) == (["d1"], 1, 12)
    assert main(["review"], open=lambda _: call.mind.reopened()) == 0
    assert "12 memories fade; `mind fading` lists them\n" in capsys.readouterr().out

    asked = review(call, kinds=(Waiting.FADING,))
    assert (asked.total, asked.counts, asked.fading) == (12, {"fading": 12}, None)


def test_an_item_has_its_reason_and_commands(call):
    write(call, "decisions/d1.md", TWO)

    (item,) = to_json(review(call))["items"]

    assert (item["kind"], item["id"], item["why"]) == (
        "versions", "d1", "the branches disagree on the text",
    )  # fmt: skip
    assert [choice["text"] for choice in item["choices"]] == ["Use JWT", "Use sessions"]
    assert item["actions"] == [
        "mind review settle d1 --field 'the text' --take 1",
        "mind review settle d1 --field 'the text' --take 2",
        "mind review settle d1 --field 'the text' --take both",
        "mind edit d1",
    ]


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


def test_an_id_can_not_become_an_option_of_a_suggested_command(call):
    write(call, "facts/a.md", memory("--follow", "tea"))
    call.mind.trust.forget()
    actions = review(call).items[0].actions
    assert "mind trust -- --follow" in actions
    assert not [line for line in actions if "--follow" in line.partition(" -- ")[0]]


def test_the_limit_does_not_change_the_counts(call):
    for number in range(5):
        write(call, f"facts/{number}.md", memory(f"f{number}", f"tea number {number}"))
    call.mind.trust.forget()
    answer = review(call, limit=2)
    assert (len(answer.items), answer.total, answer.counts["untrusted"]) == (2, 5, 5)


def test_status_counts_the_items(call):
    write(call, "decisions/d1.md", TWO)
    current = status(call).current_project
    assert current is not None
    assert current.waiting == {"versions": 1}


def test_settle_reports_the_remaining_items_of_the_memory(call):
    text = TWO + "\n## Competing: outcome\nFAILED\n"
    write(call, "decisions/d1.md", text)
    done = settle(call, "d1", "1", field="outcome")
    assert (done.message, done.left) == ("outcome: version 1", 1)
    assert settle(call, "d1", "2").left == 0


def test_keep_reports_its_result(call):
    write(call, "facts/a.md", memory("a1", "tea"))
    call.mind.trust.forget()
    assert keep(call, "a1").message.startswith("is hidden")
    assert keep(call, "a1", off=True).message == "is shown again"


def test_printed_commands_name_the_memory_of_another_tool_by_its_handle(call, capsys):
    write(call, "decisions/d1.md", TWO)

    assert main(["review"], open=lambda _: call.mind.reopened()) == 0
    out = capsys.readouterr().out
    assert f"\n  mind edit {handle_of('d1')}\n" in out
    settle = f"  mind review settle {handle_of('d1')} --field 'the text' --take"
    assert all(f"\n{settle} {take}\n" in out for take in (1, 2, "both"))
    words = ["review", "settle", handle_of("d1"), "--take", "1"]
    assert main(words, open=lambda _: call.mind.reopened()) == 0
