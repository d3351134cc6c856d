"""The approvals of all projects: the database `trust.db` in $MIND_HOME, outside every repository.

A row of `approval` gives a text a state in a project, by its name (see `memory.approval`):

`approved`   mind wrote the text on this machine, or the user approved it
`reviewed`   the user approved the text, which mind did not just write; it is `approved`, too
`committed`  the user committed the text in this repository
`signed`     a commit that the user signed, in any repository, has the text
`followed`   the default branch has the text, and the user follows it
`retired`    the text was approved, and then replaced, removed or disapproved: it has no other state
             but `followed`, and counts only at commits before that, see `Vouched.standing`

`path` names the file that was approved, if it is known: each file has the states of its current
text, and what replaces that retires it. `at` is the commit at which a text was retired, or
`disapproved`; empty outside git, where it counts nowhere any more. `kept` has the last approved
bytes of the files that decide about others, the policy and the settings. `earlier` has the digests
that an earlier version approved, until `Trust` finds the files that have them. A row of `project`
has the key of a project (see `trust`), its folder, whether the user follows later changes (`on` or
`off`; NULL before the first approval), and the last answers of git (NULL outside git). `checkpoint`
lists the checkpoints that were saved on this machine, each with its branch.

The database is a decision of the user: if it is damaged or of a later version, no text is trusted,
and only `mind trust` replaces it. It has a rollback journal, so a home that can't be written can be
read, and another process or machine reads a whole state.

Versions up to 1.1 had a folder for each project in `$MIND_HOME/trust/`. Creating the database
imports them and renames `trust/` to `trust-earlier/`, so an earlier version trusts no text there.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from mimo.data import disk, files, sqlite
from mimo.data.loads import loads
from mimo.data.sqlite import Database
from mimo.errors import Command, Hint, Misread, StorageFailed
from mimo.frozen import NamedTuple
from mimo.project.location import GitAnswers
from mimo.text.clean import compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    _Ask = Callable[..., list[Any]]
    """Takes a query and its values; returns the rows."""

NAME = "trust.db"
APPROVED, REVIEWED = "approved", "reviewed"
COMMITTED, SIGNED, FOLLOWED = "committed", "signed", "followed"
RETIRED = "retired"
DISAPPROVED = "disapproved"
"""In place of the commit at which a text was retired, if the user withdrew its approval."""
OWN_STATES = (APPROVED, COMMITTED, SIGNED)
"""The states of the user's own texts, which count for themselves."""
_EARLIER = "trust"
"""The folder of versions up to 1.1."""
_IMPORTING, _IMPORTED = "trust-importing", "trust-earlier"
"""Its names while it is imported, and from then on."""
_PROJECT_TABLE = """CREATE TABLE project (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, folder TEXT NOT NULL,
    follow TEXT, answers TEXT, version INTEGER NOT NULL
);
"""
_CHECKPOINT_TABLE = """CREATE TABLE checkpoint (
    project INTEGER NOT NULL, id TEXT NOT NULL, branch TEXT, PRIMARY KEY (project, id)
) WITHOUT ROWID"""
_NEW_TABLES = """CREATE TABLE approval (
    project INTEGER NOT NULL, digest BLOB NOT NULL, state TEXT NOT NULL,
    path BLOB NOT NULL, at TEXT NOT NULL, since INTEGER,
    PRIMARY KEY (project, digest, state, path)
) WITHOUT ROWID;
CREATE INDEX approval_path ON approval (project, path);
CREATE TABLE kept (
    project INTEGER NOT NULL, path TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (project, path)
) WITHOUT ROWID;
CREATE TABLE earlier (
    project INTEGER NOT NULL, digest BLOB NOT NULL, state TEXT NOT NULL,
    PRIMARY KEY (project, digest, state)
) WITHOUT ROWID"""
_SCHEMA = f"{_PROJECT_TABLE}{_CHECKPOINT_TABLE};\n{_NEW_TABLES}"
_FIRST_SCHEMA = f"""{_PROJECT_TABLE}CREATE TABLE approval (
    project INTEGER NOT NULL, digest BLOB NOT NULL, state TEXT NOT NULL,
    path BLOB NOT NULL, kind TEXT NOT NULL, since INTEGER,
    PRIMARY KEY (project, digest, state, path, kind)
) WITHOUT ROWID;
{_CHECKPOINT_TABLE}"""
_PROJECT = (
    "SELECT id, follow, answers, version, EXISTS (SELECT 1 FROM earlier WHERE project = id),"
    f" (SELECT data FROM kept WHERE project = id AND path = '{files.POLICY}'),"
    f" (SELECT data FROM kept WHERE project = id AND path = '{files.SETTINGS}')"
    " FROM project WHERE key = ?"
)
_TEXTS = "SELECT DISTINCT digest FROM approval WHERE project = ? AND instr(?, state)"
"""The texts that have one of some states. No state is a part of another one."""
_STATES = "SELECT digest, group_concat(state) FROM approval WHERE project = ?"
_ADD = "INSERT OR IGNORE INTO approval VALUES (?, ?, ?, ?, '', ?)"
_IS_OWN = "state IN ('approved', 'reviewed', 'committed', 'signed')"
_RETIRE = (
    "INSERT OR REPLACE INTO approval SELECT ?1, ?2, 'retired', ?3, ?4, ?5 WHERE NOT EXISTS"
    f" (SELECT 1 FROM approval WHERE project = ?1 AND digest = ?2 AND {_IS_OWN})"
)
"""Retires a text, unless another file has it."""
_DIGEST = "(?:[0-9a-f]{2})+"
_PAGES_A_LOOKUP = 3
"""So many pages of the database are read in the time of one lookup."""
_FEW_LOOKUPS = 50
"""So many are made before the pages are counted."""
_MANY = 500
"""The number of texts from which all are read."""
NO_PATHS: Mapping[str, str] = {}
_NAMES_LIST = f"{'0' * 24}{b'list'.hex()}"
"""The start of the first line of `approved` if it names a sorted list by 32 random digits."""
_MOST_BYTES = 1_000_000_000


class Damaged(StorageFailed):
    """The database contradicts itself or is not the user's own, so no text is trusted."""


class ApprovalDatabase(Database):
    """The approvals of all projects of a home; threads and processes can use it at once."""

    consequence = ", so no text is trusted"

    def __init__(self, home: Path) -> None:
        """Takes $MIND_HOME; nothing is opened yet."""
        super().__init__(home / NAME, _SCHEMA, 2, damage_error=Damaged)
        self._earlier, self._importing = home / _EARLIER, home / _IMPORTING

    @property
    def hint(self) -> str:
        """The next step after damage."""
        return Hint("run ", Command("trust"), " to approve again")

    def ask(self, query: str, *values: object) -> list[Any]:
        """Returns the rows that a query selects. Raises `StorageFailed`."""
        with self._used():  # A statement alone is a transaction.
            sql = self._connection()
            return sql.execute(query, values).fetchall() if sql else []

    def approvals(self, key: str, previous: Approvals) -> Approvals:
        """Returns the approvals of a project: `previous` itself if they have not changed since.

        Raises `StorageFailed`.
        """
        with self.reading() as sql:
            seen: tuple[int, ...] = ()
            if sql:
                (number,) = sql.execute("PRAGMA data_version").fetchone()
                seen = (self.openings, number, sql.total_changes)
            if previous.key != key or previous.seen != seen or previous.failure:
                row = ()
                if sql:
                    self.check_schema(sql)  # It may have changed while it was open.
                    row = sql.execute(_PROJECT, (key,)).fetchone() or ()
                if previous.key != key or previous.row != row or previous.failure:
                    previous = Approvals(key, row, self.ask)
                previous.seen = seen
            return previous

    @contextmanager
    def changing(self, key: str, *, durable: bool = True) -> Iterator[Change]:
        """Gives a change of a project, which is committed if the block succeeds.

        Unless it is `durable`, a loss of power may undo it. Raises `StorageFailed`.
        """
        with self.writing(durable=durable) as sql:
            old_total, change = sql.total_changes, Change(sql, key)
            yield change
            if sql.total_changes != old_total:
                change.set(version=int.from_bytes(os.urandom(7)))

    def unstored(self, previous: Approvals, change: Callable[[Change], object]) -> Approvals:
        """Returns approvals after a change in memory only. Raises `StorageFailed`.

        They apply until another process changes those on the disk.
        """
        copy = sqlite.connect(None)
        with self.reading() as sql:
            if sql is None:
                return previous
            sql.backup(copy)
        change(Change(copy, previous.key))

        def ask(query: str, *values: object) -> list[Any]:
            return copy.execute(query, values).fetchall()

        changed = Approvals(previous.key, ask(_PROJECT, previous.key)[0], ask)
        changed.row, changed.seen = previous.row, previous.seen
        return changed

    def check(self) -> None:
        """Reads the whole database. Raises `StorageFailed`, and `Damaged` if it is damaged."""
        with self.reading() as sql:
            if sql and (answer := sql.execute("PRAGMA quick_check(1)").fetchone()) != ("ok",):
                raise Misread(*answer)

    def set_aside(self) -> Path:
        """Renames the database, so that the next approval begins an empty one.

        Returns the new path. Raises `StorageFailed`.
        """
        self.close()
        for suffix in ("-journal", ""):
            path = self.path.with_name(f"{NAME}{suffix}")
            if os.path.lexists(path):
                files.rename(path, path.with_name(f"{path.name}.damaged"))
        return self.path.with_name(f"{NAME}.damaged")

    # The approvals of earlier versions.

    def upgrade(self, connection: sqlite.Connection, statements: Sequence[tuple[str]]) -> None:
        """Replaces the tables of the first version, which named a text by its bytes alone."""
        if list(statements) != list(zip(_FIRST_SCHEMA.split(";\n"))):
            raise Misread("mind did not create it")
        rows = connection.execute("SELECT DISTINCT project, digest, state FROM approval").fetchall()
        connection.execute("DROP TABLE approval")
        for statement in _NEW_TABLES.split(";\n"):
            connection.execute(statement)
        connection.executemany("INSERT INTO earlier VALUES (?, ?, ?)", rows)

    def is_expected(self) -> bool:
        """Returns whether there are approvals of an earlier version."""
        return self._earlier.is_dir() or self._importing.is_dir()

    def fill(self, connection: sqlite.Connection) -> None:
        """Imports the approvals of an earlier version."""
        with files.reported("read", self._earlier):
            if self._earlier.is_dir() and not self._importing.is_dir():
                self._earlier.rename(self._importing)
            _import_all(self._importing, lambda key: Change(connection, key))

    def _create(self, connection: sqlite.Connection) -> None:
        super()._create(connection)
        with suppress(OSError):
            self._importing.rename(self._importing.with_name(_IMPORTED))


class TrustState(NamedTuple):
    """The state of the approvals of a project."""

    follow: bool = False
    """True if the user follows later changes, except those of procedures."""
    approved: bool = False
    """True if any text is approved."""
    in_git: bool = False
    """True if the project is in a git repository."""
    branch: str | None = None
    """The full name of the followed branch."""
    stopped: str | None = None
    """The reason why changes are not followed although the user chose to."""
    problem: str | None = None
    """The reason why no text is trusted although some were approved."""


class Retired(NamedTuple):
    """A text that was approved at earlier commits."""

    digest: str
    path: str
    at: str
    """The commit from which on it does not count."""
    since: int
    """The time of that, in seconds since 1970."""


class Approvals:
    """The approvals of one project, as of the last of its changes that was read."""

    def __init__(self, key: str, row: tuple[Any, ...] = (), ask: _Ask = lambda *_: []) -> None:
        """Takes the key, the row of the project, and a function that returns rows of a query.

        Raises `Misread` if mind did not write the row.
        """
        self.key, self.row, self._ask = key, row, ask
        row = row or (0, None, None, 0, False, None, None)
        self.id, follow, answers, _, self.has_earlier, *latest = row
        if follow not in (None, "on", "off"):
            raise Misread(f"the row of a project has `{follow}`")
        self.seen: tuple[int, ...] = ()
        """The version of the database that was read last."""
        self.has_begun = follow is not None
        """True from the first approval on, until the user ends all of them."""
        self.is_outside_git = self.has_begun and answers is None
        self.follow = follow == "on"
        self.answers = None if answers is None else _parsed(answers)
        """The last answers of git; None outside git."""
        pairs = zip(files.DECISIVE, latest, strict=True)
        self.latest_texts: Mapping[str, bytes | None] = dict(pairs)
        """The last approved bytes of the files that decide about others."""
        self.failure: StorageFailed | None = None
        """The error of an earlier lookup, after which no text is trusted."""
        self._lookups, self._most = 0, _FEW_LOOKUPS
        self._states: dict[str, tuple[str, ...]] = {}
        self._texts: dict[str, set[bytes]] = {}

    def look_up(self, digests: Iterable[str]) -> None:
        """Reads the states of texts at once, unless it is faster to read all, as `has` then does.

        Raises `StorageFailed`.
        """
        names = {*filter(compiled(_DIGEST).fullmatch, {*digests} - self._states.keys())}
        if not names or self._lookups >= self._most:
            return
        self._lookups += 1
        if self._lookups == _FEW_LOOKUPS:
            for (pages,) in self._ask("PRAGMA page_count"):
                self._most = max(self._most, pages // _PAGES_A_LOOKUP)
        if len(names) > _MANY:
            self._most = 0
            return
        which = f"AND digest IN ({', '.join('?' * len(names))}) GROUP BY digest"
        rows = self._ask(f"{_STATES} {which}", self.id, *map(bytes.fromhex, names))
        read = {name.hex(): tuple(states.split(",")) for name, states in rows}
        self._states |= dict.fromkeys(names, ()) | read  # At once, for other threads.

    def has(self, digest: str, states: str) -> bool:
        """Returns whether a text has one of some states, in a list with commas.

        Raises `StorageFailed`.
        """
        if digest not in self._states and states not in self._texts:
            self.look_up([digest])
        if digest in self._states:
            return any(state in states for state in self._states[digest])
        if not compiled(_DIGEST).fullmatch(digest):
            return False
        if states not in self._texts:
            self._texts[states] = {name for (name,) in self._ask(_TEXTS, self.id, states)}
        return bytes.fromhex(digest) in self._texts[states]

    def digests(self, states: Collection[str], limit: int = -1) -> frozenset[str]:
        """Returns the digests of the texts that have one of these states, at most `limit`.

        Raises `StorageFailed`.
        """
        rows = self._ask(f"{_TEXTS} LIMIT ?", self.id, ",".join(states), limit)
        return frozenset(name.hex() for (name,) in rows)

    @cached_property
    def reviewed(self) -> frozenset[str]:
        """The digests of the texts that the user approved. Raises `StorageFailed`."""
        return self.digests((REVIEWED,))

    def was_replaced(self, digest: str) -> bool:
        """Returns whether a text was replaced or removed, not disapproved."""
        query = "SELECT 1 FROM approval WHERE project = ? AND digest = ? AND state = 'retired'"
        rows = self._ask(f"{query} AND at <> ?", self.id, bytes.fromhex(digest), DISAPPROVED)
        return bool(rows)

    def retired(self) -> list[Retired]:
        """Returns the texts that count at earlier commits only. Raises `StorageFailed`."""
        query = "SELECT lower(hex(digest)), path, at, since FROM approval WHERE project = ?"
        rows = self._ask(f"{query} AND length(at) >= 40", self.id)
        return [Retired(name, os.fsdecode(path), *more) for name, path, *more in rows]

    def own_texts(self) -> list[tuple[str, str]]:
        """Returns the approved texts with their files, without claims. Raises `StorageFailed`."""
        query = "SELECT DISTINCT lower(hex(digest)), path FROM approval WHERE project = ?"
        rows = self._ask(f"{query} AND path <> x'' AND {_IS_OWN}", self.id)
        return [(name, os.fsdecode(path)) for name, path in rows]

    def of_files(self, paths: Iterable[str]) -> dict[str, set[str]]:
        """Returns the names of the approved texts of each file. Raises `StorageFailed`."""
        query = f"SELECT digest FROM approval WHERE project = ? AND path = ? AND {_IS_OWN}"
        return {
            path: {name.hex() for (name,) in self._ask(query, self.id, os.fsencode(path))}
            for path in paths
        }

    @cached_property
    def earlier(self) -> dict[str, list[str]]:
        """The states of the digests that an earlier version approved. Raises `StorageFailed`."""
        states: dict[str, list[str]] = {}
        query = "SELECT lower(hex(digest)), state FROM earlier WHERE project = ?"
        for digest, state in self._ask(query, self.id):
            states.setdefault(digest, []).append(state)
        return states

    def checkpoints(self) -> dict[str, str | None]:
        """Returns the branch of each checkpoint that was saved here. Raises `StorageFailed`."""
        return dict(self._ask("SELECT id, branch FROM checkpoint WHERE project = ?", self.id))


class Change:
    """A change of the approvals of one project, within a transaction."""

    def __init__(self, sql: sqlite3.Connection, key: str) -> None:
        """Takes a connection in a transaction, and the key of a project, perhaps a new one."""
        self._sql = sql
        sql.execute("INSERT OR IGNORE INTO project VALUES (NULL, ?, '', NULL, NULL, 0)", (key,))
        self.before = Approvals(key, sql.execute(_PROJECT, (key,)).fetchone())
        """The approvals when the change began, without the texts."""
        self._id = self.before.id

    def set_answers(self, answers: GitAnswers) -> None:
        """Stores the last answers of git."""
        self.set(answers=json.dumps(answers._asdict()))

    def set(self, **columns: object) -> None:
        """Changes columns of the project; a key replaces a project without approvals."""
        names = ", ".join(f"{name} = ?" for name in columns)
        query = f"UPDATE OR REPLACE project SET {names} WHERE id = ?"
        self._sql.execute(query, (*columns.values(), self._id))

    def add(self, state: str, digests: Iterable[str], paths: Mapping[str, str] = NO_PATHS) -> int:
        """Gives texts a state, and returns the number of those that did not have it.

        `paths` has the files of texts, relative to the project, as far as they are known. A text
        that was retired is so no longer; but no commit approves what the user disapproved, and no
        earlier signature what was retired since.
        """
        now, named = int(time.time()), dict.fromkeys(digests)
        if state in (COMMITTED, SIGNED):
            query = "SELECT 1 FROM approval WHERE project = ? AND digest = ? AND state = 'retired'"
            query += " AND at = ?" if state == COMMITTED else " AND at IS NOT ?"
            end = DISAPPROVED if state == COMMITTED else None
            ended_names = [
                name
                for name in named
                if self._sql.execute(query, (self._id, bytes.fromhex(name), end)).fetchone()
            ]
            named = {name: None for name in named if name not in ended_names}
        query = "SELECT 1 FROM approval WHERE project = ? AND digest = ? AND state = ?"
        rows = [(self._id, bytes.fromhex(name), state) for name in named]
        existing = sum(self._sql.execute(query, row).fetchone() is not None for row in rows)
        places = [(os.fsencode(paths.get(name, "")), now) for name in named]
        self._sql.executemany(_ADD, map(tuple.__add__, rows, places))
        if state in OWN_STATES:
            query = "DELETE FROM approval WHERE project = ? AND digest = ? AND state = 'retired'"
            self._sql.executemany(query, [row[:2] for row in rows])
        return len(rows) - existing

    def remove(self, states: Collection[str], digests: Iterable[str]) -> int:
        """Ends states of texts, and returns the number of the texts that had one."""
        query = "DELETE FROM approval WHERE project = ? AND digest = ? AND instr(?, state)"
        names = ",".join(states)
        values = ((self._id, bytes.fromhex(digest), names) for digest in digests)
        return sum(self._sql.execute(query, row).rowcount > 0 for row in values)

    def retire(
        self,
        digests: Iterable[str],
        path: str | None = None,
        at: str = "",
        holds: Callable[[str, str], bool] = lambda *_: False,
    ) -> int:
        """Retires texts from a commit on, or everywhere; returns the number of the approved ones.

        With `path`, as the text of that file: one that another file `holds`, too, by its path and
        name, stays approved there.
        """
        condition, now = f"project = ? AND digest = ? AND {_IS_OWN}", int(time.time())
        retired = 0
        for digest in digests:
            name = bytes.fromhex(digest)
            query = f"SELECT DISTINCT path FROM approval WHERE {condition}"
            places = [os.fsdecode(row[0]) for row in self._sql.execute(query, (self._id, name))]
            elsewhere = [p for p in places if path not in (None, p) and holds(p, digest)]
            for place in places if path is None else {path, *places} - set(elsewhere):
                values = (self._id, name, os.fsencode(place))
                self._sql.execute(f"DELETE FROM approval WHERE {condition} AND path = ?", values)
            if places and not elsewhere:
                places = places if path is None else [path]
                rows = [(self._id, name, os.fsencode(place), at, now) for place in places]
                self._sql.executemany(_RETIRE, rows)
            retired += bool(places)
            # The commit that has what a command did follows the one at which it did that.
            if at == DISAPPROVED or (at and not places):
                query = (
                    "UPDATE approval SET at = ?1 WHERE project = ?2 AND digest = ?3 AND at <> ?4"
                )
                self._sql.execute(query, (at, self._id, name, DISAPPROVED))
        return retired

    def keep(self, path: str, data: bytes | None) -> None:
        """Keeps the last approved bytes of a file; None for a file that may be missing."""
        self._sql.execute("DELETE FROM kept WHERE project = ? AND path = ?", (self._id, path))
        if data is not None:
            self._sql.execute("INSERT INTO kept VALUES (?, ?, ?)", (self._id, path, data))

    def digests(self, state: str) -> frozenset[str]:
        """Returns the digests of the texts with a state."""
        rows = self._sql.execute(_TEXTS, (self._id, state))
        return frozenset(name.hex() for (name,) in rows)

    def replace(self, state: str, digests: Set[str]) -> None:
        """Gives a state to these texts, and to no others."""
        old_digests = self.digests(state)
        self.remove((state,), old_digests - digests)
        self.add(state, digests - old_digests)

    def forget(self) -> None:
        """Ends all approvals; the checkpoints that were saved here stay."""
        self._sql.execute("DELETE FROM approval WHERE project = ?", (self._id,))
        self._sql.execute("DELETE FROM kept WHERE project = ?", (self._id,))
        self._sql.execute("DELETE FROM earlier WHERE project = ?", (self._id,))
        self.set(follow=None, answers=None)

    def add_earlier(self, state: str, digests: Iterable[str]) -> None:
        """Adds digests that an earlier version gave a state."""
        rows = ((self._id, bytes.fromhex(digest), state) for digest in digests)
        self._sql.executemany("INSERT OR IGNORE INTO earlier VALUES (?, ?, ?)", rows)

    def forget_earlier(self) -> None:
        """Ends the approvals of an earlier version, whose texts were named or are missing."""
        self._sql.execute("DELETE FROM earlier WHERE project = ?", (self._id,))
        if answers := self.before.answers:  # What git vouches for is named again.
            self.set_answers(answers._replace(tip=None, signed=None, stamps={}))

    def add_checkpoints(self, ids: Iterable[str], branch: str | None) -> None:
        """Adds checkpoints that were saved here, with their branch, if it is known."""
        rows = ((self._id, id, branch) for id in ids)
        self._sql.executemany("INSERT OR REPLACE INTO checkpoint VALUES (?, ?, ?)", rows)

    def forget_id(self, id: str) -> None:
        """Removes the id of a memory from the checkpoints, and from the paths of texts."""
        self._sql.execute("DELETE FROM checkpoint WHERE project = ? AND id = ?", (self._id, id))
        query = (
            "UPDATE OR REPLACE approval SET path = x'' WHERE project = ? AND substr(path, ?) = ?"
        )
        end = os.fsencode(f"/{id}.md")
        self._sql.execute(query, (self._id, -len(end), end))


def _is_no_map(value: object) -> bool:
    return not isinstance(value, dict)


def _parsed(answers: str) -> GitAnswers:
    """Returns answers of git. Raises `Misread` if mind did not write them."""
    try:
        plain = loads(answers).items()
        lists = {name: tuple(value) for name, value in plain if isinstance(value, list)}
        parsed = GitAnswers(**{**dict(plain), **lists})
        texts = (*parsed.dropped, *parsed.rebasing, *parsed.only, *parsed.watched)
        maps = (parsed.stamps, parsed.positions, parsed.standing)
    except (ValueError, TypeError, AttributeError) as error:
        raise Misread(f"the row of a project has other answers: {error}") from None
    if not all(isinstance(text, str) for text in texts) or any(map(_is_no_map, maps)):
        raise Misread("the row of a project has other answers")
    return parsed


# The approvals of earlier versions, which named a text by its bytes alone: lists of digests up to
# 1.1, then a table of them. `$MIND_HOME/trust/` had a folder for each project, named by its key:
#
# `approved`   digests of approved texts, one on each line; an interrupted write left a torn line
# `approved-…` the earlier ones, sorted, if the first line of `approved` names this file
# `reviewed`, `committed`, `signed`, `followed`   the digests of the texts with these states
# `state.json` whether later changes are followed; missing if the user ended all approvals
# `git.json`   the last answers of git
# `made`       the checkpoints that were saved here, each with its branch


def _import_all(folder: Path, change_of: Callable[[str], Change]) -> None:
    """Adds the approvals of each project to the change of its key.

    Those of damaged lists are left out. Raises `OSError` if a file can't be read.
    """
    for path in sorted(folder.glob("[0-9a-f]" * 64)):
        change = change_of(path.name)
        for line in (_content(path / "made") or b"").decode("utf-8", "replace").split("\n")[:-1]:
            id, tab, branch = line.partition("\t")
            change.add_checkpoints([id] if tab else (), branch or None)
        with suppress(ValueError, TypeError, KeyError):  # Its texts are in the review again.
            _import_texts(path, change)


def _import_texts(folder: Path, change: Change) -> None:
    """Adds the texts of a project. Raises `ValueError`, `TypeError` and `KeyError`, with none."""
    if (data := _content(folder / "state.json")) is None:
        return
    state, answers = loads(data), _content(folder / "git.json")
    follow, in_git = state["follow"], state["git"]
    if not isinstance(follow, bool) or state.get("format", 1) != 1:
        raise ValueError(folder)
    if in_git and answers is None:  # Every commit would count as new.
        raise ValueError(folder)
    seen = _parsed(answers.decode()) if in_git and answers else None
    texts = {name: _lines(folder / name) for name in ("committed", "signed", "followed")}
    approved, reviewed = _lines(folder / "approved"), _lines(folder / "reviewed")
    for name in [line for line in approved if line.startswith(_NAMES_LIST)]:
        approved.remove(name)
        approved |= _lines(folder / f"approved-{name.removeprefix(_NAMES_LIST)}", is_optional=False)
    texts |= {"approved": approved, "reviewed": reviewed & approved}
    change.set(follow="on" if follow else "off", folder=str(state["path"]))
    if seen is not None:
        change.set_answers(seen)
    for name, digests in texts.items():
        change.add_earlier(name, digests)


def _lines(path: Path, *, is_optional: bool = True) -> set[str]:
    """Returns the digests in a list. Raises `ValueError` if a whole line is not a digest."""
    data = _content(path)
    if data is None and not is_optional:
        raise ValueError(path)
    lines = (data or b"").decode("ascii").split("\n")[:-1]
    if not all(map(compiled("[0-9a-f]{64}").fullmatch, lines)):
        raise ValueError(path)
    return set(lines)


def _content(path: Path) -> bytes | None:
    """Returns the content of a file; None if it is missing. Raises `OSError`."""
    try:
        return disk.read(path, limit=_MOST_BYTES)
    except FileNotFoundError:
        return None


def names_of(
    earlier: Mapping[str, Iterable[str]], texts: Iterable[tuple[str, bytes]]
) -> dict[str, dict[str, str]]:
    """Returns the paths of the texts that an earlier version approved, by state and name.

    Takes the states of digests, and the path and bytes of each file. Claims to supersede a memory
    have the path of none.
    """
    from mimo.memory.approval import claim
    from mimo.memory.model import SUPERSEDES, Problem
    from mimo.project.memories import approvals_of, records_of

    named: dict[str, dict[str, str]] = {}
    for path, data in texts:
        digest, place = files.digest(data), f"{disk.STORE}/procedures/"
        place = place if path.startswith(place) else path
        if place != path or path == files.POLICY:
            digest = disk.blake2b(place.encode(), data, size=32).hex()
        # Settings were not approved then: those of a project with approvals were in effect.
        for state in [APPROVED] if path == files.SETTINGS else earlier.get(digest, ()):
            named.setdefault(state, {}).update(dict.fromkeys(approvals_of(path, data), path))
        records = records_of(data, path, disk.moment(0)) if path.endswith(".md") else ()
        for record in () if isinstance(records, Problem) else records:
            source = record.memory.id
            for target in (link.to for link in record.memory.links if link.type == SUPERSEDES):
                digest = disk.sha256(f"\0supersedes\0{source}\0{target}".encode()).hex()
                if APPROVED in earlier.get(digest, ()):
                    named.setdefault(APPROVED, {})[claim(source, target)] = ""
    return named
