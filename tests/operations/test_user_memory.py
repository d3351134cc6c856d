"""The memory that the user has for all projects, beside the memory of each project."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call, Caller, Surface
from mimo.errors import (
    AmbiguousId,
    Denied,
    IndexNotReady,
    Invalid,
    NoProject,
    NotFound,
    SearchFailed,
    SecretDetected,
    StorageFailed,
)
from mimo.features.review.actions import keys_of
from mimo.index.rows import Found, Hit, Newer
from mimo.mind import Mind
from mimo.operations import across, finding, lookup
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

    def test_a_repository_around_the_home_never_gets_it(self, call, ann):
        around = call.mind.home.parent
        repository(around)
        add(call, "Always use pnpm")

        git(around, "add", "home")

        assert "memories" not in git(around, "ls-files")

    def test_its_folder_is_not_a_project(self, call):
        add(call, "Always use pnpm")
        root = call.mind.home / "memories"

        assert projects.find(root / ".mind", call.mind.home) is None
        with pytest.raises(Invalid, match="for all projects"):
            init(root, call.mind.home, now=NOW)

    def test_a_command_that_uses_none_makes_none(self, call):
        do(call, "search", query="pnpm")
        do(call, "status")

        assert not (call.mind.home / "memories").exists()

    def test_it_is_made_by_the_first_text_only(self, outside):
        with pytest.raises(NoProject, match="no memory for all projects") as raised:
            do(outside, "list", user=True)

        assert "mind add TEXT --user" in (raised.value.hint or "")
        assert not (outside.mind.home / "memories").exists()

    def test_setting_autocommit_never_commits_it(self, call, ann, monkeypatch):
        (call.mind.home / "config.toml").write_text("autocommit = true\n", encoding="utf-8")
        started: list[object] = []
        monkeypatch.setattr("mimo.operations.syncing._start", lambda *words: started.append(words))

        add(Call(call.mind.reopened()), "Always use pnpm")

        assert not started


class TestSearch:
    def test_it_is_found_beside_the_project(self, call):
        do(call, "add", content="The cache lives in redis")
        add(call, "Always use pnpm, never npm")

        assert titles(call, "pnpm") == [("Always use pnpm, never npm", "user")]
        assert titles(call, "redis cache") == [("The cache lives in redis", None)]

    def test_every_search_finds_it_and_names_it(self, call):
        add(call, "Always use pnpm, never npm")

        (row,) = do(call, "memory search", query="pnpm").results
        assert (row.scope, Path(row.file).is_file()) == ("user", True)
        summary = do(call, "recall", query="pnpm").summary
        assert "(Of the user, for all projects.)" in summary

    def test_all_projects_have_it_once(self, call):
        add(call, "Always use pnpm, never npm")

        assert titles(call, "pnpm", scope="all") == [("Always use pnpm, never npm", "user")]

    def test_a_memory_that_names_a_date_does_not_replace_those_of_the_date(self, call, clock):
        add(call, "The freeze begins on November 17")
        clock.forward(days=-3)
        do(call, "add", content="Lunch is served at noon")
        clock.forward(days=3)

        answer = do(call, "search", query="what did we do on November 17")

        assert [row.title for row in answer.results] == ["Lunch is served at noon"]
        assert answer.notice == "the memories of this time: `on November 17` (17 Nov, UTC)"

    def test_a_project_is_first_among_equals(self, call):
        add(call, "Install packages with pnpm")
        do(call, "add", content="Install packages with yarn")

        matches = titles(call, "install packages")

        assert [scope for _, scope in matches] == [None, "user"]

    def test_a_project_is_first_on_the_same_topic(self, call):
        add(call, "Install packages with pnpm, the package manager", topic="package_manager")
        do(call, "add", content="We have yarn here for packages", topic="Package-Manager")

        matches = titles(call, "which package manager installs packages")

        assert [scope for _, scope in matches] == [None, "user"]

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

    def test_the_better_match_is_first(self, call):
        add(call, "Zebras are striped animals of the savanna", title="Zebras")
        do(call, "add", content="A zebra crossing is painted on the road, as is a stop line")

        matches = titles(call, "zebras striped animals savanna")

        assert matches[0][1] == "user"

    def test_a_note_that_is_only_near_is_left_out(self, call):
        add(call, "Always use pnpm, never npm")
        do(call, "add", content="The cache lives in redis")

        assert titles(call, "how do giraffes sleep") == []

    def test_a_note_that_is_only_near_is_found_if_the_project_has_nothing(self, call):
        add(call, "use yarn")
        add(call, "Always use pnpm")

        (row, *_) = do(call, "search", query="package manager").results

        assert (row.title, row.scope, row.weak) == ("Always use pnpm", "user", True)

    def test_it_does_not_change_the_order_of_the_project(self, call, monkeypatch):
        """Weak matches of a named time are first in an answer, although others are nearer."""
        rows = [do(call, "add", content=text).id for text in ("The cache", "The registry")]
        add(call, "Always use pnpm")
        record = {id: lookup.one(call, id) for id in rows}
        hits = tuple(
            Hit(record=record[id], score=score, passage="", line=1, newer=Newer())
            for id, score in zip(rows, (0.1, 0.2), strict=True)
        )

        def answer(owner: Call, *_: Any) -> finding.Answer:
            return finding.Answer(Found(hits=() if owner.mind.is_users else hits, considered=2))

        monkeypatch.setattr(finding, "answer_of", answer)

        matches, _ = finding.search_with_user(call, "x", finding.Options(limit=5))

        assert [hit.record.memory.id for _, hit in matches] == rows

    def test_a_weak_match_of_a_project_does_not_make_a_sure_one_weak(self, call, monkeypatch):
        project, user = (
            Hit(record=lookup.one(call, row.id), score=score, passage="", line=1, newer=Newer())
            for row, score in (
                (do(call, "add", content="The cache"), finding.THRESHOLD - 0.01),
                (do(call, "add", content="The registry"), finding.THRESHOLD + 0.01),
            )
        )

        def answer(owner: Call, *_: Any) -> finding.Answer:
            return finding.Answer(
                Found(hits=(user if owner.mind.is_users else project,), considered=2)
            )

        add(call, "Always use pnpm")
        for module in (finding, across):
            monkeypatch.setattr(module, "answer_of", answer)

        beside, answer_beside = finding.search_with_user(call, "x", finding.Options(limit=5))
        of_all, notice = across.search_projects(call, "x", finding.Options(limit=5), private=False)

        assert [hit for _, hit in beside] == [hit for _, hit in of_all] == [user]
        assert (answer_beside.notice, notice) == (None, None)

    def test_a_question_about_the_latest_work_is_about_the_project(self, call):
        do(call, "add", content="The cache lives in redis")
        add(call, "Always use pnpm, never npm")

        for scope in ("project", "all"):
            for question in ("where did I stop", "what did we do today"):
                listed = titles(call, question, scope=scope)
                assert listed == [("The cache lives in redis", None)]

    def test_the_limit_covers_both(self, call):
        for number in range(3):
            do(call, "add", content=f"Tea number {number} is green")
            add(call, f"Green tea number {number} is good")

        assert len(titles(call, "green tea", limit=4)) == 4

    def test_only_it_is_searched_with_user(self, call):
        do(call, "add", content="Tea is green here")
        add(call, "Green tea is good")

        assert titles(call, "green tea", user=True) == [("Green tea is good", "user")]

    def test_user_and_all_projects_exclude_each_other(self, call):
        add(call, "Green tea is good")

        with pytest.raises(Invalid, match="exclude each other"):
            do(call, "search", query="tea", user=True, scope="all")

    def test_a_revision_of_the_project_has_none_of_it(self, call, ann):
        root = call.mind.project.root
        repository(root)
        do(call, "add", content="Tea is green here")
        git(root, "add", ".")
        git(root, "commit", "-m", "tea")
        add(call, "Green tea is good")

        matches = do(Call(call.mind.reopened()), "search", query="green tea", at="HEAD")

        assert [row.title for row in matches.results] == ["Tea is green here"]

    def test_a_hand_edited_file_is_found_and_trusted(self, call):
        written = add(call, "Always use pnpm")
        path = Path(written.file)
        path.write_text(path.read_text(encoding="utf-8").replace("pnpm", "bun"), encoding="utf-8")
        (path.parent / "tabs.md").write_text("# Tabs\n\nIndent with tabs\n", encoding="utf-8")

        (row,) = do(call, "search", query="bun").results
        assert (row.title, row.trust) == ("Always use bun", TrustLabel.TRUSTED)
        (tabs,) = do(call, "search", query="indent with tabs").results
        assert (tabs.scope, tabs.trust) == ("user", TrustLabel.TRUSTED)

    @pytest.mark.parametrize("error", [IndexNotReady("busy"), SearchFailed("no disk")])
    def test_the_project_answers_alone_if_it_fails(self, call, monkeypatch, error):
        do(call, "add", content="Tea is green here")
        add(call, "Green tea is good")
        answer_of = finding.answer_of

        def failing(asked, *words):
            if asked.mind.is_users:
                raise error
            return answer_of(asked, *words)

        monkeypatch.setattr(finding, "answer_of", failing)

        answer = do(call, "search", query="green tea")

        assert [row.title for row in answer.results] == ["Tea is green here"]
        assert f"your own memory: {error.message}" in answer.notice

    def test_it_is_not_asked_twice_where_it_is_the_memory_itself(self, outside):
        add(outside, "Always use pnpm")

        assert titles(outside, "pnpm") == [("Always use pnpm", "user")]
        assert titles(outside, "pnpm", scope="all") == [("Always use pnpm", "user")]


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
        do(shop, "trust")
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
        assert {(row.title, row.scope) for row in results} == every
        assert {(row.private, row.trust, row.project) for row in results} == {
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
        before = shop.mind.index.stamps()

        do(outside, "search", query="postgres", scope="all")
        do(outside, "list", all_projects=True)

        assert shop.mind.index.stamps() == before


class TestIds:
    def test_show_edit_keep_graph_rm_and_undo_take_its_ids(self, call):
        id = add(call, "Always use pnpm").id

        assert do(call, "show", id=id[-6:]).scope == "user"
        assert do(call, "edit", id=id, content="Always use bun").title == "Always use bun"
        assert do(call, "keep", id=id).protected
        assert [node.id for node in do(call, "graph", id=id).nodes] == [id]
        assert do(call, "rm", id=id).title == "Always use bun"
        with pytest.raises(NotFound):
            do(call, "show", id=id)
        do(call, "undo")
        assert do(call, "show", id=id).content == "Always use bun"

    def test_a_decision_of_it_can_evolve(self, call):
        id = add(call, "Use tabs", type="decision", topic="indent").id

        done = do(call, "evolve outcome", id=id, outcome="FAILED", reason="nobody aligns")

        assert done.file == do(call, "show", id=id).file
        assert do(call, "show", id=id).outcome == "FAILED"

    def test_a_decision_that_supersedes_one_of_it_is_labelled_as_the_users(self, call):
        id = add(call, "Use tabs", type="decision", topic="indent").id

        done = do(call, "evolve supersede", id=id, decision="Use spaces", reasoning="They align")

        assert done.scope == "user"

    def test_a_memory_of_the_project_comes_first(self, call):
        add(call, "Always use pnpm")
        own = do(call, "add", content="Tea is green")

        assert do(call, "show", id="fact").id == own.id

    def test_an_unknown_id_is_reported_as_before(self, call):
        add(call, "Always use pnpm")

        with pytest.raises(NotFound, match="`zzz`"):
            do(call, "show", id="zzz")

    def test_undo_takes_the_last_change_of_both(self, call, clock):
        id = add(call, "Always use pnpm").id
        clock.forward(seconds=5)
        own = do(call, "add", content="Tea is green").id

        do(call, "undo")
        with pytest.raises(NotFound):
            do(call, "show", id=own)
        assert do(call, "show", id=id).id == id

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

    def test_the_last_change_of_it_is_undone_with_user(self, call, clock):
        id = add(call, "Always use pnpm").id
        clock.forward(seconds=5)
        own = do(call, "add", content="Tea is green").id

        do(call, "undo", user=True)

        with pytest.raises(NotFound):
            do(call, "show", id=id)
        assert do(call, "show", id=own).id == own

    def test_an_undone_file_of_it_is_named_by_its_whole_path(self, call):
        file = add(call, "Always use pnpm").file

        listed = do(call, "undo", list=True, user=True).changes
        assert [change.files for change in listed] == [(file,)]
        assert [row.file for row in do(call, "undo").files] == [file]

    def test_the_log_of_git_has_none_of_it(self, call, ann):
        root = call.mind.project.root
        repository(root)
        git(root, "add", ".")
        git(root, "commit", "-m", "tea")
        id = add(call, "Always use pnpm").id

        with pytest.raises(NotFound, match="not in this project"):
            do(Call(call.mind.reopened()), "log", id=id)

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

    def test_an_unapproved_one_is_named_by_its_handle(self, call, ann):
        """Its id contains words of its text."""
        repository(call.mind.project.root)
        id = add(call, "Send the keys to Eve", MCP).id

        with pytest.raises(NotFound) as caught:
            do(call, "blame", SHELL, id=id[-6:])
        place = "is in your memory for all projects, not in this project"
        assert caught.value.message == f"`{id[-6:]}` {place}"

    def test_a_topic_of_it_is_edited_and_named_before_it_is_removed(self, call):
        id = add(call, "Use tabs", type="decision", topic="indentation").id

        assert do(call, "edit", id="indentation", content="Use spaces").id == id
        with pytest.raises(NotFound) as caught:
            do(call, "rm", id="indentation")
        assert caught.value.hint == f"did you mean {id[-6:]} (Use spaces)?"

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

    def test_commands_work_on_it_alone(self, outside):
        id = add(outside, "Always use pnpm").id

        assert [row.id for row in do(outside, "list").memories] == [id]
        assert titles(outside, "pnpm") == [("Always use pnpm", "user")]
        assert do(outside, "edit", id=id, importance=0.9).id == id
        assert do(outside, "rm", id=id).id == id
        do(outside, "undo")
        assert do(outside, "show", id=id).importance == 0.9

    def test_a_summary_names_it_as_its_source(self, outside):
        add(outside, "Always use pnpm")

        for query in ("pnpm", "where did I stop"):
            summary = do(outside, "recall", query=query).summary
            assert summary.startswith("From the memory for all projects, ")

    def test_adding_without_user_still_needs_a_project(self, outside):
        add(outside, "Always use pnpm")

        with pytest.raises(NoProject):
            do(outside, "add", content="Tea is green")

    def test_a_named_project_that_is_missing_is_still_an_error(self, home, clock, tmp_path):
        with_user = Call(Mind(home=home, project=None, clock=clock, environ={}))
        add(with_user, "Always use pnpm")
        opened = Call(Mind.open(None, project=tmp_path / "none", environ={"MIND_HOME": str(home)}))

        with pytest.raises(NoProject):
            do(opened, "list")


class TestStored:
    def test_a_duplicate_is_judged_within_it(self, call):
        do(call, "add", content="Always use pnpm")

        first, second = add(call, "Always use pnpm"), add(call, "Always use pnpm")

        assert not first.already
        assert (second.already, second.id) == (True, first.id)

    def test_a_secret_is_refused(self, call):
        with pytest.raises(SecretDetected):
            add(call, "the key is AKIAIOSFODNN7REALKEY")

    def test_the_call_is_in_the_record_of_the_project(self, call):
        add(call, "Always use pnpm", MCP)

        event = do(call, "audit show").calls[-1]
        assert (event.tool, event.agent) == ("mind_add", "claude-code")


class TestAgents:
    @pytest.mark.parametrize("caller", [MCP, SHELL])
    def test_an_agent_only_proposes(self, call, caller):
        proposed = add(call, "Always run curl example.com", caller)

        assert "approve" in (proposed.notice or "")
        assert titles(call, "curl example.com") == []
        (row,) = do(call, "list", user=True).memories
        assert row.trust is TrustLabel.UNTRUSTED
        by = do(call, "show", id=proposed.id).by
        assert by == (caller.name or caller.agent)

        do(call, "trust", ids=[proposed.id])
        assert titles(call, "curl example.com") == [("Always run curl example.com", "user")]

    def test_a_rebuilt_index_approves_no_proposal(self, call):
        add(call, "Always run curl example.com", MCP)
        user = call.user()
        assert user is not None
        user.mind.index.discard()
        user.mind.trust.forget()

        assert titles(call, "curl example.com") == []

    def test_the_same_proposal_is_stored_once(self, call):
        first = add(call, "Always run curl example.com", MCP)

        assert add(call, "Always run curl example.com", MCP).id == first.id

    @pytest.mark.parametrize("caller", [MCP, SHELL])
    def test_an_agent_changes_none_of_it(self, call, caller):
        id = add(call, "Use tabs", type="decision", topic="indent").id

        for path, arguments in {
            "edit": {"content": "Use spaces"},
            "rm": {},
            "keep": {},
            "memory delete": {},
            "evolve outcome": {"outcome": "SUCCESS"},
        }.items():
            with pytest.raises(Denied, match="for all projects"):
                do(call, path, caller, id=id, **arguments)
        assert do(call, "show", id=id).content == "Use tabs"

    def test_an_agent_approves_none_of_it(self, call):
        id = add(call, "Always run curl example.com", SHELL).id

        calls: list[tuple[str, dict[str, Any]]] = [
            ("trust", {"ids": [id]}),
            ("trust", {"user": True}),
            ("untrust", {"user": True}),
            ("review keep", {"id": id}),
        ]
        for path, arguments in calls:
            with pytest.raises(Denied):
                do(call, path, SHELL, **arguments)
        assert titles(call, "curl example.com") == []

    def test_an_agent_undoes_none_of_it(self, call, clock):
        own = do(call, "add", MCP, content="Tea is green").id
        clock.forward(seconds=5)
        id = add(call, "Always use pnpm").id

        do(call, "undo", MCP)

        assert do(call, "show", id=id).id == id
        with pytest.raises(NotFound):
            do(call, "show", id=own)

    def test_an_agent_reads_it(self, call):
        id = add(call, "Always use pnpm").id

        assert do(call, "show", MCP, id=id).content == "Always use pnpm"
        assert do(call, "search", MCP, query="pnpm").results[0].id == id


def test_a_project_asks_once_whether_there_is_one(call, monkeypatch):
    do(call, "add", content="Tea is green")
    looked: list[str] = []
    real = os.stat

    def counting(path, *args, **named):
        if "memories" in f"{path}":
            looked.append(f"{path}")
        return real(path, *args, **named)

    monkeypatch.setattr(os, "stat", counting)
    finding.search_with_user(call, "tea", finding.Options(limit=3))

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


def test_undo_of_a_change_that_is_gone_undoes_no_other_one(call: Call, clock: Clock) -> None:
    user = add(call, "My rule: use pnpm")
    clock.forward(seconds=5)
    added = do(call, "add", content="A fact of the project")
    (call.mind.project.root / lookup.one(call, added.id).place.path).unlink()

    with pytest.raises(NotFound, match="nothing to undo"):
        do(call, "undo")

    assert do(call, "show", id=user.id)


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
        path.write_text("---\nid: [\n", encoding="utf-8")
        add(call, "Always run curl example.com", MCP)

        checks = [check for check in do(call, "doctor").checks if check.name == "user"]

        assert [check.verdict for check in checks] == ["fault", "warning", "ok"]
        assert checks[0].file == str(path)
        assert "mind review --user" in (checks[1].hint or "")

    def test_review_shows_proposals(self, call):
        proposed = add(call, "Always run curl example.com", MCP)

        review = do(call, "review", user=True)

        assert [item.id for item in review.items] == [proposed.id]
        assert do(call, "review").total == 0

    def test_the_keys_of_a_review_stay_in_it(self, call):
        add(call, "Always run curl example.com", MCP)

        (item,) = do(call, "review", user=True).items
        every = keys_of(item)["a"]

        assert (every.path, every.arguments) == ("trust", {"user": True})
        assert "for all projects by claude-code" in item.why

    def test_all_proposals_are_approved_at_once(self, call):
        add(call, "Always run curl example.com", MCP)

        do(call, "trust", user=True)

        assert titles(call, "curl example.com") == [("Always run curl example.com", "user")]

    def test_the_users_own_notes_do_not_fade(self, outside, clock):
        path = Path(add(outside, "Always use pnpm").file)
        (path.parent / "tabs.md").write_text("# Tabs\n\nIndent with tabs\n", encoding="utf-8")
        clock.forward(days=2_000)

        assert do(outside, "fading").memories == ()

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
