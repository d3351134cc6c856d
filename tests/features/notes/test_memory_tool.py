"""The `memory` tool: store, search, list, delete, stats, decay_check."""

import json

import pytest

from mimo.call import Call, Caller, Surface
from mimo.commands import all_commands
from mimo.commands.invoke import invoke
from mimo.commands.schema import input_schema
from mimo.commands.spec import spec_of, to_json
from mimo.errors import AmbiguousId, Invalid, NotFound
from mimo.features.fading.commands import decay_check, stats
from mimo.features.notes.memory_tool import MemorySort, delete, list_memories, search, store
from mimo.frozen import replace
from mimo.memory.ids import handle_of
from mimo.memory.model import Category, Kind, Link
from mimo.operations import finding, saving
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
    @pytest.mark.req("000-31", "000-35", "000-33", "000-34")
    def test_answers_with_an_id_and_the_memory_is_found_at_once(self, call):
        answer = call_tool(
            call, "store", content="The API allows 100 requests a minute", tags=["api"]
        )

        assert answer["stored"] is True
        assert answer["embedding_generated"] is True
        (row,) = search(call, "how many requests").results
        assert (row.id, row.importance, row.tags) == (answer["id"], 0.5, ("api",))

    @pytest.mark.req("000-35")
    def test_a_missing_embedding_is_reported(self, call):
        assert store(call, "🦊🦊🦊").embedding_generated is False

    @pytest.mark.req("000-32")
    def test_an_unknown_category_is_refused(self, call):
        with pytest.raises(Invalid, match="category"):
            call_tool(call, "store", content="x", category="novel")

    @pytest.mark.req("000-32")
    @pytest.mark.parametrize("category", list(Category))
    def test_each_category_is_kept(self, call, category):
        stored = store(call, "the same text", category=category)

        (row,) = list_memories(call).memories
        assert (row.id, row.category) == (stored.id, category)

    @pytest.mark.req("000-33")
    @pytest.mark.parametrize("importance", [2, -0.1])
    def test_an_importance_out_of_range_is_refused_by_its_name(self, call, importance):
        with pytest.raises(Invalid, match="importance"):
            call_tool(call, "store", content="x", importance=importance)

    @pytest.mark.parametrize("content", ["", "  \n", "tea \ud83d", "tea \0"])
    def test_what_no_file_can_hold_is_refused_and_leaves_nothing(self, call, content):
        with pytest.raises(Invalid):
            store(call, content)

        assert list_memories(call).total == 0

    def test_content_over_the_size_limit_is_refused(self, call):
        with pytest.raises(Invalid, match="100,000"):
            store(call, "x" * 100_001)

    def test_a_private_memory_is_found_and_ignored_by_git(self, call):
        store(call, "my account on staging is marmot", private=True)

        (row,) = search(call, "account on staging").results
        assert row.file.startswith(".mind/private/")
        assert "private/" in (call.mind.folder / ".gitignore").read_text(encoding="utf-8")


class TestSearch:
    @pytest.mark.req("000-36")
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({}, "`query` is missing"),
            ({"query": None}, "`query` is missing"),
            ({"query": 3}, "`query` must be text, not `3`"),
            ({"query": ["a"]}, "`query` must be text"),
        ],
    )
    def test_a_query_is_a_text_that_must_be_given(self, call, arguments, message):
        with pytest.raises(Invalid) as caught:
            call_tool(call, "search", **arguments)

        assert caught.value.message.startswith(message)

    @pytest.mark.req("000-40", "000-41")
    def test_rows_have_the_documented_fields_and_the_total_counts_all_memories(self, call):
        for text in ("uploads fail above 10 MB", "lunch is at noon", "we chose postgres"):
            store(call, text)

        answer = call_tool(call, "search", query="why do uploads fail")

        documented = {"id", "content", "category", "score", "created_at", "importance"}
        assert documented <= set(answer["results"][0])
        assert answer["results"][0]["content"] == "uploads fail above 10 MB"
        assert answer["results"][0]["created_at"] == "2026-11-20T15:30:00Z"
        assert answer["total_searched"] == 3

    @pytest.mark.req("000-38")
    def test_results_below_the_threshold_are_left_out(self, call):
        for text in ("uploads fail above 10 MB", "lunch is at noon"):
            store(call, text)

        assert all(row.score >= 0.3 for row in search(call, "uploads").results)
        assert search(call, "uploads", threshold=1.0).results == ()

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

    @pytest.mark.req("000-39")
    def test_a_category_selects_all_of_its_types(self, call):
        stored = store(call, "tests wait for the queue", category=Category.OBSERVATION)

        (row,) = search(call, "queue tests", category=Category.OBSERVATION).results
        assert row.id == stored.id
        assert search(call, "queue tests", category=Category.FACT).results == ()

    @pytest.mark.req("000-107", "000-97")
    def test_a_time_narrows_the_search(self, call, clock):
        old = store(call, "the queue was slow in spring")
        clock.forward(days=40)
        new = store(call, "the queue is slow again")

        assert [r.id for r in search(call, "slow queue", time_filter="last week").results] == [
            new.id
        ]
        until = search(call, "slow queue", to_date="2026-12-01")
        assert [row.id for row in until.results] == [old.id]

    @pytest.mark.req("000-108")
    def test_a_time_that_is_not_understood_is_an_error_with_examples(self, call):
        with pytest.raises(Invalid, match="fix march bug") as caught:
            search(call, "queue", time_filter="fix march bug")

        assert "last week" in caught.value.hint

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

    def test_an_empty_store_answers_with_nothing(self, call):
        assert search(call, "anything") == search(call, "anything else")


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

    @pytest.mark.req("000-45", "000-47")
    def test_the_total_counts_the_matches(self, call):
        store(call, "a fact")
        store(call, "a plan", category=Category.PLAN)

        answer = list_memories(call, category=Category.PLAN, limit=1)

        assert (len(answer.memories), answer.total) == (1, 1)

    @pytest.mark.req("000-46")
    def test_it_sorts_by_importance_and_by_strength(self, call, clock):
        weak = store(call, "old but important", importance=0.9)
        clock.forward(days=600)
        strong = store(call, "new", importance=0.4)

        by_importance = list_memories(call, sort=MemorySort.IMPORTANCE)
        by_strength = list_memories(call, sort=MemorySort.DECAY_SCORE)

        assert [row.id for row in by_importance.memories] == [weak.id, strong.id]
        assert [row.id for row in by_strength.memories] == [strong.id, weak.id]

    @pytest.mark.req("000-97", "000-98", "000-99")
    def test_a_time_narrows_the_list_and_its_total(self, call, clock):
        old = store(call, "made in autumn")
        clock.forward(days=40)
        new = store(call, "made in winter")

        def listed(**when):
            answer = call_tool(call, "list", **when)
            assert answer["total"] == len(answer["memories"])
            return [row["id"] for row in answer["memories"]]

        assert listed(time_filter="last week") == [new.id]
        assert listed(time_filter="지난달") == [new.id]
        assert listed(when="november") == [old.id]
        assert listed(to_date="2026-11-20") == [old.id]
        assert listed(from_date="2026-11-21", to_date="2027-01-01") == [new.id]
        assert listed(time_filter="october") == []

    def test_the_days_that_were_meant_are_in_the_answer(self, call):
        answer = call_tool(call, "list", time_filter="last week")

        assert answer["notice"] == "`last week`: 13 to 20 Nov, UTC"
        assert "notice" not in call_tool(call, "list")


class TestDelete:
    @pytest.mark.req("000-48", "000-58")
    def test_the_memory_is_removed_from_disk_list_and_search(self, call):
        stored = store(call, "uploads fail above 10 MB")

        deleted = delete(call, stored.id)

        assert not (call.mind.project.root / deleted.file).exists()
        assert list_memories(call).total == 0
        assert search(call, "uploads fail").results == ()

    @pytest.mark.req("000-49")
    def test_an_unknown_id_is_an_error_that_names_the_nearest(self, call):
        stored = store(call, "uploads fail above 10 MB")

        with pytest.raises(NotFound) as caught:
            delete(call, f"{stored.id[:-1]}x")

        assert f"{handle_of(stored.id)} (uploads fail" in caught.value.hint
        assert caught.value.details["nearest"] == [stored.id]

    def test_an_id_can_be_cut_while_it_is_unambiguous(self, call):
        store(call, "uploads one")
        second = store(call, "uploads two")

        with pytest.raises(AmbiguousId) as caught:
            delete(call, "fact_uploads")

        assert len(caught.value.details["candidates"]) == 2
        assert delete(call, second.id[-6:]).id == second.id


class TestStrength:
    @pytest.mark.req("000-50")
    def test_stats_are_exact(self, call, clock):
        store(call, "a fact", importance=0.2)
        clock.forward(days=200)
        store(call, "a plan", category=Category.PLAN, importance=0.8)

        answer = call_tool(call, "stats")

        assert answer["total_memories"] == 2
        assert answer["by_category"] == {"fact": 1, "observation": 0, "action": 0, "plan": 1}
        assert answer["avg_importance"] == pytest.approx(0.5)
        assert answer["avg_decay_score"] == pytest.approx((0.2 * 0.1353 + 0.8) / 2, abs=1e-3)
        assert answer["at_risk_count"] == 1
        assert answer["oldest"] == "2026-11-20T15:30:00Z"
        assert answer["newest"] == "2027-06-08T15:30:00Z"

    @pytest.mark.req("000-51")
    def test_stats_of_an_empty_store_do_not_fail(self, call):
        answer = call_tool(call, "stats")

        assert (answer["total_memories"], answer["oldest"], answer["newest"]) == (0, None, None)

    @pytest.mark.req("000-52", "000-53", "000-54", "000-55", "000-57")
    def test_the_weakest_are_listed_first_and_all_are_checked(self, call, clock):
        for importance in (0.2, 0.1, 0.3):
            store(call, f"worth {importance}", importance=importance)
        clock.forward(days=120)
        store(call, "fresh", importance=0.9)

        answer = call_tool(call, "decay_check", limit=2)

        assert (answer["threshold"], answer["total_checked"]) == (0.1, 4)
        assert [row["content"] for row in answer["at_risk"]] == ["worth 0.1", "worth 0.2"]
        assert set(answer["at_risk"][0]) == {
            "id",
            "content",
            "decay_score",
            "days_until_forgotten",
            "trust",
        }
        assert answer["at_risk"][0]["days_until_forgotten"] == 0.0
        assert answer["at_risk"][1]["days_until_forgotten"] == pytest.approx(18.6, abs=0.1)

    def test_decisions_are_never_at_risk(self, call, clock):
        from mimo.features.notes.commands import add

        add(call, "use JWT", type="decision", importance=0.1)
        clock.forward(days=400)

        assert decay_check(call).at_risk == ()
        assert stats(call).at_risk_count == 0

    def test_without_a_rate_nothing_fades_and_the_answer_is_still_json(self, call):
        from mimo.features.upkeep.commands import config

        store(call, "hardly worth it", importance=0.08)
        config(call, "decay.rate", "0")

        (row,) = decay_check(Call(call.mind.reopened())).at_risk
        assert row.days_until_forgotten is None
        json.dumps(to_json(row), allow_nan=False)


class TestLegacyNames:
    @pytest.mark.req("000-59", "000-61")
    def test_the_retired_names_answer_as_the_tool_that_replaces_them(self, call):
        tools = all_commands().tools()
        caller = Caller(surface=Surface.MCP)

        stored = invoke(
            tools["store_fact"][0], call.by(caller), {"content": "tea is hot", "category": "fact"}
        )
        answer = invoke(tools["search_vibes"][0], call.by(caller), {"query": "tea"})

        assert to_json(answer)["results"][0]["id"] == to_json(stored)["id"]

    @pytest.mark.req("000-59")
    def test_a_question_is_routed_and_answered_without_a_language_model(self, call):
        store(call, "the index is related to the files", category=Category.FACT)

        answer = to_json(
            invoke(
                all_commands().tools()["ask_mimo"][0],
                call.by(Caller(surface=Surface.MCP)),
                {"query": "what is related to the index, and why"},
            )
        )

        assert answer["router_decision"]["primary_store"] == "semantic"
        assert len(answer["results"]["semantic"]) == 1
        assert answer["synthesis"] is None

    @pytest.mark.parametrize("query", ["JWT tokens", "how to fix JWT tokens in the build code"])
    def test_a_question_that_points_to_no_part_is_asked_of_all(self, call, query):
        stored = store(call, "JWT tokens expire after an hour", category=Category.FACT)

        tool, caller = all_commands().tools()["ask_mimo"][0], Caller(surface=Surface.MCP)
        answer = to_json(invoke(tool, call.by(caller), {"query": query}))

        assert [row["id"] for row in answer["results"]["semantic"]] == [stored.id]

    @pytest.mark.req("000-62")
    def test_knowledge_can_be_taught_and_asked(self, call):
        knowledge = all_commands().tools()["knowledge"][0]
        caller = Caller(surface=Surface.MCP)
        triple = {"subject": "search", "predicate": "depends on", "object": "sqlite"}

        taught = to_json(invoke(knowledge, call.by(caller), {"operation": "teach", **triple}))
        asked = to_json(invoke(knowledge, call.by(caller), {"query": "search sqlite"}))

        assert (taught["status"], taught["triples_created"]) == ("learned", 1)
        assert asked["results"][0]["id"] == taught["id"]

    @pytest.mark.req("000-59")
    def test_store_fact_needs_a_category(self, call):
        with pytest.raises(Invalid, match="category"):
            invoke(
                all_commands().tools()["store_fact"][0],
                call.by(Caller(surface=Surface.MCP)),
                {"content": "x"},
            )


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
