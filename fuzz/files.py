"""Files that mind edits for others, and files of other programs that it reads."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

from fuzz.choices import Choices
from fuzz.grammar import hostile
from fuzz.project import NOW, a_project, file, scratch
from mimo.call import Call
from mimo.call.spec import to_json
from mimo.errors import Conflict, Invalid, MindError
from mimo.extensions.exchange.lines import to_data
from mimo.extensions.team.postgres.source import _record
from mimo.extensions.web import markdown
from mimo.features.clients import edits
from mimo.features.clients.edits import Edit, Entry, Format, Hook, Needed
from mimo.features.importing import database, mama, sources
from mimo.features.importing.drafts import Item, resolved
from mimo.features.importing.formats import formats, reader, recognised
from mimo.features.search import recall
from mimo.frozen import replace
from mimo.index.schema import packed, to_number
from mimo.memory.codec.document import Unreadable
from mimo.memory.codec.file import KEYS, Parsed, normal, parse, render
from mimo.memory.codec.splice import splice
from mimo.memory.model import Kind, Link, Outcome, Problem, Section
from mimo.operations import finding, searching
from mimo.text.clean import clean
from mimo.text.tokens import excerpt, matching_words, query_terms, tokenize
from tests.mama_databases import example

PATH = ".mind/decisions/x.md"
SEPARATOR = b"\0\0"
"""Divides the bytes of a target that takes several."""
SAMPLES = Path(__file__).parents[1] / "tests" / "extensions" / "exchange" / "samples"
_FOLDER = ("0001-a.md", "0002-b.md", "c.md", "MEMORY.md", "conversations.json", "projects.json")


def _line(choices: Choices) -> str | None:
    text = hostile(choices) if choices.number(2) else choices.raw()
    return text if choices.number(4) else None


_EDITS: Mapping[str, Any] = {
    "title": _line,
    "topic": _line,
    "status": _line,
    "content": lambda choices: hostile(choices) + choices.raw(),
    "tags": lambda choices: tuple(choices.raw() for _ in range(choices.number(4))),
    "confidence": lambda choices: choices.one_of([None, 0.0, 1.0, 0.25]),
    "outcome": lambda choices: choices.one_of([None, *Outcome]),
    "links": lambda choices: tuple(
        Link(to=choices.raw(), type=choices.raw()) for _ in range(choices.number(3))
    ),
    "sections": lambda choices: {
        section: hostile(choices) for section in Section if choices.number(2)
    },
    "extra": lambda choices: {
        key: choices.json() for _ in range(choices.number(3)) if (key := choices.raw()) not in KEYS
    },
}


def edited_memory(data: bytes) -> None:
    """An edit of some fields is read back, and the lines of all other fields stay."""
    size = int.from_bytes(data[:2], "big")
    choices, written = Choices(data[2 : 2 + size % 200]), data[2 + size % 200 :]
    parsed = parse(written, path=PATH, modified=NOW)
    if isinstance(parsed, Problem):
        return
    before = parsed.memory
    names = {choices.one_of(list(_EDITS)) for _ in range(1 + choices.number(3))}
    after = replace(before, **{name: _EDITS[name](choices) for name in sorted(names)})
    with suppress(Invalid):
        changed = splice(written, before, after, path=PATH)
        again = parse(changed, path=PATH, modified=NOW)
        assert isinstance(again, Parsed)
        assert normal(again.memory) == normal(after)
        assert splice(changed, again.memory, again.memory, path=PATH) == changed
        if parsed.owned:
            _check_others(written, changed, names)


_KEY = re.compile(rb"^(?:id|type|created|importance|category|source|by|protected): \S|^# \w", re.M)


def _check_others(before: bytes, after: bytes, names: set[str]) -> None:
    """Checks that comments, and simple lines of fields that were not edited, are still there."""
    header = before.split(b"\n---", 1)[0]
    if "extra" not in names and before.startswith(b"---"):
        kept = [line for line in header.splitlines() if _KEY.match(line)]
        assert set(kept) <= set(after.splitlines())


_EDITS_OF: Mapping[Format, Sequence[Edit]] = {
    Format.JSON: (
        Needed(path=("version",), value=1),
        Entry(path=("mcpServers", "mind"), value={"command": "mind", "args": ["mcp"]}),
        Hook(path=("hooks", "Stop"), value={"hooks": [{"command": "mind hook a"}]}),
    ),
    Format.TOML: (
        Entry(path=("mcp_servers", "mind"), value={"command": "mind", "args": ["mcp"]}),
        Hook(path=("hooks", "Stop"), value={"hooks": [{"type": "a", "command": "mind hook a"}]}),
    ),
}


def client_file(data: bytes) -> None:
    """An entry is put into a file once, and taken out again; nothing else changes."""
    format = list(_EDITS_OF)[data[0] % 2] if data else Format.JSON
    ours, text = _EDITS_OF[format], data[1:].decode("utf-8", "replace")
    with suppress(Invalid, Conflict):
        before = edits.load(format, text)
        after = edits.put_in(format, text, ours)
        assert edits.put_in(format, after, ours) == after
        assert all(
            edit.is_in(text)
            if isinstance(edit, edits.Script)
            else edits.at(edits.load(format, after), edit.path) is not None
            for edit in ours
        )
        left = edits.take_out(format, after, ours, original=text)
        assert edits.take_out(format, left, ours, original=text) == left
        if isinstance(before, dict) and not any(edits.at(before, edit.path) for edit in ours):
            needed = {edit.path[0]: edit.value for edit in ours if isinstance(edit, Needed)}
            if text.strip():
                needed = {}  # What a file of the user did not have goes again.
            tops = {edit.path[0] for edit in ours}  # Null there becomes a container, which stays.
            kept = {
                key: {} if key in tops and value is None else value for key, value in before.items()
            }
            assert edits.load(format, left) == {**needed, **kept}
        for comment in re.findall(r"#[a-z ]{4,}$", text, re.M):
            assert comment in after


@cache
def _databases() -> Sequence[tuple[bytes, bool]]:
    """Returns databases of other programs, and whether each is one of MAMA."""
    paths = [(example(scratch() / "base.db"), True)]
    for name in ("claude-mem.sql", "mcp-memory-service.sql"):
        path = scratch() / f"{name}.db"
        with closing(sqlite3.connect(path)) as sql:
            sql.executescript((SAMPLES / name).read_text("utf-8"))
        paths.append((path, False))
    for path, _ in paths:
        with closing(sqlite3.connect(path)) as sql:
            sql.execute("PRAGMA journal_mode = DELETE")
    return [(path.read_bytes(), is_mama) for path, is_mama in paths]


def _check_read(items: Sequence[Item]) -> None:
    ids = [item.memory.id for item in items if item.memory]
    assert len({id.casefold() for id in ids}) == len(ids)
    for item in items:
        assert (item.memory is None) == (item.skipped is not None)
        if item.memory:
            with suppress(Invalid):  # The importer leaves out what a file can't hold.
                again = parse(render(item.memory), path=PATH, modified=NOW)
                assert isinstance(again, Parsed)
                assert again.memory == normal(item.memory)


def _read_database(path: Path, *, is_mama: bool) -> None:
    """Reads a database, which does not change it, nor leave a file beside it."""
    before, names = path.read_bytes(), sorted(entry.name for entry in path.parent.iterdir())
    try:
        if is_mama:
            snapshot = database.snapshot(path, [*mama.TABLES, mama.EDGES], wait=0.1)
            _check_read(mama.convert(snapshot.tables, now=NOW)[0])
            return
        with sources.opened(path) as source:
            for format in ("claude-mem", "mcp-memory-service"):
                with suppress(MindError):
                    drafts = list(reader(format)(source))
                    _check_read(resolved(drafts, format, {}, now=NOW).items)
    finally:
        assert path.read_bytes() == before
        assert sorted(entry.name for entry in path.parent.iterdir()) == names


def damaged_database(data: bytes) -> None:
    """A database with changed bytes or rows is read or refused."""
    choices = Choices(data)
    base, is_mama = choices.one_of(_databases())
    path = file("damaged.db", base)
    if choices.number(2):
        changed = bytearray(base)
        while choices:
            place, some = choices.number(len(changed)), choices.some(1 + choices.number(8))
            changed[place : place + len(some)] = some
        path = file("damaged.db", bytes(changed[: len(base) - choices.number(2) * 512]))
    else:
        with closing(sqlite3.connect(path)) as sql, sql:
            _change_rows(sql, choices)
    with suppress(MindError):
        _read_database(path, is_mama=is_mama)


def _change_rows(sql: sqlite3.Connection, choices: Choices) -> None:
    tables = [
        name
        for (name,) in sql.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY name"
        )
    ]
    sql.execute("PRAGMA ignore_check_constraints = 1")
    while choices:
        table = choices.one_of(tables)
        columns = [row[1] for row in sql.execute(f'PRAGMA table_info("{table}")')]
        value = _cell(choices)
        with suppress(sqlite3.Error, UnicodeEncodeError, OverflowError):
            sql.execute(
                f'UPDATE "{table}" SET "{choices.one_of(columns)}" = ? WHERE rowid % 3 = ?',
                (value, choices.number(3)),
            )


def _cell(choices: Choices) -> Any:
    match choices.number(6):
        case 0:
            return choices.raw()
        case 1:
            return choices.some(choices.number(32))
        case 2:
            return hostile(choices)
        case 3:
            return repr(choices.json()).replace("'", '"')
        case 4:
            return choices.one_of([None, 0, -1, 2**62, 1e308, 1757000000, 1757000000000])
        case _:
            return choices.number(65_536)


def imported(data: bytes) -> None:
    """Files of other tools become memories with ids of their own, or are refused.

    Separators divide the files of a folder.
    """
    for name in ("file.json", "0001-file.md", "file.txt", "file.zip"):
        path = file(name, data)
        _read_files(path)
        assert path.read_bytes() == data
    if SEPARATOR in data:
        folder = scratch() / "folder"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, part in zip(_FOLDER, data.split(SEPARATOR), strict=False):
            (folder / name).write_bytes(part)
        _read_files(folder)


def _read_files(path: Path) -> None:
    with suppress(MindError), sources.opened(path) as source:
        with suppress(MindError):
            recognised(source)
        for format in formats():
            with suppress(MindError, Unreadable):
                drafts = list(reader(format)(source))
                _check_read(resolved(drafts, format, {}, now=NOW).items)


@cache
def _searched() -> Call:
    with a_project("searched") as call:
        return Call(call.mind.reopened())


def query(data: bytes) -> None:
    """A search answers any text with memories of the project, each once, the best first."""
    text = data.decode("utf-8", "replace")[:1000]
    terms = query_terms(text)
    assert set(terms.content) <= {*terms.full, *tokenize(text)} or not terms.full
    for term in terms.full:
        assert not re.search(r"[A-Z\s]", term)
    assert all(tokenize(word) for word in matching_words(text, text) if word.isascii())
    assert len(excerpt(text, text, 80)) <= 83
    options = finding.Options(limit=3)
    hits = searching.search(_searched(), text, options, counted=False).hits
    ids = [hit.record.memory.id for hit in hits]
    assert len(set(ids)) == len(ids) <= 3
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert hits == searching.search(_searched(), text, options, counted=False).hits


def shared_row(data: bytes) -> None:
    """A row of the shared index, which others may write, becomes a memory that can be shown."""
    choices = Choices(data)

    def text() -> str:
        return hostile(choices).replace("\0", "").encode("utf-8", "replace").decode()

    def optional() -> str | None:
        return text() if choices.number(2) else None

    rest: Any = choices.json()
    if choices.number(4):
        names = ("tags", "links", "sections", "competing", "extra", "source", "by", "protected")
        rest = {name: choices.json() for name in names if choices.number(2)}
    try:
        written = json.dumps(rest) if choices.number(8) else text()
    except UnicodeEncodeError:
        return
    row = (
        text(), text(), choices.number(9), "0" * 64, False, True,
        choices.one_of([kind.value for kind in Kind]), optional(), optional(),
        to_number(NOW), choices.number(3) / 2, choices.one_of([None, 0.5, -1e308]),
        choices.one_of([None, *(outcome.value for outcome in Outcome)]), optional(),
        choices.number(9), written, packed(text()), "",
    )  # fmt: skip
    record = _record(row)
    memory = record.memory
    assert all(isinstance(part, str) for link in memory.links for part in (link.to, link.type))
    assert json.dumps(to_json(memory.heading + memory.text))
    json.dumps(to_data(memory))
    assert recall.text_of(memory, "tea")
    if memory.extra.get("source_file"):
        assert record.origin


def page_text(data: bytes) -> None:
    """Markdown becomes a tree of known elements, whose links run nothing."""
    text = data.decode("utf-8", "replace")

    def check(nodes: Sequence[Any]) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, str):
                yield node
                continue
            tag, attributes, children = node
            assert tag in markdown.TAGS
            assert attributes.keys() <= {"href", "title", "memory", "start", "align"}
            href = attributes.get("href", "https://a")
            assert re.match(r"(https?://|mailto:)", href, re.I), href
            yield from check(children)

    shown = "".join(check(markdown.tree(text)))
    assert clean(shown) == shown or "&" in text or "\\" in text
