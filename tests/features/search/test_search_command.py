"""`mind_search`."""

from collections import Counter

import pytest

from mimo.call import Call
from mimo.cli.main import main
from mimo.errors import Invalid
from mimo.features.notes.commands import add
from mimo.features.search.commands import MOST_CONTENT, Scope, search
from mimo.mind import Mind
from mimo.operations import finding
from mimo.project import projects
from mimo.rendering.terminal import TerminalScreen
from tests.conftest import git


@pytest.mark.req("003-09")
def test_the_line_is_that_of_the_best_passage(call):
    path = call.mind.folder / "notes" / "long.md"
    path.parent.mkdir()
    filler = "\n".join(f"line {n} about nothing in particular, of some length" for n in range(80))
    path.write_text(f"# Long\n\n{filler}\n\nThe zebra crossing is closed.\n", encoding="utf-8")

    (row,) = search(call, "zebra crossing").results

    lines = path.read_text(encoding="utf-8").splitlines()
    assert "zebra" in " ".join(lines[row.source_line - 1 : row.source_line + 8])
    assert row.source_file == ".mind/notes/long.md"


def test_a_long_memory_is_answered_by_its_best_passage(call):
    filler = "\n".join(f"line {n} about nothing in particular, of some length" for n in range(80))
    add(call, f"{filler}\nThe zebra crossing is closed.")

    (row,) = search(call, "zebra crossing").results

    assert row.excerpt is True
    assert "zebra" in row.content
    assert len(row.content) < MOST_CONTENT


@pytest.mark.req("003-04")
def test_the_default_limit_is_ten_results(call):
    for number in range(12):
        add(call, f"deploy step {number}")

    assert search(call, "deploy step").total == 10
    assert search(call, "deploy step", limit=3).total == 3


def test_without_a_sure_match_the_nearest_are_returned_as_weak(call, monkeypatch):
    monkeypatch.setattr(finding, "THRESHOLD", 0.999)
    for number in range(5):
        add(call, f"Lunch number {number} is served at noon")

    answer = search(call, "why is lunch number four late in winter")

    assert answer.total == 3
    assert all(row.weak for row in answer.results)
    assert "nearest" in (answer.notice or "")
    assert search(call, "why is lunch number four late in winter", threshold=0.999).total == 0


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


class TestTime:
    """Times in questions."""

    @pytest.fixture
    def days(self, call, clock):
        """Returns the ids of memories by their age in days."""
        clock.forward(days=-30)
        ids = {}
        texts = {
            30: "The deploys are slow on the old server",
            10: "Dropped the beta flag of the search page",
            3: "The deploys failed because the disk was full",
            1: "Chose nginx in front of the api",
            0: "Lunch is served at noon",
        }
        before = 30
        for age, text in texts.items():
            clock.forward(days=before - age)
            before = age
            ids[age] = add(call, text, type="decision" if age == 1 else "fact").id
        return ids

    def test_matches_of_the_time_are_first_even_if_none_is_sure(self, call, days, clock):
        clock.forward(days=-30)
        add(call, "A car would not start, an engine problem")
        clock.forward(days=29)
        new = add(call, "The automobile would not start in cold weather")
        clock.forward(days=1)

        answer = search(call, "vehicle trouble this week")

        assert answer.results[0].id == new.id

    def test_a_related_memory_that_does_not_name_the_day_is_weak(self, call, clock):
        clock.forward(days=-200)
        add(call, "Stand-up is at 09:30, every day but Wednesday")
        clock.forward(days=190)
        add(call, "Images are resized by a function")
        clock.forward(days=10)

        answer = search(call, "what did we do on tuesday")

        assert (answer.notice or "").startswith(
            "no memory is of this time: `on tuesday` (17 Nov, UTC); these"
        )
        assert answer.results
        assert all(row.weak for row in answer.results)


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
