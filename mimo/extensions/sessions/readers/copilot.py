"""Transcripts of Copilot CLI: the events of `~/.copilot/session-state/<id>/events.jsonl`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from mimo.extensions.sessions.model import Facts, Part, Progress, Source
from mimo.extensions.sessions.readers.lines import (
    files_in,
    inner,
    items,
    mapping,
    moment,
    plain_id,
    read_json,
    small,
    text,
)
from mimo.extensions.sessions.readers.parts import Parts, ends_of, patched

_EVENTS = "events.jsonl"
_OLD = re.compile(r"session_(.+)_[0-9]+")
"""The name of a file of the first form, with the session's id."""

_UNSAID = ("agent-", "autopilot", "schedule", "skill-", "system")
"""The beginnings of the `source` of messages that no user typed."""

_EDITORS = frozenset({"create", "edit", "str_replace", "write"})
_FAMILIES = frozenset(
    "assistant auto_mode_switch capabilities command commands elicitation exit_plan_mode"
    " external_tool factory hook mcp mcp_app model pending_messages permission sampling session"
    " session_limits_exhausted skill subagent system tool tool_search ui user_input".split()
)
"""The first words of the kinds of events that hold no words of a conversation."""

_EXIT = re.compile(r"^<[^<>\n]*exit code (-?[0-9]{1,9})>\s*$", re.MULTILINE)
"""The last line of a command's output, as older versions store its exit code."""


class Copilot:
    """Reads the sessions of Copilot CLI."""

    client = "copilot"

    def sources(self, environment: Mapping[str, str], home: Path) -> Iterator[Source]:
        """Yields the newest form of each session: a folder, a file of events, or one of JSON."""
        folder = Path(environment.get("COPILOT_HOME") or home / ".copilot")
        seen = set()
        for place, pattern in (
            ("session-state", f"*/{_EVENTS}"),
            ("session-state", "*.jsonl"),
            ("history-session-state", "session_*.json"),
        ):
            for source in files_in(folder / place, pattern):
                if (id := _id_of(source.path)) not in seen:
                    seen.add(id)
                    yield source

    def read(self, source: Source, since: Progress) -> Iterator[Part]:
        """Yields the parts of a session after `since`."""
        facts = Facts(client=self.client, native_id=plain_id(_id_of(source.path)))
        parts = Parts(facts, is_whole=not since.offset, state=since.state)
        if source.path.suffix == ".json":
            _add_history(source, parts)
            yield parts.rest()
            return
        workspace = mapping(small(source.path.with_name("workspace.yaml")), "yaml")
        about = {"branch": text(workspace, "branch"), "title": text(workspace, "name")}
        parts.learn(cwd=text(workspace, "cwd"), **about)
        yield from parts.follow(source, since.offset, _Events(about).take)


_CONTEXTS = frozenset({"session.start", "session.resume", "session.context_changed"})
"""Kinds of events with the working directory and branch."""


class _Events:
    """Adds the turns and facts of events to the parts of a session."""

    def __init__(self, about: Mapping[str, str]) -> None:
        """Takes the facts that the client notes beside the events, and which are newer."""
        self._about = about
        self._edits: dict[str, tuple[str, ...]] = {}
        """The files that calls edit by their arguments, until they end."""

    def take(self, event: Mapping[str, Any], parts: Parts) -> bool:
        """Adds what an event contains; returns whether it has a known shape."""
        kind, data = text(event, "type"), inner(event, "data")
        at, id = moment(event.get("timestamp")), text(event, "id")
        is_of_agent = bool(text(event, "agentId") or text(data, "parentToolCallId"))
        if kind == "user.message":
            self._edits.clear()
            is_sent = data.get("isAutopilotContinuation") is True
            is_sent = is_sent or text(data, "source").startswith(_UNSAID)
            if not (is_of_agent or is_sent):
                parts.say(text(data, "content"), at, id)
        elif kind == "assistant.message":
            if not is_of_agent:
                parts.answer(text(data, "content"), at, id, text(data, "messageId"))
        elif kind == "tool.execution_start":
            if not is_of_agent:
                key = text(data, "toolCallId")
                line, self._edits[key] = _call(text(data, "toolName"), data.get("arguments"))
                parts.call(line, at, id, id=key, is_repeated=True)
        elif kind == "tool.execution_complete":
            self._complete(data, parts, at, id)
        elif kind in _CONTEXTS:
            context = inner(data, "context") or data
            parts.learn(cwd=text(context, "cwd"))
            parts.correct(branch=self._about["branch"] or text(context, "branch"))
        elif kind == "session.title_changed":
            parts.correct(title=self._about["title"] or text(data, "title"))
        else:
            return kind == "abort" or kind.partition(".")[0] in _FAMILIES
        return True

    def _complete(
        self, data: Mapping[str, Any], parts: Parts, at: datetime | None, id: str
    ) -> None:
        """Adds the files and the error of a call; of a sub-agent's, only the files."""
        key = text(data, "toolCallId")
        has_failed = data.get("success") is False
        by_arguments = self._edits.pop(key, ())
        edited = tuple(filter(None, (text(edit, "path") for edit in items(data, "fileEdits"))))
        if files := edited or (() if has_failed else by_arguments):
            line = " ".join(("edit", *files))
            parts.call(line, at, id, id=key, files=files, is_repeated=True)
        output = text(data, "result", "content")
        if has_failed or _exit_code(data, output) != 0:
            parts.fail(key, text(data, "error", "message") or _EXIT.sub("", output))
        else:
            parts.succeed(key)


def _id_of(path: Path) -> str:
    """Returns the id of the session in a file."""
    if path.name == _EVENTS:
        return path.parent.name
    match = _OLD.fullmatch(path.stem)
    return match.group(1) if match else path.stem


def _call(name: str, arguments: Any) -> tuple[str, tuple[str, ...]]:
    """Returns the line of a call, and the files that it edits by its arguments."""
    if isinstance(arguments, str):
        files = patched(arguments)
        return " ".join((name, *files)), files
    path, command = text(arguments, "path"), text(arguments, "command")
    if not path:
        return ends_of(command or name), ()
    is_edit = name in _EDITORS or (name == "str_replace_editor" and command != "view")
    return f"{name} {path}", (path,) if is_edit else ()


def _exit_code(data: Mapping[str, Any], output: str) -> int:
    code = inner(data, "shellExecution").get("exitCode")
    if isinstance(code, int):
        return code
    codes = _EXIT.findall(output)
    return int(codes[-1]) if codes else 0


# The first form: one object, with what the model got and what the terminal showed.


def _add_history(source: Source, parts: Parts) -> None:
    session = read_json(source)
    started = text(session, "startTime")
    timeline = [entry for entry in items(session, "timeline") if text(entry, "type")]
    has_timeline = any(text(entry, "type") == "user" for entry in timeline)
    for entry in timeline if has_timeline else items(session, "chatMessages"):
        parts.records += 1
        kind = text(entry, "type") or text(entry, "role")
        at = moment(text(entry, "timestamp") or started)
        words = text(entry, "text") or text(entry, "content")
        if kind == "user":
            parts.say(words, at, text(entry, "id"))
        elif kind in ("copilot", "assistant"):
            parts.answer(words, at, text(entry, "id"))
        elif kind == "tool_call_completed":
            id = text(entry, "callId")
            line, files = _call(text(entry, "name"), entry.get("arguments"))
            parts.call(line, at, id=id, files=files)
            output = text(entry, "result", "log")
            if text(entry, "result", "type") in ("failure", "rejected") or _exit_code({}, output):
                parts.fail(id, _EXIT.sub("", output))
        elif kind not in _ENTRIES:
            parts.unknown += 1


_ENTRIES = frozenset({"info", "error", "system", "tool", "tool_call_requested", "warning"})
"""Kinds of entries without words of a conversation."""
