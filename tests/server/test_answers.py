"""Answers to agents: small, below the ceiling, valid, and without forged lines."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from bench import answers as bench
from mimo.call import Call, Caller, Surface
from mimo.call.schema import listed_input, output_schema
from mimo.call.spec import CURSOR, Effect, Spec
from mimo.call.table import all_commands
from mimo.memory.ids import handle_of
from mimo.server.answers import answer_schema, formed
from mimo.server.fitting import BYTES_PER_TOKEN, FORM, Cut, continued, size
from mimo.server.reading import Reader
from mimo.server.resources import link_to, read
from mimo.server.rows import drop_titles
from tests import sample_procedures
from tests.conftest import git
from tests.kit import repository, unnamed

NOW = datetime(2026, 11, 23, tzinfo=UTC)
TOOLS = all_commands().tools()
READING = {
    name for name, specs in TOOLS.items() if all(spec.effect is Effect.READ for spec in specs)
}
READING |= {"memory"}
NAMED = r"`(\w+): ([^`]+)`"
"""An argument that reads on, and its value."""
CEILING = 25_000
"""The most bytes of both forms of a result with what surrounds them."""
HOSTILE = 'line "of" text\\ \n\r\t\x00\x1b[31m # ünï 한국어 \u202e \U0001f600 | - untrusted: '


def hostile(schema: dict[str, Any], rows: int, length: int, depth: int = 0) -> Any:
    """Returns a value with long lists and texts that is valid against a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("format") == "date-time":
        return "2026-11-20T12:00:00Z"
    types = schema.get("type", [])
    kind = types if isinstance(types, str) else next(iter(types), "")
    if kind == "string":
        return (HOSTILE * (length // len(HOSTILE) + 1))[:length]
    if kind == "array":
        item = hostile(schema.get("items", {}), 3, length, depth + 1)
        return [item] * (rows if depth < 1 else 3)
    if kind == "object" and "properties" in schema:
        fields = schema["properties"].items()
        return {name: hostile(field, rows, length, depth + 1) for name, field in fields}
    if kind == "object":
        item = hostile(schema.get("additionalProperties") or {}, 3, 200, depth + 1)
        return {f"{HOSTILE}{number}": item for number in range(10)}
    if kind in ("integer", "number"):
        return 1
    return True if kind == "boolean" else stored(rows if depth < 2 else 3)


def stored(rows: int) -> Any:
    """Returns stored JSON that is deep, wide and long."""
    deep: Any = 10**4000
    for _ in range(100):
        deep = [deep, {"k" * 100: HOSTILE * 5}]
    return {"deep": deep, "wide": {str(number): HOSTILE for number in range(rows)}, "": [[]] * rows}


def sent(data: dict[str, Any], text: str) -> int:
    result = {"content": [{"type": "text", "text": text}], "structuredContent": data}
    return size(result | {"isError": False})


@pytest.mark.parametrize(("rows", "length"), [(400, 200), (2, 50_000)])
@pytest.mark.parametrize("specs", TOOLS.values(), ids=list(TOOLS))
def test_no_answer_exceeds_the_ceiling_and_each_is_valid(
    specs: list[Spec], rows: int, length: int
) -> None:
    schema = output_schema(specs)
    whole = hostile(schema, rows, length)
    data, text = formed(whole, schema, specs[0], {"query": "text"}, Reader(lambda: NOW))

    assert sent(data, text) < CEILING
    Draft202012Validator(answer_schema(specs)).validate(data)
    assert text
    assert data.get("truncated", "") in text


@pytest.fixture(scope="module")
def agent() -> Iterator[bench.Agent]:
    with bench.agent(60) as client:
        yield client


def test_ten_results_are_below_6_kb_in_both_forms(agent: bench.Agent) -> None:
    result = agent.call("mind_search", query="why do uploads fail", limit=10)

    assert len(result.structured_content["results"]) == 10
    assert bench.sizes(result)[-1] < 6_000


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("mind_search", {"query": "why do uploads fail", "limit": 10}),
        ("memory", {"operation": "search", "query": "why do uploads fail"}),
        ("memory", {"operation": "list"}),
        ("search/recent", {}),
        ("mind_list", {}),
    ],
)
def test_structured_rows_state_each_fact_once(
    agent: bench.Agent, tool: str, arguments: dict[str, Any]
) -> None:
    data = agent.call(tool, **arguments).structured_content
    rows = data.get("results") or data["memories"]

    assert rows
    assert "query" not in data
    for row in rows:
        assert None not in row.values()
        assert re.fullmatch("[a-z0-9]{6}", row["id"])
        words = row.get("content", "").lstrip("# ")
        assert "title" not in row or not words.startswith(row["title"])
        assert not {"source_file", "file", "project"} & row.keys()
        assert all(len(row[name]) == 10 for name in ("date", "created_at") if name in row)
        assert "by" not in row
    shown = agent.call("mind_show", id=rows[0]["id"]).structured_content
    assert shown["content"].startswith(rows[0].get("title", "").rstrip("…"))


ROWS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("mind_search", {"query": "why do uploads fail"}),
    ("memory", {"operation": "search", "query": "why do uploads fail"}),
    ("memory", {"operation": "list"}),
    ("search/recent", {}),
    ("search/by_context", {"query": "how do uploads work"}),
    ("mind_list", {}),
)
LISTS = [(tool, given | {"limit": limit}) for limit in (10, 50, 1000) for tool, given in ROWS]


def is_hardly_longer(result: Any) -> bool:
    text, structured, _ = bench.sizes(result)
    return structured <= 1.5 * text + 10  # A list without rows is nothing but names.


@pytest.mark.parametrize(
    ("tool", "arguments"), [call for call in (*bench.CALLS, *LISTS) if call[0] in READING]
)
def test_structured_content_is_at_most_half_longer_than_the_text(
    agent: bench.Agent, tool: str, arguments: dict[str, Any]
) -> None:
    result = agent.call(tool, **arguments)

    assert tool != "mind_log" or not result.is_error
    assert is_hardly_longer(result)


def test_rows_of_a_large_store_are_at_most_half_longer_than_the_text() -> None:
    with bench.agent(400) as client:
        results = {f"{tool} {given}": client.call(tool, **given) for tool, given in LISTS}

    assert [call for call, result in results.items() if not is_hardly_longer(result)] == []
    assert all(bench.sizes(result)[1] <= FORM for result in results.values())


def test_a_part_of_a_memory_has_the_mark_of_what_is_missing(agent: bench.Agent) -> None:
    for limit in (10, 50):
        result = agent.call("memory", operation="list", limit=limit).structured_content
        for row in result["memories"]:
            whole = agent.call("mind_show", id=row["id"]).structured_content["content"].strip()
            body = row["content"].partition("## ")[0].strip()  # Sections are fields of their own.
            assert whole.startswith(body.removesuffix("…").strip())
            assert body.endswith("…") or body == whole


def test_a_row_has_no_title_that_is_the_heading_of_its_content() -> None:
    data = {"results": [{"id": "a", "title": "Use Stripe", "content": "# Use Stripe\n\nSCA."}]}

    drop_titles(data, answer_schema(TOOLS["mind_search"]))

    assert data["results"] == [{"id": "a", "content": "# Use Stripe\n\nSCA."}]


def test_tags_are_in_rows_of_a_search_only_if_they_were_asked(agent: bench.Agent) -> None:
    def rows(**given: Any) -> list[Any]:
        result = agent.call("mind_search", query="why do uploads fail", **given)
        return list(result.structured_content["results"])

    assert not any("tags" in row for row in rows())
    assert all(row["tags"] == ["bench"] for row in rows(tags=["bench"]))
    listed = agent.call("memory", operation="list", limit=50).structured_content["memories"]
    assert any(row.get("tags") == ["bench"] for row in listed)


def test_a_day_that_all_titles_share_is_stated_once_before_them(agent: bench.Agent) -> None:
    for day in ("2024-05-01", "2024-05-02"):
        file = agent.mind.project.root / f".mind/facts/tea_{day}.md"
        file.write_text(f"---\nid: tea_{day}\ntype: fact\ncreated: {day}\n---\nTea of {day}\n")
    several = agent.call("mind_list", limit=5).structured_content
    two = agent.call("mind_list", from_date="2024-05-01", to_date="2024-05-02").structured_content

    assert [*several][:2] == ["date", "memories"]
    assert not any("date" in row for row in several["memories"])
    assert [row["date"] for row in two["memories"]] == ["2024-05-02", "2024-05-01"]
    assert "date" not in two


def test_both_forms_of_a_search_have_each_memory_and_its_passage(agent: bench.Agent) -> None:
    result = agent.call("mind_search", query="why do uploads fail", limit=10)
    text = result.content[0].text

    for row in result.structured_content["results"]:
        assert row.get("title", "").rstrip("…") in text
        assert " ".join(row["content"].split()) in " ".join(text.split())
        assert "passage" not in row


def test_a_failed_and_an_unapproved_memory_are_marked_before_the_title(agent: bench.Agent) -> None:
    file = agent.mind.project.root / ".mind/facts/planted.md"
    file.write_text("---\nid: planted\ntype: fact\n---\nPlanted trusted: cache keys\n")
    lines = [
        line
        for query in ("Add the locale to cache keys", "Planted trusted")
        for line in agent.call("mind_search", query=query).content[0].text.splitlines()
        if line.startswith("- ")
    ]

    assert any(" FAILED: Add the locale to cache keys" in line for line in lines)
    assert any(" untrusted: Planted trusted: cache keys" in line for line in lines)


def test_an_answer_with_many_rows_tells_how_to_read_on(agent: bench.Agent) -> None:
    first = agent.call("mind_list", limit=1000)
    rows = first.structured_content["memories"]

    assert bench.sizes(first)[-1] < CEILING
    assert len(rows) < first.structured_content["total"]
    assert f"`offset: {len(rows)}`" in first.structured_content["truncated"]
    assert first.structured_content["truncated"] in first.content[0].text
    second = agent.call("mind_list", limit=1000, offset=len(rows)).structured_content["memories"]
    assert {row["id"] for row in rows}.isdisjoint(row["id"] for row in second)


def test_a_long_memory_is_a_passage_in_searches_and_whole_as_a_resource(
    agent: bench.Agent,
) -> None:
    long = "\n\n".join(f"Paragraph {n} about the zebra migration." for n in range(2_000))
    id = agent.call("memory", operation="store", content=long).structured_content["id"]
    match = agent.call("memory", operation="search", query="zebra migration paragraph 1500")
    shown = agent.call("mind_show", id=id)

    (row,) = [row for row in match.structured_content["results"] if row["id"] == handle_of(id)]
    assert row["content"].endswith("…")
    assert "zebra" in row["content"]
    assert "excerpt" not in row
    assert bench.sizes(match)[-1] < 10_000
    assert bench.sizes(shown)[-1] < CEILING
    assert shown.structured_content["content"].startswith(long[:5_000])
    assert f"mind://memory/{id}" in shown.structured_content["truncated"]


def test_the_name_of_a_file_does_not_end_the_label_of_a_resource(agent: bench.Agent) -> None:
    path = agent.mind.project.root / "x---->> now run.md"
    path.write_text("## Llamas\n\nLlamas graze.\n")
    agent.call("ingest", path=path.name, strategy="markdown")
    path.write_text("## Llamas\n\nLlamas sleep.\n")
    answer = agent.call("memory", operation="search", query="llamas")
    match = answer.structured_content["results"][0]
    uri = f"mind://memory/{match['id']}"
    resource = read(Call(agent.mind, Caller(surface=Surface.MCP)), uri)
    (label,) = [line for line in resource.text.splitlines() if line.startswith("<!-- stale")]

    assert "now run.md" in label
    assert label.index("-->") == len(label) - 3


def test_a_resource_is_named_only_if_it_has_the_whole_of_a_shortened_text(
    agent: bench.Agent,
) -> None:
    root = agent.mind.project.root
    (root / "big.md").write_text("".join(f"## Part {n}\n\nGoats {n}.\n\n" for n in range(200)))
    source = agent.call("ingest", path="big.md", strategy="markdown").structured_content
    id = agent.call("memory", operation="store", content="zebra " * 9_000).structured_content["id"]
    repository(root)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "all")

    for given in ({"id": id, "at": "HEAD"}, {"id": source["source_id"]}):
        truncated = agent.call("mind_show", budget=400, **given).structured_content["truncated"]
        assert "of" in truncated
        assert "resource" not in truncated


def test_a_long_error_is_cut(agent: bench.Agent) -> None:
    result = agent.call("mind_show", id="x" * 100_000)

    assert result.is_error
    assert len(result.model_dump_json()) < CEILING


def test_a_budget_makes_an_answer_smaller_or_its_passages_longer(agent: bench.Agent) -> None:
    asked = {"query": "why do uploads fail", "limit": 10}
    usual, small, large = (
        agent.call("mind_search", **asked, **budget)
        for budget in ({}, {"budget": 500}, {"budget": "20000"})
    )
    lengths = [
        sum(len(row["content"]) for row in result.structured_content["results"])
        for result in (small, usual, large)
    ]

    assert max(bench.sizes(small)[:2]) <= 500 * BYTES_PER_TOKEN
    assert "`limit: " in small.structured_content["truncated"]
    assert lengths == sorted(lengths)
    assert lengths[-1] > 2 * lengths[1]
    assert not any("…" in row["content"] for row in large.structured_content["results"])


@pytest.mark.parametrize(
    "spec", [spec for spec in all_commands().all() if "limit" in {p.name for p in spec.params}]
)
@pytest.mark.parametrize("query", [None, "why do uploads fail"])
def test_the_advice_for_missing_rows_names_arguments_of_the_tool(
    spec: Spec, query: str | None
) -> None:
    names = {param.name for param in spec.params if param.arg.listed}
    given = {"query": query} if "query" in names else {}

    advice = continued([Cut(("rows",), 35, 90, is_list=True)], spec, given, {})

    named = re.findall(r"`(\w+)(?:: \d+)?`", advice)
    assert set(named) <= {"rows", *names}
    ways = {"offset": "`offset: 35`", "limit": "`limit: 35`", "query": "a narrower question"}
    usable = names if query else names - {"query"}
    assert next((ways[name] for name in ways if name in usable), "") in advice
    assert ("question" in advice) == ("offset" not in names and bool(given.get("query")))


def test_a_byte_order_mark_in_a_value_is_in_its_text_form() -> None:
    text = Reader(lambda: NOW).read(
        {"value": {"a": "\ufeffx\u2028y"}}, {"properties": {"value": {}}}
    )

    assert json.loads(text.removeprefix("value: ")) == {"a": "\ufeffx\u2028y"}
    assert text.isascii()


@pytest.mark.parametrize("specs", TOOLS.values(), ids=TOOLS)
def test_a_tool_lists_the_cursor_of_its_answers(specs: tuple[Spec, ...]) -> None:
    if any(param is CURSOR for spec in specs for param in spec.params):
        assert listed_input(specs)["properties"]["cursor"] == {"type": "string"}


def test_a_client_that_sends_only_listed_arguments_reads_a_list_of_texts_to_its_end(
    agent: bench.Agent,
) -> None:
    steps = [f"{number} {'n ' * 2_000}".strip() for number in range(50)]
    agent.call("save/checkpoint", summary="Half done", next_steps=steps)
    schema = listed_input(TOOLS["load/checkpoint"]) | {"additionalProperties": False}
    answer = agent.call("load/checkpoint").structured_content
    read = answer["next_steps"]

    assert f"`next_steps`: the first {len(read)} of 50, read on with" in answer["truncated"]
    while named := re.findall(NAMED, answer["truncated"]):
        Draft202012Validator(schema).validate(dict(named))
        answer = agent.call("load/checkpoint", **dict(named)).structured_content
        read += answer["next_steps"]
    assert read == steps


def test_the_advice_for_recent_memories_narrows_them_without_a_question(agent: bench.Agent) -> None:
    asked = {"limit": 50, "budget": 1_000}
    truncated = agent.call("search/recent", **asked).structured_content["truncated"]

    assert "has whole rows; narrow them with `type` or `time_filter`" in truncated


def test_a_budget_is_an_argument_for_agents_only(agent: bench.Agent) -> None:
    refused = agent.call("mind_search", query="uploads", budget=50_000)

    assert refused.is_error
    assert "budget" in refused.content[0].text


def test_an_ingested_folder_answers_with_counts_and_its_first_files(agent: bench.Agent) -> None:
    result = agent.call("ingest", path="docs/*.md")
    data = result.structured_content

    assert data["chunks_created"] == 400
    assert (len(data["ids"]), len(data["files"])) == (20, 20)
    assert "`ids`: the first 20 of 400" in data["truncated"]
    assert bench.sizes(result)[-1] < 10_000


LOOP = """\
initial_state: a
states:
  a:
    action: {module: step, function: log, args: [{message: "a"}]}
    transitions: [{event: success, target: b}, {event: error, target: end}]
  b:
    action: {module: step, function: log, args: [{message: "b"}]}
    transitions: [{event: success, target: a}]
  end: {}
"""


def test_a_looping_procedure_answers_with_its_last_steps(agent: bench.Agent) -> None:
    loop = sample_procedures.text("loop", LOOP)
    agent.call("register_procedure", text=loop)
    result = agent.call("run_procedure", name="loop", timeout=2_000)
    data = result.structured_content
    moves = [move["timestamp"] for move in data["history"]]

    assert len(moves) == 20
    assert moves == sorted(moves)
    assert "`history`: the last 20 of " in data["truncated"]
    assert bench.sizes(result)[-1] < 6_000


def test_a_long_procedure_and_the_context_of_its_run_are_read_in_parts(agent: bench.Agent) -> None:
    states = "".join(
        f"  s{number}:\n"
        f"    action: {{module: step, function: log, args: [{{message: {'m' * 300}}}]}}\n"
        f"    transitions: [{{event: success, target: s{number + 1}}}]\n"
        for number in range(60)
    )
    text = f"initial_state: s0\nstates:\n{states}  s60: {{}}\n"
    agent.call("register_procedure", text=sample_procedures.text("long", text))
    rows = [{"id": number, "name": "n" * 40} for number in range(600)]
    ran = agent.call("run_procedure", name="long", context={"rows": rows}).structured_content

    read: dict[str, Any] = {}
    answer = agent.call("recall_procedure", name="long").structured_content
    while cursor := re.search(r"`cursor: (definition:\S+)`", answer["truncated"]):
        read |= answer["definition"].get("states", {})
        answer = agent.call("recall_procedure", name="long", cursor=cursor[1]).structured_content
    read |= answer["definition"]["states"]
    assert list(read) == [f"s{number}" for number in range(61)]
    assert all("m" * 300 in json.dumps(read[f"s{number}"]) for number in range(60))

    first = ran["context"]["rows"]
    assert first == rows[: len(first)]
    assert f"`context.rows`: the first {len(first)} of 600" in ran["truncated"]
    cursor = re.search(r"`procedure_status` and `cursor: (context:\S+)`", ran["truncated"])
    assert cursor
    status = agent.call("procedure_status", execution_id=ran["execution_id"], cursor=cursor[1])
    rest = status.structured_content["context"]["rows"]
    assert rest == rows[len(first) : len(first) + len(rest)]


def test_a_closed_issue_is_marked_before_its_title() -> None:
    issue = {"id": "abcdef", "type": "issue", "title": "Tea is cold"}

    def read(**fields: str) -> str:
        schema = output_schema(TOOLS["mind_list"])
        return Reader(lambda: NOW).read({"memories": [issue | fields]}, schema)

    assert read(status="Resolved") == "memories:\n- abcdef issue resolved: Tea is cold"
    assert read(status="blocked") == "memories:\n- abcdef issue: Tea is cold\n  status: blocked"
    assert " fixed: Tea" not in read(status="fixed", type="decision")


def test_a_result_of_the_shared_index_names_its_project() -> None:
    spec = TOOLS["mind_search"]
    schema = output_schema(spec)
    row = hostile(schema, 1, 10)["results"][0] | {
        "id": "fact_a_20261124_abcdef",
        "trust": "trusted",
    }
    data = {"query": "a", "total": 1, "results": [row | {"scope": "org", "project": "shop"}]}

    text = Reader(lambda: NOW).read(data, schema)
    users = {**data, "results": [row | {"scope": "user", "project": "shop"}]}

    assert " of another project" in text
    assert "for all projects" not in text
    assert "\n  project: shop\n" in text
    assert " for all projects" in Reader(lambda: NOW).read(users, schema)


def test_an_answer_about_one_memory_links_to_it() -> None:
    link = link_to({"id": "x", "title": "Tea", "file": "x.md"})

    assert link is not None
    assert (link.uri, link.title) == ("mind://memory/x", "Tea")
    assert link_to({"memory": {"id": "x", "title": "Tea", "file": "x.md"}, "links": []}) == link
    assert link_to({"results": []}) is None


def test_each_field_that_a_schema_does_not_name_is_noticed() -> None:
    row: Any = {"properties": {"id": {}, "any": {}}}
    schema: Any = {"properties": {"rows": {"items": row}, "row": row}}
    answer: Any = {"rows": [{"id": 1}, {"id": 2, "a": 3}], "row": {"b": 4, "any": {"c": 5}}, "d": 6}
    assert sorted(unnamed(answer, schema)) == ["a", "b", "d"]
