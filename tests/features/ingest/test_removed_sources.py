"""Links to a removed source."""

import pytest

from mimo.features.ingest import Options, ingest_files
from mimo.memory.model import SUPERSEDES, Kind, Link
from mimo.operations import lookup, removing, saving


@pytest.fixture
def taken(call, project, monkeypatch):
    monkeypatch.chdir(project)
    (project / "notes.txt").write_text("The old limit is fifty.\n\nThe old port is 80.\n", "utf-8")
    return ingest_files(call, ["notes.txt"], Options()).files[0]


def test_successors_of_its_chunks_lose_their_links(call, taken):
    first, second = taken.ids
    links = (
        Link(to=first, type=SUPERSEDES),
        Link(to=second, type=SUPERSEDES),
        Link(to=first, type="refines"),
    )
    newer = saving.store(call, saving.draft(Kind.FACT, "The limit is sixty", links=links))

    removing.remove_source(call, lookup.source(call, taken.source_id))

    left = lookup.one(call, newer.memory.id).memory
    assert left.links == (Link(to=first, type="refines"),)
    assert call.mind.index.get(first) is None
    assert call.mind.trust.trusted(lookup.one(call, newer.memory.id).place.approval)


def test_no_other_file_changes(call, taken):
    other = saving.store(call, saving.draft(Kind.FACT, f"See [[{taken.ids[0]}]]"))

    removing.remove_source(call, lookup.source(call, taken.source_id))

    assert lookup.one(call, other.memory.id).place.approval == other.place.approval
    assert [link[:2] for link in call.mind.index.loose_links()] == [(other.memory.id, taken.ids[0])]
