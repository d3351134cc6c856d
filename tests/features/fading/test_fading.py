"""Fading of memories: `mind fading`, `mind keep`, and the actions that count as a use."""

from pathlib import Path

import pytest

from mimo.call import Call, Caller, Surface
from mimo.errors import Invalid
from mimo.features.decisions.commands import checkpoint as save_checkpoint
from mimo.features.decisions.commands import decision as save_decision
from mimo.features.decisions.commands import outcome as evolve_outcome
from mimo.features.decisions.loading import checkpoint as load_checkpoint
from mimo.features.decisions.loading import context as load_context
from mimo.features.fading.commands import decay_check, fading, keep, stats
from mimo.features.ingest.commands import ingest
from mimo.features.notes.commands import add, edit
from mimo.features.notes.memory_tool import MemorySort, list_memories
from mimo.features.notes.memory_tool import search as memory_search
from mimo.features.notes.reading import list_, show
from mimo.features.review.commands import trust, untrust
from mimo.features.search.browse import by_context, by_topic, recent
from mimo.features.search.commands import Scope, search
from mimo.features.search.recall import recall_memory
from mimo.features.upkeep.commands import config, init
from mimo.index import survey
from mimo.memory import decay
from mimo.operations import overview
from mimo.rendering import PlainScreen
from mimo.rendering.results import show_on
from mimo.server import resources
from tests.conftest import git


def uses(call, id_: str) -> int:
    use = call.mind.accesses.uses().get(id_)
    return use.times if use else 0


def text_of(call, file: str) -> str:
    return Path(call.mind.project.root, file).read_text(encoding="utf-8")


@pytest.fixture
def tea(call) -> str:
    add(call, "The deploy script needs two approvals")
    return add(call, "Green tea is drunk without milk").id


AGENT = Caller(surface=Surface.MCP, name="tester")


class TestUses:
    @pytest.mark.parametrize(
        "ask",
        [
            lambda call, _: search(call, "green tea milk"),
            lambda call, _: memory_search(call, "green tea milk"),
            lambda call, _: by_context(call, "green tea milk"),
            lambda call, _: recall_memory(call, "green tea milk"),
            show,
            load_context,
            lambda call, id_: resources.read(call.by(AGENT), f"mind://memory/{id_}"),
        ],
    )
    def test_found_shown_and_loaded_memories_count_as_used(self, call, clock, tea, ask):
        clock.forward(days=3)
        ask(call, tea)
        call.mind.accesses.flush()

        assert call.mind.accesses.uses() == {tea: decay.Use(times=1, last=clock())}

    def test_a_topic_and_a_checkpoint_that_are_loaded_are_used(self, call):
        decided = save_decision(call, "auth", "Use JWT", "No session store is needed").id
        saved = save_checkpoint(call, "Login works").id

        by_topic(call, "auth")
        load_checkpoint(call)
        call.mind.accesses.flush()

        assert (uses(call, decided), uses(call, saved)) == (1, 1)

    @pytest.mark.parametrize(
        "ask",
        [list_, recent, list_memories, stats, fading, decay_check],
    )
    def test_browsing_and_counting_do_not_count_as_use(self, call, tea, ask):
        ask(call)
        call.mind.accesses.flush()

        assert call.mind.accesses.uses() == {}

    def test_an_unrelated_match_does_not_count_as_used(self, call, tea):
        assert search(call, "penguins", threshold=0).results
        memory_search(call, "penguins", threshold=0)
        call.mind.accesses.flush()

        assert call.mind.accesses.uses() == {}

    def test_a_search_of_all_projects_counts_each_result_in_its_project(self, call, tea, tmp_path):
        (tmp_path / "other").mkdir()
        init(call, str(tmp_path / "other"))
        other = next(p for _, p in _projects(call) if p.mind.project.name == "other")
        milk = add(other, "Green tea with milk is a drink for the brave").id

        (answer,) = search(call, "green tea without milk", scope=Scope.ALL, limit=1).results
        for opened in (call, other):
            opened.mind.accesses.flush()

        assert answer.id == tea
        assert (uses(call, tea), uses(other, milk)) == (1, 0)

    def test_reading_changes_no_tracked_file(self, call, tea):
        root = call.mind.project.root
        git(root, "init", "-q")
        git(root, "add", "-A")

        search(call, "green tea")
        show(call, tea)
        call.mind.accesses.flush()

        assert uses(call, tea) == 2
        changed = git(root, "status", "--porcelain", "--untracked-files=all").splitlines()
        assert len(changed) == len(git(root, "diff", "--cached", "--name-only").splitlines())
        assert git(root, "diff", "--name-only") == ""

    def test_the_statistics_are_printed_with_their_names(self, call, tea, capsys):
        screen = PlainScreen()
        show_on(screen, stats(call))
        screen.finish(pager=False)
        lines = capsys.readouterr().out.splitlines()

        assert lines[:4] == [
            "total memories:  2",
            "avg importance:  0.5",
            "avg decay score: 0.5",
            "at risk count:   0",
        ]
        assert [line.split(":")[0] for line in lines[4:6]] == ["oldest", "newest"]
        assert lines[6:] == [
            "",
            "by category",
            "  fact:        2",
            "  observation: 0",
            "  action:      0",
            "  plan:        0",
        ]

    def test_reading_works_where_nothing_can_be_counted(self, call, tea):
        local = call.mind.folder / ".local"
        for path in local.iterdir():
            path.unlink()
        local.rmdir()
        local.write_text("in the way", encoding="utf-8")

        assert search(call, "green tea").results[0].id == tea
        assert show(call, tea).id == tea
        assert stats(call).total_memories == 2
        call.mind.close()


def _projects(call):
    from mimo.operations import across

    answers, _ = across.ask_each(call, "mind_search", lambda _, here: here)
    return [(name, project) for name, project, _ in answers]


class TestFading:
    @pytest.mark.req("000-57")
    def test_the_weakest_come_first_with_the_days_that_are_left(self, call, clock):
        old = add(call, "the old fact").id
        clock.forward(days=50)
        newer = add(call, "the newer fact").id
        add(call, "what was decided", type="decision")
        clock.forward(days=140)

        answer = fading(call, threshold=0.2)

        assert [row.id for row in answer.memories] == [old, newer]
        assert [row.days_left for row in answer.memories] == [40.26, 90.26]
        assert (answer.total, answer.forgotten, answer.checked) == (2, 0, 3)

    def test_a_used_memory_starts_to_fade_again(self, call, clock, tea):
        clock.forward(days=200)
        assert tea in {row.id for row in fading(call).memories}

        show(call, tea)

        assert tea not in {row.id for row in fading(call).memories}
        (row,) = [row for row in fading(call, threshold=1).memories if row.id == tea]
        assert (row.uses, row.last_used) == (1, clock())

    def test_forgotten_memories_are_marked_and_counted_beyond_the_limit(self, call, clock):
        for number in range(5):
            add(call, f"fact {number}")
        clock.forward(days=400)

        answer = fading(call, limit=2)

        assert (len(answer.memories), answer.total, answer.forgotten) == (2, 5, 5)
        assert {row.days_left for row in answer.memories} == {0}

    @pytest.mark.req("000-54")
    def test_decay_check_and_fading_agree(self, call, clock, tea):
        clock.forward(days=180)

        checked, listed = decay_check(call), fading(call)

        assert [(row.id, row.decay_score, row.days_until_forgotten) for row in checked.at_risk] == [
            (row.id, row.strength, row.days_left) for row in listed.memories
        ]
        assert checked.total_checked == listed.checked == 2

    def test_the_rate_is_a_setting(self, call, clock, tea):
        clock.forward(days=180)
        config(call, "decay.rate", "0")
        steady = Call(call.mind.reopened())

        assert fading(steady).memories == ()
        assert [row.days_left for row in fading(steady, threshold=1).memories] == [None, None]

    @pytest.mark.req("000-50")
    def test_the_average_strength_is_exact_over_every_memory_and_every_use(self, call, clock):
        ids = [add(call, f"fact number {n}", importance=n / 10).id for n in range(1, 8)]
        clock.forward(days=10)
        show(call, ids[6])
        clock.forward(days=2)

        expected = [decay.score(n / 10, 12) for n in range(1, 7)]
        expected.append(decay.score(0.7, 2, accesses=1))
        assert stats(call).avg_decay_score == pytest.approx(sum(expected) / 7, abs=1e-4)

    @pytest.mark.req("000-46")
    def test_sorted_by_decay_used_memories_come_first(self, call, clock):
        strong = add(call, "important", importance=0.9).id
        used = add(call, "used").id
        clock.forward(days=300)
        show(call, used)

        rows = list_memories(call, sort=MemorySort.DECAY_SCORE).memories

        assert [row.id for row in rows] == [used, strong]
        assert rows[0].decay_score == pytest.approx(decay.score(0.5, 0, accesses=1), abs=1e-4)


def written(call, name: str, text: str) -> str:
    """Writes a fact as another author would, unapproved, and returns its id."""
    call.mind.trust.follow(False)
    path = call.mind.folder / "facts" / f"{name}.md"
    path.parent.mkdir(exist_ok=True)
    header = "---\nid: {}\ntype: fact\ncreated: 2026-11-20T15:30:00Z\n---\n"
    path.write_text(f"{header.format(name)}{text}\n", encoding="utf-8")
    return name


def fades(call) -> set[str]:
    return {row.id for row in fading(call, limit=1000).memories}


class TestLasting:
    @pytest.mark.parametrize("importance", [0.5, 0.7])
    def test_an_unused_fact_is_not_at_risk_for_five_months(self, call, clock, importance):
        fact = add(call, "the proxy cuts uploads", importance=importance).id

        clock.forward(days=150)
        assert (fades(call), stats(call).at_risk_count) == (set(), 0)
        clock.forward(days=100)
        assert (fades(call), stats(call).at_risk_count) == ({fact}, 1)

    @pytest.mark.req("000-55")
    def test_parts_of_ingested_files_do_not_fade(self, call, clock):
        source = call.mind.project.root / "guide.md"
        source.write_text("# A\n\nUse tea.\n\n# B\n\nUse milk.\n", encoding="utf-8")
        chunks = ingest(call, str(source), chunk_size=50).ids
        clock.forward(days=2000)

        assert len(chunks) > 1
        assert (fades(call), decay_check(call).total_checked) == (set(), len(chunks))
        assert stats(call).avg_decay_score == pytest.approx(0.5)
        assert {row.decay_score for row in list_memories(call).memories} == {0.5}

    def test_current_and_superseded_decisions_do_not_fade(self, call, clock):
        save_decision(call, "auth", "Use sessions", "They are simple")
        save_decision(call, "auth", "Use JWT", "There are two servers")
        clock.forward(days=2000)

        assert fades(call) == set()

    @pytest.mark.parametrize(
        "approve", [lambda call, _: trust(call), lambda call, id_: trust(call, (id_,))]
    )
    def test_a_text_that_the_user_approved_does_not_fade(self, call, clock, approve):
        own = add(call, "written by mind itself").id
        theirs = written(call, "theirs", "written by a colleague")
        clock.forward(days=400)
        assert fades(call) == {own, theirs}

        approve(call, theirs)
        assert fades(call) == {own}
        assert {row.id: row.protected for row in list_memories(call).memories} == {
            own: False,
            theirs: True,
        }

        untrust(call, (theirs,))
        assert fades(call) == {own, theirs}

    def test_a_text_that_is_changed_after_the_approval_fades_again(self, call, clock):
        theirs = written(call, "theirs", "written by a colleague")
        trust(call)
        written(call, "theirs", "written again")
        clock.forward(days=400)

        assert fades(call) == {theirs}

    def test_approving_an_own_memory_by_its_id_keeps_it(self, call, clock, tea):
        clock.forward(days=400)
        trust(call)
        assert tea in fades(call)

        trust(call, (tea,))
        assert tea not in fades(call)

    def test_ending_all_approvals_ends_the_protection(self, call, clock):
        theirs = written(call, "theirs", "written by a colleague")
        trust(call)
        clock.forward(days=400)
        assert fades(call) == set()

        call.mind.trust.forget()
        assert fades(call) == {theirs}

    def test_damaged_approvals_protect_nothing(self, call, clock):
        theirs = written(call, "theirs", "written by a colleague")
        trust(call)
        clock.forward(days=400)
        (call.mind.home / "trust.db").write_text("damaged", encoding="utf-8")

        assert fades(call) == {theirs}

    def test_a_reviewed_memory_that_is_let_go_fades(self, call, clock):
        theirs = written(call, "theirs", "written by a colleague")
        trust(call)
        clock.forward(days=400)

        assert not keep(call, theirs, off=True).protected
        assert fades(call) == {theirs}
        assert keep(call, theirs).protected
        assert "protected: true" in text_of(call, ".mind/facts/theirs.md")

    def test_the_index_and_the_records_follow_one_rule(self, call, tea):
        source = call.mind.project.root / "guide.md"
        source.write_text("# A\n\nUse tea.\n", encoding="utf-8")
        ingest(call, str(source))
        add(call, "Use JWT", type="decision")
        keep(call, add(call, "Let go", type="decision").id, off=True)
        keep(call, tea)
        written(call, "theirs", "written by a colleague")
        trust(call)

        reviewed = call.mind.trust.reviewed()
        ages = {age.id: age.protected for age in call.mind.index.ask(survey.ages, reviewed)}

        records = overview.everything(call)
        assert ages == {r.memory.id: decay.is_protected(r, reviewed) for r in records}
        assert sorted(ages.values()) == [False, False, True, True, True, True]


class TestKeep:
    def test_a_kept_memory_is_marked_in_its_file_and_does_not_fade(self, call, clock, tea):
        before = text_of(call, show(call, tea).file)
        kept = keep(call, tea)
        clock.forward(days=900)

        assert kept.protected
        assert text_of(call, kept.file).splitlines() == _with(before, "protected: true")
        assert tea not in {row.id for row in fading(call).memories}

    def test_kept_twice_is_kept_once(self, call, tea):
        once = text_of(call, keep(call, tea).file)

        assert text_of(call, keep(call, tea).file) == once

    def test_let_go_the_file_is_as_it_was(self, call, tea):
        before = text_of(call, show(call, tea).file)
        keep(call, tea)
        gone = keep(call, tea, off=True)

        assert not gone.protected
        assert text_of(call, gone.file) == before

    def test_a_decision_that_is_let_go_fades_until_it_is_kept_again(self, call, clock):
        made = add(call, "Use JWT", type="decision")
        before = text_of(call, made.file)
        assert "protected: false" in text_of(call, keep(call, made.id, off=True).file)
        clock.forward(days=300)
        assert [row.id for row in fading(call).memories] == [made.id]

        keep(call, made.id)

        assert text_of(call, made.file) == before
        assert fading(call).memories == ()

    def test_a_read_only_document_is_refused_with_a_hint(self, call):
        note = call.mind.folder / "notes" / "tea.md"
        note.parent.mkdir()
        note.write_text("# Tea\n\nwithout milk\n", encoding="utf-8")

        with pytest.raises(Invalid) as caught:
            keep(call, "tea")

        assert "protected: true" in caught.value.hint
        assert note.read_text(encoding="utf-8") == "# Tea\n\nwithout milk\n"
        edit(call, "tea", file_text="---\nprotected: true\n---\n# Tea\n\nwithout milk\n")
        assert fading(call, threshold=1).memories == ()

    @pytest.mark.parametrize(
        ("line", "hint"),
        [
            ("TIL goats climb", "begin line 3 with `KEY:`"),
            ("Decided to use llamas", "it does not fade"),
            ("KEY: never ride at night", "it does not fade"),
            ("Next: buy hay", "edit .mind/MEMORY.md:3"),
        ],
    )
    def test_a_line_of_the_log_has_a_hint_of_its_own(self, call, line, hint):
        log = call.mind.folder / "MEMORY.md"
        log.write_text(f"## 2026-11-01\n\n- {line}\n", encoding="utf-8")
        (row,) = list_(call).memories

        with pytest.raises(Invalid, match=r"line 3 of `.mind/MEMORY.md`") as caught:
            keep(call, row.id)

        assert hint in caught.value.hint
        log.write_text(f"## 2026-11-01\n\n- KEY: {line}\n", encoding="utf-8")
        assert fading(call, threshold=1).memories == ()

    def test_a_line_of_the_log_has_no_outcome_to_write(self, call):
        (call.mind.folder / "MEMORY.md").write_text("- Decided to use llamas\n", encoding="utf-8")
        (row,) = list_(call).memories

        with pytest.raises(Invalid, match=r"line 1 of `.mind/MEMORY.md`") as caught:
            evolve_outcome(call, row.id, "FAILED", reason="they spit")

        assert "mind edit" not in caught.value.hint

    def test_a_document_of_the_project_does_not_fade_and_needs_no_keeping(self, call, clock):
        docs = call.mind.project.root / "docs"
        docs.mkdir()
        (docs / "tea.md").write_text("---\ndate: 2020-01-01\n---\nwithout milk\n", encoding="utf-8")
        config(call, "include", "docs/*.md")
        reopened = Call(call.mind.reopened())

        assert fading(reopened, threshold=1).memories == ()
        assert fading(reopened).checked == 1
        assert list_memories(reopened).memories[0].protected
        with pytest.raises(Invalid, match="document of the project"):
            keep(reopened, "tea")


def _with(text: str, line: str) -> list[str]:
    """Returns the lines of a file with one more in its header, where mind writes it."""
    lines = text.splitlines()
    return [*lines[:3], line, *lines[3:]]
