"""`mind save`, `evolve`, `load context` and `search by-topic`: decisions and how they evolve."""

from pathlib import Path
from typing import Any

import pytest

from mimo.errors import AmbiguousId, Invalid, NotFound
from mimo.features.decisions.commands import decision, insight, outcome, supersede
from mimo.features.decisions.loading import context
from mimo.features.notes.commands import add, rm
from mimo.features.notes.memory_tool import list_memories as memory_list
from mimo.features.notes.memory_tool import search as memory_search
from mimo.features.notes.reading import list_, show
from mimo.features.search.browse import by_context, by_topic, recent
from mimo.features.search.commands import search
from mimo.memory.model import Kind, Outcome
from mimo.store import files

WHY = "No session store is needed"


def text_of(call, file: str) -> str:
    return Path(call.mind.project.root, file).read_text(encoding="utf-8")


def on_a_branch(call, decision_text: str, supersedes: str) -> str:
    """Writes the decision that another branch brought in; returns its id."""
    identity = "decision_auth_strategy_20261119_theirs"
    text = (
        f"---\nid: {identity}\ntype: decision\ntopic: auth_strategy\n"
        f"created: 2026-11-20T16:00:00Z\nlinks:\n  - {{to: {supersedes}, type: supersedes}}\n"
        f"---\n{decision_text}\n"
    )
    path = call.mind.folder / "decisions" / f"{identity}.md"
    files.write_new(path, text.encode())
    return identity


class TestSave:
    @pytest.mark.req("004-05")
    @pytest.mark.req("004-06")
    @pytest.mark.req("004-21")
    def test_a_decision_is_a_file_that_reads_well(self, call):
        saved = decision(call, "auth_strategy", "Use JWT", WHY, tags=("auth",))

        assert text_of(call, saved.file) == (
            "---\n"
            f"id: {saved.id}\n"
            "type: decision\n"
            "topic: auth_strategy\n"
            "tags: [auth]\n"
            "confidence: 0.7\n"
            "created: 2026-11-20T15:30:00Z\n"
            "---\n"
            "Use JWT\n\n"
            "## Reasoning\n"
            "No session store is needed\n"
        )
        assert saved.id.startswith("decision_auth_strategy_20261120_")

    @pytest.mark.parametrize("spelling", ["auth_strategy", "Auth Strategy", "auth-strategy"])
    def test_a_decision_on_the_same_topic_supersedes_the_current_one(self, call, clock, spelling):
        first = decision(call, "auth_strategy", "Use JWT", WHY)
        before = text_of(call, first.file)
        clock.forward(days=1)

        second = decision(call, spelling, "Use sessions", "They can be revoked")

        assert second.supersedes == (first.id,)
        assert text_of(call, first.file) == before
        assert show(call, first.id).superseded_by == second.id
        assert f"{{to: {first.id}, type: supersedes, confidence: 1.0}}" in text_of(
            call, second.file
        )

    def test_keep_current_keeps_the_older_decision(self, call):
        first = decision(call, "auth", "Use JWT", WHY)
        second = decision(call, "auth", "Add TOTP", "Phishing", keep_current=True)

        assert second.supersedes == ()
        assert context(call, first.id).memory.competing == (second.id,)

    def test_two_decisions_after_a_merge_are_both_current_until_the_next_one(self, call, clock):
        first = decision(call, "auth_strategy", "Use JWT", WHY)
        clock.forward(hours=1)
        ours = supersede(call, first.id, "Use sessions", "They can be revoked")
        theirs = on_a_branch(call, "Use opaque tokens", first.id)

        evolution = by_topic(call, "auth_strategy")
        assert evolution.current == (ours.id, theirs)
        assert [row.competing for row in evolution.results] == [(theirs,), (ours.id,), None]
        answer = {row.id: row for row in search(call, "sessions", threshold=0.0).results}
        assert answer[ours.id].competing == (theirs,)
        assert {row.id: row.competing for row in list_(call).memories}[theirs] == (ours.id,)
        assert context(call, "auth_strategy").memory.id == ours.id
        assert context(call).memory.id == ours.id

        last = decision(call, "auth_strategy", "Use passkeys", "Both had their faults")
        assert set(last.supersedes) == {ours.id, theirs}
        assert by_topic(call, "auth_strategy").current == (last.id,)

    def test_a_private_decision_is_kept_out_of_git(self, call):
        saved = decision(call, "salary", "Raise it", "It is due", private=True)
        assert saved.file.startswith(".mind/private/")
        assert saved.private

    def test_a_shared_decision_supersedes_the_one_that_a_private_one_replaced(self, call, clock):
        first = decision(call, "auth", "Use cookies", WHY)
        clock.forward(hours=1)
        own = decision(call, "auth", "Use JWT maybe", WHY, private=True)
        clock.forward(hours=1)
        again = supersede(call, own.id, "Use JWT surely", WHY)
        clock.forward(hours=1)
        third = decision(call, "auth", "Use OAuth", WHY)

        assert (own.supersedes, again.supersedes) == ((first.id,), (own.id,))
        assert third.supersedes == (first.id,)
        assert "it is private" in (third.notice or "")
        text = text_of(call, third.file)
        assert own.id not in text
        assert again.id not in text
        assert [r.memory.id for r in call.mind.index.current("auth", shared=True)] == [third.id]

        rm(call, again.id)
        rm(call, own.id)
        assert by_topic(call, "auth").current == (third.id,)
        assert text_of(call, third.file) == text

    def test_a_shared_decision_supersedes_all_shared_ones_that_private_ones_replaced(self, call):
        left = decision(call, "auth", "Use cookies", WHY)
        right = decision(call, "auth", "Add TOTP", WHY, keep_current=True)
        own = decision(call, "auth", "Use JWT maybe", WHY, private=True)

        last = decision(call, "auth", "Use OAuth", WHY)
        assert set(own.supersedes) == set(last.supersedes) == {left.id, right.id}
        assert decision(call, "auth", "Use keys", WHY, keep_current=True).supersedes == ()

    @pytest.mark.req("004-04")
    @pytest.mark.parametrize(
        ("topic", "text", "why"),
        [
            ("", "Use JWT", WHY),
            ("-_ ", "Use JWT", WHY),
            ("auth", " ", WHY),
            ("auth", "Use", ""),
        ],
    )
    def test_an_empty_part_is_refused_and_nothing_is_written(self, call, topic, text, why):
        with pytest.raises(Invalid):
            decision(call, topic, text, why)
        assert list_(call).total == 0

    def test_a_topic_as_long_as_a_text_is_refused(self, call):
        with pytest.raises(Invalid, match="too long"):
            decision(call, "a" * 201, "Use JWT", WHY)

    @pytest.mark.parametrize(
        ("type", "outcome", "says"),
        [
            ("user_decision", None, "user_involvement: approved"),
            ("assistant_insight", "pending", "type: decision"),
            (None, "success", "outcome: SUCCESS"),
        ],
    )
    def test_arguments_of_earlier_versions_are_still_accepted(self, call, type, outcome, says):
        saved = decision(call, "auth", "Use JWT", WHY, type=type, outcome=outcome)
        assert says in text_of(call, saved.file)

    @pytest.mark.parametrize("reason", [None, "", " \n"])
    def test_a_failed_decision_is_saved_only_with_a_reason(self, call, reason):
        with pytest.raises(Invalid, match="a failure needs a reason") as error:
            decision(call, "auth", "Use JWT", WHY, outcome="failure", failure_reason=reason)
        assert error.value.details == {"field": "failure_reason"}
        assert "`failure_reason`" in error.value.hint
        assert list_(call).total == 0

    @pytest.mark.parametrize("outcome", ["FAILED", "partial", "pending"])
    def test_a_decision_is_saved_with_the_reason_of_its_outcome(self, call, outcome):
        saved = decision(
            call, "auth", "Use JWT", WHY, outcome=outcome, failure_reason="Tokens leaked"
        )
        assert f"## Outcome\n- 2026-11-20 {outcome.upper()}: Tokens leaked\n" in text_of(
            call, saved.file
        )

    def test_an_unknown_type_names_the_known_ones(self, call):
        with pytest.raises(Invalid, match="user_decision"):
            decision(call, "auth", "Use JWT", WHY, type="novel")

    @pytest.mark.req("004-08")
    @pytest.mark.req("004-23")
    def test_an_insight_keeps_its_category_tags_and_source(self, call):
        saved = insight(call, "Safari drops cookies", category="web", tags=("a",), source="x.md")
        shown = show(call, saved.id)
        assert (shown.type, shown.category, shown.tags, shown.source) == (
            Kind.INSIGHT,
            "web",
            ("a",),
            "x.md",
        )


class TestOutcome:
    @pytest.mark.req("004-14")
    def test_a_failure_is_noted_with_its_reason_and_lowers_the_confidence(self, call):
        saved = decision(call, "auth", "Use JWT", WHY)

        evolved = outcome(call, "auth", "FAILED", "Tokens could not be revoked")

        assert (evolved.id, evolved.outcome, evolved.confidence_before, evolved.confidence) == (
            saved.id,
            Outcome.FAILED,
            0.7,
            0.4,
        )
        assert (
            "## Outcome\n- 2026-11-20 FAILED, confidence 0.7 → 0.4: Tokens could not be revoked\n"
        ) in text_of(call, saved.file)

    @pytest.mark.req("004-16")
    def test_a_failed_decision_is_marked_everywhere(self, call):
        saved = decision(call, "auth", "Use JWT", WHY)
        outcome(call, saved.id, "FAILED", "Tokens leaked")
        warning = "FAILED, do not repeat it: Tokens leaked"

        rows: list[Any] = [
            *search(call, "JWT").results,
            *memory_search(call, "JWT").results,
            *list_(call).memories,
            *memory_list(call).memories,
            *recent(call).results,
            *by_topic(call, "auth").results,
            *(answer.memory for answer in by_context(call, "JWT").results),
            context(call, saved.id).memory,
        ]
        assert [row.warning for row in rows] == [warning] * 8

    def test_an_outcome_can_be_reopened_and_keeps_its_history(self, call):
        saved = decision(call, "auth", "Use JWT", WHY)
        outcome(call, saved.id, "FAILED", "Tokens leaked")

        evolved = outcome(call, saved.id, "PENDING", "It was the proxy")

        assert (evolved.outcome, evolved.warning, evolved.confidence) == (None, None, 0.7)
        assert "Tokens leaked" in text_of(call, saved.file)

    def test_a_failure_needs_a_reason(self, call):
        saved = decision(call, "auth", "Use JWT", WHY)
        before = text_of(call, saved.file)
        with pytest.raises(Invalid, match="reason"):
            outcome(call, saved.id, "FAILED", " ")
        assert text_of(call, saved.file) == before

    def test_a_document_that_people_keep_is_not_changed(self, call, project):
        path = project / ".mind" / "decisions" / "0001-use-git.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text("# Use git\n\nIt is good.\n", encoding="utf-8")
        with pytest.raises(Invalid, match="only reads"):
            outcome(call, "0001-use-git", "SUCCESS")
        assert path.read_text(encoding="utf-8") == "# Use git\n\nIt is good.\n"

    def test_competing_decisions_must_be_named(self, call):
        first = decision(call, "auth", "Use JWT", WHY)
        second = decision(call, "auth", "Add TOTP", "Phishing", keep_current=True)
        with pytest.raises(AmbiguousId) as caught:
            outcome(call, "auth", "SUCCESS")
        assert set(caught.value.details["candidates"]) == {first.id, second.id}

    def test_a_misspelt_topic_is_guessed(self, call):
        decision(call, "auth_strategy", "Use JWT", WHY)
        with pytest.raises(NotFound) as caught:
            outcome(call, "strategy of auth", "SUCCESS")
        assert "auth_strategy" in caught.value.hint


class TestSupersede:
    @pytest.mark.req("004-15")
    def test_the_new_decision_is_current_and_linked_to_the_old_one(self, call, clock):
        first = decision(call, "auth", "Use JWT", WHY)
        clock.forward(days=1)

        second = supersede(call, first.id, "Use sessions", "Revocable")

        evolution = by_topic(call, "auth")
        assert evolution.current == (second.id,)
        assert [row.id for row in evolution.results] == [second.id, first.id]
        assert show(call, first.id).content == "Use JWT"
        assert show(call, first.id).superseded_by == second.id
        assert f"{{to: {first.id}, type: supersedes, confidence: 1.0}}" in text_of(
            call, second.file
        )

    def test_the_new_decision_takes_on_topic_and_tags_and_keeps_the_old_file(self, call):
        first = decision(call, "auth", "Use JWT", WHY, tags=("auth",))
        before = text_of(call, first.file)

        second = supersede(call, "auth", "Use sessions", "Revocable", reason="Too slow")

        shown = show(call, second.id)
        assert (shown.topic, shown.tags, second.supersedes) == ("auth", ("auth",), (first.id,))
        assert shown.sections["Reasoning"] == f"Revocable\n\nReplaces {first.id}: Too slow"
        assert text_of(call, first.file) == before

    def test_superseding_a_superseded_decision_names_its_successor(self, call):
        first = decision(call, "auth", "Use JWT", WHY)
        second = supersede(call, first.id, "Use sessions", "Revocable")
        with pytest.raises(Invalid, match=second.id):
            supersede(call, first.id, "Use passkeys", "Newer")
        assert list_(call).total == 2

    def test_a_shared_decision_supersedes_one_that_a_private_one_superseded(self, call, clock):
        first = decision(call, "auth", "Use cookies", WHY)
        clock.forward(hours=1)
        own = supersede(call, first.id, "Use JWT maybe", WHY, private=True)
        with pytest.raises(Invalid, match=own.id):
            supersede(call, first.id, "Use passkeys", WHY, private=True)
        clock.forward(hours=1)
        second = supersede(call, first.id, "Use OAuth", WHY)
        assert (own.private, second.private, second.supersedes) == (True, False, (first.id,))
        assert own.id not in text_of(call, second.file)
        assert set(by_topic(call, "auth").current) == {own.id, second.id}
        with pytest.raises(Invalid, match=second.id):
            supersede(call, first.id, "Use passkeys", WHY)

    def test_a_reason_is_required(self, call):
        decision(call, "auth", "Use JWT", WHY)
        with pytest.raises(Invalid, match="reasoning"):
            supersede(call, "auth", "Use sessions")

    def test_another_kind_of_memory_can_be_superseded_and_keeps_its_type(self, call):
        old = add(call, "The limit is 50 a second", type="fact")
        new = supersede(call, old.id, "The limit is 80 a second", "Measured")
        assert show(call, new.id).type is Kind.FACT

    def test_a_removed_link_of_the_chain_leaves_it_whole(self, call, clock):
        ids: list[str] = []
        for text in ("Use JWT", "Use sessions", "Use passkeys"):
            ids.append(decision(call, "auth", text, WHY).id)
            clock.forward(days=1)
        rm(call, ids[1])
        assert show(call, ids[0]).superseded_by == ids[2]


class TestTopic:
    @pytest.mark.req("004-11")
    @pytest.mark.req("004-52")
    def test_the_chain_is_listed_newest_first_three_steps_beyond_the_topic(self, call, clock):
        ids: list[str] = []
        for number in range(6):
            draft = decision(
                call,
                "auth" if number == 5 else f"older {number}",
                f"Number {number}",
                WHY,
                links=({"to": ids[-1], "type": "supersedes"},) if ids else (),
            )
            ids.append(draft.id)
            clock.forward(days=1)
        evolution = by_topic(call, "auth")
        assert [row.id for row in evolution.results] == ids[5:1:-1]
        assert evolution.current == (ids[5],)

    def test_decisions_of_one_second_are_in_the_order_of_the_chain(self, call):
        ids = [decision(call, "auth", f"Number {n}", WHY).id for n in range(5)]
        assert [row.id for row in by_topic(call, "auth").results] == ids[::-1]

    def test_an_unknown_topic_suggests_a_similar_one(self, call):
        decision(call, "auth_strategy", "Use JWT", WHY)
        evolution = by_topic(call, "auth_stratgy")
        assert (evolution.total, evolution.current) == (0, ())
        assert "auth_strategy" in (evolution.notice or "")

    def test_an_empty_memory_answers(self, call):
        assert by_topic(call, "auth").total == 0
        assert by_context(call, "auth").total == 0
        assert recent(call).total == 0


class TestContext:
    @pytest.mark.req("004-10")
    @pytest.mark.req("004-52")
    def test_a_decision_comes_with_all_within_two_links(self, call, clock):
        ids: list[str] = []
        for number in range(4):
            links: Any = ({"to": ids[-1], "type": "builds_on"},) if ids else ()
            ids.append(decision(call, f"t{number}", f"Number {number}", WHY, links=links).id)
            clock.forward(days=1)
        loaded = context(call, ids[3])
        assert [(row.id, row.depth) for row in loaded.related] == [(ids[2], 1), (ids[1], 2)]
        assert loaded.memory.reasoning == WHY
        assert loaded.memory.related_to == (ids[2],)

    @pytest.mark.req("004-12")
    @pytest.mark.req("004-52")
    def test_a_search_includes_memories_five_links_away(self, call, clock):
        ids: list[str] = []
        for number, text in enumerate(["Use JWT tokens", *(f"Thing {n}" for n in range(6))]):
            links: Any = ({"to_id": ids[-1], "relationship": "builds_on"},) if ids else ()
            ids.append(decision(call, f"t{number}", text, "so", links=links).id)
            clock.forward(days=1)
        answer = by_context(call, "JWT tokens", threshold=0.5)
        assert [row.memory.id for row in answer.results] == [ids[0]]
        assert [(row.id, row.depth) for row in answer.related] == [
            (ids[depth], depth) for depth in range(1, 6)
        ]

    def test_a_time_filters_a_search_by_context(self, call, clock):
        old = insight(call, "JWT tokens expire")
        clock.forward(days=10)
        new = insight(call, "JWT tokens are signed")

        answer = by_context(call, "JWT tokens", time_filter="last week")
        assert [row.memory.id for row in answer.results] == [new.id]
        answer = by_context(call, "JWT tokens", to_date="2026-11-25", threshold=0.1)
        assert [row.memory.id for row in answer.results] == [old.id]

    def test_a_type_or_a_time_filters_recent_memories(self, call, clock):
        old = insight(call, "Old lesson")
        clock.forward(days=10)
        decision(call, "auth", "Use JWT", WHY)
        new = insight(call, "New lesson")
        assert [row.id for row in recent(call, type="learning").results] == [new.id, old.id]
        week = recent(call, type="insight", time_filter="last week")
        assert [row.id for row in week.results] == [new.id]
        assert (recent(call, limit=1).total, len(recent(call, limit=1).results)) == (3, 1)


@pytest.mark.req("004-76")
def test_lists_are_narrowed_by_type_topic_outcome_and_time(call, clock):
    first = decision(call, "auth", "Use JWT", WHY)
    outcome(call, first.id, "FAILED", "Leaks")
    clock.forward(days=40)
    second = decision(call, "auth", "Use sessions", WHY)
    other = decision(call, "cache", "Use Redis", WHY)
    outcome(call, other.id, "SUCCESS")

    def ids(**conditions: Any) -> set[str]:
        return {row.id for row in list_(call, **conditions).memories}

    assert ids(topic="Auth") == {first.id, second.id}
    assert ids(outcomes_=("failure",)) == {first.id}
    assert ids(outcomes_=("SUCCESS", "FAILED"), time_filter="last week") == {other.id}
    assert ids(types=("insight",), topic="auth") == set()


def test_only_a_decision_gets_an_outcome(call):
    id = add(call, "The cache holds ten minutes").id
    with pytest.raises(Invalid, match="not a decision but of the type fact") as raised:
        outcome(call, id, "FAILED", reason="no")
    assert "mind evolve supersede" in (raised.value.hint or "")
    assert outcome(call, id, "PENDING").outcome is None
