"""The conversion of each column of a MAMA database."""

import json
from datetime import UTC, datetime

import pytest

from mimo.features.importing.drafts import Item
from mimo.features.importing.foreign import data, is_short, items, moment
from mimo.features.importing.mama import assigned, convert, safe
from mimo.memory import codec
from mimo.memory.codec.file import Parsed
from mimo.memory.ids import is_id
from mimo.memory.model import Kind, Memory, Section
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


def test_links_that_exceed_the_header_are_in_the_body():
    edges = [
        {"from_id": "a", "to_id": f"decision_number_{n}", "relationship": "refines", "weight": 0.5}
        for n in range(1000)
    ]

    ((row,), counts) = convert({"decisions": [decision("a")], "decision_edges": edges}, now=NOW)

    assert row.memory is not None
    assert {link.to for link in read_back(row.memory).links} == {edge["to_id"] for edge in edges}
    assert counts.written == 1000


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
