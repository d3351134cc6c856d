"""Transcripts of Claude Code: `~/.claude/projects/<folder>/<id>.jsonl`, and those of sub-agents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mimo.extensions.sessions.model import Facts, Kind, Part, Progress, Source
from mimo.extensions.sessions.readers.lines import (
    blocks_of,
    files_in,
    inner,
    mapping,
    moment,
    plain_id,
    small,
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
    "queue-operation last-prompt mode permission-mode tools-used cost-state progress"
    " file-history-snapshot api-request api-request-shape api-request-blob atis-latch system"
    " pr-link continued-in agent-setting relocated".split()
)
"""Kinds of records that hold no words of a conversation."""

_UNREAD_LINES = re.compile(
    rb'\{(?:"\w{1,40}":\s?(?:null|true|false|-?\d{1,20}|"[^"\\]{0,999}"),\s?){0,20}?"'
    rb'(?:type":\s?"(?:api-request[\w-]*|file-history-snapshot|progress|queue-operation)"'
    rb'|attachment":\s?\{"type":\s?"(?!queued_command"))'
)
"""The starts of records that are not parsed: most bytes of a transcript are in them."""

_SUMMARIES = 50
"""The number of summaries that are kept until the record that they describe comes."""


class ClaudeCode:
    """Reads the sessions of Claude Code."""

    client = "claude-code"

    def sources(self, environment: Mapping[str, str], home: Path) -> Iterator[Source]:
        """Yields the transcripts and those of sub-agents, newest first."""
        folder = Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude")
        yield from files_in(
            folder / "projects", "*/*.jsonl", "*/*/subagents/*.jsonl", "*/*/subagents/*/*.jsonl"
        )

    def read(self, source: Source, since: Progress) -> Iterator[Part]:
        """Yields the parts of a transcript after `since`."""
        is_agent = source.path.name.startswith("agent-")
        facts = Facts(
            client=self.client,
            native_id=text(source.path.stem),
            kind=Kind.SUBAGENT if is_agent else Kind.MAIN,
            title=_description(source.path) if is_agent else "",
        )
        parts = Parts(facts, is_whole=not since.offset, state=since.state)
        take = partial(_take, is_agent=is_agent)
        yield from parts.follow(source, since.offset, take, _learn, _UNREAD_LINES)


def _description(path: Path) -> str:
    """Returns what the agent that started a sub-agent calls its task."""
    return text(mapping(small(path.with_suffix(".meta.json"))), "description")


def _take(record: Mapping[str, Any], parts: Parts, *, is_agent: bool) -> bool:
    """Adds the turns and facts of a record; returns whether it has a known shape."""
    kind = text(record, "type")
    _learn(record, parts)
    parts.correct(branch=text(record, "gitBranch"))
    # Files of 2025 have the records of sub-agents among those of the session.
    is_side = not is_agent and record.get("isSidechain") is True
    if add := _ADDING.get(kind):
        if not is_side:
            add(record, parts)
    elif title := _TITLES.get(kind):
        _offer_title(kind, text(record, title), parts)
    elif kind != "summary":
        return kind in _SKIPPED
    if summary := parts.memory.get(text(record, "uuid")):
        _offer_title("summary", summary, parts)
    return True


def _learn(record: Mapping[str, Any], parts: Parts) -> None:
    """Notes facts that the first record with them states for all that follow."""
    if parts.facts.kind is Kind.SUBAGENT:
        parts.learn(parent=plain_id(text(record, "sessionId")))
    parts.learn(cwd=text(record, "cwd"))
    kind = text(record, "type")
    if kind == "worktree-state":
        state = inner(record, "worktreeSession") or inner(record, "state") or record
        parts.learn(repository=text(state, "originalCwd"))
    if kind == "summary" and len(parts.memory) < _SUMMARIES:
        # It may be one of another session, so it waits for the record that it names.
        parts.memory[text(record, "leafUuid")] = text(record, "summary")


_TITLES = {
    "agent-name": "agentName",
    "ai-title": "aiTitle",
    "custom-title": "customTitle",
}
"""The kinds of records with a title, each better than those before."""


def _offer_title(kind: str, title: str, parts: Parts) -> None:
    """Takes a title that is at least as good as the one so far: the best is the user's own."""
    order = ["summary", *_TITLES]
    best = parts.noted("title")
    if title and (best not in order or order.index(kind) >= order.index(best)):
        parts.correct(title=title)
        parts.note("title", kind)


def _add_user(record: Mapping[str, Any], parts: Parts) -> None:
    content = inner(record, "message").get("content")
    results = [block for block in blocks_of(content) if text(block, "type") == "tool_result"]
    for block in results:
        if block.get("is_error") is True:
            parts.fail(text(block, "tool_use_id"), "\n".join(_texts(block.get("content"))))
        else:
            parts.succeed(text(block, "tool_use_id"))
    origins = {text(record, "promptSource"), text(record, "turnOrigin")}
    is_written = record.get("isMeta") or record.get("isCompactSummary")
    if results or is_written or origins & _UNSAID:
        return
    if text(record, "entrypoint") in _HEADLESS and parts.facts.kind is Kind.MAIN:
        parts.correct(kind=Kind.HEADLESS)
    is_typed = text(record, "promptSource") in ("", "typed", "queued")
    is_typed = is_typed and parts.facts.kind is Kind.MAIN
    at, id = moment(record.get("timestamp")), plain_id(record.get("uuid"))
    parts.say(_texts(content), at, id, is_typed=is_typed)


def _add_queued(record: Mapping[str, Any], parts: Parts) -> None:
    """Adds a prompt that was typed while the agent worked; it often is a record of its own, too."""
    queued = inner(record, "attachment")
    if parts.facts.kind is Kind.SUBAGENT or text(queued, "commandMode") not in ("", "prompt"):
        return
    if text(queued, "type") == "queued_command":
        at, id = moment(record.get("timestamp")), plain_id(record.get("uuid"))
        parts.say(_texts(queued.get("prompt")), at, id, is_queued=True)


def _add_agent(record: Mapping[str, Any], parts: Parts) -> None:
    message = inner(record, "message")
    if text(message, "model") == "<synthetic>":
        return
    at, id = moment(record.get("timestamp")), plain_id(record.get("uuid"))
    texts: list[str] = []
    for block in blocks_of(message.get("content")):
        kind = text(block, "type")
        if kind == "text":
            texts.append(text(block, "text"))
        elif kind == "tool_use":
            parts.answer("\n\n".join(texts), at, id)
            texts = []
            name, arguments = text(block, "name"), inner(block, "input")
            paths = [path for key in _FILES if (path := text(arguments, key))]
            line = text(arguments, "command") or " ".join([name, *paths])
            edited = paths if name in _EDITORS else ()
            parts.call(line, at, id, id=text(block, "id"), files=edited)
    parts.answer("\n\n".join(texts), at, id)


def _texts(content: Any) -> list[str]:
    """Returns the texts of a message or a result."""
    return [text(block, "text") for block in blocks_of(content)]


_ADDING: Mapping[str, Callable[[Mapping[str, Any], Parts], None]] = {
    "user": _add_user,
    "assistant": _add_agent,
    "attachment": _add_queued,
}
"""The functions that add the records of a kind."""
