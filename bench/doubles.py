"""Measure what counts as much alike, on the observations of LoCoMo.

    python -m bench.doubles --bench FOLDER

FOLDER (or the environment's MIND_BENCH) holds `data/locomo/locomo10.json`. Each conversation's
observations become the memories of an index. Each of them is asked for once as it would be said
again, in four ways, while it is there; and once as it is while it is not there, when whatever is
found is another one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from mimo.data.disk import Stamp
from mimo.index.embedding import open_embedder
from mimo.index.index import Index
from mimo.index.rows import Change
from mimo.memory.model import Kind, Memory, Place, Record

_SHOWN = 8
_STAMP = Stamp(1, 1, 1, 1)
_WORDS = "usually deployment yesterday green report again quickly station".split()


def left_out(words: list[str], draw: random.Random) -> list[str]:
    place = draw.randrange(len(words))
    return words[:place] + words[place + 1 :]


def added(words: list[str], draw: random.Random) -> list[str]:
    place = draw.randrange(len(words))
    return [*words[:place], draw.choice(_WORDS), *words[place:]]


def changed(words: list[str], draw: random.Random) -> list[str]:
    place = draw.randrange(len(words))
    return [*words[:place], draw.choice(_WORDS), *words[place + 1 :]]


def moved(words: list[str], draw: random.Random) -> list[str]:
    place = draw.randrange(1, len(words))
    return words[place:] + words[:place]


WAYS: dict[str, Callable[[list[str], random.Random], list[str]]] = {
    "a word left out": left_out,
    "a word added": added,
    "a word changed": changed,
    "words put elsewhere": moved,
}


def conversations(bench: Path) -> Iterator[list[str]]:
    """Yields the observations of each conversation, each of them once."""
    found = json.loads((bench / "data/locomo/locomo10.json").read_text(encoding="utf-8"))
    for conversation in found:
        every = (
            pair[0]
            for session in conversation["observation"].values()
            for said in session.values()
            for pair in said
        )
        yield list(dict.fromkeys(text for text in every if len(text.split()) > 1))


def memory(number: int, text: str) -> Memory:
    made = datetime(2026, 1, 1, tzinfo=UTC)
    return Memory(id=f"fact_{number}", type=Kind.FACT, content=text, created=made)


def change(number: int, text: str | None) -> Change:
    """Returns a file of one memory, come or gone."""
    path = f".mind/facts/fact_{number}.md"
    if text is None:
        return Change(path=path, stamp=None, records=(), problem=None)
    record = Record(memory=memory(number, text), place=Place(path=path, line=1, digest=""))
    return Change(path=path, stamp=_STAMP, records=(record,), problem=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=Path, default=os.environ.get("MIND_BENCH"))
    bench = parser.parse_args().bench
    draw = random.Random(7)
    reached = dict.fromkeys(WAYS, 0)
    texts = other = asked = 0
    seconds = 0.0
    shown: list[tuple[str, str]] = []
    for said in conversations(bench):
        index = Index.in_memory(open_embedder(None))
        index.apply([change(n, text) for n, text in enumerate(said)], now_ns=1)
        texts += len(said)
        for number, text in enumerate(said):
            for name, way in WAYS.items():
                start = time.process_time()
                found = index.much_like(memory(0, " ".join(way(text.split(), draw))))
                seconds += time.process_time() - start
                asked += 1
                reached[name] += found is not None and found.memory.id == f"fact_{number}"
            index.apply([change(number, None)], now_ns=1)
            if found := index.much_like(memory(0, text)):
                other += 1
                shown.append((text, found.memory.content))
            index.apply([change(number, text)], now_ns=1)
        index.close()
    print(f"{texts} observations, {1000 * seconds / asked:.2f} ms for each question")
    for name, number in reached.items():
        print(f"{name}: {number / texts:.1%} found")
    print(f"much like another one: {other / texts:.1%}, such as")
    for one, two in draw.sample(shown, min(_SHOWN, len(shown))):
        print(f"  {one}\n  {two}\n")


if __name__ == "__main__":
    main()
