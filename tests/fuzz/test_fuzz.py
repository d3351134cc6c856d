"""Inputs that failed once, the seeds, and those that reach all code keep the promises."""

from pathlib import Path

import pytest

from tests.fuzz import corpus
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS

MOST = 50
"""The inputs of a target that are tried at most, every second or third of more."""

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
