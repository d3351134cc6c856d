"""Fading of memories: `mind fading`, `mind keep`, and the actions that count as a use."""

import pytest

from mimo.call import Caller, Surface
from mimo.features.decisions.commands import checkpoint as save_checkpoint
from mimo.features.decisions.commands import decision as save_decision
from mimo.features.decisions.loading import checkpoint as load_checkpoint
from mimo.features.decisions.loading import context as load_context
from mimo.features.fading.commands import decay_check, fading, keep, stats
from mimo.features.ingest.commands import ingest
from mimo.features.notes.commands import add
from mimo.features.notes.memory_tool import MemorySort, list_memories
from mimo.features.notes.memory_tool import search as memory_search
from mimo.features.notes.reading import list_, show
from mimo.features.review.commands import trust
from mimo.features.search.browse import by_context, by_topic, recent
from mimo.features.search.commands import Scope, search
from mimo.features.search.recall import recall_memory
from mimo.features.upkeep.commands import init
from mimo.index import survey
from mimo.memory import decay
from mimo.operations import overview
from mimo.server import resources
from tests.conftest import git


def uses(call, id_: str) -> int:
    use = call.mind.accesses.uses().get(id_)
    return use.times if use else 0


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

    def test_ending_all_approvals_ends_the_protection(self, call, clock):
        theirs = written(call, "theirs", "written by a colleague")
        trust(call, all=True)
        clock.forward(days=400)
        assert fades(call) == set()

        call.mind.trust.forget()
        assert fades(call) == {theirs}

    def test_damaged_approvals_protect_nothing(self, call, clock):
        theirs = written(call, "theirs", "written by a colleague")
        trust(call, all=True)
        clock.forward(days=400)
        (call.mind.home / "trust.db").write_text("damaged", encoding="utf-8")

        assert fades(call) == {theirs}

    def test_the_index_and_the_records_follow_one_rule(self, call, tea):
        source = call.mind.project.root / "guide.md"
        source.write_text("# A\n\nUse tea.\n", encoding="utf-8")
        ingest(call, str(source))
        add(call, "Use JWT", type="decision")
        keep(call, add(call, "Let go", type="decision").id, off=True)
        keep(call, tea)
        written(call, "theirs", "written by a colleague")
        trust(call, all=True)

        reviewed = call.mind.trust.reviewed()
        ages = {age.id: age.protected for age in call.mind.index.ask(survey.ages, reviewed)}

        records = overview.everything(call)
        assert ages == {r.memory.id: decay.is_protected(r, reviewed) for r in records}
        assert sorted(ages.values()) == [False, False, True, True, True, True]
