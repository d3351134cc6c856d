"""Inputs that failed once, the seeds, and those that reach all code keep the promises."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from fuzz import corpus, files, targets
from fuzz.choices import Choices
from fuzz.project import a_project
from fuzz.seeds import HOOKS, seeds
from fuzz.targets import TARGETS
from fuzz.tools import CALLER, TOOLS, given
from mimo.features.hooks import events
from mimo.features.hooks.events import Dialect, Moment
from mimo.features.importing import drafts
from mimo.features.importing.drafts import Draft, Resolved
from mimo.features.importing.formats import formats
from mimo.server.answers import answer

MOST = 30
"""The inputs of a target that are tried at most, evenly chosen of more."""

SLOW = frozenset({"hook", "http", "import", "output", "query", "settings", "stdio", "tools", "web"})
"""Targets whose inputs take more than a few milliseconds each."""

REGRESSIONS = sorted(Path(__file__).with_name("regressions").glob("*/*"))


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_input_that_failed_once(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds_and_the_corpus(name: str) -> None:
    most = MOST // 3 if name in SLOW else MOST
    for every in (list(seeds(name)), list(corpus.read(name))):
        for data in every[:: 1 + len(every) // most]:
            TARGETS[name](data)


NEED_MORE = {
    "edit", "evolve supersede", "undo", "procedure send", "procedure add", "knowledge",
    "mind-search-org",
}  # fmt: skip
"""Commands that refuse their usual arguments alone, or without a server."""


def test_usual_arguments_are_accepted() -> None:
    refused = set()
    for specs in TOOLS:
        for number, spec in enumerate(specs):
            with a_project() as mind:
                arguments = given(Choices(bytes([number])), specs)
                if answer(specs, mind.by(CALLER), arguments).is_error:
                    refused.add(spec.path)
    assert refused == NEED_MORE


def test_the_seeds_have_memories_of_each_format(monkeypatch: pytest.MonkeyPatch) -> None:
    read = set()

    def noted(every: list[Draft], format: str, *rest: Any, **more: Any) -> Resolved:
        result = drafts.resolved(every, format, *rest, **more)
        read.update([format] if any(item.memory for item in result.items) else [])
        return result

    monkeypatch.setattr(files, "resolved", noted)
    for name in ("import", "database"):
        for data in seeds(name):
            if read != set(formats()):
                TARGETS[name](data)
    assert read == set(formats())


def test_the_seeds_have_each_answer_of_a_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    answered, check = set(), targets._check_answer

    def noted(event: events.Event, answer: Mapping[str, Any]) -> None:
        answered.update([(event.dialect, event.moment)] if answer else [])
        check(event, answer)

    monkeypatch.setattr(targets, "_check_answer", noted)
    moments = (Moment.START, Moment.PROMPT, Moment.TOOL, Moment.STOPPED)
    without = {(Dialect.CURSOR, Moment.PROMPT), (Dialect.VSCODE, Moment.PROMPT)}
    expected = {*product(Dialect, moments)} - without
    for data, blanks in product(HOOKS, range(len(events.CLIENTS))):
        if answered >= expected:
            break
        TARGETS["hook"](data + b" " * blanks)  # The length chooses the client.
    assert answered == expected


def test_the_corpus_is_small() -> None:
    sizes = [path.stat().st_size for path in corpus.FOLDER.iterdir()]
    assert sum(sizes) < 500_000


def test_an_archive_has_the_inputs_that_were_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "FOLDER", tmp_path / "corpus")
    (tmp_path / "inputs").mkdir()
    for data in (b"bb", b"a", b"", b"c" * (corpus.LONGEST + 1)):
        (tmp_path / "inputs" / str(len(data))).write_bytes(data)

    assert corpus.write("memory", tmp_path / "inputs") == 3
    assert list(corpus.read("memory")) == [b"", b"a", b"bb"]
    before = (tmp_path / "corpus" / "memory.tar.xz").read_bytes()
    corpus.write("memory", tmp_path / "inputs")
    assert (tmp_path / "corpus" / "memory.tar.xz").read_bytes() == before
