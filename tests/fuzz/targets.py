"""The parsers: functions of bytes that raise if a promise about them is broken."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from mimo import config, when
from mimo.errors import Invalid, MindError
from mimo.features import context
from mimo.features.hooks import events
from mimo.features.hooks.command import respond
from mimo.features.procedures import reading
from mimo.frozen import replace
from mimo.guard import chain, policy, tokens
from mimo.memory import exchange, log, sources
from mimo.memory.chunking import Chunking, Strategy, checked, chunks, resolved
from mimo.memory.codec import front_matter, value
from mimo.memory.codec.document import Unreadable
from mimo.memory.codec.file import Parsed, normal, parse, render
from mimo.memory.codec.splice import splice
from mimo.memory.merge import merge
from mimo.memory.model import Problem
from mimo.operations import finding
from mimo.text import clean
from mimo.text.tokens import tokenize
from mimo.when import question
from tests.fuzz import files, outputs, servers, tools
from tests.fuzz.project import NOW, a_project, file, scratch

PATH = ".mind/decisions/x.md"
SEPARATOR = b"\0\0"
"""Divides the bytes of a target that takes several."""

Target = Callable[[bytes], None]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _json(data: bytes) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(data)
    return None


def _parts(data: bytes, number: int) -> list[bytes]:
    """Returns the bytes between separators; the last parts are empty if there are too few."""
    return [*data.split(SEPARATOR, number - 1), *[b""] * number][:number]


def memory_file(data: bytes) -> None:
    """A memory reads back as itself; an edit changes only what was edited."""
    for path in (PATH, "docs/a.md"):
        parsed = parse(data, path=path, modified=NOW)
        if isinstance(parsed, Problem):
            assert parsed.reason
            continue
        memory = parsed.memory
        assert splice(data, memory, memory, path=path) == data
        # A longer key is read, but not written.
        if path == PATH and max(map(len, memory.extra), default=0) <= 200:
            again = parse(render(memory), path=path, modified=NOW)
            assert isinstance(again, Parsed)
            assert again.memory == normal(memory)
        edited = replace(memory, topic="fuzz", importance=0.25)
        with suppress(Invalid):
            changed = parse(splice(data, memory, edited, path=path), path=path, modified=NOW)
            assert isinstance(changed, Parsed)
            assert normal(changed.memory) == normal(edited)


def header(data: bytes) -> None:
    """Restricted YAML reads the same in the short and the long way, and is written to be read."""
    text = _text(data)
    short = front_matter.load_flat(text)
    try:
        long = front_matter.read(text).data
    except (Unreadable, front_matter.NotAMapping):
        assert short is None
        return
    assert short is None or short == long
    with suppress(Unreadable, Invalid, ValueError):
        assert repr(front_matter.read(front_matter.emitted_lines(long)).data) == repr(long)


def three_versions(data: bytes) -> None:
    """A merge is the same in both orders, can be read, and has every line of both sides."""
    base, ours, theirs = _parts(data, 3)
    merged = merge(base, ours, theirs, path=PATH)
    assert merged == merge(base, theirs, ours, path=PATH)
    if merged is None:
        return
    before = parse(base, path=PATH, modified=NOW)
    result = parse(merged.data, path=PATH, modified=NOW)
    if not isinstance(result, Parsed):
        assert not all(
            isinstance(parse(side, path=PATH, modified=NOW), Parsed) for side in (ours, theirs)
        )
        return
    kept = set(_lines_of(result))
    old = set(_text(base).splitlines())  # a line that only one side removed is not kept
    if isinstance(before, Parsed):
        old |= set(_lines_of(before))
    for side in (ours, theirs):
        parsed = parse(side, path=PATH, modified=NOW)
        if isinstance(parsed, Parsed):
            assert {line for line in _lines_of(parsed) if line.strip(" \t\r")} - old <= kept


def _lines_of(parsed: Parsed) -> Iterable[str]:
    memory = parsed.memory
    texts = [memory.content, *memory.sections.values()]
    texts += [version.text for version in memory.competing]
    return [line for text in texts for line in text.split("\n")]


def source_file(data: bytes) -> None:
    """An ingested file is read, or the reason is given."""
    for read in (
        sources.parse(data, path=".mind/sources/source_x.md", modified=NOW),
        sources.header_of(data, path=".mind/sources/source_x.md"),
    ):
        if isinstance(read, Problem):
            assert read.reason


def chunked(data: bytes) -> None:
    """Chunks are unchanged stretches of the text, in its order."""
    first, rest = data[:4].ljust(4, b"\0"), data[4:]
    strategy = list(Strategy)[first[0] % len(Strategy)]
    name = ("a.md", "a.py", "a.txt", "a.rs", "a")[first[1] % 5]
    text = _text(rest)
    wanted = Chunking(
        strategy=strategy,
        chunk_size=(None, 40, 200)[first[2] % 3],
        overlap=(0, 10)[first[3] % 2],
    )
    with suppress(Invalid):
        place = 0
        for chunk in chunks(text, resolved(checked(wanted), name), name):
            place = text.find(chunk.text, place)
            assert place >= 0
            assert 1 <= chunk.first_line <= chunk.last_line <= text.count("\n") + 1


def stored_value(data: bytes) -> None:
    """A value is written to be read."""
    try:
        namespace, key, read = value.parse(data)
        value.packed(read)
    except (Unreadable, Invalid):
        return
    again = value.parse(value.render(namespace or "a", key or "b", read))
    assert value.exactly(again[2], read)


def time_phrase(data: bytes) -> None:
    """A phrase for a time names an interval that is not empty, or is refused."""
    text = _text(data)
    with suppress(Invalid):
        interval = when.interval(text, now=NOW)
        assert interval.since is None or interval.until is None or interval.since <= interval.until
    with suppress(Invalid):
        when.instant(text)
    question.named_time(text, NOW)
    question.understood(text, NOW)


def policy_file(data: bytes) -> None:
    """A policy is read or refused."""
    with suppress(policy.InvalidPolicy):
        policy.parse(data, "policy.yaml")


def procedure(data: bytes) -> None:
    """A procedure is read, or its faults are listed."""
    reading.read(data)


def context_block(data: bytes) -> None:
    """Writing the block of notes changes no byte around it."""
    with suppress(MindError):
        written = context.replaced(data, "- a note", force=True)
        block = context.find(written)
        assert block is not None
        assert block.body == "- a note"
        assert not block.edited
        before = context.find(data)
        if before is not None:
            assert written[: block.start] == data[: before.start]
            assert written[block.end :] == data[before.end :]
        else:
            around = written[: block.start] + written[block.end :]
            assert around.replace(b"\r", b"").replace(b"\n", b"") == data.replace(
                b"\r", b""
            ).replace(b"\n", b"")
        assert context.replaced(written, "- a note") == written


def memory_log(data: bytes) -> None:
    """A log such as MEMORY.md is read line by line, each with an id of its own."""
    read = log.parse(data, path="MEMORY.md", digest="0" * 64, modified=NOW, dates=dict)
    if isinstance(read, Problem):
        assert read.reason
        return
    ids = [record.memory.id for record in read]
    assert len(set(ids)) == len(ids)
    for record in read:
        assert 1 <= (record.place.line or 1) <= data.count(b"\n") + data.count(b"\r") + 1


def settings(data: bytes) -> None:
    """Settings are read; what can't be used is a warning."""
    path = file("config.toml", data)
    read = config.load(user=path, project=path)
    assert read.values.keys() >= {setting.key for setting in config.SETTINGS}


def token_file(data: bytes) -> None:
    """A file of tokens is read or refused."""
    with suppress(MindError):
        tokens.read(file("tokens.toml", data))


def audit_record(data: bytes) -> None:
    """A record has one form only."""
    with suppress(Invalid):
        link = chain.link_of(data)
        assert chain.line_of(link) == data.removesuffix(b"\n") + b"\n"
        chain.fault(link, b"key")


def hook(data: bytes) -> None:
    """A hook in a project answers any JSON in the form of its client, fenced and briefly."""
    try:
        read = json.loads(data)
    except (ValueError, RecursionError):
        return
    client = list(events.CLIENTS)[len(data) % len(events.CLIENTS)]
    with a_project("hooked") as mind:
        root = os.fspath(mind.project.root)
        if isinstance(read, dict):
            read["cwd"] = root
            if read.get("workspace_roots"):
                read["workspace_roots"] = [root]
            finding.listing(mind)  # A hook reads the index as it is.
            shutil.rmtree(mind.folder / ".local" / "sessions", ignore_errors=True)
        environ = {"HOME": os.fspath(scratch()), "MIND_HOME": os.fspath(mind.home)}
        for _ in range(2):
            answer = respond(json.dumps(read).encode(), client, environ)
            event = events.recognised(read, client)
            if answer is not None:
                assert event is not None
                _check_answer(event, answer)


_SPECIFIC = frozenset(
    {"additionalContext", "permissionDecision", "permissionDecisionReason", "decision", "reason"}
)
_OF_CURSOR = frozenset(
    {"additional_context", "permission", "user_message", "agent_message", "followup_message"}
)


def _check_answer(event: events.Event, answer: Mapping[str, Any]) -> None:
    """Checks that an answer has the keys of its client, and texts that are brief and fenced."""
    fields = dict(answer)
    if event.dialect is events.Dialect.CURSOR:
        assert fields.keys() <= _OF_CURSOR
    else:
        specific = fields.pop("hookSpecificOutput", None)
        is_flat = event.dialect in (events.Dialect.COPILOT, events.Dialect.OPENCODE)
        assert is_flat or not fields.keys() & {"additionalContext", "permissionDecision"}
        if specific is not None:
            assert not is_flat
            assert specific.pop("hookEventName") == event.name
            assert len(specific) >= 1
            assert specific.keys() <= _SPECIFIC
            fields |= specific
        assert fields.keys() <= _SPECIFIC | {"systemMessage"}
    for shown in fields.values():
        assert len(shown) <= events.MAX_CHARS
        outputs.check_fenced(shown)


def exchanged(data: bytes) -> None:
    """A memory of an export is read or refused, and written to be read."""
    read = _json(data)
    if isinstance(read, dict):
        with suppress(Invalid):
            memory = exchange.from_data(read)
            assert exchange.from_data(exchange.to_data(memory)) == memory


def shown_text(data: bytes) -> None:
    """Text for a person has no control characters, and cleaning it again changes nothing."""
    text = _text(data)
    cleaned = clean.clean(text)
    assert not _CONTROL.search(cleaned.replace("\r", ""))
    assert clean.clean(cleaned) == cleaned
    line = clean.one_line(text)
    assert len(line.splitlines()) <= 1
    assert clean.inert(clean.inert(line)) == clean.inert(line)
    for each in clean.inert(text).splitlines():
        assert not re.match(r"\s*(::[a-z-]+( [^:]*)?::|##\[)", each)
    with suppress(ValueError):
        json.loads(clean.escaped(json.dumps(text, ensure_ascii=False)))
    tokenize(text)


TARGETS: Mapping[str, Target] = {
    "memory": memory_file,
    "header": header,
    "merge": three_versions,
    "source": source_file,
    "chunks": chunked,
    "value": stored_value,
    "time": time_phrase,
    "policy": policy_file,
    "procedure": procedure,
    "context": context_block,
    "log": memory_log,
    "settings": settings,
    "tokens": token_file,
    "audit": audit_record,
    "hook": hook,
    "import": files.imported,
    "export": exchanged,
    "text": shown_text,
    "edit": files.edited_memory,
    "client": files.client_file,
    "database": files.damaged_database,
    "query": files.query,
    "page": files.page_text,
    "shared": files.shared_row,
    "schema": tools.schemas,
    "tools": tools.calls,
    "stdio": servers.frames,
    "http": servers.requests,
    "web": servers.pages,
    "output": outputs.hostile_outputs,
}
