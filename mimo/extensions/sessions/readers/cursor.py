"""Sessions of Cursor: transcripts and databases of the command line, and the editor's database.

A session may be in all three; the transcript has the most, then `store.db`. Only the editor's
database has a time for each message, and not for all. So the others have the session's.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from mimo.api import replace
from mimo.extensions.sessions.model import Facts, Kind, Part, Progress, Source
from mimo.extensions.sessions.readers.lines import (
    LARGEST_FILE,
    LONGEST_LINE,
    blocks_of,
    files_in,
    inner,
    items,
    mapping,
    moment,
    opened,
    plain_id,
    records,
    small,
    source_of,
    text,
)
from mimo.extensions.sessions.readers.parts import Parts
from mimo.extensions.sessions.readers.places import opened_database, settings_folders

_STATE = "state.vscdb"
_EDITORS = re.compile(
    r"(?:multi)?_?(?:str_?replace|edit(?:_?file|_?notebook)?|search_?replace|write|apply_?patch"
    r"|delete(?:_?file)?)(?:_v\d)?",
    re.IGNORECASE,
)
_PATHS = ("path", "file_path", "target_file", "target_notebook", "relativeWorkspacePath")
_FAILED = re.compile(r"\s*(?:Exit code: [1-9]|Error\b)")
_SPEAKER = re.compile(r"(user|assistant):\s*")
_LABEL = re.compile(r"\[(Tool call|Tool result|Thinking)\]\s*(.*)")
_WORKSPACE = re.compile(r"Workspace Path: (/.{1,4096})")

_COMPOSERS = """
SELECT substr(key, 14), length(value),
    CASE WHEN json_valid(value) THEN coalesce(
        json_extract(value, '$.lastUpdatedAt'), json_extract(value, '$.createdAt')) END
FROM cursorDiskKV WHERE key > 'composerData:' AND key < 'composerData;' AND value IS NOT NULL
LIMIT 100000
"""
_VALUE = f"""
SELECT CASE WHEN length(value) <= {LONGEST_LINE} THEN value END FROM cursorDiskKV WHERE key = ?
"""
_LISTED = "SELECT value FROM ItemTable WHERE key = 'composer.composerData'"
_BLOBS = f"SELECT CASE WHEN length(data) <= {LONGEST_LINE} THEN data END FROM blobs ORDER BY rowid"


class Cursor:
    """Reads the sessions of Cursor's command line and editor."""

    client = "cursor"

    def __init__(self) -> None:
        """Knows no folder of a workspace yet."""
        self._folders: dict[Path, Mapping[str, str]] = {}

    def sources(self, environment: Mapping[str, str], home: Path) -> Iterator[Source]:
        """Yields each session once, in its best form; an unreadable database as a whole."""
        folder = Path(environment.get("CURSOR_CONFIG_DIR") or home / ".cursor")
        places = settings_folders(environment, home)
        roots = (folder, places[0] / "cursor")
        seen: set[str] = set()
        for source in (
            *(each for root in roots for each in _transcripts(root)),
            *(each for root in roots for each in _stores(root)),
            *(each for base in places for each in _composers(base / "Cursor")),
        ):
            if (id := source.key or _id_of(source.path)) not in seen:
                seen.add(id)
                yield source

    def read(self, source: Source, since: Progress) -> Iterator[Part]:
        """Yields the parts of a session, from its start."""
        path = source.path
        if path.name == _STATE:
            with opened_database(path) as sql:
                for part in _read_composer(sql, source):
                    yield self._in_workspace(part, path)
            return
        about = _about(path)
        facts = Facts(client=self.client, native_id=_id_of(path), title=text(about, "title"))
        parts = Parts(facts)
        created, updated = moment(about.get("createdAtMs")), moment(source.mtime_ns / 1e9)
        if path.name == "store.db":
            with opened_database(path) as sql:
                created = _read_store(sql, parts) or created
        elif path.suffix == ".txt":
            _read_text(source, parts)
        else:
            if path.parent.name == "subagents":
                parts.correct(kind=Kind.SUBAGENT, parent=path.parents[1].name)
            with opened(path, source.inode) as file:
                for record, _ in records(file):
                    _take(record, parts)
                    for part in parts.full():
                        yield _dated(_placed(part, path), created, updated)
        yield _dated(_placed(parts.rest(), path), created, updated)

    def _in_workspace(self, part: Part, path: Path) -> Part:
        """Returns a part with the folder of the workspace that lists its session."""
        if part.facts.cwd:
            return part
        storage = path.parents[1] / "workspaceStorage"
        if storage not in self._folders:
            self._folders[storage] = dict(_workspaces(storage))
        cwd = self._folders[storage].get(part.facts.native_id, "")
        return part._replace(facts=replace(part.facts, cwd=cwd))


def _workspaces(storage: Path) -> Iterator[tuple[str, str]]:
    """Yields the sessions of the editor's workspaces of one folder, each with that folder."""
    for file in files_in(storage, "*/workspace.json"):
        uri = urlsplit(text(mapping(small(file.path)), "folder"))
        folder = re.sub(r"^/(?=[A-Za-z]:)", "", unquote(uri.path))
        if uri.scheme != "file" or uri.netloc or not folder:
            continue
        with suppress(OSError, sqlite3.Error), opened_database(file.path.with_name(_STATE)) as sql:
            (value,) = sql.execute(_LISTED).fetchone() or (None,)
            for composer in items(mapping(value), "allComposers"):
                yield text(composer, "composerId"), folder


def _transcripts(root: Path) -> Iterator[Source]:
    folder = root / "projects"
    yield from files_in(
        folder,
        *(f"*/agent-transcripts/{each}" for each in ("*/*.jsonl", "*/subagents/*.jsonl")),
        *(f"*/agent-transcripts/{each}" for each in ("*.jsonl", "*.txt")),
    )


def _stores(root: Path) -> Iterator[Source]:
    for source in files_in(root / "chats", "*/*/store.db"):
        log = source_of(source.path.with_name("store.db-wal"))
        size, mtime_ns = (log.size, log.mtime_ns) if log else (0, 0)
        yield source._replace(size=source.size + size, mtime_ns=max(source.mtime_ns, mtime_ns))


def _composers(folder: Path) -> Iterator[Source]:
    """Yields the sessions of an editor's database, or the database if it can't be read."""
    path = folder / "User" / "globalStorage" / _STATE
    if database := source_of(path):
        try:
            with opened_database(path) as sql:
                rows = sql.execute(_COMPOSERS).fetchall()
        except (OSError, sqlite3.Error):
            yield database
            return
        for id, size, updated in rows:
            if plain_id(id):
                time = moment(updated)
                mtime_ns = int(time.timestamp() * 1e9) if time else database.mtime_ns
                yield Source(path, id, size, mtime_ns)


def _id_of(path: Path) -> str:
    return plain_id(path.parent.name if path.name == "store.db" else path.stem)


def _about(path: Path) -> Mapping[str, Any]:
    """Returns the title and time that the client notes beside a store, also of a transcript."""
    folder, pattern = path.parent, "meta.json"
    if path.name != "store.db":
        root = next((each.parent for each in path.parents if each.name == "projects"), folder)
        folder, pattern = root / "chats", f"*/{_id_of(path) or '-'}/meta.json"
    notes = (mapping(small(file.path)) for file in files_in(folder, pattern))
    return next(filter(None, notes), {})


def _dated(part: Part, created: datetime | None, updated: datetime | None) -> Part:
    """Returns a part whose ends have the times of the session where they have none."""
    turns = list(part.turns)
    if turns:
        turns[-1] = replace(turns[-1], at=turns[-1].at or updated)
    if turns and part.replaces:
        turns[0] = replace(turns[0], at=turns[0].at if len(turns) == 1 else created or updated)
    return part._replace(turns=turns)


def _placed(part: Part, path: Path) -> Part:
    """Returns a part with the folder of its session: the one of edited files that fits its name."""
    if part.facts.cwd or "agent-transcripts" not in path.parts:
        return part
    name = path.parts[path.parts.index("agent-transcripts") - 1]
    folders = (each for turn in part.turns for file in turn.files for each in _above(file))
    cwd = next((folder for folder in folders if _named(folder) == name), "")
    return part._replace(facts=replace(part.facts, cwd=cwd or _existing("/", name)))


def _above(file: str) -> Iterator[str]:
    if file.startswith("/") and len(file) <= 4096:
        yield from map(str, PurePosixPath(file).parents)


def _named(folder: str) -> str:
    """Returns the name that Cursor gives to the folder of a project's files."""
    return re.sub(r"[^A-Za-z0-9]+", "-", folder).strip("-")


def _existing(folder: str, name: str, depth: int = 12) -> str:
    """Returns the existing folder below one that has a name of Cursor's; empty if none has."""
    if _named(folder) == name:
        return folder
    start = f"{_named(folder)}-".lstrip("-")
    if depth and name.startswith(start):
        try:
            inside = sorted(Path(folder).iterdir())
        except OSError:
            return ""
        for each in inside:
            below = _named(str(each))
            is_above = name == below or (below != start[:-1] and name.startswith(f"{below}-"))
            if is_above and each.is_dir() and (match := _existing(str(each), name, depth - 1)):
                return match
    return ""


# Transcripts, and messages in blobs.


def _take(record: Mapping[str, Any] | None, parts: Parts) -> None:
    """Adds the words and calls of a message, and counts it."""
    parts.records += 1
    message = inner(record, "message") or record
    blocks = blocks_of(inner(message).get("content"))
    role = text(record, "role")
    if role == "user":
        _add_user(blocks, parts)
    elif role == "assistant":
        _add_agent(blocks, parts)
    elif role == "tool":
        _add_results(blocks, parts)
    elif role != "system":
        parts.unknown += 1


def _add_user(blocks: Sequence[Any], parts: Parts) -> None:
    texts = [text(block, "text") for block in blocks if text(block, "type") == "text"]
    for each in texts:
        if folder := _WORKSPACE.search(each[:10_000]):
            parts.learn(cwd=folder[1].strip())
    parts.say(texts, None, is_typed=parts.facts.kind is Kind.MAIN)


def _add_agent(blocks: Sequence[Any], parts: Parts) -> None:
    for block in blocks:
        kind = text(block, "type")
        if kind == "text":
            parts.answer(text(block, "text"), None)
        elif kind in ("tool_use", "tool-call"):
            name = text(block, "name") or text(block, "toolName")
            arguments = inner(block, "input") or inner(block, "args")
            _add_call(name, arguments, parts, id=text(block, "id") or text(block, "toolCallId"))


def _add_results(blocks: Sequence[Any], parts: Parts) -> None:
    for block in blocks:
        result = text(block, "result")
        is_error = isinstance(block, dict) and block.get("isError") is True
        if is_error or _FAILED.match(result):
            parts.fail(text(block, "toolCallId"), result)


def _add_call(
    name: str,
    arguments: Mapping[str, Any],
    parts: Parts,
    at: datetime | None = None,
    native_id: str = "",
    *,
    id: str = "",
) -> None:
    paths = [text(arguments, key) for key in _PATHS if text(arguments, key)]
    edited = paths if _EDITORS.fullmatch(name) else ()
    line = text(arguments, "command") or " ".join([name, *paths])
    parts.call(line, at, native_id, id=id, files=edited)


def _read_store(sql: sqlite3.Connection, parts: Parts) -> datetime | None:
    """Adds the messages of a database; returns the time at which the session began."""
    about: Any = None
    for (value,) in sql.execute("SELECT value FROM meta WHERE key = '0'").fetchmany(1):
        try:
            about = mapping(value if value[:1] == "{" else bytes.fromhex(value))
        except (ValueError, TypeError):
            about = None
    parts.learn(title=text(about, "name"), cwd=text(about, "workspacePath"))
    for (data,) in sql.execute(_BLOBS):
        raw = data.encode() if isinstance(data, str) else data
        if isinstance(raw, bytes) and raw[:1] == b"{":
            _take(mapping(raw), parts)
    return moment(about.get("createdAt")) if about else None


def _read_text(source: Source, parts: Parts) -> None:
    """Adds the turns of a transcript of the first form."""
    if source.size > LARGEST_FILE:
        raise OSError("larger than a transcript may be")
    with opened(source.path, source.inode) as file:
        content = file.read(LARGEST_FILE).decode("utf-8", "replace")
    for speaker, words in _spoken(content):
        parts.records += 1
        if speaker == "user":
            parts.say(words, None)
        elif speaker == "assistant":
            _add_answer(words, parts)
        else:
            parts.unknown += 1


def _spoken(content: str) -> Iterator[tuple[str, str]]:
    """Yields the speakers and their texts; a name within the words of the user is none."""
    speaker, lines, is_query = "", list[str](), False
    for line in content.splitlines():
        is_query = "<user_query>" in line or (is_query and "</user_query>" not in line)
        if not is_query and (match := _SPEAKER.fullmatch(line)):
            if lines:
                yield speaker, "\n".join(lines)
            speaker, lines = match[1], []
        elif speaker or line.strip():
            lines.append(line)
    if lines:
        yield speaker, "\n".join(lines)


def _add_answer(words: str, parts: Parts) -> None:
    answer: list[str] = []
    name, arguments = "", dict[str, str]()
    for line in [*words.splitlines(), ""]:
        label, parameter = _LABEL.fullmatch(line), re.fullmatch(r"\s+(\w+): (.*)", line)
        if name and parameter and not label:
            arguments[parameter[1]] = parameter[2]
            continue
        if name:
            _add_call(name, arguments, parts)
            name, arguments = "", {}
        if label or not line.strip():
            parts.answer("\n".join(answer), None)
            answer = []
            name = label[2].strip() if label and label[1] == "Tool call" else ""
        else:
            answer.append(line)


# The editor's database.


def _read_composer(sql: sqlite3.Connection, source: Source) -> Iterator[Part]:
    def value(key: str) -> Mapping[str, Any] | None:
        (data,) = sql.execute(_VALUE, (key,)).fetchone() or (None,)
        return mapping(data)

    composer = value(f"composerData:{source.key}")
    if composer is None:
        raise OSError("not a session, or too large")
    parts = Parts(
        Facts(
            client=Cursor.client,
            native_id=source.key,
            title=text(composer, "name"),
            cwd=text(composer, "workspaceIdentifier", "uri", "fsPath"),
            branch=text(composer, "createdOnBranch"),
        )
    )
    created = moment(composer.get("createdAt"))
    updated = moment(composer.get("lastUpdatedAt")) or created
    older = items(composer, "conversation")

    def take(header: Any) -> bool:
        id = text(header, "bubbleId")
        bubble = header if older else value(f"bubbleId:{source.key}:{id}")
        return _add_bubble(bubble, id, parts)

    for part in parts.of(items(composer, "fullConversationHeadersOnly") or older, take):
        yield _dated(part, created, updated)


def _add_bubble(bubble: Any, id: str, parts: Parts) -> bool:
    """Adds a message of the editor; returns whether it has a known shape."""
    kind = inner(bubble).get("type")
    at = moment(inner(bubble).get("createdAt"))
    if kind == 1:
        parts.say(text(bubble, "text"), at, id)
    elif kind == 2:
        parts.answer(text(bubble, "text"), at, id)
        if name := text(bubble, "toolFormerData", "name"):
            data = inner(bubble, "toolFormerData")
            arguments: dict[str, Any] = {}
            for key in ("params", "rawArgs"):
                arguments |= mapping(text(data, key)) or {}
            _add_call(name, arguments, parts, at, id, id=id)
            result = mapping(text(data, "result")) or {}
            failed = text(data, "status") == "error"
            if failed or result.get("exitCode") not in (None, 0):
                parts.fail(id, text(result, "output") or text(data, "error"))
    return kind in (1, 2)
