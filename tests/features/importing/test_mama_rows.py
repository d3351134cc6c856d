"""The conversion of each column of a MAMA database."""

import json
from datetime import UTC, datetime

import pytest

from mimo.features.importing.drafts import Item
from mimo.features.importing.foreign import data, is_short, items, moment
from mimo.features.importing.mama import LinkCounts, assigned, convert, safe
from mimo.memory import codec
from mimo.memory.codec.file import Parsed
from mimo.memory.ids import is_id
from mimo.memory.model import Kind, Link, Memory, Outcome, Section
from tests.mama_databases import SEPTEMBER, decision

NOW = datetime(2026, 11, 20, tzinfo=UTC)
WHEN = datetime(2025, 9, 4, 15, 33, 20, tzinfo=UTC)


def sources(**tables) -> tuple[Item, ...]:
    return convert(tables, now=NOW)[0]


def only(**tables) -> Memory:
    """Returns the only memory of the tables, as it is read back from its file."""
    (row,) = sources(**tables)
    assert row.memory is not None
    return read_back(row.memory)


def read_back(memory: Memory) -> Memory:
    parsed = codec.parse(codec.render(memory), path=".mind/decisions/x.md", modified=NOW)
    assert isinstance(parsed, Parsed), parsed
    assert parsed.memory == codec.normal(memory)
    return parsed.memory


def decided(**columns) -> Memory:
    return only(decisions=[decision("decision_auth_1757000000000_ab12", **columns)])


class TestTimes:
    @pytest.mark.req("004-27")
    @pytest.mark.parametrize(
        "value",
        [SEPTEMBER, SEPTEMBER // 1000, float(SEPTEMBER), str(SEPTEMBER // 1000),
         "2025-09-04 15:33:20", "2025-09-04T15:33:20Z"],
    )  # fmt: skip
    def test_seconds_milliseconds_and_dates_mean_the_same(self, value):
        assert moment(value) == WHEN

    @pytest.mark.req("004-27")
    def test_a_number_below_the_start_of_2020_in_milliseconds_is_in_seconds(self):
        assert moment(1_577_836_800_000) == datetime(2020, 1, 1, tzinfo=UTC)
        assert moment(1_577_836_800) == datetime(2020, 1, 1, tzinfo=UTC)
        assert moment(1_577_836_799_999) is None

    @pytest.mark.parametrize("value", ["0850-01-02", "1999-12-31T23:59:59Z", "2300-01-02 00:00"])
    def test_a_text_may_be_of_any_year(self, value):
        when = moment(value)

        assert when is not None
        assert when.isoformat().startswith(value[:10])

    @pytest.mark.parametrize(
        "value",
        [None, 0, -1, 10**30, float("inf"), "soon", b"x", "", 1.7e15, "0001-01-01T00:00:00Z",
         "1970-01-01 00:00:00", "1999"],
    )  # fmt: skip
    def test_an_impossible_time_is_none(self, value):
        assert moment(value) is None

    def test_an_impossible_time_is_kept_and_replaced_by_that_of_the_id(self):
        memory = decided(created_at=10**17, updated_at=None)

        assert memory.created == WHEN
        assert memory.extra == {"created_at": 10**17}

    def test_a_row_without_any_time_is_as_old_as_the_oldest(self):
        rows = [decision("a", created_at=None, updated_at=None), decision("b")]

        first, second = sources(decisions=rows)

        assert first.memory is not None
        assert second.memory is not None
        assert first.memory.created == second.memory.created == WHEN

    def test_without_any_time_a_memory_is_created_now(self):
        assert decided(created_at=None, updated_at=None).created == WHEN
        assert only(decisions=[decision("a", created_at=0, updated_at=0)]).created == NOW


class TestIds:
    @pytest.mark.parametrize("raw", ["decision_auth_1757000000000_ab12", "decision__1_x", "A.b"])
    @pytest.mark.req("004-06")
    def test_a_valid_id_is_kept(self, raw):
        assert assigned([(Kind.DECISION, raw)]) == (raw,)

    @pytest.mark.parametrize("raw", ["결정/1", "a b", ".hidden", "../../etc", "x" * 200, ""])
    def test_an_invalid_id_always_becomes_the_same_safe_one(self, raw):
        (made,) = assigned([(Kind.DECISION, raw)])

        assert is_id(made)
        assert made.startswith("decision_")
        assert made == safe(Kind.DECISION, raw)

    def test_ids_that_differ_only_in_case_get_separate_files(self):
        made = assigned([(Kind.DECISION, "Auth"), (Kind.DECISION, "auth"), (Kind.INSIGHT, "auth")])

        assert made[0] == "Auth"
        assert len({name.casefold() for name in made}) == 3

    def test_rows_without_an_id_get_one_from_their_values(self):
        rows = [decision(None, decision="a"), decision(None, decision="b")]

        first, second = sources(decisions=rows)

        assert first.memory is not None
        assert second.memory is not None
        assert first.memory.id != second.memory.id
        assert sources(decisions=rows) == (first, second)


@pytest.mark.req("004-61")
class TestDecisions:
    def test_columns_become_fields_and_sections(self):
        memory = decided(
            topic="인증 전략", decision="JWT를 쓴다", reasoning="서버가 둘이다", confidence=0.9,
            outcome="SUCCESS",
        )  # fmt: skip

        assert memory.type is Kind.DECISION
        assert (memory.content, memory.topic, memory.confidence) == ("JWT를 쓴다", "인증 전략", 0.9)
        assert memory.outcome is Outcome.SUCCESS
        assert memory.created == WHEN
        assert memory.sections == {
            Section.REASONING: "서버가 둘이다",
            Section.OUTCOME: "- 2025-09-04 SUCCESS",
        }
        assert memory.extra == {}

    @pytest.mark.req("004-16")
    def test_a_failure_keeps_its_date_and_reasons(self):
        later = SEPTEMBER + 40 * 86_400_000

        memory = decided(
            outcome="FAILED", failure_reason="It broke\nunder load", limitation="one node",
            updated_at=later,
        )  # fmt: skip

        assert memory.sections[Section.OUTCOME] == (
            "- 2025-10-14 FAILED: It broke\n  under load\n  \n  Limitation: one node"
        )

    def test_an_outcome_does_not_change_the_confidence(self):
        """MAMA's tools never moved it, so the import must not either."""
        assert decided(confidence=0.5, outcome="FAILED", failure_reason="x").confidence == 0.5

    def test_a_reason_without_an_outcome_is_kept(self):
        memory = decided(failure_reason="slow")

        assert memory.outcome is None
        assert memory.sections[Section.OUTCOME] == "- 2025-09-04 PENDING: slow"

    @pytest.mark.parametrize(("word", "outcome"), [("failure", "FAILED"), ("partial", "PARTIAL")])
    def test_outcomes_are_read_in_both_vocabularies(self, word, outcome):
        assert decided(outcome=word).outcome == outcome

    def test_invalid_values_are_kept_under_other_names(self):
        memory = decided(outcome="maybe", confidence=7)

        assert (memory.outcome, memory.confidence) == (None, None)
        assert memory.extra == {"mama_outcome": "maybe", "mama_confidence": 7}

    def test_other_columns_are_kept_in_the_header(self):
        memory = decided(
            user_involvement="approved", session_id="s-1", duration_days=1.5, needs_validation=1,
            validation_attempts=2, last_validated_at=SEPTEMBER // 1000, usage_count=3,
            usage_success=2, usage_failure=1, time_saved=60_000,
            trust_context='{"source": "user", "verified": true}',
            refined_from='["decision_a", "decision_b"]',
        )  # fmt: skip

        assert memory.extra == {
            "user_involvement": "approved",
            "session_id": "s-1",
            "duration_days": 1.5,
            "needs_validation": True,
            "validation_attempts": 2,
            "last_validated_at": "2025-09-04T15:33:20Z",
            "usage_count": 3,
            "usage_success": 2,
            "usage_failure": 1,
            "time_saved": 60_000,
            "trust_context": {"source": "user", "verified": True},
            "refined_from": ["decision_a", "decision_b"],
        }

    def test_defaults_and_empty_values_are_not_written(self):
        memory = decided(
            needs_validation=0, usage_count=0, time_saved=0, refined_from="[]", trust_context="{}",
            duration_days=None, user_involvement="", status="active", kind="decision", is_static=0,
        )  # fmt: skip

        assert memory.extra == {}
        assert memory.status is None

    def test_columns_of_later_versions_are_kept_in_body_and_header(self):
        memory = decided(
            reasoning="Why", evidence="A benchmark", alternatives='["Sessions", "mTLS"]',
            risks="Key rotation", status="superseded", is_static=1, event_date=SEPTEMBER,
            whatever="new",
        )  # fmt: skip

        assert memory.sections[Section.REASONING] == (
            "Why\n\n### Evidence\n\nA benchmark\n\n### Alternatives\n\n- Sessions\n- mTLS\n\n"
            "### Risks\n\nKey rotation"
        )
        assert memory.status == "superseded"
        assert memory.extra == {
            "is_static": True,
            "event_date": "2025-09-04T15:33:20Z",
            "whatever": "new",
        }

    def test_broken_json_stays_text(self):
        memory = decided(trust_context='{"source": ', refined_from="[decision_a")

        assert memory.extra == {"trust_context": '{"source": ', "refined_from": "[decision_a"}

    def test_a_long_value_is_in_the_body(self):
        long = {"notes": ["word " * 60]}

        memory = decided(trust_context=f'{{"notes": ["{"word " * 60}"]}}')

        assert memory.extra == {}
        assert f'"{long["notes"][0]}"' in memory.sections[Section.REASONING]

    @pytest.mark.parametrize("empty", [None, "", "  \n"])
    def test_an_empty_row_has_no_memory(self, empty):
        (row,) = sources(decisions=[decision("x", topic=empty, decision=empty)])

        assert row.memory is None

    def test_invalid_characters_are_replaced(self):
        assert decided(decision="a\0b").content == "a\ufffdb"
        assert decided(trust_context='{"a": "\\ud800"}').extra == {"trust_context": {"a": "?"}}


def linked(decisions, edges=()) -> tuple[dict[str, Memory], LinkCounts]:
    rows, counts = convert({"decisions": decisions, "decision_edges": list(edges)}, now=NOW)
    return {row.key: read_back(row.memory) for row in rows if row.memory}, counts


def edge(source, target, relationship="refines", **columns):
    return {"from_id": source, "to_id": target, "relationship": relationship, **columns}


SUPERSEDES_OLD = Link(to="old", type="supersedes", confidence=1.0)


class TestLinks:
    def test_a_superseding_link_is_kept_once_in_the_newer_decision(self):
        """MAMA states it three times: in both rows and as an edge."""
        rows = [decision("old", superseded_by="new"), decision("new", supersedes="old")]

        memories, counts = linked(rows, [edge("new", "old", "supersedes", weight=0.3)])

        assert memories["new"].links == (SUPERSEDES_OLD,)
        assert memories["old"].links == ()
        assert (counts.found, counts.written, counts.repeated) == (3, 1, 2)

    @pytest.mark.parametrize("only", ["supersedes", "superseded_by", "edge"])
    def test_one_of_the_three_statements_is_enough(self, only):
        rows = [
            decision("old", superseded_by="new" if only == "superseded_by" else None),
            decision("new", supersedes="old" if only == "supersedes" else None),
        ]

        memories, _ = linked(rows, [edge("new", "old", "supersedes")] if only == "edge" else [])

        assert memories["new"].links == (SUPERSEDES_OLD,)

    def test_an_inferred_link_has_its_weight_as_confidence(self):
        memories, _ = linked(
            [decision("a"), decision("b")],
            [edge("a", "b", "refines", weight=0.86), edge("a", "b", "contradicts", weight=None)],
        )

        assert memories["a"].links == (
            Link(to="b", type="refines", confidence=0.86, by="system"),
            Link(to="b", type="contradicts", by="system"),
        )

    def test_the_author_of_an_edge_is_kept(self):
        memories, _ = linked(
            [decision("a"), decision("b")],
            [
                edge("a", "b", "builds_on", weight=1.0, created_by="user", reason="after a talk"),
                edge("a", "b", "debates", weight=0.5, created_by="llm", approved_by_user=0),
            ],
        )

        assert memories["a"].links == (
            Link(to="b", type="builds_on", confidence=1.0, by="user"),
            Link(to="b", type="debates", confidence=0.5, by="llm"),
        )
        assert memories["a"].sections[Section.REASONING] == "Builds on b: after a talk"
        assert memories["a"].extra["link_notes"] == [
            {"to": "b", "type": "debates", "approved": False},
        ]

    def test_a_reason_is_written_as_evolve_supersede_writes_it(self):
        rows = [decision("a", reasoning="Tokens are shared.", supersedes="b"), decision("b")]

        memories, _ = linked(rows, [edge("a", "b", "supersedes", reason="it did not scale")])

        assert memories["a"].sections[Section.REASONING] == (
            "Tokens are shared.\n\nReplaces b: it did not scale"
        )

    def test_a_link_to_a_missing_decision_is_kept_and_counted(self):
        memories, counts = linked([decision("a", supersedes="gone")], [edge("a", "결정 9")])

        assert [link.to for link in memories["a"].links] == [
            "gone",
            safe(Kind.DECISION, "결정 9"),
        ]
        assert (counts.written, counts.dangling) == (2, 2)

    def test_a_link_of_a_missing_decision_is_recorded_by_its_target(self):
        memories, counts = linked([decision("a", superseded_by="gone")])

        assert memories["a"].links == ()
        assert memories["a"].extra == {
            "linked_from": [{"from": "gone", "type": "supersedes", "confidence": 1.0}]
        }
        assert counts.kept_aside == 1

    def test_circles_are_kept_and_meaningless_links_are_counted(self):
        memories, counts = linked(
            [decision("a", supersedes="b"), decision("b", supersedes="a")],
            [edge("a", "a"), edge("x", "y"), edge("a", None)],
        )

        assert [memories[key].links[0].to for key in "ab"] == ["b", "a"]
        assert (counts.written, counts.left_out) == (2, 3)

    def test_links_follow_an_id_that_had_to_change(self):
        memories, _ = linked([decision("결정 1"), decision("b", supersedes="결정 1")])

        assert memories["b"].links[0].to == memories["결정 1"].id == safe(Kind.DECISION, "결정 1")

    def test_links_that_exceed_the_header_are_in_the_body(self):
        edges = [edge("a", f"decision_number_{n}", weight=0.5) for n in range(1000)]

        memories, counts = linked([decision("a")], edges)

        assert {link.to for link in memories["a"].links} == {row["to_id"] for row in edges}
        assert counts.written == 1000

    def test_every_statement_is_counted_once(self):
        _, counts = linked(
            [decision("a", supersedes="b", superseded_by="gone"), decision("b", superseded_by="a")],
            [edge("a", "b"), edge("b", "b"), edge("q", "r")],
        )

        parts = counts.written + counts.repeated + counts.kept_aside + counts.left_out
        assert counts.found == parts == 6


class TestOtherTables:
    @pytest.mark.req("004-61")
    def test_a_checkpoint(self):
        memory = only(
            checkpoints=[
                {"id": 7, "timestamp": SEPTEMBER, "summary": "로그인 작업 중", "status": "active",
                 "open_files": '["a.py", "b c.ts"]', "next_steps": "1. test\n2. ship"}
            ]
        )  # fmt: skip

        assert (memory.id, memory.type, memory.status) == ("checkpoint_7", Kind.CHECKPOINT, None)
        assert memory.content == "로그인 작업 중"
        assert memory.sections == {
            Section.OPEN_FILES: "- a.py\n- b c.ts",
            Section.NEXT_STEPS: "1. test\n2. ship",
        }

    def test_an_archived_checkpoint_stays_archived(self):
        row = {"id": 1, "timestamp": SEPTEMBER, "summary": "x", "status": "archived"}

        assert only(checkpoints=[row]).status == "archived"

    def test_open_files_that_are_not_a_list_are_kept_as_text(self):
        row = {"id": 1, "timestamp": SEPTEMBER, "summary": "x", "open_files": '["a.py"'}

        assert only(checkpoints=[row]).sections[Section.OPEN_FILES] == '- ["a.py"'

    def test_a_later_checkpoint_keeps_its_conversation(self):
        talk = '[{"role": "user", "content": "안녕"}, {"role": "assistant", "content": "Hi"}]'
        row = {"id": 1, "timestamp": 1, "summary": "x", "recent_conversation": talk}

        assert only(checkpoints=[row]).content == (
            "x\n\n### Recent conversation\n\n**user:** 안녕\n\n**assistant:** Hi"
        )

    @pytest.mark.req("004-79")
    @pytest.mark.req("004-80")
    def test_a_session_is_a_context(self):
        memory = only(
            sessions=[
                {"id": "5f0c", "project_path": "/home/a/shop", "rolling_summary": "Login is done",
                 "latest_exchange": '[{"role": "user", "content": "go on"}]', "action_count": 4,
                 "started_at": SEPTEMBER // 1000, "last_active_at": SEPTEMBER, "ended_at": None}
            ]
        )  # fmt: skip

        assert (memory.id, memory.type) == ("5f0c", Kind.CONTEXT)
        assert memory.content == "Login is done\n\n### Latest exchange\n\n**user:** go on"
        assert memory.extra == {
            "project_path": "/home/a/shop",
            "action_count": 4,
            "last_active_at": "2025-09-04T15:33:20Z",
        }

    def test_an_empty_session_has_no_memory(self):
        row = {"id": "s", "project_path": "/x", "rolling_summary": None, "latest_exchange": "[]"}

        assert sources(sessions=[row])[0].memory is None

    def test_an_error_pattern_is_an_insight(self):
        memory = only(
            error_patterns=[
                {"id": "3", "error_pattern": "EADDRINUSE", "error_type": "network",
                 "solution": "kill `lsof -t`", "solution_type": "bash", "success_rate": 0.8,
                 "occurrences": 5, "first_seen": SEPTEMBER, "last_seen": SEPTEMBER}
            ]
        )  # fmt: skip

        assert (memory.id, memory.type) == ("error_pattern_3", Kind.INSIGHT)
        assert memory.category == "error_pattern"
        assert memory.content == "EADDRINUSE\n\n## Solution\n\n```bash\nkill `lsof -t`\n```"
        assert memory.extra == {
            "error_type": "network",
            "success_rate": 0.8,
            "occurrences": 5,
            "last_seen": "2025-09-04T15:33:20Z",
        }

    def test_equal_ids_in_two_tables_are_two_memories(self):
        tables = {
            "decisions": [decision("checkpoint_1")],
            "checkpoints": [{"id": 1, "timestamp": SEPTEMBER, "summary": "x"}],
        }

        ids = [row.memory.id for row in sources(**tables) if row.memory]

        assert ids[0] == "checkpoint_1"
        assert ids[1].startswith("checkpoint_1_")


class TestValues:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [(None, None), ("", None), (0, None), ("[]", None), ("{}", None), ("null", None),
         ("[1, 2]", [1, 2]), ("[1", "[1"), (b"bytes", "bytes"), (float("inf"), "inf"),
         ('{"a": 1e999}', {"a": "inf"}), ("x", "x")],
    )  # fmt: skip
    def test_values_become_data(self, value, expected):
        assert data(value) == expected

    @pytest.mark.parametrize("deep", ["[" * 100_000, "[" * 400 + "]" * 400])
    def test_deeply_nested_json_stays_text(self, deep):
        assert data(deep) == deep
        assert deep in decided(reasoning="Why", trust_context=deep).sections[Section.REASONING]

    def test_nested_json_is_kept_in_the_header(self):
        nested = '{"a": {"b": {"c": [1]}}}'

        assert decided(trust_context=nested).extra["trust_context"] == json.loads(nested)

    def test_a_header_shows_only_short_values_on_one_line(self):
        assert is_short({"a": [1, 2]})
        assert not is_short("two\nlines")
        assert not is_short(["two\nlines"])
        assert not is_short(["x" * 201])
        assert not is_short([[[[[[1]]]]]])

    def test_items_of_a_list_that_are_not_texts_are_kept(self):
        assert items('["a", 1, {"b": 2}, " "]') == ["a", "1", '{"b": 2}']
