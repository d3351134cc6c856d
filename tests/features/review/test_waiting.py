"""Items that need a decision, in real repositories, and resolving them."""

import os
import threading

import pytest

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


def stored(mind, text, kind=Kind.FACT, **fields):
    return saving.store(mind, saving.draft(kind, text, **fields))


def commit(root, message="more"):
    git(root, "add", "-A")
    git(root, "commit", "-qm", message)


def listed(mind, *kinds, kept=False):
    return [
        (item.kind.value, item.why) for item in review.waiting(mind, kinds or Waiting, kept=kept)
    ]


def write(root, name, text):
    path = root / ".mind" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


class TestStale:
    def test_a_memory_is_stale_if_its_cited_lines_changed(self, repository, mind):
        record = stored(mind, "The token is returned (auth.py:1-2, https://x.y/auth.py:3)")
        commit(repository)
        assert listed(mind, Waiting.STALE) == []

        (repository / "auth.py").write_text(CODE.replace("user.token\n", "user.s\n", 1), "utf-8")
        commit(repository)

        ((_, why),) = listed(mind, Waiting.STALE)
        assert why.endswith("lines 1-2 of auth.py changed")
        assert git(repository, "log", "-1", "--format=%h", "--abbrev=10", "HEAD~1") in why
        (item,) = review.waiting(mind, (Waiting.STALE,))
        assert (item.id, item.file) == (record.memory.id, record.place.path)

    def test_moved_lines_and_unknown_places_are_not_stale(self, repository, mind):
        stored(mind, "see auth.py:1-2, nowhere.py:7 and auth.py#logout")
        commit(repository)
        (repository / "auth.py").write_text("import os\n\n" + CODE, "utf-8")
        assert listed(mind, Waiting.STALE) == []

    def test_a_missing_file_and_a_missing_name_are_one_item(self, repository, mind):
        (repository / "b.py").write_text("x = 1\n", "utf-8")
        stored(mind, "see b.py:1 and auth.py#logout")
        commit(repository)
        (repository / "b.py").unlink()
        (repository / "auth.py").write_text("def login(): ...\n", "utf-8")

        ((_, why),) = listed(mind, Waiting.STALE)

        assert why.endswith("b.py is missing; logout is not in auth.py")

    def test_a_memory_stays_stale_until_its_text_changes(self, repository, mind):
        record = stored(mind, "see auth.py:1-2", Kind.DECISION)
        commit(repository)
        (repository / "auth.py").write_text("def login(): ...\n", "utf-8")
        commit(repository)

        record = saving.edit(mind, record, importance=0.9, sections={Section.OUTCOME: "- x"})
        assert len(listed(mind, Waiting.STALE)) == 1
        commit(repository)
        assert len(listed(mind, Waiting.STALE)) == 1
        saving.edit(mind, record, content="see auth.py:1")
        commit(repository)
        assert listed(mind, Waiting.STALE) == []

    def test_an_uncommitted_memory_is_compared_by_the_time_of_its_file(self, project, mind):
        git(project, "init", "-q", "-b", "main")
        code = project / "auth.py"
        code.write_text(CODE, "utf-8")
        git(project, "add", "auth.py")
        git(project, "commit", "-qm", "code", at=f"{DAY * 10_000} +0000")
        record = stored(mind, "see auth.py:1-2")
        path = project / record.place.path
        os.utime(path, (DAY * 10_001, DAY * 10_001))
        code.write_text("def login(): ...\n", "utf-8")
        # The code was changed before the memory was written: it is what the memory means.
        os.utime(code, (DAY * 10_000.5, DAY * 10_000.5))
        assert listed(mind, Waiting.STALE) == []

        os.utime(code, (DAY * 10_002, DAY * 10_002))
        assert len(listed(mind, Waiting.STALE)) == 1

    def test_a_superseded_memory_is_not_stale(self, repository, mind):
        old = stored(mind, "see auth.py:1-2", Kind.DECISION)
        commit(repository)
        (repository / "auth.py").write_text("", "utf-8")
        stored(mind, "new", Kind.DECISION, links=(Link(to=old.memory.id, type="supersedes"),))
        assert listed(mind, Waiting.STALE) == []

    def test_paths_are_relative_to_a_project_below_the_repository(self, tmp_path, mind):
        git(tmp_path, "init", "-q", "-b", "main")
        code = mind.project.root / "auth.py"
        code.write_text(CODE, "utf-8")
        stored(mind, "see auth.py:1-2")
        commit(mind.project.root)
        code.write_text("", "utf-8")
        assert len(listed(mind, Waiting.STALE)) == 1

    def test_nothing_is_stale_without_git_or_a_commit(self, project, mind):
        stored(mind, "see auth.py:1-2")
        assert listed(mind, Waiting.STALE) == []
        git(project, "init", "-q")
        assert listed(mind, Waiting.STALE) == []

    @pytest.mark.attack("symbolic link")
    def test_a_link_out_of_the_project_is_not_followed(self, repository, mind, tmp_path):
        stored(mind, "see auth.py:1-2")
        commit(repository)
        (tmp_path / "secret").write_text("x", "utf-8")
        (repository / "auth.py").unlink()
        (repository / "auth.py").symlink_to(tmp_path / "secret")
        assert listed(mind, Waiting.STALE) == []


TWO = (
    "---\nid: d1\ntype: decision\noutcome: FAILED\ncreated: 2026-11-01T08:00:00Z\n---\n"
    "Use JWT\n\n## Competing: outcome\nSUCCESS\n\n## Competing: the text\nUse sessions\n"
)


class TestVersions:
    def test_a_merge_is_one_item_with_the_current_version_of_each_field_first(self, mind):
        write(mind.project.root, "decisions/d1.md", TWO)

        (item,) = review.waiting(mind, (Waiting.VERSIONS,))

        assert item.why == "the branches disagree on outcome and the text"
        fields = (item, *item.others)
        assert [(part.field, [c.text for c in part.choices]) for part in fields] == [
            ("outcome", ["FAILED", "SUCCESS"]),
            ("the text", ["Use JWT", "Use sessions"]),
        ]

    def test_settling_one_field_keeps_the_rest_of_the_file(self, mind):
        write(mind.project.root, "decisions/d1.md", TWO)

        review.settle(mind, "d1", "2", field="outcome")

        text = (mind.folder / "decisions" / "d1.md").read_text("utf-8")
        assert text == TWO.replace("FAILED", "SUCCESS").replace(
            "## Competing: outcome\nSUCCESS\n\n", ""
        )

    def test_without_a_field_one_side_is_taken_for_all_fields(self, mind):
        write(mind.project.root, "decisions/d1.md", TWO)
        review.settle(mind, "d1", "2")
        memory = lookup.one(mind, "d1").memory
        assert (memory.content, memory.outcome, memory.competing) == (
            "Use sessions", Outcome.SUCCESS, (),
        )  # fmt: skip
        assert listed(mind, Waiting.VERSIONS) == []

    def test_both_texts_can_be_kept_but_not_both_values(self, mind):
        write(mind.project.root, "decisions/d1.md", TWO)
        with pytest.raises(Invalid, match="one value"):
            review.settle(mind, "d1", "both")
        assert (mind.folder / "decisions" / "d1.md").read_text("utf-8") == TWO

        review.settle(mind, "d1", "both", field="the text")

        assert lookup.one(mind, "d1").memory.content == "Use JWT\n\nUse sessions"

    @pytest.mark.parametrize("take", ["0", "3", "x", "", "-1", "\u00b2", "1" * 5_000])
    def test_an_unknown_version_is_refused(self, mind, take):
        write(mind.project.root, "decisions/d1.md", TWO)
        with pytest.raises(Invalid):
            review.settle(mind, "d1", take)

    def test_versions_can_not_be_hidden(self, mind):
        write(mind.project.root, "decisions/d1.md", TWO)
        with pytest.raises(Invalid, match="both versions"):
            review.keep(mind, "d1")


class TestMemories:
    @pytest.fixture
    def rivals(self, mind, clock):
        first = stored(mind, "Use JWT", Kind.DECISION, topic="auth")
        clock.forward(hours=1)
        second = stored(mind, "Use sessions", Kind.DECISION, topic="Auth")
        return second.memory.id, first.memory.id

    def test_the_chosen_decision_supersedes_the_others(self, mind, rivals):
        newer, older = rivals
        (item,) = review.waiting(mind)
        assert (item.kind, item.ids) == (Waiting.DECISIONS, rivals)

        review.settle(mind, older, "2")

        assert finding.successor(mind, newer) == older
        assert listed(mind) == []

    def test_of_two_processes_that_choose_differently_one_is_refused(
        self, mind, rivals, monkeypatch
    ):
        newer, older = rivals
        refused, edit = [], saving.edit

        def choose_the_other() -> None:
            with pytest.raises(NotFound, match="nothing to resolve") as error:
                review.settle(mind.reopened(), older, "1")
            refused.append(error.value)

        other = threading.Thread(target=choose_the_other)

        def slowly(*given, **fields):
            monkeypatch.setattr(saving, "edit", edit)
            other.start()
            other.join(0.5)  # Unless it waits for us.
            return edit(*given, **fields)

        monkeypatch.setattr(saving, "edit", slowly)
        review.settle(mind, older, "2")
        other.join()

        assert len(refused) == 1
        assert finding.successor(mind, newer) == older
        assert finding.successor(mind, older) is None

    def test_both_decisions_are_kept_until_one_changes(self, mind, rivals):
        review.settle(mind, rivals[0], "both")
        assert listed(mind) == []
        assert [kind for kind, _ in listed(mind, kept=True)] == ["decisions"]

        saving.edit(mind, lookup.one(mind, rivals[0]), content="Use sessions for a day")

        assert [kind for kind, _ in listed(mind)] == ["decisions"]

    def test_a_contradiction_is_resolved_by_superseding(self, mind):
        old = stored(mind, "The limit is 50")
        new = stored(mind, "The limit is 80", links=(Link(to=old.memory.id, type="contradicts"),))
        ((kind, why),) = listed(mind)
        assert (kind, why) == ("contradiction", "it contradicts The limit is 50")
        choices = review.waiting(mind)[0].choices
        numbers = {c.record.memory.id: n for n, c in enumerate(choices, 1) if c.record}

        review.settle(mind, old.memory.id, str(numbers[new.memory.id]))

        assert [link.type for link in lookup.one(mind, new.memory.id).memory.links] == [
            "supersedes"
        ]
        assert listed(mind) == []

    def test_a_failed_decision_is_not_a_contradiction(self, mind):
        old = stored(mind, "A", Kind.DECISION, outcome=Outcome.FAILED)
        stored(mind, "B", links=(Link(to=old.memory.id, type="contradicts"),))
        assert listed(mind) == []

    def test_a_memory_in_two_items_needs_a_kind(self, mind, rivals):
        stored(mind, "No", links=(Link(to=rivals[0], type="contradicts"),))
        with pytest.raises(AmbiguousId, match="2 items"):
            review.settle(mind, rivals[0], "1")
        review.settle(mind, rivals[0], "1", kind=Waiting.DECISIONS)

    def test_a_memory_in_several_pairs_needs_the_other_one(self, mind):
        first = stored(mind, "The limit is 50").memory.id
        links: tuple[Link, ...] = (Link(to=first, type="contradicts"),)
        second = stored(mind, "The limit is 80", links=links).memory.id
        links = (*links, Link(to=second, type="contradicts"))
        third = stored(mind, "The limit is 90", links=links).memory.id

        with pytest.raises(AmbiguousId) as raised:
            review.settle(mind, first, "both")
        assert raised.value.hint == f"name the other memory with --against: {second}, {third}"
        review.settle(mind, first, "both", against=second)
        assert {item.ids for item in review.waiting(mind)} == {(third, first), (third, second)}
        with pytest.raises(NotFound):
            review.settle(mind, first, "both", against=second)

    def test_a_memory_without_items_is_an_error(self, mind):
        record = stored(mind, "tea")
        for action in (review.settle, review.keep):
            with pytest.raises(NotFound):
                action(mind, record.memory.id, *(["1"] if action is review.settle else []))

    def test_a_read_only_document_can_not_be_chosen(self, mind, rivals):
        write(mind.project.root, "adr/0001.md", "---\ntype: decision\ntopic: auth\n---\n# X\n")
        (item,) = review.waiting(mind)
        numbers = [
            n for n, c in enumerate(item.choices, 1) if c.record and not c.record.place.owned
        ]
        with pytest.raises(Invalid, match="only reads"):
            review.settle(mind, rivals[0], str(numbers[0]))

    def test_a_shared_memory_can_not_supersede_a_private_one(self, mind):
        shared = stored(mind, "The limit is 50").memory.id
        links = (Link(to=shared, type="contradicts"),)
        draft = saving.draft(Kind.FACT, "The limit is 80", links=links)
        private = saving.store(mind, draft, private=True).memory.id

        with pytest.raises(Invalid, match="must not name a private memory") as raised:
            review.settle(mind, shared, "2")
        assert raised.value.hint == "take another, or both"
        review.settle(mind, shared, "1")
        assert finding.successor(mind, shared) == private


class TestTheRest:
    def test_the_most_urgent_items_come_first(self, mind, clock):
        write(mind.project.root, "facts/conflict.md", "<<<<<<< ours\na\n=======\nb\n>>>>>>> x\n")
        write(mind.project.root, "decisions/d1.md", TWO)
        stored(mind, "tea")
        clock.forward(days=400)
        mind.trust.forget()
        kinds = [kind for kind, _ in listed(mind)]
        assert kinds == ["unreadable", "versions", "untrusted", "untrusted", "fading"]

    def test_an_ingested_file_is_one_item(self, mind):
        from mimo.features.ingest.commands import ingest

        (mind.project.root / "a.md").write_text("# A\n\nOne.\n\n## B\n\nTwo.\n", "utf-8")
        ingest(mind, str(mind.project.root / "a.md"), chunk_size=50)
        mind.trust.forget()
        (item,) = review.waiting(mind, (Waiting.UNTRUSTED,))
        assert item.id
        assert item.id.startswith("source_a_md")
        review.keep(mind, item.id)
        assert listed(mind, Waiting.UNTRUSTED) == []

    def test_a_hidden_item_is_shown_again_when_its_text_changes(self, mind):
        write(mind.project.root, "facts/a.md", "one\n")
        mind.trust.forget()
        review.keep(mind, review.waiting(mind)[0].id or "")
        assert listed(mind) == []
        write(mind.project.root, "facts/a.md", "another\n")
        assert len(listed(mind)) == 1

    def test_a_hidden_file_that_can_not_be_read_is_shown_again_when_it_changes(self, mind):
        write(mind.project.root, "facts/a.md", "---\nid: x\n")
        review.keep(mind, ".mind/facts/a.md")
        assert listed(mind) == []
        write(mind.project.root, "facts/a.md", "---\nid: y\n")
        assert len(listed(mind)) == 1

    def test_a_weak_memory_where_nothing_fades_has_no_number_of_days(self, mind):
        saving.store(mind, saving.draft(Kind.FACT, "tea", importance=0.08))
        config(mind, "decay.rate", "0")
        assert "inf" not in str(listed(mind.reopened(), Waiting.FADING))

    def test_a_hidden_item_can_be_shown_again(self, mind):
        write(mind.project.root, "facts/a.md", "one\n")
        mind.trust.forget()
        name = review.waiting(mind)[0].id or ""
        review.keep(mind, name)
        review.keep(mind, name, off=True)
        assert len(listed(mind)) == 1
        with pytest.raises(NotFound, match="nothing hidden"):
            review.keep(mind, name, off=True)

    def test_keeping_a_fading_memory_protects_it_in_its_file(self, mind, clock):
        record = stored(mind, "tea")
        clock.forward(days=400)
        done = review.keep(mind, record.memory.id)
        assert done.files == (record.place.path,)
        assert lookup.one(mind, record.memory.id).memory.protected is True

    def test_a_damaged_list_of_hidden_items_is_read_as_far_as_possible(self, mind):
        write(mind.project.root, "facts/a.md", "one\n")
        mind.trust.forget()
        (item,) = review.waiting(mind)
        review.keep(mind, item.id or "")
        path = next((mind.folder / ".local").glob("reviewed-*"))
        path.write_bytes(b"\xff garbage\n" + b"b" * 64)
        assert listed(mind) != []
        review.keep(mind, item.id or "")
        assert review.hidden(mind) == {"b" * 64, item.key}

    def test_the_count_matches_the_list(self, mind):
        write(mind.project.root, "decisions/d1.md", TWO)
        mind.trust.forget()
        assert review.count(mind) == {"versions": 1, "untrusted": 1}


class TestDoubles:
    def test_near_duplicates_are_listed_until_they_are_resolved(self, mind, clock):
        text = "The staging database is reset every night at three by the cron job"
        first = stored(mind, text)
        clock.forward(hours=1)
        second = stored(mind, text.replace("three", "four"))
        stored(mind, "Safari drops third party cookies")

        (item,) = review.waiting(mind, (Waiting.DOUBLE,))
        assert item.ids == (second.memory.id, first.memory.id)

        review.settle(mind, first.memory.id, "both")
        assert listed(mind, Waiting.DOUBLE) == []
        review.keep(mind, first.memory.id, off=True)
        review.settle(mind, first.memory.id, "1", kind=Waiting.DOUBLE)
        assert finding.successor(mind, first.memory.id) == second.memory.id
        assert listed(mind, Waiting.DOUBLE) == []

    def test_a_link_by_title_is_a_link_between_near_duplicates(self, mind):
        text = "The staging database is reset every night at three by the cron job"
        stored(mind, text, title="Reset")
        stored(mind, f"{text} too, see [[Reset]]")

        assert listed(mind, Waiting.DOUBLE) == []
