"""`mind review`: the items in its answer, and the commands that it suggests."""

import pytest

from mimo.cli.main import main
from mimo.features.review import Waiting
from mimo.features.review.actions import keys_of
from mimo.features.review.commands import review, settle
from mimo.memory.ids import handle_of
from tests.conftest import git
from tests.kit import do, memory, run, write

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


@pytest.mark.usefixtures("ann")
def test_the_files_of_a_colleague_are_a_short_page_with_the_rivals_of_ours(
    call, tmp_path, monkeypatch
):
    root, clone = call.mind.project.root, tmp_path / "bob"
    git(root, "init", "-q", "-b", "main")
    run(call, "untrust")  # The project was made outside git, where later edits are trusted.
    ours = do(call, "save decision", topic="auth", decision="Use JWT", reasoning="Stateless")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Use JWT")
    git(tmp_path, "clone", "-q", str(root), str(clone))
    for number in range(65):
        id = f"fact_n{number}_20261101_{chr(97 + number // 10)}{chr(97 + number % 10)}cdef"
        write(clone, f"facts/{id}.md", memory(id, f"Host {number} listens on port {number * 7}"))
    rival = "decision_auth_20261102_xyzabc"
    topic = "topic: auth\n"
    write(clone, f"decisions/{rival}.md", memory(rival, "Sessions", type="decision", more=topic))
    git(clone, "add", "-A")
    for key, value in (("NAME", "Bob"), ("EMAIL", "bob@x")):
        monkeypatch.setenv(f"GIT_AUTHOR_{key}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{key}", value)
    git(clone, "commit", "-qm", "Notes")
    git(root, "pull", "-q", str(clone), "main")

    lines = run(call, "review").out.splitlines()

    assert lines[0] == "66 memories not approved on this machine"
    assert "Bob 66" in lines[2]
    assert any("xyzabc" in line and handle_of(ours.id) in line for line in lines)
    assert lines[-3:] == [
        "and 6 more: mind review --kind double",
        "",
        "to review: untrusted 66, double 9",
    ]
    assert len(lines) < 60
    assert run(call, "review", "--kind", "double").out.count("near-duplicates") == 9
