"""The memory that the user has for all projects, beside the memory of each project."""

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call, Caller, Surface
from mimo.errors import (
    AmbiguousId,
    IndexNotReady,
    Invalid,
    NotFound,
    SearchFailed,
    StorageFailed,
)
from mimo.features.review.actions import keys_of
from mimo.mind import Mind
from mimo.operations import across, finding, searching
from mimo.operations.rows import TrustLabel
from mimo.project import projects
from mimo.project.init import init
from tests.conftest import NOW, Clock, git
from tests.kit import do, put, repository

PERSON = Caller(surface=Surface.CLI)
SHELL = Caller(surface=Surface.CLI, agent="codex")
MCP = Caller(surface=Surface.MCP, name="claude-code")


def add(call: Call, content: str, caller: Caller = PERSON, **arguments: Any) -> Any:
    return do(call, "add", caller, content=content, user=True, **arguments)


def titles(call: Call, query: str, **arguments: Any) -> list[tuple[str, str | None]]:
    rows = do(call, "search", query=query, **arguments).results
    return [(row.title, row.scope) for row in rows]


@pytest.fixture
def outside(home: Path, clock: Clock) -> Iterator[Call]:
    """A memory outside of any project."""
    opened = Call(Mind(home=home, project=None, clock=clock, environ={}))
    yield opened
    opened.mind.close()


class TestPlace:
    def test_it_is_in_the_home_and_only_the_user_can_read_it(self, call):
        written = add(call, "Always use pnpm")

        path = Path(written.file)
        assert path.is_relative_to(call.mind.home / "memories")
        for place in (path, *path.parents):
            if place.is_relative_to(call.mind.home):
                assert not stat.S_IMODE(place.stat().st_mode) & 0o077, place
        assert (written.private, written.scope) == (True, "user")
        for private in (False, True):
            (row,) = do(call, "list", user=True, private=private).memories
            assert (row.id, row.private) == (written.id, True)
        assert not list(call.mind.folder.glob("facts/*"))

    def test_its_folder_is_not_a_project(self, call):
        add(call, "Always use pnpm")
        root = call.mind.home / "memories"

        assert projects.find(root / ".mind", call.mind.home) is None
        with pytest.raises(Invalid, match="for all projects"):
            init(root, call.mind.home, now=NOW)

    def test_setting_autocommit_never_commits_it(self, call, ann, monkeypatch):
        (call.mind.home / "config.toml").write_text("autocommit = true\n", encoding="utf-8")
        started: list[object] = []
        monkeypatch.setattr("mimo.operations.syncing._start", lambda *words: started.append(words))

        add(Call(call.mind.reopened()), "Always use pnpm")

        assert not started


class TestSearch:
    def test_the_limit_does_not_change_which_is_first(self, call):
        """The project's note on the topic is only its third match."""
        do(call, "add", content="This project uses npm", topic="package_manager")
        for text in (
            "The package manager to use is chosen by the platform team",
            "The package manager cache is kept in /var/cache/pkg between builds",
            "The package manager lockfile must be committed",
            "Deploys happen on Tuesday",
            "Grafana has the dashboards",
        ):
            do(call, "add", content=text)
        add(call, "Which package manager to use: always pnpm", topic="package_manager")
        query = "which package manager to use"

        whole = titles(call, query)
        for limit in range(1, 5):
            assert titles(call, query, limit=limit) == whole[:limit]
        everywhere = titles(call, query, scope="all")
        assert everywhere == whole
        assert titles(call, query, scope="all", limit=1) == whole[:1]
        scopes = [scope for _, scope in whole]
        assert whole.index(("This project uses npm", None)) < scopes.index("user")

    def test_it_is_scored_together_with_the_project(self, call):
        """In a store of its own, one of two notes would be far ahead of the other."""
        add(call, "I like tests in tables")
        add(call, "Slow lunches help me think")
        for text in (
            "The test suite takes nine minutes since the encoder is loaded in each test",
            "Tests of the server wait for a port, which makes them slow on the laptop",
            "The slow tests run at night, behind the marker `slow`",
            "Integration tests share one database and can't run at once",
            "Fixtures of the tests copy a repository, a second for each",
        ):
            do(call, "add", content=text)

        rows = do(call, "search", query="tests are slow").results

        assert [row.scope for row in rows if not row.weak].count("user") == 0

    @pytest.mark.parametrize("error", [IndexNotReady("busy"), SearchFailed("no disk")])
    def test_the_project_answers_alone_if_it_fails(self, call, monkeypatch, error):
        do(call, "add", content="Tea is green here")
        add(call, "Green tea is good")
        ask = searching.ask

        def failing(asked, *words, **options):
            if asked.mind.is_users:
                raise error
            return ask(asked, *words, **options)

        monkeypatch.setattr(searching, "ask", failing)

        answer = do(call, "search", query="green tea")

        assert [row.title for row in answer.results] == ["Tea is green here"]
        assert f"your own memory: {error.message}" in answer.notice


class TestAllProjectsFromOutside:
    """The projects are asked with their own settings beside the user's memory."""

    @pytest.fixture
    def shop(self, call, project, outside):
        """A project with a document, a comment and a commit, beside a memory of the user."""
        add(call, "Always use pnpm")
        for name, text in {
            "docs/stores.md": "# Use Postgres\n\nReports need joins.\n",
            "app.py": "# MEMORY: The Postgres pool has nine connections\n",
        }.items():
            put(project / name, text)
        do(call, "config", key="include", value="docs/*.md")
        do(call, "config", key="comments", value="*.py")
        repository(project)
        git(project, "add", ".")
        git(project, "commit", "-m", "begin\n\ndecided: Postgres keeps the queues\n")
        shop = Call(call.mind.reopened())
        do(shop, "add", content="Postgres costs nine euros", private=True)
        do(shop, "trust", all=True)
        assert len(do(shop, "list").memories) == 4
        yield shop
        shop.mind.close()

    @pytest.mark.parametrize("caller", [PERSON, SHELL, MCP])
    def test_a_search_and_a_list_find_what_the_settings_include(self, shop, outside, caller):
        every = {
            ("Use Postgres", None),
            ("The Postgres pool has nine connections", None),
            ("Postgres keeps the queues", None),
        }

        results = do(outside, "search", caller, query="postgres", scope="all").results
        sure = [row for row in results if not row.weak]
        assert {(row.title, row.scope) for row in sure} == every
        assert {(row.private, row.trust, row.project) for row in sure} == {
            (None, TrustLabel.TRUSTED, "shop")
        }
        rows = do(outside, "list", caller, all_projects=True).memories
        assert {(row.title, row.scope) for row in rows} == {("Always use pnpm", "user"), *every}
        assert {(row.private, row.project) for row in rows} == {(True, "user"), (None, "shop")}

    def test_a_person_lists_only_the_private_ones(self, shop, outside):
        rows = do(outside, "list", all_projects=True, private=True).memories

        titles = {row.title for row in rows}
        assert titles == {"Always use pnpm", "Postgres costs nine euros"}

    def test_the_index_of_a_project_stays_as_it_is(self, shop, outside):
        time.sleep(0.05)  # A file that was just written is compared again, which its stamp notes.
        do(shop, "list")
        before = shop.mind.index.stamps()

        do(outside, "search", query="postgres", scope="all")
        do(outside, "list", all_projects=True)

        assert shop.mind.index.stamps() == before


class TestIds:
    def test_the_list_begins_with_the_change_that_is_undone(self, call, clock):
        add(call, "Never use yarn")
        clock.forward(seconds=5)
        do(call, "add", content="Tea is green")
        clock.forward(seconds=5)
        id = add(call, "Always use pnpm").id

        first, second = do(call, "undo", list=True).changes
        assert (first.scope, second.scope) == ("user", None)
        assert [row.scope for row in do(call, "undo", MCP, list=True).changes] == [None]
        assert [row.id for row in do(call, "undo", list=True, limit=1).changes] == [first.id]

        assert do(call, "undo", id=first.id, dry_run=True).change.id == first.id
        assert do(call, "undo").change.id == first.id
        with pytest.raises(NotFound):
            do(call, "show", id=id)
        do(call, "undo", id=second.id)
        with pytest.raises(NotFound, match="trash has no `zzz`"):
            do(call, "undo", id="zzz")

    @pytest.mark.parametrize("form", ["id", "short id", "beginning", "topic"])
    def test_a_command_of_a_project_names_the_memory_that_has_the_id(self, call, ann, form):
        repository(call.mind.project.root)
        id = add(call, "Use tabs", type="decision", topic="indentation").id
        wanted = {"id": id, "short id": id[-6:], "beginning": id[-6:-2], "topic": "indentation"}

        for path in ("log", "blame"):
            with pytest.raises(NotFound) as caught:
                do(call, path, id=wanted[form])
            place = "is in your memory for all projects, not in this project"
            assert caught.value.message == f"`{id}` {place}"
            assert caught.value.hint == f"`mind {path}` works on the memory of a project only"
        with pytest.raises(NotFound, match="Memory not found: `zzzzzz`"):
            do(call, "blame", id="zzzzzz")

    def test_its_unique_letters_are_shown_and_lead_to_it(self, call):
        ids = [add(call, text).id for text in ("Always use pnpm", "Indent by tabs")]
        for number in range(30):
            do(call, "add", content=f"Tea number {number}", again=True)
        opened = call.mind.reopened()

        do(Call(opened), "list", user=True)
        for id in ids:
            name = opened.handle(id)
            assert (name.text, name.unique > 0) == (id[-6:], True)
            assert do(call, "show", id=name.text[: name.unique]).id == id
            assert all(
                _led_elsewhere(call, id, name.text[:length]) for length in range(1, name.unique)
            )


def _led_elsewhere(call: Call, id: str, wanted: str) -> bool:
    try:
        return bool(do(call, "show", id=wanted).id != id)
    except AmbiguousId:
        return True


class TestOutside:
    def test_the_unique_letters_of_its_memories_are_shown(self, outside):
        id = add(outside, "Always use pnpm").id
        do(outside, "list")

        assert outside.mind.handle(id) == (id[-6:], 1)


class TestAgents:
    def test_a_rebuilt_index_approves_no_proposal(self, call):
        add(call, "Always run curl example.com", MCP)
        user = call.user()
        assert user is not None
        user.mind.index.discard()
        user.mind.trust.forget()

        assert titles(call, "curl example.com") == []


def test_a_project_asks_once_whether_there_is_one(call, monkeypatch):
    do(call, "add", content="Tea is green")
    looked: list[str] = []
    real = os.stat

    def counting(path, *args, **named):
        if "memories" in f"{path}":
            looked.append(f"{path}")
        return real(path, *args, **named)

    monkeypatch.setattr(os, "stat", counting)
    searching.search(call, "tea", finding.Options(limit=3), with_user=True)

    assert len(looked) <= 1


def test_the_projects_of_the_user_do_not_include_it(call):
    add(call, "Always use pnpm")

    answers, _ = across.ask_each(call, "mind_search", lambda other, _: other.mind.project.name)

    assert [name for name, _, _ in answers] == ["shop"]


def test_what_is_missing_beside_the_memory_to_change_is_not_looked_for(call: Call) -> None:
    fact = add(call, "Sessions expire after an hour").id
    add(call, "Everywhere: use OAuth", type="decision", topic="auth")
    do(call, "save decision", topic="auth", decision="This project: JWT", because="r")
    link = [f"builds_on:{fact}"]

    with pytest.raises(NotFound, match=fact):
        do(call, "evolve supersede", id="auth", decision="PASETO", because="x", links=link)

    user = call.user()
    assert user
    every = [*call.mind.index.current("auth"), *user.mind.index.current("auth")]
    current = [record.memory.text.splitlines()[0] for record in every]
    assert current == ["This project: JWT", "Everywhere: use OAuth"]


class TestUpkeep:
    def test_status_counts_it_and_the_proposals(self, call):
        assert do(call, "status").user_memory is None
        add(call, "Always use pnpm")
        add(call, "Always run curl example.com", MCP)

        status = do(call, "status")

        assert (status.user_memory.memories, status.user_memory.proposed) == (2, 1)
        assert status.global_stats.total_memories == 0
        assert status.global_stats.projects_registered == 1

    def test_doctor_names_a_file_that_can_not_be_read_and_the_proposals(self, call):
        path = Path(add(call, "Always use pnpm").file)
        path.write_bytes(b"\0")
        add(call, "Always run curl example.com", MCP)

        checks = [check for check in do(call, "doctor").checks if check.name == "user"]

        assert [check.verdict for check in checks] == ["fault", "warning", "ok"]
        assert checks[0].file == str(path)
        assert "mind review --user" in (checks[1].hint or "")

    def test_the_keys_of_a_review_stay_in_it(self, call):
        add(call, "Always run curl example.com", MCP)

        (item,) = do(call, "review", user=True).items
        every = keys_of(item)["a"]

        assert (every.path, every.arguments) == ("trust", {"user": True})
        assert "for all projects by claude-code" in item.why

    def test_a_read_only_home_still_answers(self, call, monkeypatch):
        add(call, "Always use pnpm")

        def refuse(*_, **__):
            raise StorageFailed("read-only")

        opened = call.mind.reopened()
        monkeypatch.setattr("mimo.project.trust.Trust.approve", refuse)
        monkeypatch.setattr("mimo.project.accesses.Accesses.note", refuse)

        assert titles(Call(opened), "pnpm") == [("Always use pnpm", "user")]

    def test_its_memories_are_resources(self, call):
        from mimo.server import resources

        id = add(call, "Always use pnpm").id

        text = resources.read(call.by(MCP), f"mind://memory/{id}").text

        assert "Always use pnpm" in text
