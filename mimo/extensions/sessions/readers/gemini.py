"""Transcripts of Gemini CLI: `~/.gemini/tmp/<project>/chats/`, logs of messages and changes.

A file is read whole. What a compression removed from the client's history stays; what
the user took back by a rewind does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from mimo.api import NamedTuple, disk
from mimo.extensions.sessions.model import LONGEST_TEXT, Facts, Kind, Part, Progress, Source
from mimo.extensions.sessions.readers.lines import (
    LARGEST_FILE,
    files_in,
    inner,
    items,
    mapping,
    moment,
    opened,
    plain_id,
    read_json,
    records,
    small,
    text,
)
from mimo.extensions.sessions.readers.parts import Parts, ends_of
from mimo.extensions.sessions.readers.wrappings import last_line, words_of

_EDITORS = frozenset({"replace", "write_file", "edit", "smart_edit"})
_LONGEST, _LONGEST_PATH = 2 * LONGEST_TEXT, 4_096
"""Characters that are held; the turns are cut to less."""

_PATHS = ("file_path", "absolute_path", "dir_path", "path")
_UNSAID = frozenset({"info", "error", "warning"})
"""Types of messages that are the client's own."""

_SUMMARY = ("<state_snapshot", "<scratchpad", "This is the Gemini CLI. We are setting up")
"""The beginnings of texts in the user's role that the client wrote."""

_REPLY = "Got it. Thanks for the additional context!"
"""The answer that the client writes for the agent after a summary."""

_EXIT = re.compile(r"^exit code:? *(-?[0-9]{1,9}) *$", re.IGNORECASE | re.MULTILINE)
_STATE = re.compile(
    r"^(?:(?:exit code|signal|background pids|process group pgid)\b.*\n?"
    r"|</?untrusted_context>\n?"
    r"|(?:output|stdout|stderr|error): (?:\((?:none|empty)\)\n?)?)",
    re.IGNORECASE | re.MULTILINE,
)
"""Labels and lines that the client adds to the output of a command."""


class Gemini:
    """Reads the sessions of Gemini CLI."""

    client = "gemini"

    def sources(self, environment: Mapping[str, str], home: Path) -> Iterator[Source]:
        """Yields the files of sessions and of sub-agents, newest first.

        A file of the older form does not count beside the file of lines that replaced it.
        """
        folder = Path(environment.get("GEMINI_CLI_HOME") or home) / ".gemini" / "tmp"
        patterns = ("*/chats/session-*.json", "*/chats/session-*.jsonl", "*/chats/*/*.jsonl")
        files = list(files_in(folder, *patterns))
        paths = {file.path for file in files}
        for file in files:
            if file.path.suffix != ".json" or file.path.with_suffix(".jsonl") not in paths:
                yield file

    def read(self, source: Source, since: Progress) -> Iterator[Part]:
        """Yields the parts of a session, from its start.

        A session that is resumed later has a second file, with the client's notes alone: as that
        has no turns, it replaces none.
        """
        log = _log_of(source)
        chats = source.path.parent
        is_agent = chats.name != "chats"
        facts = Facts(
            client=self.client,
            native_id=plain_id(log.id or (source.path.stem if is_agent else "")),
            kind=Kind.SUBAGENT if is_agent or log.kind == "subagent" else Kind.MAIN,
            cwd=_cwd(chats.parent.parent if is_agent else chats.parent, log),
            title=log.title,
            parent=plain_id(chats.name) if is_agent else "",
        )
        has_turns = any(message.words or message.calls for message in log.messages.values())
        parts = Parts(facts, is_whole=has_turns)
        parts.records, parts.unknown = log.records, log.unknown
        for id, message in log.messages.items():
            _add(parts, id, message)
            yield from parts.full()
        yield parts.rest()


class _Call(NamedTuple):
    """The call of a tool."""

    line: str
    files: tuple[str, ...]
    error: str | None
    """The last line of the output of a call that failed; None if it did not."""
    paths: tuple[str, ...]


class _Message(NamedTuple):
    """The words and calls of a message."""

    kind: str
    words: str
    at: datetime | None
    calls: tuple[_Call, ...] = ()


class _Log:
    """The messages of a session as the records of a file make them: the last one of an id wins."""

    def __init__(self) -> None:
        self.id = self.kind = self.title = self.project = ""
        self.messages: dict[str, _Message] = {}
        self.records = self.unknown = 0
        self._room = LARGEST_FILE

    def take(self, record: Mapping[str, Any] | None) -> None:
        """Applies a record."""
        self.records += 1
        if record is None or (record and not self._apply(record)):
            self.unknown += 1

    def _apply(self, record: Mapping[str, Any]) -> bool:
        if "$set" in record:
            return self._learn(inner(record, "$set"))
        if "$rewindTo" in record:
            if (id := text(record, "$rewindTo")) in self.messages:
                while self.messages.popitem()[0] != id:
                    pass
            return True
        if text(record, "id") and text(record, "type"):
            return self._add(self.messages, record)
        return bool(text(record, "sessionId")) and self._learn(record)

    def _learn(self, facts: Mapping[str, Any]) -> bool:
        self.id = text(facts, "sessionId") or self.id
        self.kind = text(facts, "kind") or self.kind
        self.project = text(facts, "projectHash") or self.project
        self.title = text(facts, "summary") or self.title
        is_known = True
        if listed := items(facts, "messages"):
            new: dict[str, _Message] = {}
            for message in listed:
                is_known = self._add(new, message) and is_known
            again = {(message.kind, message.words) for message in new.values()}
            earlier = {
                id: message
                for id, message in self.messages.items()
                if id not in new and (message.calls or (message.kind, message.words) not in again)
            }
            self.messages = earlier | new
        return is_known

    def _add(self, messages: dict[str, _Message], record: Any) -> bool:
        kind, id = text(record, "type"), text(record, "id")
        if kind not in ("user", "gemini") or not id:
            return kind in _UNSAID
        message = _message(kind, record)
        if id not in messages:
            self._room -= len(repr(message))
        if self._room < 0:
            return False
        messages[id] = message
        return True


def _log_of(file: Source) -> _Log:
    """Returns what a file of the older form, or of lines, contains. Raises `OSError`."""
    log = _Log()
    if file.path.suffix == ".json":
        value = read_json(file)
        log.take(value if isinstance(value, dict) else None)
    else:
        with opened(file.path, file.inode) as lines:
            for line in records(lines):
                log.take(line.value)
    return log


def _add(parts: Parts, id: str, message: _Message) -> None:
    if message.kind == "user":
        is_typed = parts.facts.kind is Kind.MAIN
        parts.say(message.words, message.at, id, is_typed=is_typed)
        return
    parts.answer(message.words, message.at, id)
    for n, call in enumerate(message.calls):
        parts.call(call.line, message.at, id, id=f"{id} {n}", files=call.files)
        if call.error is not None:
            parts.fail(f"{id} {n}", call.error)


def _message(kind: str, record: Mapping[str, Any]) -> _Message:
    at = moment(record.get("timestamp"))
    if kind == "user":
        pieces = _pieces(record.get("displayContent")) or _pieces(record.get("content"))
        if any("functionResponse" in piece for piece in pieces):
            return _Message(kind, "", at)
        words = "\n".join(filter(None, (words_of(text(piece, "text")) for piece in pieces)))
        return _Message(kind, "" if words.startswith(_SUMMARY) else ends_of(words, _LONGEST), at)
    pieces = _pieces(record.get("content"))
    words = "\n\n".join(text(piece, "text") for piece in pieces if not piece.get("thought"))
    calls = tuple(_call(call) for call in items(record, "toolCalls") if isinstance(call, dict))
    return _Message(kind, "" if words.strip() == _REPLY else ends_of(words, _LONGEST), at, calls)


def _pieces(content: Any) -> list[Mapping[str, Any]]:
    """Returns the parts of a content: it is a text, a part, or a list of both."""
    listed = content if isinstance(content, list) else [content]
    texts = [{"text": piece} if isinstance(piece, str) else piece for piece in listed]
    return [piece for piece in texts if isinstance(piece, dict)]


def _call(call: Mapping[str, Any]) -> _Call:
    name = text(call, "name")
    values = (text(call, "args", key) for key in _PATHS)
    paths = tuple(value for value in values if 0 < len(value) <= _LONGEST_PATH)
    output = "\n".join(_outputs(call)) or text(call, "resultDisplay")
    codes = _EXIT.findall(output) if name == "run_shell_command" else []
    has_failed = text(call, "status") == "error" or any(map(int, codes[-1:]))
    return _Call(
        ends_of(text(call, "args", "command") or " ".join((name, *paths)), _LONGEST),
        paths if name in _EDITORS and not has_failed else (),
        last_line(_STATE.sub("", output[-10_000:])) if has_failed else None,
        paths,
    )


def _outputs(call: Mapping[str, Any]) -> Iterator[str]:
    for piece in _pieces(call.get("result")):
        answer = inner(piece, "functionResponse", "response")
        yield from filter(None, (text(answer, "output"), text(answer, "error")))


# Folders of projects.


def _cwd(folder: Path, log: _Log) -> str:
    """Returns the working directory of the sessions in a folder of `tmp`.

    Its name is a slug, which two files explain, or the SHA-256 of the path: then the path is a
    known one, or above one that the session names.
    """
    if root := small(folder / ".project_root").decode("utf-8", "replace").strip():
        return root
    projects = inner(mapping(small(folder.parent.parent / "projects.json")), "projects")
    for path, slug in projects.items():
        if slug == folder.name:
            return path
    calls = (call for message in log.messages.values() for call in message.calls)
    hashes = {folder.name, log.project}
    for path in (*projects, *_folders(path for call in calls for path in call.paths)):
        if disk.sha256(path.encode("utf-8", "surrogatepass")).hex() in hashes:
            return path
    return ""


def _folders(paths: Iterable[str]) -> dict[str, None]:
    """Returns the folders that contain some absolute paths, the nearest first."""
    folders: dict[str, None] = {}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders[folder] = None
            folder = folder.rpartition("/")[0]
    return folders
