"""Rollouts of Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`, archived ones too.

The client writes a turn twice: as the model got it, and as it was shown. The second is what a
person sent, so it is preferred for the user's words; versions that lack it have the first alone.
Forks and sub-agents begin with a copy of the parent's turns, which have the parent's ids.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from mimo.api import NamedTuple
from mimo.extensions.sessions.model import Facts, Kind, Part, Progress, Source
from mimo.extensions.sessions.readers.lines import (
    files_in,
    inner,
    items,
    mapping,
    moment,
    plain_id,
    text,
)
from mimo.extensions.sessions.readers.parts import Parts, patched
from mimo.extensions.sessions.readers.places import opened_database
from mimo.extensions.sessions.readers.wrappings import words_of

_NAME = re.compile(r"rollout-.*?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\.jsonl")

_UNREAD_LINES = re.compile(
    rb'\{(?:"(?:timestamp|ordinal)":(?:"[^"\\]{0,40}"|\d{1,20}),){0,2}+"type":"(?:'
    rb'compacted"|world_state"|response_item","payload":\{"type":"reasoning"'
    rb'|event_msg","payload":\{"type":"(?:token_count|agent_reasoning\w{0,40}|\w{1,40}_delta)")'
)
"""The starts of records that are not parsed: most bytes of a rollout are in them."""

_EVENTS = re.compile(
    r"(?:task|turn|item|thread|session|mcp|agent|web_search|exec|patch|undo|stream|plan|raw|hook"
    r"|context|entered_review|exited_review|shutdown|collab|image|view_image|apply_patch|model"
    r"|background|guardian|realtime|skills|elicitation|request|dynamic)_\w+"
    r"|error|warning|compacted|token_count"
)
"""The names of events without words of a conversation."""

_ITEMS = re.compile(r"message|reasoning|compaction\w*|ghost_snapshot|other|\w+_(?:call|output)")
"""The names of the items that the model sees."""

_UNSPOKEN = frozenset({"session_meta", "compacted", "world_state", "token_usage_record"})
"""The kinds of records without words of a conversation."""

_STATUS = re.compile(r"(?m)^(?:Process exited with code|Exit code:?) (-?\d+)")
_STATUS_WITHIN = 1_000
"""The first characters of an output, which state the exit status."""

_TURN_ID = 16
"""The fewest characters of an id of a turn that no other session has by chance."""

_TITLES = 100_000


class Codex:
    """Reads the sessions of Codex."""

    client = "codex"

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._databases: Path | None = None
        self._titles: Mapping[str, str] | None = None

    def sources(self, environment: Mapping[str, str], home: Path) -> Iterator[Source]:
        """Yields the rollouts, newest first; a compressed one only if there is no plain one."""
        folder = Path(environment.get("CODEX_HOME") or home / ".codex")
        self._databases = Path(environment.get("CODEX_SQLITE_HOME") or folder)
        places = ("sessions/*/*/*", "archived_sessions")
        names = [f"{place}/rollout-*.jsonl{end}" for place in places for end in ("", ".zst")]
        sources = list(files_in(folder, *names))
        plain = {source.path.name for source in sources}
        for source in sources:
            if source.path.suffix != ".zst" or source.path.stem not in plain:
                yield source

    def read(self, source: Source, since: Progress) -> Iterator[Part]:
        """Yields the parts of a rollout after `since`; a compressed one is always read whole."""
        named = _NAME.match(source.path.name)
        facts = Facts(client=self.client, native_id=named[1] if named else "")
        parts = Parts(facts, is_whole=not since.offset, state=since.state)
        if not parts.noted("title"):
            parts.correct(title=self._title(parts.facts.native_id))
        for part in parts.follow(source, since.offset, _take, _learn, _UNREAD_LINES):
            # The bytes of a compressed file are not those of its text.
            yield part._replace(progress=Progress()) if source.path.suffix == ".zst" else part

    def _title(self, native_id: str) -> str:
        """Returns the title in the client's own database, which may be missing."""
        if self._titles is None:
            self._titles = _titles(self._databases) if self._databases else {}
        return self._titles.get(native_id, "")


def _titles(folder: Path) -> Mapping[str, str]:
    """Returns the titles of the newest database in a folder; nothing is written beside it."""
    paths = [source.path for source in files_in(folder, "state_*.sqlite")]
    path = max(paths, key=lambda path: (len(path.name), path.name), default=None)
    if path is None:
        return {}
    try:
        with opened_database(path) as sql:
            columns = {name for _, name, *_ in sql.execute("PRAGMA table_info(threads)")}
            chosen = [name for name in ("name", "title") if name in columns]
            query = f"SELECT id, {', '.join(chosen)} FROM threads LIMIT {_TITLES}"
            rows = sql.execute(query).fetchall() if chosen else []
            titles = {id: next(filter(None, map(_title, names)), "") for id, *names in rows}
            return {id: title for id, title in titles.items() if isinstance(id, str)}
    except (OSError, sqlite3.Error):
        return {}


def _title(value: Any) -> str:
    """Returns a title; it may be the first prompt with what the client put before it."""
    return words_of(text(value))


class _Record(NamedTuple):
    """The payload of a record, its time, and the session so far."""

    payload: Mapping[str, Any]
    at: datetime | None
    parts: Parts


def _take(record: Mapping[str, Any], parts: Parts) -> bool:
    """Adds the turns and facts of a record; returns whether it has a known shape."""
    kind, payload = text(record, "type"), inner(record, "payload")
    entry = _Record(payload, moment(record.get("timestamp")), parts)
    _learn(record, parts)
    if kind == "turn_context":
        _note_turn(payload, parts)
    elif kind == "event_msg":
        return _take_event(entry)
    elif kind == "response_item":
        return _take_item(entry)
    elif not payload and _ITEMS.fullmatch(kind):
        # Versions before the envelope.
        return _take_item(entry._replace(payload=record))
    else:
        return kind in _UNSPOKEN or not (kind or not plain_id(record.get("id")))
    return True


def _learn(record: Mapping[str, Any], parts: Parts) -> None:
    """Notes the facts in the first record of a session; a fork has the lines of its parent, too."""
    kind, meta = text(record, "type"), inner(record, "payload")
    if kind == "turn_context":
        parts.learn(cwd=text(meta, "cwd"))
    if kind != "session_meta" or parts.memory:
        return
    parts.memory["meta"] = True
    source = inner(meta, "source")
    spawned = inner(source, "subagent", "thread_spawn")
    started_by = plain_id(meta.get("parent_thread_id")) or plain_id(spawned.get("parent_thread_id"))
    parts.learn(native_id=plain_id(meta.get("id")))
    parts.learn(cwd=text(meta, "cwd"), branch=text(meta, "git", "branch"))
    parts.learn(parent=started_by or plain_id(meta.get("forked_from_id")))
    if text(meta, "thread_source") == "subagent" or "subagent" in source or started_by:
        parts.correct(kind=Kind.SUBAGENT)
    elif text(meta, "source") == "exec" or text(meta, "originator") == "codex_exec":
        parts.correct(kind=Kind.HEADLESS)


# Turns.


def _note_turn(payload: Mapping[str, Any], parts: Parts) -> None:
    """Notes the turn of the model that has begun; the ids of ours count in it."""
    turn = plain_id(payload.get("turn_id"))
    if turn and turn != (parts.noted("turn") or [""])[0]:
        parts.note("turn", [turn, 0])


def _native(parts: Parts) -> str:
    """Returns the id of the next turn, which a copy of it in a fork has, too."""
    turn, number = parts.noted("turn") or ("", 0)
    return f"{turn}:{number}" if len(turn) >= _TURN_ID else ""


def _number(is_new: bool, parts: Parts) -> None:
    if is_new and (noted := parts.noted("turn")):
        parts.note("turn", [noted[0], noted[1] + 1])


def _say(words: str | Sequence[str], at: datetime | None, parts: Parts) -> None:
    is_typed = parts.facts.kind is Kind.MAIN
    _number(parts.say(words, at, _native(parts), is_typed=is_typed), parts)


def _confirm(parts: Parts) -> None:
    """Takes the user's words as the model got them, if none that were shown came before."""
    for words, at in parts.suggested():
        _say(words, at, parts)


def _answer(words: str, record: _Record) -> None:
    parts = record.parts
    _confirm(parts)
    _number(parts.answer(words, record.at, _native(parts), is_repeated=True), parts)


def _call(line: str, record: _Record, id: str, files: Sequence[str] = ()) -> None:
    parts = record.parts
    _confirm(parts)
    is_new = parts.call(line, record.at, _native(parts), id=id, files=files, is_repeated=True)
    _number(is_new, parts)


# What was shown.


def _take_event(record: _Record) -> bool:
    payload, parts = record.payload, record.parts
    kind = text(payload, "type")
    if kind == "item_completed":
        return _take_displayed(record._replace(payload=inner(payload, "item")), payload)
    if kind == "user_message":
        if text(payload, "kind") in ("", "plain"):
            _hear(text(payload, "message"), record)
    elif kind == "agent_message":
        _answer(text(payload, "message"), record)
    elif kind in ("task_started", "turn_started"):
        _note_turn(payload, parts)
    elif kind == "thread_name_updated":
        parts.correct(title=text(payload, "thread_name"))
        parts.note("title", value=True)
    elif act := _OLDER.get(kind):
        act(record)
    else:
        return bool(_EVENTS.fullmatch(kind))
    return True


def _hear(words: str | Sequence[str], record: _Record) -> None:
    """Adds what a person sent, in place of what the model got of it."""
    record.parts.suggested()
    record.parts.note("is_shown", value=True)
    _say(words, record.at, record.parts)


def _take_displayed(record: _Record, event: Mapping[str, Any]) -> bool:
    """Adds an item of the history that is shown; returns whether it is one."""
    item, parts = record.payload, record.parts
    kind, id = text(item, "type").lower().replace("_", ""), text(item, "id")
    _note_turn(event, parts)
    if kind == "usermessage":
        _hear(_texts(item), record)
    elif kind == "agentmessage":
        _answer("\n\n".join(_texts(item)), record)
    elif kind == "filechange":
        files = _changed(inner(item, "changes"))
        _call(" ".join(["apply_patch", *files]), record, id, files)
        _end(parts, id, text(item, "stderr"), is_failed=text(item, "status") == "failed")
    elif kind == "commandexecution":
        _call(_command(item.get("command")), record, id)
        _end(parts, id, text(item, "aggregated_output"), is_failed=_is_failed(item))
    elif kind == "mcptoolcall":
        _call(" ".join(filter(None, (text(item, "server"), text(item, "tool")))), record, id)
        failed = text(item, "status") == "failed"
        _end(parts, id, text(item, "error", "message"), is_failed=failed)
    return bool(kind)


def _texts(item: Mapping[str, Any]) -> list[str]:
    return [text(block, "text") for block in items(item, "content")]


def _changed(changes: Mapping[str, Any]) -> list[str]:
    """Returns the paths of a change of files, those to which some moved included."""
    moved = [text(change, "move_path") for change in changes.values()]
    paths = [text(path) for path in changes]
    return [path for path in dict.fromkeys([*paths, *moved]) if path]


def _is_failed(item: Mapping[str, Any]) -> bool:
    status = item.get("exit_code")
    return bool(status) if isinstance(status, int) else text(item, "status") == "failed"


def _end(parts: Parts, id: str, output: str, *, is_failed: bool) -> None:
    if is_failed:
        parts.fail(id, output)
    else:
        parts.succeed(id)


def _begin_command(record: _Record) -> None:
    _call(_command(record.payload.get("command")), record, text(record.payload, "call_id"))


def _end_command(record: _Record) -> None:
    payload = record.payload
    output = text(payload, "aggregated_output") or text(payload, "stderr")
    _end(record.parts, text(payload, "call_id"), output, is_failed=_is_failed(payload))


def _begin_patch(record: _Record) -> None:
    files = _changed(inner(record.payload, "changes"))
    _call(" ".join(["apply_patch", *files]), record, text(record.payload, "call_id"), files)


def _end_patch(record: _Record) -> None:
    payload = record.payload
    is_failed = payload.get("success") is False
    _end(record.parts, text(payload, "call_id"), text(payload, "stderr"), is_failed=is_failed)


_OLDER: Mapping[str, Callable[[_Record], None]] = {
    "exec_command_begin": _begin_command,
    "exec_command_end": _end_command,
    "patch_apply_begin": _begin_patch,
    "patch_apply_end": _end_patch,
}
"""Events of calls in versions before items."""


# What the model got.


def _take_item(record: _Record) -> bool:
    payload, at, parts = record
    kind, id = text(payload, "type"), text(payload, "call_id") or text(payload, "id")
    if kind == "message":
        role = text(payload, "role")
        if role == "user" and not parts.noted("is_shown"):
            for words in _texts(payload):
                parts.suggest(words, at)
        elif role == "assistant":
            _answer("\n\n".join(_texts(payload)), record)
    elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
        line, files = _called(payload)
        _call(line, record, id, files)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        output, is_failed = _result(payload.get("output"))
        _end(parts, id, output, is_failed=is_failed)
    else:
        return bool(_ITEMS.fullmatch(kind))
    return True


def _called(payload: Mapping[str, Any]) -> tuple[str, Sequence[str]]:
    """Returns the line of a call, and the files that it edits."""
    name = text(payload, "name")
    arguments = mapping(text(payload, "arguments")) or inner(payload, "action")
    line = _command(arguments.get("command") or arguments.get("cmd"))
    patch = text(payload, "input") or text(arguments, "input") or line
    if "*** Begin Patch" in patch:
        files = patched(patch)
        return " ".join(["apply_patch", *files]), files
    return line or name, ()


def _command(value: Any) -> str:
    """Returns a command line; of one in a shell, what the shell runs."""
    if isinstance(value, str):
        return text(value)
    words = [text(word) for word in value] if isinstance(value, list) else []
    is_shell = len(words) == 3 and words[1] in ("-c", "-lc")
    return words[2] if is_shell else " ".join(words)


def _result(output: Any) -> tuple[str, bool]:
    """Returns the output of a call, and whether it failed."""
    if isinstance(output, list):
        output = {"content": "\n".join(text(block, "text") for block in output)}
    if isinstance(output, Mapping):
        message, is_failed = _result(text(output, "content"))
        return message, is_failed or output.get("success") is False
    message = text(output)
    if message.startswith("{") and (value := mapping(message)):
        status = inner(value, "metadata").get("exit_code")
        return text(value, "output"), isinstance(status, int) and bool(status)
    status = _STATUS.search(message, 0, _STATUS_WITHIN)
    return message, bool(status and int(status[1]))
