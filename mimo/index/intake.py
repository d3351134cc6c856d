"""Changes on their way into the index: records cut up, vectors made for what is new."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from mimo.domain.memory import Problem
from mimo.index.change import Change
from mimo.index.documents import Document, document, name_of
from mimo.index.embedding import Embedder
from mimo.index.vectors import Vectors

Batch = tuple[list[Change], list[Document]]
"""Changes, and the documents in them."""

BATCH = 2_000
"""Memories that are cut up, embedded and written at a time."""

_BATCH_CHARACTERS = 4_000_000
"""Or so much text, if it comes to that first: a file may hold many memories, or a very long one."""


def prepared(
    changes: Iterable[Change], prepare: Callable[[Sequence[Document]], None]
) -> Iterator[Batch]:
    """Yields batches of changes with their documents, each after `prepare` was called with them.

    Of several changes of one file in a batch the last one counts.
    """
    for batch in _batches(changes):
        latest = {change.path: change for change in batch}
        found = [_readable(change) for change in latest.values()]
        documents = [one for _, made in found for one in made]
        prepare(documents)
        yield [change for change, _ in found], documents


def _batches(changes: Iterable[Change]) -> Iterator[list[Change]]:
    batch: list[Change] = []
    memories = characters = 0
    for change in changes:
        batch.append(change)
        memories += len(change.records) or 1
        characters += sum(len(record.memory.content) for record in change.records)
        if memories >= BATCH or characters >= _BATCH_CHARACTERS:
            yield batch
            batch, memories, characters = [], 0, 0
    if batch:
        yield batch


def embed(documents: Sequence[Document], embedder: Embedder, vectors: Vectors) -> None:
    """Makes and keeps the vectors of `documents` that are not known yet."""
    names = {unit.vector for one in documents for unit in one.units}
    names.update(one.vector for one in documents)
    missing = names - vectors.known(names)
    if not missing:
        return
    texts = dict(_texts(documents, missing))
    encoded = dict(zip(texts, embedder.encode_many(list(texts.values())), strict=True))
    made = {name: encoded[name] for name in missing if name in encoded}
    for one in documents:
        if one.vector in missing and one.vector not in made:
            made[one.vector] = mean([encoded[name_of(text)] for text in one.passage_texts])
    vectors.put(made)


def mean(vectors: Sequence[bytes]) -> bytes:
    """Returns the mean of int8 vectors at length 127; empty where none of them says anything."""
    known = [memoryview(vector).cast("b") for vector in vectors if vector]
    if len(known) < 2:
        return known[0].tobytes() if known else b""
    sums = [sum(column) for column in zip(*known, strict=True)]
    length = math.hypot(*sums)
    if not length:
        return b""
    return bytes(round(127 * value / length) & 0xFF for value in sums)


def _texts(documents: Sequence[Document], missing: set[bytes]) -> Iterable[tuple[bytes, str]]:
    for one in documents:
        for unit, text in zip(one.units, one.unit_texts, strict=True):
            if unit.vector in missing:
                yield unit.vector, text
        if one.vector in missing:
            yield from ((name_of(text), text) for text in one.passage_texts)


def _readable(change: Change) -> tuple[Change, list[Document]]:
    """Returns a change with its documents; with a problem for one that SQLite can't hold."""
    documents = []
    problem = change.problem
    for record in change.records:
        try:
            documents.append(document(record))
        except UnicodeEncodeError:
            reason = "it holds characters that are not valid Unicode"
            problem = Problem(path=change.path, line=record.place.line, reason=reason)
        except Exception as error:  # noqa: BLE001 - one file must never keep the others from use
            reason = f"mind can't index it ({type(error).__name__}); please report it"
            problem = Problem(path=change.path, line=record.place.line, reason=reason)
    if problem is not change.problem:
        change = Change(
            path=change.path, stamp=change.stamp, records=change.records, problem=problem
        )
    return change, documents
