"""What waits for a person, in real repositories, and settling it."""

import os
import subprocess
from pathlib import Path

import pytest

from mimo.errors import AmbiguousId, Invalid, NotFound
from mimo.features import review
from mimo.features.review import Reviewed, Waiting, resolving
from mimo.memory.model import Kind, Link, Outcome, Section
from mimo.operations import finding, saving

CODE = "def login(user):\n    return user.token\n\ndef logout(user):\n    user.token = None\n"
DAY = 86_400


def git(root: Path, *words: str, at: int | None = None) -> str:
    own = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "commit.gpgsign=false")
    when = {f"GIT_{who}_DATE": f"{at} +0000" for who in ("AUTHOR", "COMMITTER")} if at else {}
    done = subprocess.run(
        ["git", *own, *words],
        cwd=root,
        capture_output=True,
        encoding="utf-8",
        check=True,
        env=os.environ | when,
    )
    return done.stdout.strip()


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


def found(mind, *kinds, kept=False):
    return [(one.kind.value, one.why) for one in review.waiting(mind, kinds or Waiting, kept=kept)]


def write(root, name, text):
    path = root / ".mind" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


class TestStale:
    def test_cited_lines_that_changed_since_the_memory_was_committed(self, repository, mind):
        record = stored(mind, "The token is returned (auth.py:1-2, https://x.y/auth.py:3)")
        commit(repository)
        assert found(mind, Waiting.STALE) == []

        (repository / "auth.py").write_text(CODE.replace("user.token\n", "user.s\n", 1), "utf-8")
        commit(repository)

        ((_, why),) = found(mind, Waiting.STALE)
        assert why.endswith("lines 1-2 of auth.py changed")
        assert git(repository, "log", "-1", "--format=%h", "--abbrev=10", "HEAD~1") in why
        (item,) = review.waiting(mind, (Waiting.STALE,))
        assert (item.id, item.file) == (record.memory.id, record.place.path)

    def test_what_moved_or_is_cited_elsewhere_still_holds(self, repository, mind):
        stored(mind, "see auth.py:1-2, nowhere.py:7 and auth.py#logout")
        commit(repository)
        (repository / "auth.py").write_text("import os\n\n" + CODE, "utf-8")
        assert found(mind, Waiting.STALE) == []

    def test_a_file_and_a_name_that_are_gone_make_one_item(self, repository, mind):
        (repository / "b.py").write_text("x = 1\n", "utf-8")
        stored(mind, "see b.py:1 and auth.py#logout")
        commit(repository)
        (repository / "b.py").unlink()
        (repository / "auth.py").write_text("def login(): ...\n", "utf-8")

        ((_, why),) = found(mind, Waiting.STALE)

        assert why.endswith("b.py is missing; logout is not in auth.py")

    def test_a_change_of_its_header_or_outcome_makes_no_memory_right_again(self, repository, mind):
        record = stored(mind, "see auth.py:1-2", Kind.DECISION)
        commit(repository)
        (repository / "auth.py").write_text("def login(): ...\n", "utf-8")
        commit(repository)

        record = saving.edit(mind, record, importance=0.9, sections={Section.OUTCOME: "- x"})
        assert len(found(mind, Waiting.STALE)) == 1
        commit(repository)
        assert len(found(mind, Waiting.STALE)) == 1
        saving.edit(mind, record, content="see auth.py:1")
        commit(repository)
        assert found(mind, Waiting.STALE) == []

    def test_before_it_is_committed_a_memory_is_held_against_the_time_of_its_file(
        self, project, mind
    ):
        git(project, "init", "-q", "-b", "main")
        code = project / "auth.py"
        code.write_text(CODE, "utf-8")
        git(project, "add", "auth.py")
        git(project, "commit", "-qm", "code", at=DAY * 10_000)
        record = stored(mind, "see auth.py:1-2")
        path = project / record.place.path
        os.utime(path, (DAY * 10_001, DAY * 10_001))
        code.write_text("def login(): ...\n", "utf-8")
        # The code was changed before the memory was written: it is what the memory means.
        os.utime(code, (DAY * 10_000.5, DAY * 10_000.5))
        assert found(mind, Waiting.STALE) == []

        os.utime(code, (DAY * 10_002, DAY * 10_002))
        assert len(found(mind, Waiting.STALE)) == 1

    def test_what_is_superseded_needs_nobody(self, repository, mind):
        old = stored(mind, "see auth.py:1-2", Kind.DECISION)
        commit(repository)
        (repository / "auth.py").write_text("", "utf-8")
        stored(mind, "new", Kind.DECISION, links=(Link(to=old.memory.id, type="supersedes"),))
        assert found(mind, Waiting.STALE) == []

    def test_in_a_folder_of_a_repository_paths_are_those_of_the_project(self, tmp_path, mind):
        git(tmp_path, "init", "-q", "-b", "main")
        code = mind.project.root / "auth.py"
        code.write_text(CODE, "utf-8")
        stored(mind, "see auth.py:1-2")
        commit(mind.project.root)
        code.write_text("", "utf-8")
        assert len(found(mind, Waiting.STALE)) == 1

    def test_without_git_and_without_a_commit_nothing_can_be_told(self, project, mind):
        stored(mind, "see auth.py:1-2")
        assert found(mind, Waiting.STALE) == []
        git(project, "init", "-q")
        assert found(mind, Waiting.STALE) == []

    @pytest.mark.attack("symbolic link")
    def test_a_link_out_of_the_project_is_not_followed(self, repository, mind, tmp_path):
        stored(mind, "see auth.py:1-2")
        commit(repository)
        (tmp_path / "secret").write_text("x", "utf-8")
        (repository / "auth.py").unlink()
        (repository / "auth.py").symlink_to(tmp_path / "secret")
        assert found(mind, Waiting.STALE) == []


TWO = (
    "---\nid: d1\ntype: decision\noutcome: FAILED\ncreated: 2026-11-01T08:00:00Z\n---\n"
    "Use JWT\n\n## Competing: outcome\nSUCCESS\n\n## Competing: the text\nUse sessions\n"
)


class TestVersions:
    def test_each_field_waits_and_the_first_choice_is_what_is_in_force(self, mind):
        write(mind.project.root, "decisions/d1.md", TWO)

        items = review.waiting(mind, (Waiting.VERSIONS,))

        assert [(one.field, [c.text for c in one.choices]) for one in items] == [
            ("outcome", ["FAILED", "SUCCESS"]),
            ("the text", ["Use JWT", "Use sessions"]),
        ]

    def test_one_field_is_settled_and_the_rest_of_the_file_stays(self, mind):
        write(mind.project.root, "decisions/d1.md", TWO)

        resolving.settle(mind, "d1", "2", field="outcome")

        text = (mind.folder / "decisions" / "d1.md").read_text("utf-8")
        assert text == TWO.replace("FAILED", "SUCCESS").replace(
            "## Competing: outcome\nSUCCESS\n\n", ""
        )

    def test_without_a_field_one_side_is_taken_in_all(self, mind):
        write(mind.project.root, "decisions/d1.md", TWO)
        resolving.settle(mind, "d1", "2")
        memory = finding.one(mind, "d1").memory
        assert (memory.content, memory.outcome, memory.competing) == (
            "Use sessions", Outcome.SUCCESS, (),
        )  # fmt: skip
        assert found(mind, Waiting.VERSIONS) == []

    def test_both_texts_can_hold_but_not_both_values(self, mind):
        write(mind.project.root, "decisions/d1.md", TWO)
        with pytest.raises(Invalid, match="one value"):
            resolving.settle(mind, "d1", "both")
        assert (mind.folder / "decisions" / "d1.md").read_text("utf-8") == TWO

        resolving.settle(mind, "d1", "both", field="the text")

        assert finding.one(mind, "d1").memory.content == "Use JWT\n\nUse sessions"

    @pytest.mark.parametrize("take", ["0", "3", "x", "", "-1"])
    def test_what_is_no_version_is_refused(self, mind, take):
        write(mind.project.root, "decisions/d1.md", TWO)
        with pytest.raises(Invalid):
            resolving.settle(mind, "d1", take)

    def test_versions_cannot_be_left_as_they_are(self, mind):
        write(mind.project.root, "decisions/d1.md", TWO)
        with pytest.raises(Invalid, match="both versions"):
            resolving.keep(mind, "d1")


class TestMemories:
    @pytest.fixture
    def rivals(self, mind, clock):
        first = stored(mind, "Use JWT", Kind.DECISION, topic="auth")
        clock.forward(hours=1)
        second = stored(mind, "Use sessions", Kind.DECISION, topic="Auth")
        return second.memory.id, first.memory.id

    def test_the_decision_that_holds_supersedes_the_others(self, mind, rivals):
        newer, older = rivals
        (item,) = review.waiting(mind)
        assert (item.kind, item.ids) == (Waiting.DECISIONS, rivals)

        resolving.settle(mind, older, "2")

        assert finding.successor(mind, newer) == older
        assert found(mind) == []

    def test_both_may_hold_till_one_of_them_changes(self, mind, rivals):
        resolving.settle(mind, rivals[0], "both")
        assert found(mind) == []
        assert [kind for kind, _ in found(mind, kept=True)] == ["decisions"]

        saving.edit(mind, finding.one(mind, rivals[0]), content="Use sessions for a day")

        assert [kind for kind, _ in found(mind)] == ["decisions"]

    def test_a_contradiction_is_settled_by_superseding(self, mind):
        old = stored(mind, "The limit is 50")
        new = stored(mind, "The limit is 80", links=(Link(to=old.memory.id, type="contradicts"),))
        ((kind, why),) = found(mind)
        assert (kind, why) == ("contradiction", "it contradicts The limit is 50")
        choices = review.waiting(mind)[0].choices
        numbers = {one.record.memory.id: n for n, one in enumerate(choices, 1) if one.record}

        resolving.settle(mind, old.memory.id, str(numbers[new.memory.id]))

        assert [link.type for link in finding.one(mind, new.memory.id).memory.links] == [
            "supersedes"
        ]
        assert found(mind) == []

    def test_what_failed_contradicts_nobody(self, mind):
        old = stored(mind, "A", Kind.DECISION, outcome=Outcome.FAILED)
        stored(mind, "B", links=(Link(to=old.memory.id, type="contradicts"),))
        assert found(mind) == []

    def test_what_is_in_two_things_at_once_must_be_named(self, mind, rivals):
        stored(mind, "No", links=(Link(to=rivals[0], type="contradicts"),))
        with pytest.raises(AmbiguousId, match="2 items"):
            resolving.settle(mind, rivals[0], "1")
        resolving.settle(mind, rivals[0], "1", kind=Waiting.DECISIONS)

    def test_of_what_does_not_wait_nothing_is_settled(self, mind):
        record = stored(mind, "tea")
        for action in (resolving.settle, resolving.keep):
            with pytest.raises(NotFound):
                action(mind, record.memory.id, *(["1"] if action is resolving.settle else []))

    def test_a_document_that_mind_only_reads_is_not_written_into(self, mind, rivals):
        write(mind.project.root, "adr/0001.md", "---\ntype: decision\ntopic: auth\n---\n# X\n")
        (item,) = review.waiting(mind)
        numbers = [
            n for n, one in enumerate(item.choices, 1) if one.record and not one.record.place.owned
        ]
        with pytest.raises(Invalid, match="only reads"):
            resolving.settle(mind, rivals[0], str(numbers[0]))


class TestTheRest:
    def test_the_most_urgent_comes_first(self, mind, clock):
        write(mind.project.root, "facts/conflict.md", "<<<<<<< ours\na\n=======\nb\n>>>>>>> x\n")
        write(mind.project.root, "decisions/d1.md", TWO)
        stored(mind, "tea")
        clock.forward(days=40)
        mind.trust.forget()
        kinds = [kind for kind, _ in found(mind)]
        assert kinds == ["unreadable", "versions", "versions", "untrusted", "untrusted", "fading"]

    def test_an_ingested_file_is_one_thing(self, mind):
        from mimo.features.ingest.commands import ingest

        (mind.project.root / "a.md").write_text("# A\n\nOne.\n\n## B\n\nTwo.\n", "utf-8")
        ingest(mind, str(mind.project.root / "a.md"), chunk_size=50)
        mind.trust.forget()
        (item,) = review.waiting(mind, (Waiting.UNTRUSTED,))
        assert item.id
        assert item.id.startswith("source_a_md")
        resolving.keep(mind, item.id)
        assert found(mind, Waiting.UNTRUSTED) == []

    def test_what_is_left_untrusted_is_shown_again_when_its_text_changes(self, mind):
        write(mind.project.root, "facts/a.md", "one\n")
        mind.trust.forget()
        resolving.keep(mind, review.waiting(mind)[0].id or "")
        assert found(mind) == []
        write(mind.project.root, "facts/a.md", "another\n")
        assert len(found(mind)) == 1

    def test_keeping_is_taken_back(self, mind):
        write(mind.project.root, "facts/a.md", "one\n")
        mind.trust.forget()
        name = review.waiting(mind)[0].id or ""
        resolving.keep(mind, name)
        resolving.keep(mind, name, off=True)
        assert len(found(mind)) == 1
        with pytest.raises(NotFound, match="nothing hidden"):
            resolving.keep(mind, name, off=True)

    def test_keeping_what_fades_protects_it_in_its_file(self, mind, clock):
        record = stored(mind, "tea")
        clock.forward(days=40)
        done = resolving.keep(mind, record.memory.id)
        assert done.files == (record.place.path,)
        assert finding.one(mind, record.memory.id).memory.protected is True

    def test_what_was_kept_can_be_damaged_and_nothing_breaks(self, project):
        seen = Reviewed(project, "me")
        seen.add("a" * 64)
        path = next((project / ".mind" / ".local").glob("reviewed-*"))
        path.write_bytes(b"\xff garbage\n" + b"b" * 64)
        assert seen.keys() == {"b" * 64}
        seen.add("c" * 64)
        assert seen.keys() == {"b" * 64, "c" * 64}

    def test_the_quick_count_is_that_of_the_list(self, mind):
        write(mind.project.root, "decisions/d1.md", TWO)
        mind.trust.forget()
        assert review.count(mind) == {"versions": 2, "untrusted": 1}


class TestDoubles:
    def test_two_that_say_much_the_same_wait_till_one_supersedes_or_both_hold(self, mind, clock):
        text = "The staging database is reset every night at three by the cron job"
        first = stored(mind, text)
        clock.forward(hours=1)
        second = stored(mind, text.replace("three", "four"))
        stored(mind, "Safari drops third party cookies")

        (item,) = review.waiting(mind, (Waiting.DOUBLE,))
        assert item.ids == (second.memory.id, first.memory.id)

        resolving.settle(mind, first.memory.id, "both")
        assert found(mind, Waiting.DOUBLE) == []
        resolving.keep(mind, first.memory.id, off=True)
        resolving.settle(mind, first.memory.id, "1", kind=Waiting.DOUBLE)
        assert finding.successor(mind, first.memory.id) == second.memory.id
        assert found(mind, Waiting.DOUBLE) == []
