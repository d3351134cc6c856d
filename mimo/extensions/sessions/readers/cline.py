"""Sessions of Cline: `~/.cline/data/sessions/<id>/<id>.messages.json`, and tasks of editors.

The client writes these files again with each message, so they are read as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime
from pathlib import Path
from typing import Any

from mimo.api import NamedTuple
from mimo.extensions.sessions.model import Facts, Kind, Part, Progress, Source
from mimo.extensions.sessions.readers.lines import (
    blocks_of,
    files_in,
    inner,
    items,
    mapping,
    moment,
    plain_id,
    read_json,
    small,
    source_of,
    text,
)
from mimo.extensions.sessions.readers.parts import Parts, patched
from mimo.extensions.sessions.readers.places import settings_folders

_MESSAGES, _HISTORY = ".messages.json", "api_conversation_history.json"
_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
"""The editors that run the extension."""

_STORAGE = "User/globalStorage/saoudrizwan.claude-dev"
_EDITS = frozenset("editor apply_patch write_to_file replace_in_file new_rule delete_file".split())
_PATHS = ("path", "absolutePath", "file_path")
_FOLDER = re.compile(r"# Current Working Directory \((.{1,4096}?)\)")

# Older versions of the extension have calls and their results in texts.
_RESULT = re.compile(r"\[(\w{1,60})(?: for '(?:.|\n){0,4096}?')?\] Result:")
_REPLIES = frozenset({"feedback", "user_message", "answer"})
"""Elements of a result that hold words of the user."""

_PROGRAM = ("[TASK RESUMPTION]", "[ERROR]", "[USER INTERRUPTED")
_CALLS = frozenset(
    "execute_command write_to_file replace_in_file read_file search_files list_files new_task"
    " list_code_definition_names browser_action use_mcp_tool access_mcp_resource"
    " ask_followup_question attempt_completion plan_mode_respond".split()
)
"""Elements of a text of the agent that are calls."""

_THOUGHT = "thinking"
_ANSWERS = {
    "ask_followup_question": "question",
    "attempt_completion": "result",
    "plan_mode_respond": "response",
}
"""The calls that say something to the user, and the parameter that holds it."""

_PARAMETERS = frozenset({"path", "command", *_ANSWERS.values()})
_OPENING = re.compile(r"<(\w{1,60})>")


class Cline:
    """Reads the sessions of Cline's command line and of its extension."""

    client = "cline"

    def __init__(self) -> None:
        """Knows no task yet."""
        self._tasks: dict[Source, Mapping[str, Any]] = {}

    def sources(self, environment: Mapping[str, str], home: Path) -> Iterator[Source]:
        """Yields the sessions of the command line, then the tasks of each editor."""
        folder = Path(environment.get("CLINE_DIR") or home / ".cline")
        data = Path(environment.get("CLINE_DATA_DIR") or folder / "data")
        sessions = Path(environment.get("CLINE_SESSION_DATA_DIR") or data / "sessions")
        yield from files_in(sessions, f"*/*{_MESSAGES}")
        editors = [base / name for base in settings_folders(environment, home) for name in _EDITORS]
        servers = [home / name / "data" for name in (".vscode-server", ".cursor-server")]
        for storage in (data, *(editor / _STORAGE for editor in (*editors, *servers))):
            yield from files_in(storage, f"tasks/*/{_HISTORY}")

    def read(self, source: Source, since: Progress) -> Iterator[Part]:
        """Yields the parts of a session, from its start."""
        value = read_json(source)
        if source.path.name == _HISTORY:
            messages, facts = value, self._task_facts(source.path)
        else:
            messages, facts = items(value, "messages"), _session_facts(source.path, value)
        if not isinstance(messages, list):
            raise OSError("not the messages of a session")
        parts = Parts(facts)
        name = source.path.parent.name
        started = moment(int(name)) if re.fullmatch("[0-9]{10,14}", name) else None
        started = started or moment(source.mtime_ns / 1e9)
        yield from parts.of(messages, lambda message: _take(message, parts, started))

    def _task_facts(self, path: Path) -> Facts:
        task = self._tasks_of(path.parents[2]).get(path.parent.name)
        return Facts(
            client=self.client,
            native_id=plain_id(path.parent.name),
            cwd=text(task, "cwdOnTaskInitialization"),
        )

    def _tasks_of(self, storage: Path) -> Mapping[str, Any]:
        """Returns the tasks that the extension lists, by their ids; kept while the list is."""
        source = source_of(storage / "state" / "taskHistory.json")
        if source is None:
            return {}
        if source not in self._tasks:
            tasks = read_json(source)
            self._tasks[source] = {
                text(task, "id"): task for task in (tasks if isinstance(tasks, list) else ())
            }
        return self._tasks[source]


def _session_facts(path: Path, value: Any) -> Facts:
    id, name = path.parent.name, path.name.removesuffix(_MESSAGES)
    about = mapping(small(path.with_name(f"{id}.json")))
    is_lead = name == id
    return Facts(
        client=Cline.client,
        native_id=plain_id(id if is_lead else text(value, "sessionId") or f"{id}__{name}"),
        kind=Kind.MAIN if is_lead else Kind.SUBAGENT,
        cwd=text(about, "cwd"),
        branch=text(about, "metadata", "git", "branch"),
        title=text(about, "metadata", "title") if is_lead else "",
        parent="" if is_lead else id,
    )


def _take(message: Any, parts: Parts, started: datetime | None) -> bool:
    """Adds the words and calls of a message; returns whether it has a known shape."""
    at = moment(inner(message).get("ts")) or started
    blocks = blocks_of(inner(message).get("content"))
    role, id = text(message, "role"), text(message, "id")
    if role == "user":
        _add_user(blocks, parts, at, id)
    elif role == "assistant":
        _add_agent(blocks, parts, at, id)
    return role in ("user", "assistant")


def _add_user(blocks: Sequence[Any], parts: Parts, at: datetime | None, id: str) -> None:
    texts = []
    for block in blocks:
        if text(block, "type") == "tool_result":
            results = block.get("content")
            if (error := _error(results, is_error=block.get("is_error") is True)) is not None:
                parts.fail(text(block, "tool_use_id"), error)
            texts += [reply for each in _texts(results) for reply in _replies(each)]
        else:
            words = text(block, "text")
            if folder := _FOLDER.search(words):
                parts.learn(cwd=folder[1])
            if _RESULT.match(words):
                texts += _replies(words)
            elif not words.startswith(_PROGRAM):
                texts.append(words)
    parts.say(texts, at, id, is_typed=parts.facts.kind is Kind.MAIN)


def _texts(content: Any) -> list[str]:
    return [text(block, "text") or text(block, "result") for block in blocks_of(content)]


def _error(content: Any, *, is_error: bool) -> str | None:
    """Returns the output of a call that failed; None if it did not."""
    values = items(content)
    if isinstance(content, str):
        values = [mapping(content)]
    for value in values:
        if inner(value).get("success") is False:
            return text(value, "result") or text(value, "error")
    return "\n".join(_texts(content)) if is_error else None


def _add_agent(blocks: Sequence[Any], parts: Parts, at: datetime | None, id: str) -> None:
    for block in blocks:
        kind, arguments = text(block, "type"), inner(block, "input")
        if kind == "text":
            _add_text(text(block, "text"), parts, at, id)
        elif kind == "tool_use":
            _add_call(text(block, "name"), arguments, parts, at, id, text(block, "id"))


def _add_text(words: str, parts: Parts, at: datetime | None, id: str) -> None:
    """Adds a text with the calls in it."""
    start = 0
    for element in _elements(words, _CALLS | {_THOUGHT}):
        parts.answer(words[start : element.start], at, id, id)
        if element.name in _CALLS:
            parameters = _elements(element.text, _PARAMETERS)
            arguments = {each.name: each.text.strip("\n") for each in parameters}
            _add_call(element.name, arguments, parts, at, id)
        start = element.end
    parts.answer(words[start:], at, id, id)


def _replies(words: str) -> list[str]:
    return [element.text for element in _elements(words, _REPLIES)]


class _Element(NamedTuple):
    name: str
    text: str
    start: int
    end: int


def _elements(words: str, names: Set[str]) -> Iterator[_Element]:
    """Yields the elements of a text that have one of some names, in linear time."""
    place = 0
    unclosed: set[str] = set()
    for opening in _OPENING.finditer(words):
        name = opening[1]
        if opening.start() < place or name not in names or name in unclosed:
            continue
        end = words.find(f"</{name}>", opening.end())
        if end < 0:
            unclosed.add(name)
            continue
        place = end + len(name) + 3
        yield _Element(name, words[opening.end() : end], opening.start(), place)


def _add_call(
    name: str,
    arguments: Mapping[str, Any],
    parts: Parts,
    at: datetime | None,
    native_id: str,
    id: str = "",
) -> None:
    if name in _ANSWERS:
        parts.answer(text(arguments, _ANSWERS[name]), at, native_id, native_id)
        return
    paths = [text(arguments, key) for key in _PATHS if text(arguments, key)]
    files = patched(text(arguments, "input") or text(arguments, "patch"))
    commands = [text(each) for each in items(arguments, "commands")]
    line = "; ".join(filter(None, commands)) or text(arguments, "command")
    edited = [*paths, *files] if name in _EDITS else ()
    line = line if line and name not in _EDITS else " ".join([name, *paths, *files])
    parts.call(line, at, native_id, id=id, files=edited)
