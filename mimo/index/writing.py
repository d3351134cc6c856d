"""Changes of files into the tables, within one transaction."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence

from mimo.domain.memory import Memory
from mimo.domain.stamp import Stamp
from mimo.domain.topics import topic_key
from mimo.index import rows, touched
from mimo.index.change import Change
from mimo.index.documents import Document, statement_of

_MEMORY = f"INSERT INTO memories (key, {rows.COLUMNS}, topic_key, title_tokens, topic_tokens, \
passages, vector, statement) VALUES ({rows.marks(range(24))})"
_UNIT = f"INSERT INTO units VALUES ({rows.marks(range(8))})"
_WORDS = "INSERT INTO words (rowid, heading, tokens) VALUES (?, ?, ?)"
_FORGET_WORDS = "INSERT INTO words (words, rowid, heading, tokens) VALUES ('delete', ?, ?, ?)"


class Writer:
    """Writes changes through a connection whose transaction is open; `finish` settles the rest."""

    def __init__(self, connection: sqlite3.Connection, now_ns: int) -> None:
        """Note the time at which the files were looked at."""
        self._sql = connection
        self._now_ns = now_ns
        self._ids: set[str] = set()
        self._touched: set[str] = set()
        self._counts: defaultdict[str, int] = defaultdict(int)
        self._next_memory = self._after("memories")
        self._next_unit = self._after("units")

    def write(self, changes: Sequence[Change], documents: Iterable[Document]) -> None:
        """Puts the documents of `changes` in the place of what the index had of those files."""
        for change in changes:
            self._forget(change.path)
        self._sql.executemany(
            f"INSERT INTO files VALUES ({rows.marks(range(8))})",
            [_file(change, change.stamp, self._now_ns) for change in changes if change.stamp],
        )
        self._insert(documents)

    def finish(self) -> None:
        """Decides who keeps an id that several have, and adds up the totals."""
        for id_ in self._ids:
            self._settle(id_)
        sums = "".join(f", {name} = {name} + ?" for name in self._counts)
        self._sql.execute(
            f"UPDATE totals SET revision = revision + 1, changed_ns = ?{sums}",
            (self._now_ns, *self._counts.values()),
        )
        touched.note(self._sql, self._touched)

    def _after(self, table: str) -> int:
        (highest,) = self._sql.execute(f"SELECT max(key) FROM {table}").fetchone()
        return (highest or 0) + 1

    def _insert(self, documents: Iterable[Document]) -> None:
        memories, tags, links, units, words = [], [], [], [], []
        parents: defaultdict[tuple[str | bytes, str], set[str]] = defaultdict(set)
        for document in documents:
            record, key = document.record, self._next_memory
            self._next_memory += 1
            self._ids.add(record.memory.id)
            memories.append((key, *document.row, *_derived(document)))
            tags += [(key, tag.casefold()) for tag in record.memory.tags]
            links += [
                (key, link.to, link.type, link.given, link.confidence)
                for link in record.memory.links
            ]
            self._touched.update(_names(record.memory))
            heading = document.heading
            for number, unit in enumerate(document.units, self._next_unit):
                position = (unit.line, unit.start, unit.length)
                units.append((number, key, *position, unit.tokens, unit.speakers, unit.vector))
                words.append((number, heading, unit.tokens))
                heading = ""
                if record.parent is not None:
                    place = rows.to_sql(record.place.path)
                    parents[place, record.parent].update(unit.tokens.split())
            self._next_unit += len(document.units)
            self._count(1, [unit.tokens for unit in document.units], document.passages)
        self._sql.executemany(_MEMORY, memories)
        self._sql.executemany("INSERT OR IGNORE INTO tags VALUES (?, ?)", tags)
        self._sql.executemany("INSERT OR IGNORE INTO links VALUES (?, ?, ?, ?, ?)", links)
        self._sql.executemany(_UNIT, units)
        self._sql.executemany(_WORDS, words)
        self._sql.executemany(
            "INSERT INTO parents VALUES (?, ?, ?)",
            [(*name, " ".join(sorted(tokens))) for name, tokens in parents.items()],
        )

    def _forget(self, path: str) -> None:
        place = rows.to_sql(path)
        self._sql.execute("DELETE FROM files WHERE path = ?", (place,))
        found = self._sql.execute(
            "SELECT key, id, trim(title_tokens || ' ' || topic_tokens), passages, shadowed"
            " FROM memories WHERE path = ?",
            (place,),
        ).fetchall()
        for key, id_, heading, passages, shadowed in found:
            self._ids.add(id_)
            self._touched |= touched.names_of(self._sql, key)
            self._counts["shadowed"] -= shadowed
            self._forget_memory(key, heading, passages.split("\n") if passages else ())
        if found:
            self._sql.execute("DELETE FROM parents WHERE path = ?", (place,))

    def _forget_memory(self, key: int, heading: str, passages: Sequence[str]) -> None:
        units = self._sql.execute(
            "SELECT key, tokens FROM units WHERE memory = ? ORDER BY key", (key,)
        ).fetchall()
        self._count(-1, [tokens for _, tokens in units], passages)
        for number, tokens in units:
            self._sql.execute(_FORGET_WORDS, (number, heading, tokens))
            heading = ""
        for table, column in (
            ("units", "memory"), ("tags", "memory"), ("links", "source"), ("memories", "key"),
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

    def _settle(self, id_: str) -> None:
        """Leaves an id to what is approved, the file of that name, or else the first path."""
        claims = self._sql.execute(
            "SELECT key, path, parent, position, approved(digest), shadowed FROM memories"
            " WHERE id = ?",
            (id_,),
        ).fetchall()
        if len(claims) < 2 and not any(shadowed for *_, shadowed in claims):
            return
        owner = min(
            claims,
            key=lambda claim: (not claim[4], _claim(id_, rows.from_sql(claim[1]), *claim[2:4])),
        )
        for key, *_, shadowed in claims:
            lost = int(key != owner[0])
            if lost != shadowed:
                self._sql.execute("UPDATE memories SET shadowed = ? WHERE key = ?", (lost, key))
                self._counts["shadowed"] += lost - shadowed
                self._touched |= touched.names_of(self._sql, key)


def _file(change: Change, stamp: Stamp, now_ns: int) -> tuple[object, ...]:
    problem = change.problem
    return (
        rows.to_sql(change.path),
        stamp.size,
        stamp.mtime_ns,
        stamp.ctime_ns,
        str(stamp.inode),
        now_ns,
        problem.reason if problem else None,
        problem.line if problem else None,
    )


def _names(memory: Memory) -> set[str]:
    """Returns the names by which a memory is found, and found linked."""
    own = {memory.id, memory.title} if memory.title is not None else {memory.id}
    return own | {link.to for link in memory.links}


def _derived(document: Document) -> tuple[object, ...]:
    topic = document.record.memory.topic
    return (
        (topic_key(topic) or None) if topic else None,
        document.title,
        document.topic,
        "\n".join(document.passages) or None,
        document.vector,
        statement_of(document.record.memory),
    )


def _claim(id_: str, path: str, parent: str | None, position: int) -> tuple[bool, str, int]:
    stem = path.rpartition("/")[2].rpartition(".")[0]
    return stem not in (id_, parent), path, position
