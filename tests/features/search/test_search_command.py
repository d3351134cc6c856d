"""`mind_search`."""

from collections import Counter

import pytest

from mimo.call import Call
from mimo.cli.main import main
from mimo.errors import Invalid
from mimo.features.notes.commands import add
from mimo.features.search.commands import Scope, search
from mimo.mind import Mind
from mimo.operations import searching
from mimo.project import projects
from mimo.rendering.terminal import TerminalScreen
from tests.conftest import git


def test_without_a_sure_match_the_nearest_are_returned_as_weak(call, monkeypatch):
    monkeypatch.setattr(searching, "SURE", 0.999)
    for number in range(5):
        add(call, f"Lunch number {number} is served at noon")

    answer = search(call, "why is lunch number four late in winter")

    assert answer.total == 3
    assert all(row.weak for row in answer.results)
    assert "nearest" in (answer.notice or "")
    assert search(call, "why is lunch number four late in winter", threshold=0.999).total == 0


def test_sure_matches_below_a_threshold_are_not_counted_as_beyond_the_limit(call):
    for number in range(3):
        add(call, f"Lunch number {number} is served at noon")

    limited = search(call, "lunch noon", limit=2)
    assert limited.notice == "1 sure result is beyond the limit"
    assert search(call, "lunch noon", threshold=0.99).notice is None


@pytest.mark.parametrize("query", ["cookie jar", "what did we do today"])
def test_a_memory_of_two_worktrees_is_one_match(call, project, tmp_path, home, query):
    git(project, "init", "-q", "-b", "main")
    for number in range(12):
        add(call, f"Cookie jar number {number} is full")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "jars", at="2026-11-20T15:30:00Z")
    git(project, "worktree", "add", "-q", "-b", "side", str(tmp_path / "tree"))
    linked = projects.explicit(tmp_path / "tree", home)
    tree = Call(Mind(home=home, project=linked, clock=call.mind.clock, environ={}))
    add(call, "Cookie jar number 12 is full")
    edited = next((tree.mind.folder / "facts").iterdir())
    edited.write_text(edited.read_text(encoding="utf-8").replace("full", "empty"), encoding="utf-8")

    answer = search(tree, query, scope=Scope.ALL, limit=20)

    assert answer.total == 14
    assert Counter(row.project for row in answer.results) == {"tree": 12, "shop": 2}
    assert search(tree, query, scope=Scope.ALL, limit=13).total == 13


def test_a_query_that_is_a_whole_book_is_refused(call):
    with pytest.raises(Invalid, match="too long"):
        search(call, "tea " * 5000)


def test_the_words_of_one_stem_are_highlighted(call, monkeypatch, capsys):
    add(call, "# Nightly jobs\n\nThe databases are restored after a reset.")
    screen = TerminalScreen(colour=True, width=80)
    monkeypatch.setattr("mimo.rendering.results.screen_for", lambda *_, **__: screen)

    assert (
        main(["search", "restoring", "a", "database", "--no-pager"], open=lambda _: call.mind) == 0
    )
    out = capsys.readouterr().out

    assert "\x1b[1;33mdatabases\x1b[0m" in out
    assert "\x1b[1;33mrestored\x1b[0m" in out
    assert "\x1b[1;33mreset" not in out
