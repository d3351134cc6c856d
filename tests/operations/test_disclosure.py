"""The disclosure of memories: states and readers."""

from pathlib import Path

import pytest

from mimo.call import Call
from mimo.call.spec import to_json
from mimo.features.decisions.commands import supersede
from mimo.features.graph.commands import Format, graph
from mimo.features.graph.linking import link
from mimo.features.notes.commands import add
from mimo.features.notes.reading import list_
from mimo.features.search.commands import Scope, search
from mimo.mind import Mind
from mimo.operations import disclosure
from mimo.project import projects
from mimo.project.init import init
from tests.conftest import NOW
from tests.kit import acting_as, put

STATES = ("approved", "unapproved", "private", "superseded")


@pytest.fixture
def ids(call: Call) -> dict[str, str]:
    """The memories of each state, linked with an approved one."""
    call.mind.trust.follow(False)
    put(
        call.mind.folder / "facts/planted.md",
        "---\nid: planted\ntype: fact\n---\nTea of the unapproved\n",
    )
    hub = add(call, "Tea is served at noon").id
    ids = {
        "approved": add(call, "Tea of the approved").id,
        "unapproved": "planted",
        "private": add(call, "Tea of the private", private=True).id,
        "superseded": add(call, "Tea of the superseded", type="decision", topic="tea").id,
    }
    supersede(call, ids["superseded"], "Coffee instead", "It is cheaper")
    for id in ids.values():
        link(call, id, hub)
    return ids


def labels(rows: list[dict[str, object]], id: str) -> set[str] | None:
    """Returns the labels of a memory among rows; None if they do not have it."""
    row = next((row for row in rows if row["id"] == id), None)
    if row is None:
        return None
    marks = {"untrusted"} if row["trust"] == "untrusted" else set[str]()
    return marks | {name for name in ("private", "superseded_by") if row.get(name)}


LABELS = {
    "approved": set[str](),
    "unapproved": {"untrusted"},
    "private": {"private"},
    "superseded": {"superseded_by"},
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("agent", [None, "claude-code"])
def test_lists_and_searches_show_each_state_with_its_label(
    call: Call, ids: dict[str, str], state: str, agent: str | None
) -> None:
    reader = acting_as(call, agent)
    listed = to_json(list_(reader))["memories"]
    matches = to_json(search(reader, f"tea of the {state}", limit=20))["results"]

    assert labels(listed, ids[state]) == LABELS[state]
    assert labels(matches, ids[state]) == LABELS[state]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("agent", [None, "claude-code"])
def test_only_approved_texts_are_quoted_to_agents(
    call: Call, ids: dict[str, str], state: str, agent: str | None
) -> None:
    record = call.mind.index.get(ids[state])
    assert record is not None
    quotes = disclosure.may_quote(acting_as(call, agent), record.place.approval)

    assert quotes == (agent is None or state != "unapproved")
    assert (disclosure.title_of(call, ids[state]) is None) == (state == "unapproved")


@pytest.mark.parametrize("state", STATES)
def test_a_drawing_leaves_private_memories_out(call: Call, ids: dict[str, str], state: str) -> None:
    drawing = graph(call, format=Format.MERMAID).drawing or ""

    assert (ids[state] in drawing) == (state != "private")
    assert drawing.count(", untrusted") == 1


@pytest.mark.parametrize(
    ("agent", "is_asked", "is_shown"),
    [(None, False, False), (None, True, True), ("claude-code", True, False)],
)
def test_private_memories_of_another_project_are_for_people_who_ask(
    call: Call,
    ids: dict[str, str],
    tmp_path: Path,
    home: Path,
    agent: str | None,
    is_asked: bool,
    is_shown: bool,
) -> None:
    root = tmp_path / "diary"
    root.mkdir()
    init(root, home, now=NOW)
    project = projects.explicit(root, home)
    mind = Mind(home=home, project=project, clock=call.mind.clock, environ={})
    reader = acting_as(Call(mind), agent)
    matches = to_json(search(reader, "tea of the private", scope=Scope.ALL))["results"]
    rows = to_json(list_(reader, all_projects=True, private=is_asked))["memories"]

    assert (labels(rows, ids["private"]) is not None) == is_shown
    assert labels(matches, ids["private"]) is None
    mind.close()
    if not is_asked:
        assert labels(rows, ids["unapproved"]) == {"untrusted"}


@pytest.mark.parametrize("query", ["tea", "which tea is served here at noon or later"])
def test_texts_of_a_pull_never_hide_an_approved_memory_that_holds_the_query(call, query):
    call.mind.trust.follow(False)
    own = add(call, f"Tea, which is served here: {'at noon or later. ' * 9}", title=query).id
    header = f"type: fact\naliases: [tea, {query}]\ntitle: Tea"
    for number in range(80):
        text = f"---\nid: planted{number}\n{header}\n---\nTea {query}\n"
        put(call.mind.folder / f"facts/planted{number}.md", text)

    answer = search(call, query, limit=3)

    assert [row.id == own for row in answer.results] == [True, False, False]
    assert sorted((row.confidence for row in answer.results), reverse=True) == [
        row.confidence for row in answer.results
    ]
