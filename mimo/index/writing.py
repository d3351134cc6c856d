"""Writing changes of files into the tables: cut into units, embedded, and inserted.

The end of the module finds the duplicates of a memory that is not written yet.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial

from mimo.index import rows, schema, selection, tracking
from mimo.index.documents import Document, is_chat, may_cite, statement_of
from mimo.index.documents import document as document_of
from mimo.index.names import outdated, precedence
from mimo.index.rows import Change
from mimo.index.schema import (
    COLUMNS,
    CURRENT,
    marks,
    packed,
    portions,
    to_sql,
    unit_key,
    unit_number,
)
from mimo.memory import duplicates
from mimo.memory.ids import handle_of
from mimo.memory.model import Filter, Link, Memory, Place, Problem, Record, tag_key, topic_key
from mimo.memory.naming import key_of, tail_of

Batch = tuple[list[Change], list[Document]]
"""Changes, and the documents in them."""

BATCH = 2_000
"""The number of memories that are cut, embedded and written at a time."""

_BATCH_CHARACTERS = 4_000_000
"""A batch ends earlier at this much text: a file may hold many memories, or a very long one."""

_COMPARED = 20
"""The number of memories that words find, best first, and that a memory is compared with."""

_MOST_TOUCHED = 1_000
"""The number of names in `touched`. More changes, such as a first index, empty the table."""


TOKENS = "m.title_tokens || ' ' || coalesce(group_concat(unpacked(u.tokens), ' '), '')"
"""The words of a memory, in a query over `memories m` and `units u`, grouped by memory."""


def prepared(changes: Iterable[Change]) -> Iterator[Batch]:
    """Yields batches of changes with their documents.

    If a batch has several changes of one file, the last one counts.
    """
    for batch in _batches(changes):
        latest = {change.path: change for change in batch}
        readable: list[Change] = []
        documents: list[Document] = []
        for change in latest.values():
            change_, documents_ = _readable(change)
            readable.append(change_)
            documents += documents_
        yield readable, documents


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


def _readable(change: Change) -> tuple[Change, list[Document]]:
    """Returns a change with its documents, and a problem if SQLite can't hold one of them."""
    documents = []
    problem = change.problem
    for record in change.records:
        try:
            documents.append(document_of(record))
        except UnicodeEncodeError:
            reason = "it holds characters that are not valid Unicode"
            problem = Problem(path=change.path, line=record.place.line, reason=reason)
        except Exception as error:  # noqa: BLE001 - one bad file must not stop the others
            reason = f"mind can't index it ({type(error).__name__}); please report it"
            problem = Problem(path=change.path, line=record.place.line, reason=reason)
    if problem is not change.problem:
        change = Change(
            path=change.path, stamp=change.stamp, records=change.records, problem=problem
        )
    return change, documents


_MEMORY = f"INSERT INTO memories (key, {COLUMNS}, handle, topic_key, title_tokens, \
topic_tokens, passages, statement, cites) VALUES ({marks(range(27))})"
_UNIT = f"INSERT INTO units VALUES ({marks(range(8))})"
_NAME = "INSERT INTO names VALUES (?1, ?2, CASE ?3 WHEN ?1 THEN '' ELSE ?3 END, ?4)"
_WORDS = "INSERT INTO words (rowid, tokens) VALUES (?, ?)"
_DELETE_WORDS = "INSERT INTO words (words, rowid, tokens) VALUES ('delete', ?, ?)"


class Writer:
    """Writes changes within an open transaction; `finish` ends the work, not the transaction."""

    def __init__(self, connection: sqlite3.Connection, now_ns: int) -> None:
        """Takes the connection, and the time at which the files were read."""
        self._sql = connection
        self._now_ns = now_ns
        self.late: set[str] = set()
        """The paths of files that were left out."""
        self.claims: set[str] = set()
        """The claims of approved texts that others replaced, see `tracking.new_claims`."""
        self._ids: set[str] = set()
        self._touched: set[str] = set()
        self._changed: set[int] = set()
        self._has_written = False
        self._counts: defaultdict[str, int] = defaultdict(int)
        self._next_memory = self._highest("memories") + 1
        self._next_unit = unit_number(self._highest("units")) + 1

    def write(
        self, changes: Sequence[Change], documents: Iterable[Document], late: Collection[str] = ()
    ) -> None:
        """Replaces the rows of changed files, except the `late` ones, by those of `documents`."""
        if late:
            changes = [change for change in changes if change.path not in late]
            documents = [each for each in documents if each.record.place.path not in late]
            self.late.update(late)
        claims = set[str]()
        all_paths = [to_sql(change.path) for change in changes]
        for paths in portions(all_paths):
            stored = f"SELECT path FROM files WHERE path IN ({marks(paths)})"
            places = [path for (path,) in self._sql.execute(stored, paths)]
            if places:
                claims.update(tracking.new_claims(self._sql, places))
            for path in places:
                self._delete(path)
        self._has_written = self._has_written or bool(changes)
        self._sql.executemany(
            f"INSERT INTO files VALUES ({marks(range(8))})",
            [
                (
                    to_sql(change.path),
                    stamp.size,
                    stamp.mtime_ns,
                    stamp.ctime_ns,
                    str(stamp.inode),
                    self._now_ns,
                    change.problem.reason if change.problem else None,
                    change.problem.line if change.problem else None,
                )
                for change in changes
                if (stamp := change.stamp)
            ],
        )
        self._insert(documents)
        for paths in portions(all_paths) if claims else ():
            # A removed link or file leaves no claim, which a pull could use later.
            unapproved = tracking.new_claims(self._sql, paths, approved=False)
            self.claims |= claims.intersection(unapproved)

    def finish(self) -> None:
        """Resolves duplicate ids and updates the totals."""
        if not self._has_written:  # Only approvals have changed.
            self._ids.update(outdated(self._sql))
        shared = "GROUP BY id HAVING count(*) > 1 OR max(shadowed)"
        for ids in portions(sorted(self._ids)):
            query = f"SELECT id FROM memories WHERE id IN ({marks(ids)}) {shared}"
            for (id,) in self._sql.execute(query, ids).fetchall():
                self._resolve(id)
        sums = "".join(f", {name} = {name} + ?" for name in self._counts)
        changed_ns = self._now_ns if self._has_written else None
        self._sql.execute(
            "UPDATE totals SET revision = revision + 1,"
            f" changed_ns = coalesce(?, changed_ns){sums}",
            (changed_ns, *self._counts.values()),
        )
        self._note_touched()

    def _note_touched(self) -> None:
        """Stores the names and keys of the changed memories, by which caches expire."""
        ((revision,),) = self._sql.execute("SELECT revision FROM totals")
        ((stored,),) = self._sql.execute("SELECT count(*) FROM touched")
        if stored + len(self._touched) > _MOST_TOUCHED:
            _forget_changes(self._sql)
            return
        touched = [(revision, name) for name in self._touched]
        self._sql.executemany("INSERT INTO touched VALUES (?, ?)", touched)
        changed = [(revision, key) for key in self._changed]
        self._sql.executemany("INSERT INTO changed VALUES (?, ?)", changed)

    def _highest(self, table: str) -> int:
        (highest,) = self._sql.execute(f"SELECT max(key) FROM {table}").fetchone()
        return highest or 0

    def _insert(self, documents: Iterable[Document]) -> None:
        memories, tags, links, names, units, words = [], [], [], [], [], []
        parents: defaultdict[tuple[str | bytes, str], Counter[str]] = defaultdict(Counter)
        for document in documents:
            record, key = document.record, self._next_memory
            self._next_memory += 1
            self._changed.add(key)
            self._ids.add(record.memory.id)
            self._touched.add(record.memory.id)
            topic = topic_key(record.memory.topic) if record.memory.topic else None
            texts = [unit.tokens for unit in document.units]
            cites = may_cite(record.memory.title, record.memory.text)
            memories.append(
                (
                    key,
                    *document.row,
                    handle_of(record.memory.id),
                    topic or None,
                    document.title,
                    document.topic,
                    rows.to_passages(document.passages, texts),
                    statement_of(record.memory),
                    cites and record.parent is None,  # Ingested text cites files of its author.
                )
            )
            tags += [(key, tag_key(tag)) for tag in record.memory.tags]
            links += [_link_row(key, link) for link in record.memory.links]
            names += [(tail_of(name), key, name, rank) for name, rank in document.names.items()]
            heading = document.heading
            for unit, tokens, vector in zip(
                document.units, texts, document.unit_vectors, strict=True
            ):
                indexed = f"{heading} {tokens}".split()
                number = unit_key(self._next_unit, len(indexed))
                self._next_unit += 1
                line = record.place.line + unit.line0
                position = (line, unit.start, len(unit.text))
                units.append((number, key, *position, packed(tokens), unit.speakers, vector))
                words.append((number, " ".join(indexed)))
                self._counts["words"] += len(indexed)
                heading = ""
                if record.parent is not None:
                    parents[to_sql(record.place.path), record.parent].update(unit.tokens.split())
            self._count(1, texts, document.passages)
        linked = (name for link in links for name in (link[1], link[-1]) if name)
        self._touched.update((*linked, *(row[0] for row in names)))
        self._sql.executemany(_MEMORY, memories)
        self._sql.executemany("INSERT OR IGNORE INTO tags VALUES (?, ?)", tags)
        self._sql.executemany("INSERT OR IGNORE INTO links VALUES (?, ?, ?, ?, ?, ?)", links)
        self._sql.executemany(_NAME, names)
        self._sql.executemany(_UNIT, units)
        self._sql.executemany(_WORDS, words)
        self._sql.executemany(
            "INSERT INTO parents VALUES (?, ?, ?, ?, ?)",
            [
                (*name, " ".join(sorted(times)), is_chat(times), handle_of(name[1]))
                for name, times in parents.items()
            ],
        )

    def _delete(self, place: str | bytes) -> None:
        self._sql.execute("DELETE FROM files WHERE path = ?", (place,))
        selected = self._sql.execute(
            "SELECT key, id, trim(title_tokens || ' ' || topic_tokens), passages, shadowed"
            " FROM memories WHERE shadowed IN (0, 1) AND path = ?",
            (place,),
        ).fetchall()
        for key, id, heading, passages, shadowed in selected:
            self._ids.add(id)
            self._changed.add(key)
            self._touched |= self._stored_names(key)
            self._counts["shadowed"] -= shadowed
            self._delete_memory(key, heading, passages)
        if selected:
            self._sql.execute("DELETE FROM parents WHERE path = ?", (place,))

    def _delete_memory(self, key: int, heading: str, passages: str | None) -> None:
        units = self._sql.execute(
            "SELECT key, unpacked(tokens) FROM units WHERE memory = ? ORDER BY key", (key,)
        ).fetchall()
        texts = [tokens for _, tokens in units]
        self._count(-1, texts, rows.from_passages(passages, texts))
        for number, tokens in units:
            indexed = f"{heading} {tokens}".split()
            self._sql.execute(_DELETE_WORDS, (number, " ".join(indexed)))
            self._counts["words"] -= len(indexed)
            heading = ""
        for table, column in (
            ("units", "memory"), ("tags", "memory"), ("links", "source"), ("names", "memory"),
            ("memories", "key"),
        ):  # fmt: skip
            self._sql.execute(f"DELETE FROM {table} WHERE {column} = ?", (key,))

    def _count(self, sign: int, units: Sequence[str], passages: Sequence[str]) -> None:
        unit_tokens = sum(tokens.count(" ") + 1 for tokens in units)
        self._counts["memories"] += sign
        self._counts["units"] += sign * len(units)
        self._counts["unit_tokens"] += sign * unit_tokens
        self._counts["passages"] += sign * len(passages or units)
        self._counts["passage_tokens"] += sign * (
            sum(tokens.count(" ") + 1 for tokens in passages) if passages else unit_tokens
        )

    def _resolve(self, id: str) -> None:
        """Gives an id to an approved memory, to the file of that name, or else to the first path.

        The other memories with that id are shadowed.
        """
        claims = self._sql.execute(
            "SELECT key, path, parent, position, approved(approval), shadowed FROM memories"
            " WHERE id = ?",
            (id,),
        ).fetchall()
        owner = min(claims, key=lambda claim: precedence(id, *claim[1:5]))
        for key, *_, shadowed in claims:
            loses = int(key != owner[0])
            if loses != shadowed:
                self._sql.execute("UPDATE memories SET shadowed = ? WHERE key = ?", (loses, key))
                self._counts["shadowed"] += loses - shadowed
                self._changed.add(key)
                self._touched |= self._stored_names(key)

    def _stored_names(self, key: int) -> set[str]:
        """Returns the ids of a stored memory, and the tails of its names and of its links."""
        selected = self._sql.execute(
            "SELECT id FROM memories WHERE key = :key UNION SELECT handle FROM memories"
            " WHERE key = :key UNION SELECT tail FROM names"
            " WHERE memory = :key UNION SELECT target FROM links WHERE source = :key"
            " UNION SELECT tail FROM links WHERE source = :key AND tail IS NOT NULL",
            {"key": key},
        )
        return {name for (name,) in selected}


def _link_row(
    source: int, link: Link
) -> tuple[int, str, str, str | None, float | None, str | None]:
    """Returns the row of `links` for a link, with the tail of its target unless that equals it."""
    tail = tail_of(key_of(link.to))
    tail_if_other = tail if tail != link.to else None
    return source, link.to, link.type, link.given, link.confidence, tail_if_other


def purge(sql: sqlite3.Connection) -> None:
    """Removes the names and words of removed memories from the tables."""
    _forget_changes(sql)
    # Until its parts are merged, FTS5 keeps the words of removed rows.
    sql.execute("INSERT INTO words (words) VALUES ('optimize')")


def _forget_changes(sql: sqlite3.Connection) -> None:
    """Removes the names and keys of changed memories; caches of earlier revisions expire."""
    sql.execute("DELETE FROM touched")
    sql.execute("DELETE FROM changed")
    sql.execute("UPDATE totals SET touched_after = revision")


def same(sql: sqlite3.Connection, memory: Memory) -> tuple[Record, ...]:
    """Returns the current memories with the same statement, oldest first."""
    # The plus keeps SQLite from scanning `memories_created` to avoid sorting.
    current = CURRENT.format("m")
    clause = f"WHERE m.statement = ? AND +m.shadowed = 0 AND {current} ORDER BY m.created, m.id"
    return tuple(rows.select(sql, clause, (statement_of(memory),)))


def alike(sql: sqlite3.Connection, memory: Memory) -> Record | None:
    """Returns the current memory that is the nearest duplicate of a draft, if there is one.

    Of equally near ones, it is the oldest.
    """
    place = Place(path=f"/{memory.id}.md", line=1, digest="")
    draft = document_of(Record(memory=memory, place=place))
    words = duplicates.words_of(" ".join([draft.title, *[unit.tokens for unit in draft.units]]))
    condition = f"m.id <> ? AND m.shadowed = 0 AND {CURRENT.format('m')}"
    near = near_duplicates(sql, words, partial(schema.frequency, sql), condition, memory.id)
    return rows.by_key(sql, [near[0][0]])[near[0][0]] if near else None


def near_duplicates(
    sql: sqlite3.Connection,
    words: frozenset[str],
    frequency: Callable[[str], int],
    condition: str,
    value: str | int,
) -> list[tuple[int, float]]:
    """Returns the near-duplicates of a text that pass a condition, and how much they are alike.

    The nearest is the first; of equally near ones, it is the oldest.
    """
    frequencies = {term: frequency(term) for term in duplicates.sample(words)}
    terms = [term for term in duplicates.telling(frequencies) if frequencies[term]]
    memories = schema.totals(sql).memories
    matches = sum(frequencies[term] for term in terms)
    keys = selection.memories_with(
        sql, terms, Filter(), memories=memories, admitted=memories, matches=matches
    )[:_COMPARED]
    texts = sql.execute(
        f"SELECT m.key, {TOKENS}, m.created, m.id FROM memories m"
        " LEFT JOIN units u ON u.memory = m.key"
        f" WHERE m.key IN ({marks(keys)}) AND m.type <> 'checkpoint' AND {condition}"
        " GROUP BY m.key",
        (*keys, value),
    ).fetchall()
    scored = sorted(
        (-duplicates.likeness(words, duplicates.words_of(tokens)), created, id, key)
        for key, tokens, created, id in texts
    )
    return [(key, -distance) for distance, *_, key in scored if -distance >= duplicates.ALIKE]
