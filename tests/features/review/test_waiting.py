"""Items that need a decision, in real repositories, and resolving them."""

import os
import threading

import pytest

from mimo.call import Call
from mimo.errors import AmbiguousId, Invalid, NotFound
from mimo.features import review
from mimo.features.review import Waiting
from mimo.features.upkeep.commands import config
from mimo.memory.model import Kind, Link, Outcome, Section
from mimo.operations import finding, lookup, saving
from tests.conftest import git

CODE = "def login(user):\n    return user.token\n\ndef logout(user):\n    user.token = None\n"
DAY = 86_400


@pytest.fixture
def repository(project):
    git(project, "init", "-q", "-b", "main")
    (project / "auth.py").write_text(CODE, encoding="utf-8")
    git(project, "add", "auth.py")
    git(project, "commit", "-qm", "code")
    return project


def stored(call, text, kind=Kind.FACT, **fields):
    return saving.store(call, saving.draft(kind, text, **fields))


def commit(root, message="more"):
    git(root, "add", "-A")
    git(root, "commit", "-qm", message)


def listed(call, *kinds, kept=False):
    return [
        (item.kind.value, item.why)
        for item in review.waiting(call, kinds or Waiting, with_hidden=kept)
    ]


def write(root, name, text):
    path = root / ".mind" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


class TestStale:
    def test_a_memory_is_stale_if_its_cited_lines_changed(self, repository, call):
        record = stored(call, "The token is returned (auth.py:1-2, https://x.y/auth.py:3)")
        commit(repository)
        assert listed(call, Waiting.STALE) == []

        (repository / "auth.py").write_text(CODE.replace("user.token\n", "user.s\n", 1), "utf-8")
        commit(repository)

        ((_, why),) = listed(call, Waiting.STALE)
        assert why.endswith("lines 1-2 of auth.py changed")
        assert git(repository, "log", "-1", "--format=%h", "--abbrev=10", "HEAD~1") in why
        (item,) = review.waiting(call, (Waiting.STALE,))
        assert (item.id, item.file) == (record.memory.id, record.place.path)

    def test_moved_lines_and_unknown_places_are_not_stale(self, repository, call):
        stored(call, "see auth.py:1-2, nowhere.py:7 and auth.py#logout")
        commit(repository)
        (repository / "auth.py").write_text("import os\n\n" + CODE, "utf-8")
        assert listed(call, Waiting.STALE) == []

    def test_a_missing_file_and_a_missing_name_are_one_item(self, repository, call):
        (repository / "b.py").write_text("x = 1\n", "utf-8")
        stored(call, "see b.py:1 and auth.py#logout")
        commit(repository)
        (repository / "b.py").unlink()
        (repository / "auth.py").write_text("def login(): ...\n", "utf-8")

        ((_, why),) = listed(call, Waiting.STALE)

        assert why.endswith("b.py is missing; logout is not in auth.py")

    def test_a_memory_stays_stale_until_its_text_changes(self, repository, call):
        record = stored(call, "see auth.py:1-2", Kind.DECISION)
        commit(repository)
        (repository / "auth.py").write_text("def login(): ...\n", "utf-8")
        commit(repository)

        record = saving.edit(call, record, importance=0.9, sections={Section.OUTCOME: "- x"})
        assert len(listed(call, Waiting.STALE)) == 1
        commit(repository)
        assert len(listed(call, Waiting.STALE)) == 1
        saving.edit(call, record, content="see auth.py:1")
        commit(repository)
        assert listed(call, Waiting.STALE) == []

    def test_an_uncommitted_memory_is_compared_by_the_time_of_its_file(self, project, call):
        git(project, "init", "-q", "-b", "main")
        code = project / "auth.py"
        code.write_text(CODE, "utf-8")
        git(project, "add", "auth.py")
        git(project, "commit", "-qm", "code", at=f"{DAY * 10_000} +0000")
        record = stored(call, "see auth.py:1-2")
        path = project / record.place.path
        os.utime(path, (DAY * 10_001, DAY * 10_001))
        code.write_text("def login(): ...\n", "utf-8")
        # The code was changed before the memory was written: it is what the memory means.
        os.utime(code, (DAY * 10_000.5, DAY * 10_000.5))
        assert listed(call, Waiting.STALE) == []

        os.utime(code, (DAY * 10_002, DAY * 10_002))
        assert len(listed(call, Waiting.STALE)) == 1

    def test_a_superseded_memory_is_not_stale(self, repository, call):
        old = stored(call, "see auth.py:1-2", Kind.DECISION)
        commit(repository)
        (repository / "auth.py").write_text("", "utf-8")
        stored(call, "new", Kind.DECISION, links=(Link(to=old.memory.id, type="supersedes"),))
        assert listed(call, Waiting.STALE) == []

    def test_paths_are_relative_to_a_project_below_the_repository(self, tmp_path, call):
        git(tmp_path, "init", "-q", "-b", "main")
        code = call.mind.project.root / "auth.py"
        code.write_text(CODE, "utf-8")
        stored(call, "see auth.py:1-2")
        commit(call.mind.project.root)
        code.write_text("", "utf-8")
        assert len(listed(call, Waiting.STALE)) == 1

    def test_nothing_is_stale_without_git_or_a_commit(self, project, call):
        stored(call, "see auth.py:1-2")
        assert listed(call, Waiting.STALE) == []
        git(project, "init", "-q")
        assert listed(call, Waiting.STALE) == []

    @pytest.mark.attack("symbolic link")
    def test_a_link_out_of_the_project_is_not_followed(self, repository, call, tmp_path):
        stored(call, "see auth.py:1-2")
        commit(repository)
        (tmp_path / "secret").write_text("x", "utf-8")
        (repository / "auth.py").unlink()
        (repository / "auth.py").symlink_to(tmp_path / "secret")
        assert listed(call, Waiting.STALE) == []


TWO = (
    "---\nid: d1\ntype: decision\noutcome: FAILED\ncreated: 2026-11-01T08:00:00Z\n---\n"
    "Use JWT\n\n## Competing: outcome\nSUCCESS\n\n## Competing: the text\nUse sessions\n"
)


class TestVersions:
    def test_a_merge_is_one_item_with_the_current_version_of_each_field_first(self, call):
        write(call.mind.project.root, "decisions/d1.md", TWO)

        (item,) = review.waiting(call, (Waiting.VERSIONS,))

        assert item.why == "the branches disagree on outcome and the text"
        fields = (item, *item.others)
        assert [(part.field, [c.text for c in part.choices]) for part in fields] == [
            ("outcome", ["FAILED", "SUCCESS"]),
            ("the text", ["Use JWT", "Use sessions"]),
        ]

    def test_settling_one_field_keeps_the_rest_of_the_file(self, call):
        write(call.mind.project.root, "decisions/d1.md", TWO)

        review.settle(call, "d1", "2", field="outcome")

        text = (call.mind.folder / "decisions" / "d1.md").read_text("utf-8")
        assert text == TWO.replace("FAILED", "SUCCESS").replace(
            "## Competing: outcome\nSUCCESS\n\n", ""
        )

    def test_without_a_field_one_side_is_taken_for_all_fields(self, call):
        write(call.mind.project.root, "decisions/d1.md", TWO)
        review.settle(call, "d1", "2")
        memory = lookup.one(call, "d1").memory
        assert (memory.content, memory.outcome, memory.competing) == (
            "Use sessions", Outcome.SUCCESS, (),
        )  # fmt: skip
        assert listed(call, Waiting.VERSIONS) == []

    def test_both_texts_can_be_kept_but_not_both_values(self, call):
        write(call.mind.project.root, "decisions/d1.md", TWO)
        with pytest.raises(Invalid, match="one value"):
            review.settle(call, "d1", "both")
        assert (call.mind.folder / "decisions" / "d1.md").read_text("utf-8") == TWO

        review.settle(call, "d1", "both", field="the text")

        assert lookup.one(call, "d1").memory.content == "Use JWT\n\nUse sessions"

    @pytest.mark.parametrize("take", ["0", "3", "x", "", "-1", "\u00b2", "1" * 5_000])
    def test_an_unknown_version_is_refused(self, call, take):
        write(call.mind.project.root, "decisions/d1.md", TWO)
        with pytest.raises(Invalid):
            review.settle(call, "d1", take)

    def test_versions_can_not_be_hidden(self, call):
        write(call.mind.project.root, "decisions/d1.md", TWO)
        with pytest.raises(Invalid, match="both versions"):
            review.keep(call, "d1")


class TestMemories:
    @pytest.fixture
    def rivals(self, call, clock):
        first = stored(call, "Use JWT", Kind.DECISION, topic="auth")
        clock.forward(hours=1)
        second = stored(call, "Use sessions", Kind.DECISION, topic="Auth")
        return second.memory.id, first.memory.id

    def test_the_chosen_decision_supersedes_the_others(self, call, rivals):
        newer, older = rivals
        (item,) = review.waiting(call)
        assert (item.kind, item.ids) == (Waiting.DECISIONS, rivals)

        review.settle(call, older, "2")

        assert finding.successor(call, newer) == older
        assert listed(call) == []

    def test_of_two_processes_that_choose_differently_one_is_refused(
        self, call, rivals, monkeypatch
    ):
        newer, older = rivals
        refused, edit = [], saving.edit

        def choose_the_other() -> None:
            with pytest.raises(NotFound, match="nothing to resolve") as error:
                review.settle(Call(call.mind.reopened()), older, "1")
            refused.append(error.value)

        other = threading.Thread(target=choose_the_other)

        def slowly(*given, **fields):
            monkeypatch.setattr(saving, "edit", edit)
            other.start()
            other.join(0.5)  # Unless it waits for us.
            return edit(*given, **fields)

        monkeypatch.setattr(saving, "edit", slowly)
        review.settle(call, older, "2")
        other.join()

        assert len(refused) == 1
        assert finding.successor(call, newer) == older
        assert finding.successor(call, older) is None

    def test_both_decisions_are_kept_until_one_changes(self, call, rivals):
        review.settle(call, rivals[0], "both")
        assert listed(call) == []
        assert [kind for kind, _ in listed(call, kept=True)] == ["decisions"]

        saving.edit(call, lookup.one(call, rivals[0]), content="Use sessions for a day")

        assert [kind for kind, _ in listed(call)] == ["decisions"]

    def test_a_contradiction_is_resolved_by_superseding(self, call):
        old = stored(call, "The limit is 50")
        new = stored(call, "The limit is 80", links=(Link(to=old.memory.id, type="contradicts"),))
        ((kind, why),) = listed(call)
        assert (kind, why) == ("contradiction", "it contradicts The limit is 50")
        choices = review.waiting(call)[0].choices
        numbers = {c.record.memory.id: n for n, c in enumerate(choices, 1) if c.record}

        review.settle(call, old.memory.id, str(numbers[new.memory.id]))

        assert [link.type for link in lookup.one(call, new.memory.id).memory.links] == [
            "supersedes"
        ]
        assert listed(call) == []

    def test_a_failed_decision_is_not_a_contradiction(self, call):
        old = stored(call, "A", Kind.DECISION, outcome=Outcome.FAILED)
        stored(call, "B", links=(Link(to=old.memory.id, type="contradicts"),))
        assert listed(call) == []

    def test_a_memory_in_two_items_needs_a_kind(self, call, rivals):
        stored(call, "No", links=(Link(to=rivals[0], type="contradicts"),))
        with pytest.raises(AmbiguousId, match="2 items"):
            review.settle(call, rivals[0], "1")
        review.settle(call, rivals[0], "1", kind=Waiting.DECISIONS)

    def test_a_memory_in_several_pairs_needs_the_other_one(self, call):
        first = stored(call, "The limit is 50").memory.id
        links: tuple[Link, ...] = (Link(to=first, type="contradicts"),)
        second = stored(call, "The limit is 80", links=links).memory.id
        links = (*links, Link(to=second, type="contradicts"))
        third = stored(call, "The limit is 90", links=links).memory.id

        with pytest.raises(AmbiguousId) as raised:
            review.settle(call, first, "both")
        assert raised.value.hint == f"name the other memory with `--against`: {second}, {third}"
        review.settle(call, first, "both", against=second)
        assert {item.ids for item in review.waiting(call)} == {(third, first), (third, second)}
        with pytest.raises(NotFound):
            review.settle(call, first, "both", against=second)

    def test_a_memory_without_items_is_an_error(self, call):
        record = stored(call, "tea")
        for action in (review.settle, review.keep):
            with pytest.raises(NotFound):
                action(call, record.memory.id, *(["1"] if action is review.settle else []))

    def test_a_read_only_document_can_not_be_chosen(self, call, rivals):
        write(call.mind.project.root, "adr/0001.md", "---\ntype: decision\ntopic: auth\n---\n# X\n")
        (item,) = review.waiting(call)
        numbers = [
            n for n, c in enumerate(item.choices, 1) if c.record and not c.record.place.owned
        ]
        with pytest.raises(Invalid, match="only reads"):
            review.settle(call, rivals[0], str(numbers[0]))

    def test_a_shared_memory_can_not_supersede_a_private_one(self, call):
        shared = stored(call, "The limit is 50").memory.id
        links = (Link(to=shared, type="contradicts"),)
        draft = saving.draft(Kind.FACT, "The limit is 80", links=links)
        private = saving.store(call, draft, private=True).memory.id

        with pytest.raises(Invalid, match="must not name a private memory") as raised:
            review.settle(call, shared, "2")
        assert raised.value.hint == "take another, or both"
        review.settle(call, shared, "1")
        assert finding.successor(call, shared) == private


class TestTheRest:
    def test_the_most_urgent_items_come_first(self, call, clock):
        write(
            call.mind.project.root, "facts/conflict.md", "<<<<<<< ours\na\n=======\nb\n>>>>>>> x\n"
        )
        write(call.mind.project.root, "decisions/d1.md", TWO)
        stored(call, "tea")
        clock.forward(days=400)
        call.mind.trust.forget()
        kinds = [kind for kind, _ in listed(call)]
        assert kinds == ["unreadable", "versions", "untrusted", "untrusted", "fading"]

    def test_an_ingested_file_is_one_item(self, call):
        from mimo.features.ingest.commands import ingest

        (call.mind.project.root / "a.md").write_text("# A\n\nOne.\n\n## B\n\nTwo.\n", "utf-8")
        ingest(call, str(call.mind.project.root / "a.md"), chunk_size=50)
        call.mind.trust.forget()
        (item,) = review.waiting(call, (Waiting.UNTRUSTED,))
        assert item.id
        assert item.id.startswith("source_a_md")
        review.keep(call, item.id)
        assert listed(call, Waiting.UNTRUSTED) == []

    def test_a_hidden_item_is_shown_again_when_its_text_changes(self, call):
        write(call.mind.project.root, "facts/a.md", "one\n")
        call.mind.trust.forget()
        review.keep(call, review.waiting(call)[0].id or "")
        assert listed(call) == []
        write(call.mind.project.root, "facts/a.md", "another\n")
        assert len(listed(call)) == 1

    def test_a_hidden_file_that_can_not_be_read_is_shown_again_when_it_changes(self, call):
        write(call.mind.project.root, "facts/a.md", "---\nid: x\n")
        review.keep(call, ".mind/facts/a.md")
        assert listed(call) == []
        write(call.mind.project.root, "facts/a.md", "---\nid: y\n")
        assert len(listed(call)) == 1

    def test_a_weak_memory_where_nothing_fades_has_no_number_of_days(self, call):
        saving.store(call, saving.draft(Kind.FACT, "tea", importance=0.08))
        config(call, "decay.rate", "0")
        assert "inf" not in str(listed(Call(call.mind.reopened()), Waiting.FADING))

    def test_a_hidden_item_can_be_shown_again(self, call):
        write(call.mind.project.root, "facts/a.md", "one\n")
        call.mind.trust.forget()
        name = review.waiting(call)[0].id or ""
        review.keep(call, name)
        review.keep(call, name, off=True)
        assert len(listed(call)) == 1
        with pytest.raises(NotFound, match="nothing hidden"):
            review.keep(call, name, off=True)

    def test_keeping_a_fading_memory_protects_it_in_its_file(self, call, clock):
        record = stored(call, "tea")
        clock.forward(days=400)
        done = review.keep(call, record.memory.id)
        assert done.files == (record.place.path,)
        assert lookup.one(call, record.memory.id).memory.protected is True

    def test_a_damaged_list_of_hidden_items_is_read_as_far_as_possible(self, call):
        write(call.mind.project.root, "facts/a.md", "one\n")
        call.mind.trust.forget()
        (item,) = review.waiting(call)
        review.keep(call, item.id or "")
        path = next((call.mind.folder / ".local").glob("reviewed-*"))
        path.write_bytes(b"\xff garbage\n" + b"b" * 64)
        assert listed(call) != []
        review.keep(call, item.id or "")
        assert review.hidden(call) == {"b" * 64, item.key}

    def test_the_count_matches_the_list(self, call):
        write(call.mind.project.root, "decisions/d1.md", TWO)
        call.mind.trust.forget()
        assert review.count(call) == {"versions": 1, "untrusted": 1}


class TestDoubles:
    def test_near_duplicates_are_listed_until_they_are_resolved(self, call, clock):
        text = "The staging database is reset every night at three by the cron job"
        first = stored(call, text)
        clock.forward(hours=1)
        second = stored(call, text.replace("three", "four"))
        stored(call, "Safari drops third party cookies")

        (item,) = review.waiting(call, (Waiting.DOUBLE,))
        assert item.ids == (second.memory.id, first.memory.id)

        review.settle(call, first.memory.id, "both")
        assert listed(call, Waiting.DOUBLE) == []
        review.keep(call, first.memory.id, off=True)
        review.settle(call, first.memory.id, "1", kind=Waiting.DOUBLE)
        assert finding.successor(call, first.memory.id) == second.memory.id
        assert listed(call, Waiting.DOUBLE) == []

    def test_a_link_by_title_is_a_link_between_near_duplicates(self, call):
        text = "The staging database is reset every night at three by the cron job"
        stored(call, text, title="Reset")
        stored(call, f"{text} too, see [[Reset]]")

        assert listed(call, Waiting.DOUBLE) == []
