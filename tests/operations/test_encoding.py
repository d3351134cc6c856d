"""The encoder's vectors are made by `mind index`, and in the background if a search lacks many."""

import os
import time

import pytest

from mimo.call import Call
from mimo.features.notes.commands import add
from mimo.features.upkeep.indexing import index
from mimo.operations import background, encoding, finding
from mimo.store.locks import holding
from tests.conftest import wait_until_forgotten

TEXTS = [f"Service number {number} keeps its settings in folder {number}" for number in range(20)]


@pytest.fixture
def filled(call):
    for text in TEXTS:
        add(call, text)
    return call


@pytest.fixture
def started(monkeypatch):
    """The projects for which a process was started; none is."""
    roots = []

    monkeypatch.setattr(background, "start", lambda module, root, home: roots.append(root))
    return roots


def test_the_index_command_prepares_every_memory(filled):
    assert index(filled).encoded == len(TEXTS)
    assert index(filled).encoded == 0


def test_one_process_at_a_time_makes_vectors(filled, started, monkeypatch):
    monkeypatch.delenv("MIND_BACKGROUND")

    with holding(filled.mind.index_folder / "encoding"):
        assert encoding.encode(filled) == 0
        encoding.encode_later(filled)

    assert started == []


def test_a_search_that_lacks_vectors_starts_the_process(filled, started, monkeypatch):
    for limit in ("SHORT_STORE", "MOST_AT_ONCE"):
        monkeypatch.setattr(f"mimo.index.meanings.{limit}", 0)
    monkeypatch.delenv("MIND_BACKGROUND")

    finding.search(filled, "where are preferences kept?", finding.Options(limit=3))
    assert started == [filled.mind.project.root]

    encoding.encode(filled)
    finding.search(filled, "where are preferences kept?", finding.Options(limit=3))
    assert len(started) == 1


def test_the_process_makes_the_vectors_and_leaves_no_zombie(filled):
    finding.search(filled, "anything at all", finding.Options(limit=3))
    process = background.start(
        "mimo.operations.encoding", filled.mind.project.root, filled.mind.home
    )

    end = time.monotonic() + 60
    while time.monotonic() < end and not _is_ready(filled):
        time.sleep(0.1)

    assert _is_ready(filled)
    wait_until_forgotten(process)


def test_the_process_makes_the_vectors_of_the_memory_for_all_projects(call):
    user = call.user(make=True)
    add(user, "Use pnpm in every project")

    opened = background.opened(user.mind.project.root, user.mind.home)
    assert opened.is_users
    assert encoding.encode(Call(opened)) == 1
    assert user.mind.index.meanings.vectors.count() == 1


def _is_ready(call):
    vectors = call.mind.index.meanings.vectors
    return vectors.count() >= len(TEXTS)


def test_the_background_can_be_switched_off(filled, monkeypatch):
    monkeypatch.setattr(background, "start", lambda *_: pytest.fail("started"))
    assert os.environ["MIND_BACKGROUND"] == "off"

    encoding.encode_later(filled)
