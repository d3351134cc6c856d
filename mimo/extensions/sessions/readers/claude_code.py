"""Transcripts of Claude Code: `~/.claude/projects/<folder>/<id>.jsonl`, and those of sub-agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mimo.extensions.sessions.model import Facts, Kind, Part, Progress, Source
from mimo.extensions.sessions.readers.lines import (
    files_in,
    inner,
    items,
    moment,
    opened,
    records,
    text,
)
from mimo.extensions.sessions.readers.parts import Parts

_FILES = ("file_path", "notebook_path", "path")
_EDITORS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_UNSAID = frozenset({"system", "task_notification"})
"""Values of `promptSource` and `turnOrigin` of texts that no user typed."""

_HEADLESS = frozenset({"sdk-cli", "sdk-py", "sdk-ts"})
"""Values of `entrypoint` of runs without a user."""

_SKIPPED = frozenset(
    "attachment queue-operation last-prompt mode permission-mode tools-used cost-state progress"
    " file-history-snapshot api-request api-request-shape api-request-blob atis-latch system"
    " pr-link continued-in agent-setting relocated".split()
)
"""Kinds of records that hold no words of a conversation."""


class ClaudeCode:
    """Reads the sessions of Claude Code."""

    client = "claude-code"

    def sources(self, environment: Mapping[str, str], home: Path) -> Iterator[Source]:
        """Yields the transcripts, newest first, and those of sub-agents."""
        moved = environment.get("CLAUDE_CONFIG_DIR", "")
        folder = Path(moved) if moved else home / ".claude"
        yield from files_in(
            folder / "projects", "*/*.jsonl", "*/*/subagents/*.jsonl", "*/*/subagents/*/*.jsonl"
        )

    def read(self, source: Source, since: Progress) -> Iterator[Part]:
        """Yields the parts of a transcript after `since`."""
        is_agent = source.path.name.startswith("agent-")
        facts = Facts(
            client=self.client,
            native_id=source.path.stem,
            kind=Kind.SUBAGENT if is_agent else Kind.MAIN,
        )
        parts, titles, end = Parts(facts, is_whole=not since.offset), _Titles(since.state), 0
        with opened(source.path) as file:
            for record, end in records(file, since.offset):
                parts.records += 1
                if record is None or not self._take(record, parts, titles, is_agent=is_agent):
                    parts.unknown += 1
                parts.correct(title=titles.best)
                yield from parts.full(Progress(end, titles.rank))
        yield parts.rest(Progress(end or since.offset, titles.rank))

    def _take(
        self, record: Mapping[str, Any], parts: Parts, titles: _Titles, *, is_agent: bool
    ) -> bool:
        """Adds what a record says; returns whether it has a known shape."""
        kind = text(record, "type")
        if is_agent:
            parts.learn(parent=text(record, "sessionId"))
        parts.learn(cwd=text(record, "cwd"))
        parts.correct(branch=text(record, "gitBranch"))
        if kind == "user":
            _add_user(record, parts, is_agent=is_agent)
        elif kind == "assistant":
            _add_agent(record, parts, is_agent=is_agent)
        elif kind == "worktree-state":
            state = inner(record, "worktreeSession") or inner(record, "state") or record
            parts.learn(repository=text(state, "originalCwd"))
        elif title := _TITLES.get(kind):
            titles.offer(kind, text(record, title))
        else:
            return kind in _SKIPPED
        return True

    def resume(self, native_id: str) -> tuple[str, ...]:
        """Returns the command that continues a session."""
        return ("claude", "--resume", native_id)


_TITLES = {
    "summary": "summary",
    "agent-name": "agentName",
    "ai-title": "aiTitle",
    "custom-title": "customTitle",
}
"""The kinds of records with a title, each better than those before."""


class _Titles:
    """The best title: one that the user chose, then the agent's latest, then a summary."""

    def __init__(self, rank: str) -> None:
        self.best, self.rank = "", rank

    def offer(self, kind: str, title: str) -> None:
        order = list(_TITLES)
        if title and (not self.rank or order.index(kind) >= order.index(self.rank)):
            self.best, self.rank = title, kind


def _add_user(record: Mapping[str, Any], parts: Parts, *, is_agent: bool) -> None:
    content = inner(record, "message").get("content")
    blocks = items(record, "message", "content")
    if isinstance(content, str):
        blocks = [{"type": "text", "text": content}]
    results = [block for block in blocks if text(block, "type") == "tool_result"]
    for block in results:
        if block.get("is_error") is True:
            parts.fail(text(block, "tool_use_id"), _output(block.get("content")))
    is_side = record.get("isSidechain") is True and not is_agent
    sources = {text(record, "promptSource"), text(record, "turnOrigin")}
    if results or is_side or record.get("isMeta") or record.get("isCompactSummary"):
        return
    if sources & _UNSAID:
        return
    if text(record, "entrypoint") in _HEADLESS:
        parts.correct(kind=Kind.SUBAGENT if is_agent else Kind.HEADLESS)
    is_typed = not is_agent and text(record, "promptSource") in ("", "typed", "queued")
    at, id = moment(record.get("timestamp")), text(record, "uuid")
    for block in blocks:
        if text(block, "type") == "text":
            parts.say(text(block, "text"), at, id, is_typed=is_typed)


def _output(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = (text(block, "text") for block in content) if isinstance(content, list) else ()
    return "\n".join(texts)


def _add_agent(record: Mapping[str, Any], parts: Parts, *, is_agent: bool) -> None:
    message = inner(record, "message")
    if text(message, "model") == "<synthetic>" or (
        record.get("isSidechain") is True and not is_agent
    ):
        return
    at, id = moment(record.get("timestamp")), text(record, "uuid")
    for block in items(message, "content"):
        kind = text(block, "type")
        if kind == "text":
            parts.answer(text(block, "text"), at, id, text(message, "id"))
        elif kind == "tool_use":
            name, given = text(block, "name"), inner(block, "input")
            paths = [given[key] for key in _FILES if isinstance(given.get(key), str)]
            line = text(given, "command") or " ".join([name, *paths])
            edited = paths if name in _EDITORS else ()
            parts.call(line, at, id, id=text(block, "id"), files=edited)
