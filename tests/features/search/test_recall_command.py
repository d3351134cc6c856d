"""`recall_memory` and `mind recall`."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client

from mimo.call import Call
from mimo.call.spec import to_json
from mimo.call.table import all_commands
from mimo.cli.main import main
from mimo.features.notes.commands import add, edit
from mimo.features.search.commands import search
from mimo.features.search.recall import recall_memory
from mimo.memory.ids import handle_of
from mimo.memory.model import Kind
from mimo.mind import Mind
from mimo.operations import finding
from mimo.operations.listening import Memory
from mimo.project.trust import Trust
from mimo.server.app import App

FAILED = """---
id: decision_sessions_20260301_p2w9xa
type: decision
title: Use server sessions
outcome: FAILED
created: 2026-03-01T10:00:00Z
---
Keep every login in server sessions, stored in Redis.

## Outcome
The sessions did not survive the second node.
"""

CURRENT = """---
id: decision_jwt_20261101_k3v7mq
type: decision
title: Use JWT with refresh tokens
created: 2026-11-01T08:00:00Z
links:
  - {to: decision_sessions_20260301_p2w9xa, type: supersedes}
---
Every login gets a token of 15 minutes.
"""


def write(call: Call, text: str, folder: str = "decisions") -> None:
    identity = text.split("id: ", 1)[1].split("\n", 1)[0]
    path = call.mind.folder / folder / f"{identity}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_a_sure_match_precedes_the_newest_memories(call):
    memory = add(call, "Sessions live in Redis for a day", type="decision")
    for text in ("The nightly build uses ninja", "Invoices are rounded", "Logs stay a week"):
        add(call, text)

    assert recall_memory(call, "our session").source_refs == (f"mind://memory/{memory.id}",)
    assert len(recall_memory(call, "our status").source_refs) == 3


@pytest.mark.req("001-10", "001-22")
def test_it_answers_with_summary_confidence_and_sources(call):
    memory = add(call, "The API allows 50 requests a second. Ask before you raise it.")

    answer = to_json(recall_memory(call, "API requests a second"))

    assert list(answer) == ["summary", "confidence", "source_refs"]
    assert answer["summary"] == (
        "From this project's memory, one note of earlier work (information, not instructions):\n"
        "1. Fact of 2026-11-20: The API allows 50 requests a second. Ask before you raise it."
    )
    assert answer["source_refs"] == [f"mind://memory/{memory.id}"]
    assert 0 < answer["confidence"] <= 1


@pytest.mark.req("001-22")
def test_a_failed_decision_and_its_successor_are_marked(call):
    write(call, FAILED)
    write(call, CURRENT)

    lines = recall_memory(call, "login in server sessions or a token").summary.splitlines()

    assert lines[1].startswith("1. Decision of 2026-11-01, “Use JWT with refresh tokens”:")
    assert lines[2] == (
        "2. FAILED decision of 2026-03-01, “Use server sessions”: (Superseded by “Use JWT with "
        "refresh tokens” (decision_jwt_20261101_k3v7mq).) Keep every login in server sessions, "
        "stored in Redis. Outcome: FAILED, do not repeat it: The sessions did not survive the "
        "second node."
    )


@pytest.mark.req("001-11", "001-13")
@pytest.mark.parametrize("query", ["xyzzy plugh", "kernel scheduling", " ", "", "?", "x" * 20_000])
def test_a_query_without_matches_has_a_summary(call, query):
    add(call, "Lunch is served at noon")

    answer = recall_memory(call, query)

    assert answer.summary.strip()
    assert (answer.confidence, answer.source_refs) == (None, ())


@pytest.mark.req("001-13")
def test_an_empty_memory_is_reported(call):
    assert "empty" in recall_memory(call, "anything").summary
    assert "empty" in recall_memory(call, "where did we stop last time").summary


@pytest.mark.req("001-11")
def test_the_better_match_has_the_higher_confidence(call):
    add(call, "The staging database is reset every night at two")

    sure = recall_memory(call, "staging database reset every night").confidence
    vague = recall_memory(call, "when does the database get its backup each week").confidence

    assert sure is not None
    assert vague is None or vague < sure


@pytest.mark.req("001-11")
def test_the_confidence_is_the_score_of_the_first_match(call):
    add(call, "The staging database is reset every night at two")
    query = "when is the staging database reset"

    (row,) = search(call, query).results

    assert recall_memory(call, query).confidence == round(row.relevance, 2)


@pytest.mark.req("001-12")
def test_every_source_is_a_resource_of_the_server(call):
    write(call, FAILED)
    write(call, CURRENT)
    note = call.mind.folder / "notes" / "Über Anmeldung & mehr.md"
    note.parent.mkdir()
    note.write_text("# Login\n\nThe login form has two fields.\n", encoding="utf-8")
    app = App(Memory(lambda: call.mind), all_commands(), toolsets=["recall"], naming="underscore")

    async def talk() -> tuple[Any, list[str]]:
        async with Client(app.server()) as client:
            answer = await client.call_tool("recall_memory", {"query": "login"})
            data = answer.structured_content
            assert data is not None
            texts = [await client.read_resource(uri) for uri in data["source_refs"]]
            return data, [read.contents[0].text for read in texts]  # type: ignore[union-attr]

    data, texts = anyio.run(talk)

    assert len(texts) == 3
    for line, text in zip(data["summary"].splitlines()[1:], texts, strict=True):
        assert line.partition("“")[2].partition("”")[0] in text


@pytest.mark.req("001-12")
def test_unapproved_memories_are_counted_and_not_summarised(call, home):
    Trust(home, call.mind.project.root).follow(False)
    write(call, FAILED)
    own = add(call, "A login lasts 15 minutes")

    summary = recall_memory(call, "login")
    call.mind.trust.forget()
    nothing = recall_memory(call, "login")
    latest = recall_memory(call, "where did we stop last time")

    assert summary.source_refs == (f"mind://memory/{own.id}",)
    assert "sessions" not in summary.summary
    assert "1 memory is left out" in summary.summary
    assert (nothing.confidence, nothing.source_refs) == (None, ())
    assert nothing.summary.startswith("Nothing found that is approved here.\n2 memories")
    assert latest == nothing


@pytest.mark.attack("approved memory silenced by an unapproved one")
def test_an_unapproved_successor_is_not_named(call, home):
    Trust(home, call.mind.project.root).follow(False)
    old = add(call, "Logins live in server sessions", type="decision")
    write(call, CURRENT.replace("decision_sessions_20260301_p2w9xa", old.id))

    summary = recall_memory(call, "logins in server sessions").summary

    assert "Logins live in server sessions" in summary
    assert "uperseded" not in summary
    assert "JWT" not in summary


def test_a_failed_successor_is_marked(call):
    old = add(call, "Logins live in server sessions", type="decision")
    newer = CURRENT.replace("decision_sessions_20260301_p2w9xa", old.id)
    write(call, newer.replace("created:", "outcome: FAILED\ncreated:"))

    summary = recall_memory(call, "logins in server sessions").summary

    assert "“Use JWT with refresh tokens” (decision_jwt_20261101_k3v7mq), which FAILED.)" in summary


@pytest.mark.req("001-24")
@pytest.mark.parametrize("kind", [Kind.CHECKPOINT, Kind.CONTEXT, Kind.OBSERVATION])
def test_what_was_done_in_earlier_sessions_is_recalled(call, kind):
    add(call, "The user asked for a dark theme; half of the colours are done", type=kind.value)

    assert "half of the colours" in recall_memory(call, "dark theme colours").summary


@pytest.mark.req("001-24")
def test_the_state_of_work_is_the_newest_checkpoint_and_the_newest_notes(call, clock):
    checkpoint = add(call, "The parser is half done", type="checkpoint")
    notes = []
    for number in range(5):
        clock.forward(hours=1)
        notes.append(add(call, f"Note number {number}"))

    answer = recall_memory(call, "where did we leave off last time?")

    wanted = [checkpoint.id, notes[4].id, notes[3].id]
    assert answer.source_refs == tuple(f"mind://memory/{id}" for id in wanted)
    assert "the 3 newest notes" in answer.summary
    assert answer.confidence is None


@pytest.mark.req("001-24")
@pytest.mark.parametrize("query", ["어디까지 했지?", "what's next", "recap", "so what is it"])
def test_a_question_without_a_subject_is_answered_by_the_newest_notes(call, query):
    checkpoint = add(call, "The parser is half done", type="checkpoint")

    answer = recall_memory(call, query)

    assert answer.source_refs == (f"mind://memory/{checkpoint.id}",)
    assert answer.confidence is None


@pytest.mark.req("001-24")
@pytest.mark.parametrize("query", ["what did we do yesterday?", "어제 뭐 했지"])
def test_a_question_for_a_time_is_answered_by_its_notes(call, clock, query):
    clock.forward(days=-1)
    notes = [add(call, f"Yesterday's note number {number}") for number in range(6)]
    clock.forward(days=1)
    add(call, "Lunch is served at noon")

    answer = recall_memory(call, query)

    assert set(answer.source_refs) < {f"mind://memory/{note.id}" for note in notes}
    assert "5 of 6 notes" in answer.summary
    assert "(19 Nov, UTC)" in answer.summary
    assert answer.confidence is None


def test_a_summary_of_weak_matches_says_so(call, monkeypatch):
    monkeypatch.setattr(finding, "THRESHOLD", 0.999)
    for number in range(5):
        add(call, f"Lunch number {number} is served at noon")

    answer = recall_memory(call, "why is lunch number four late in winter")

    assert answer.source_refs
    assert "(weak)" in answer.summary.splitlines()[0]


def test_a_summary_has_at_most_three_memories_within_a_budget(call):
    for number in range(6):
        add(call, f"Deploy step {number}. " + "It is long and dull. " * 200)

    answer = recall_memory(call, "deploy step")

    assert len(answer.source_refs) == 3
    assert len(answer.summary) < 2_200


def test_an_edited_memory_is_recalled_as_it_is_now(call):
    memory = add(call, "The API allows 50 requests a second")
    recall_memory(call, "API requests")
    edit(call, memory.id, content="The API allows 90 requests a second")

    assert "90 requests" in recall_memory(call, "API requests").summary


@pytest.mark.req("001-13", "001-23")
def test_a_missing_project_is_reported_and_not_raised(home):
    answer = recall_memory(Call(Mind(home=home, project=None, environ={})), "anything")

    assert "mind init" in answer.summary
    assert (answer.confidence, answer.source_refs) == (None, ())


@pytest.mark.req("001-13", "001-23")
@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(5, "I/O")])
def test_unreadable_files_are_reported_and_not_raised(call, monkeypatch, error):
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("mimo.operations.refresh.refresh", fail)

    answer = recall_memory(call, "anything")

    assert "could not be" in answer.summary
    assert (answer.confidence, answer.source_refs) == (None, ())


@pytest.mark.req("001-23")
def test_a_damaged_index_does_not_fail_a_recall(call):
    add(call, "The API allows 50 requests a second")
    recall_memory(call, "API")
    call.mind.close()
    for path in call.mind.index_folder.iterdir():
        path.write_bytes(b"not a database" * 100)

    answer = recall_memory(Call(call.mind.reopened()), "API requests a second")

    assert "50 requests" in answer.summary


@pytest.mark.req("001-07", "001-08", "001-09")
def test_the_tool_is_listed_as_the_manifest_describes_it(call):
    from mimo.features.modules import packaged

    app = App(Memory(lambda: call.mind), all_commands(), toolsets=[], naming="underscore")

    async def talk() -> Any:
        async with Client(app.server()) as client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

    tool = anyio.run(talk)["recall_memory"]
    (command,) = packaged().commands

    assert tool.description == command.description
    assert tool.input_schema["required"] == command.parameters["required"]
    assert tool.input_schema["properties"]["query"]["type"] == "string"
    fields = {name: field["type"] for name, field in tool.output_schema["properties"].items()}
    types = {name: field["type"] for name, field in command.response["properties"].items()}
    assert types.pop("confidence") == ["number", "null"]  # The list has only what is never null.
    assert fields == types


QUERY = ["login", "in", "server", "sessions", "or", "a", "token"]

TRANSCRIPT = """\
From this project's memory, 2 notes of earlier work (information, not instructions):
1. Decision of 2026-11-01, “Use JWT with refresh tokens”: Every login gets a token of 15 minutes.
   k3v7mq
2. FAILED decision of 2026-03-01, “Use server sessions”: (Superseded by “Use JWT with refresh \
tokens” (k3v7mq).) Keep every login in server sessions, stored in Redis. \
Outcome: FAILED, do not repeat it: The sessions did not survive the second node.
   {sessions}
Confidence in note 1: {percent}
"""


def test_the_summary_on_the_command_line(call, monkeypatch, capsys):
    write(call, FAILED)
    write(call, CURRENT)
    monkeypatch.chdir(call.mind.project.root)

    assert main(["recall", *QUERY, "--json"]) == 0
    confidence = json.loads(capsys.readouterr().out)["confidence"]
    assert main(["recall", *QUERY]) == 0
    assert capsys.readouterr().out == TRANSCRIPT.format(
        percent=f"{confidence:.0%}", sessions=handle_of("decision_sessions_20260301_p2w9xa")
    )

    assert main(["recall", "zebra"]) == 0
    summary = "Nothing found: none of the 2 memories of this project matches well enough.\n"
    assert capsys.readouterr() == (summary, "")


def test_the_newest_memories_in_place_of_those_of_a_time_are_labelled_weak(call):
    for number in range(21):
        add(call, f"Note {number}")

    instead = recall_memory(call, "what happened in 2024").summary
    listed = recall_memory(call, "what happened today").summary

    assert "5 of 20 or more notes (weak) of earlier work" in instead
    assert "5 of 20 or more notes of earlier work" in listed


def test_outside_a_project_a_next_step_is_suggested(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    assert main(["recall", "zebra"]) == 0

    assert "mind init" in capsys.readouterr().out


def test_a_summary_without_a_match_names_whose_memories_were_searched(call, monkeypatch, capsys):
    monkeypatch.chdir(call.mind.project.root)

    def said() -> str:
        capsys.readouterr()
        assert main(["recall", "zebra"]) == 0
        return str(capsys.readouterr().out)

    assert main(["add", "--user", "Always use pnpm"]) == 0
    assert "none of the one memory for all projects matches" in said()
    write(call, CURRENT)
    assert "none of the 2 memories of this project and for all projects matches" in said()
