"""Measure how well memories are found, on labelled data, beside plain SQLite FTS5.

    python bench/retrieval.py --bench FOLDER [--sets NAME …]

FOLDER (or the environment's MIND_BENCH) holds `eval/` with the harness (`run_eval.py`) and `data/`
with the sets. The engine is the real one: each document becomes a memory of an index in a
temporary folder, and each question is one `Index.search`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from mimo.data.disk import Stamp
from mimo.index.embedding import Embedder, open_embedder
from mimo.index.embedding.encoder import packaged_encoder
from mimo.index.index import Index
from mimo.index.rows import Change, Request
from mimo.memory.model import Filter, Kind, Memory, Place, Record

SETS: dict[str, tuple[str, dict[str, str]]] = {
    "longmemeval": ("longmemeval_s", {"level": "session", "protocol": "all"}),
    "longmemeval-pooled": ("longmemeval_pooled", {"level": "session", "protocol": "nonabs"}),
    "locomo-session": ("locomo", {"level": "session"}),
    "locomo-turn": ("locomo", {"level": "turn"}),
    "beam100k": ("beam100k", {"level": "turn"}),
    "cosqa": ("cosqa", {}),
    "ki-til": ("ki-til", {}),
    "xquad-en": ("xquad-en", {}),
    "xquad-de": ("xquad-de", {}),
    "xquad-es": ("xquad-es", {}),
    "xquad-zh": ("xquad-zh", {}),
}
FIGURES = ("hit@1", "hit@5", "all@5", "ndcg@10")
FIGURE_TITLES = ("hit@1", "hit@5", "all@5", "NDCG@10")
DATES = ("%Y/%m/%d (%a) %H:%M", "%I:%M %p on %d %B, %Y", "%B-%d-%Y")
UNDATED = datetime(2000, 1, 1, tzinfo=UTC)

Search = Callable[[str, int], list[int]]
Find = Callable[[str, int], list[tuple[int, float]]]


class Question(str):
    """A question's text that knows when it was asked; the harness hands on the text alone."""

    __slots__ = ("asked",)
    asked: datetime | None


def main() -> None:
    """Print the table of the chosen sets."""
    arguments = parsed()
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(Path(arguments.bench) / "eval"))
    harness = importlib.import_module("run_eval")
    dated(harness)
    words = importlib.import_module("systems").fts5
    print(*heading(), sep="\n", flush=True)
    lines = []
    with TemporaryDirectory() as scratch:
        engine = Engine(
            Path(scratch),
            None if arguments.words_only else open_embedder(),
            None if arguments.words_only or arguments.static else packaged_encoder(),
        )
        for name in arguments.sets:
            lines.append(line(harness, name, words, engine))
            print(lines[-1], flush=True)


def parsed() -> argparse.Namespace:
    """Returns the arguments of the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    bench = os.environ.get("MIND_BENCH")
    parser.add_argument("--bench", default=bench, required=not bench, help="folder of the sets")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS), metavar="NAME")
    parser.add_argument("--words-only", action="store_true", help="search without any model")
    parser.add_argument("--static", action="store_true", help="search without the encoder")
    return parser.parse_args()


def heading() -> tuple[str, str]:
    """Returns the two lines that a Markdown table begins with."""
    first, *others = FIGURE_TITLES
    titles = ["set", "questions", f"FTS5 {first}", *others, f"mind {first}", *others]
    return f"| {' | '.join(titles)} |", "|---|" + "---:|" * (len(titles) - 1)


def line(harness: ModuleType, name: str, words: Callable[[Any], Search], engine: Engine) -> str:
    """Returns the table's line for one set."""
    data, options = SETS[name]
    floor = harness.run(data, words, **options)
    ours = harness.run(data, engine, **options)
    figures = [f"{100 * run['all'][figure]:.1f}" for run in (floor, ours) for figure in FIGURES]
    return f"| {' | '.join([name, str(ours['queries']), *figures])} |"


def dated(harness: ModuleType) -> None:
    """Makes the harness hand on when a question was asked, where its set says so."""
    load = harness.load

    def with_dates(name: str, **options: Any) -> Iterator[Any]:
        for corpus in load(name, **options):
            for query in corpus.queries:
                query.text = Question(query.text)
                query.text.asked = read_date(query.date)
            yield corpus

    harness.__dict__["load"] = with_dates


def read_date(text: str) -> datetime | None:
    """Returns the date that a set writes as `text`."""
    for form in DATES:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


class Engine:
    """The harness's "system": documents in, a search function out."""

    def __init__(
        self, scratch: Path, embedder: Embedder | None, encoder: Embedder | None = None
    ) -> None:
        """Keep each corpus' index in a folder of `scratch`."""
        self.encoder = encoder
        self.scratch = scratch
        self.embedder = embedder
        self.corpora = 0

    def __call__(self, documents: Sequence[Any]) -> Search:
        """Returns the search over an index of `documents`."""
        find = self.opened(documents)
        return lambda text, limit: [number for number, _ in find(text, limit)]

    def opened(self, documents: Sequence[Any]) -> Find:
        """Returns the search that also tells the score of each document."""
        self.corpora += 1
        index = Index.open(self.scratch / str(self.corpora), self.embedder)
        index.encoder = lambda: self.encoder
        changes = list(as_changes(documents))
        index.apply(changes, now_ns=0)
        index.make_meanings(lambda done, of: None)
        memories = [record.memory for change in changes for record in change.records]
        newest = max((memory.created for memory in memories), default=UNDATED)

        def find(text: str, limit: int) -> list[tuple[int, float]]:
            asked = getattr(text, "asked", None) or newest + timedelta(days=1)
            found = index.search(Request(str(text), filter=Filter(), limit=limit, now=asked))
            return [(int(hit.record.memory.id), hit.score) for hit in found.hits]

        return find


def as_changes(documents: Sequence[Any]) -> Iterator[Change]:
    """Yields one file for each document, or for each session of several: parts of one text."""
    sessions: dict[str, list[int]] = {}
    for number, document in enumerate(documents):
        sessions.setdefault(document.session or f"document {number}", []).append(number)
    stamp = Stamp(size=0, mtime_ns=0, ctime_ns=0, inode=0)
    for session, parts in enumerate(sessions.values()):
        path = f"{session}.md"
        parent = f"session-{session}" if len(parts) > 1 else None
        records = tuple(
            Record(
                memory=Memory(
                    # Equals are answered in the order of their ids, which is that of the set.
                    id=f"{number:08}",
                    type=Kind.FACT,
                    content=documents[number].text,
                    created=read_date(documents[number].date) or UNDATED,
                ),
                place=Place(path=path, line=1, digest=""),
                parent=parent,
                position=position,
            )
            for position, number in enumerate(parts)
        )
        yield Change(path=path, stamp=stamp, records=records)


if __name__ == "__main__":
    main()
