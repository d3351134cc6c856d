"""The `memory` tool: store, search, list, delete, stats, decay_check."""

import pytest

from mimo.call import Caller, Surface
from mimo.call.schema import input_schema
from mimo.call.spec import spec_of, to_json
from mimo.call.table import all_commands
from mimo.errors import Invalid
from mimo.features.notes.memory_tool import search, store
from mimo.frozen import replace
from mimo.memory.model import Category, Kind, Link
from mimo.operations import finding, saving
from mimo.operations.invoke import invoke
from tests.conftest import NOW


def call_tool(call, operation, **arguments):
    """Returns the answer as an MCP client would get it."""
    spec = next(s for s in all_commands().tools()["memory"] if s.operation == operation)
    return to_json(invoke(spec, call.by(Caller(surface=Surface.MCP)), arguments))


@pytest.mark.req("000-29")
def test_one_tool_has_the_six_operations():
    schema = input_schema(all_commands().tools()["memory"])

    assert schema["required"] == ["operation"]
    assert set(schema["properties"]["operation"]["enum"]) == {
        "store",
        "search",
        "list",
        "delete",
        "stats",
        "decay_check",
    }


class TestStore:
    def test_content_over_the_size_limit_is_refused(self, call):
        with pytest.raises(Invalid, match="100,000"):
            store(call, "x" * 100_001)

    def test_a_private_memory_is_found_and_ignored_by_git(self, call):
        store(call, "my account on staging is marmot", private=True)

        (row,) = search(call, "account on staging").results
        assert row.file.startswith(".mind/private/")
        assert "private/" in (call.mind.folder / ".gitignore").read_text(encoding="utf-8")


class TestSearch:
    @pytest.mark.req("000-37", "000-42")
    def test_filters_apply_before_the_limit(self, call):
        for number in range(20):
            store(call, f"deploy step {number}", category=Category.ACTION)
        plan = store(call, "a plan to deploy to three regions", category=Category.PLAN)

        answer = search(call, "deploy", category=Category.PLAN, limit=1)

        assert [row.id for row in answer.results] == [plan.id]
        assert answer.total_searched == 1

    @pytest.mark.req("000-37")
    def test_the_default_limit_is_ten_rows(self, call):
        for number in range(12):
            store(call, f"deploy step number {number}")

        assert len(search(call, "deploy step").results) == 10

    @pytest.mark.parametrize(
        "query", ['"', "* OR", "NEAR(", "a AND", "-", "…", "the of and", "결정"]
    )
    def test_no_query_breaks_the_search(self, call, query):
        store(call, "uploads fail above 10 MB")

        assert search(call, query).total_searched == 1

    @pytest.mark.parametrize("query", ["", "  ", "…", "the of and", "what is it"])
    def test_a_query_without_a_subject_is_answered_like_a_list(self, call, clock, query):
        ids = []
        for number in range(4):
            ids.append(store(call, f"deploy step {number}").id)
            clock.forward(minutes=1)

        answer = call_tool(call, "search", query=query)

        assert [row["id"] for row in answer["results"]] == ids[::-1]
        assert all(row["weak"] for row in answer["results"])
        assert "names no subject" in answer["notice"]
        assert call_tool(call, "search", query=query, threshold=0.1)["results"] == []

    def test_weak_matches_are_shown_and_labelled_if_none_is_sure(self, call, monkeypatch):
        monkeypatch.setattr(finding, "THRESHOLD", 0.999)
        for number in range(5):
            store(call, f"Lunch number {number} is served at noon")
        query = "why is lunch number four late in winter"

        answer = call_tool(call, "search", query=query)

        assert len(answer["results"]) == 3
        assert all(row["weak"] for row in answer["results"])
        assert "weak" in answer["notice"]
        assert call_tool(call, "search", query=query, threshold=0.999)["results"] == []

    def test_a_sure_match_is_not_labelled_and_stands_without_weak_ones(self, call):
        store(call, "uploads fail above 10 MB")
        store(call, "lunch is at noon")

        answer = call_tool(call, "search", query="why do uploads fail above 10 MB")

        assert [row["content"] for row in answer["results"]] == ["uploads fail above 10 MB"]
        assert "weak" not in answer["results"][0]


class TestList:
    @pytest.mark.req("000-43", "000-44", "000-46", "000-47", "000-56")
    def test_pages_follow_one_another_newest_first(self, call, clock):
        ids = []
        for number in range(25):
            ids.append(store(call, f"note {number}").id)
            clock.forward(minutes=1)

        first = call_tool(call, "list")
        second = call_tool(call, "list", offset=20)

        assert (first["total"], first["offset"], first["limit"]) == (25, 0, 20)
        assert [row["id"] for row in first["memories"] + second["memories"]] == ids[::-1]


def test_what_an_agent_stores_is_signed_with_its_name(call):
    spec = spec_of(store)
    assert spec is not None
    stored = to_json(
        invoke(spec, call.by(Caller(surface=Surface.MCP, name="claude-code")), {"content": "tea"})
    )

    record = call.mind.index.get(stored["id"])
    assert record is not None
    assert record.memory.by == "claude-code"
    assert record.memory.created == NOW


def test_superseded_and_competing_memories_are_marked(call):
    ids: list[str] = []
    for topic, text in (("tools", "make"), ("build", "ninja"), ("build", "cmake")):
        draft = saving.draft(Kind.DECISION, f"Build with {text}", topic=topic)
        links = (Link(to=ids[0], type="supersedes"),) if text == "ninja" else ()
        ids.append(saving.store(call, replace(draft, links=links)).memory.id)

    for rows in (
        call_tool(call, "list")["memories"],
        call_tool(call, "search", query="build", threshold=0.0)["results"],
    ):
        marks = {row["id"]: (row.get("superseded_by"), row.get("competing")) for row in rows}
        assert marks == {
            ids[0]: (ids[1], None),
            ids[1]: (None, [ids[2]]),
            ids[2]: (None, [ids[1]]),
        }
