"""The parsers: functions of bytes that raise if a promise about them is broken."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any
from unittest.mock import patch

from fuzz import files, outputs, servers, sessions, tools
from fuzz.files import SEPARATOR
from fuzz.project import NOW, a_project, file, scratch
from mimo import config, when
from mimo.call import Call
from mimo.errors import Invalid, LaterFormat, MindError
from mimo.extensions.exchange import lines
from mimo.extensions.team import tokens
from mimo.features import context
from mimo.features.hooks import events
from mimo.features.hooks.command import respond
from mimo.features.procedures import machine, reading
from mimo.features.procedures.model import mermaid, tree
from mimo.frozen import replace
from mimo.guard import chain, policy
from mimo.memory import chunking, log, sources
from mimo.memory.chunking import Chunk, Chunking, Strategy, checked, chunks, resolved
from mimo.memory.codec import front_matter, value
from mimo.memory.codec.document import Unreadable
from mimo.memory.codec.file import Parsed, header_links, normal, parse, render
from mimo.memory.codec.splice import splice
from mimo.memory.merge import merge
from mimo.memory.model import Memory, Problem
from mimo.operations import finding
from mimo.operations.settings import change
from mimo.text import clean
from mimo.text.tokens import tokenize
from mimo.when import question

PATH = ".mind/decisions/x.md"

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
    for side in (ours, theirs):
        for sides in ((base, base, side), (base, side, base), (base, side, side)):
            alone = merge(*sides, path=PATH)
            assert alone is None or alone.data == side
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
    every = [parse(side, path=PATH, modified=NOW) for side in (base, ours, theirs)]
    _check_united([side.memory for side in every if isinstance(side, Parsed)], result.memory)


def _check_united(sides: Sequence[Memory], merged: Memory) -> None:
    """Checks that tags and links that all sides have, or that one has added, are kept.

    Not if a list can't be read: it is united with the others as it is, and can't be read then.
    """
    if len(sides) < 3:
        return
    for name, of in (("tags", lambda memory: memory.tags), ("links", header_links)):
        every = (*sides, merged)
        if any(version.field == name for memory in every for version in memory.competing):
            continue
        if any(name in memory.extra for memory in every):
            continue
        before, left, right = (set(of(memory)) for memory in sides)
        assert (left | right) - before | before & left & right <= set(of(merged)) <= left | right


def _lines_of(parsed: Parsed) -> Iterable[str]:
    memory = parsed.memory
    texts = [memory.content, *memory.sections.values()]
    texts += [version.text for version in memory.competing]
    return [line for text in texts for line in text.split("\n")]


def source_file(data: bytes) -> None:
    """An ingested file is read, also by its header alone, and written to be read as the same."""
    path = ".mind/sources/source_x.md"
    read = sources.parse(data, path=path, modified=NOW)
    header = sources.header_of(data, path=path)
    if isinstance(read, Problem):
        assert read.reason
    if not read or isinstance(read, Problem) or header is None:
        return
    for number, line, memory in read:
        assert memory.id == sources.chunk_id(header.id, number)
        assert 1 <= line <= data.count(b"\n") + 1
        assert (memory.type, memory.tags, memory.by) == (header.type, header.tags, header.by)
        assert memory.importance == header.importance
        assert memory.created == header.created
        assert str(memory.source).startswith(f"{header.path}:")
    kept = []
    for _, _, memory in read:
        start, end = map(int, memory.extra["lines"].split("-"))
        kept.append(Chunk(memory.content, start, end, tuple(memory.extra.get("heading_path", ()))))
    with suppress(Invalid):
        again = sources.parse(sources.render(header, kept), path=path, modified=NOW)
        assert again is not None
        assert not isinstance(again, Problem)
        assert [_without_place(each.memory) for each in again] == [
            _without_place(each.memory) for each in read
        ]


def _without_place(memory: Memory) -> Memory:
    """Returns a chunk without its number, and without keys that only people write."""
    names = ("lines", "heading_path", "source_file", "strategy", "total_chunks")
    extra = {name: memory.extra.get(name) for name in names}
    return replace(memory, id="chunk", extra=extra)


def chunked(data: bytes) -> None:
    """Chunks are unchanged stretches of the text, in its order, and have all of it.

    Those that are too short are left out by design.
    """
    first, rest = data[:4].ljust(4, b"\0"), data[4:]
    strategy = list(Strategy)[first[0] % len(Strategy)]
    name = ("a.md", "a.py", "a.txt", "a.rs", "a")[first[1] % 5]
    text = _text(rest)
    size, overlap = (None, 40, 200)[first[2] % 3], (0, 10)[first[3] % 2]
    wanted = Chunking(strategy=strategy, chunk_size=size, overlap=overlap)
    with suppress(Invalid):
        place, lines = 0, text.split("\n")
        for chunk in chunks(text, resolved(checked(wanted), name), name):
            place = text.find(chunk.text, place)
            assert place >= 0
            of_chunk = chunk.text.removesuffix("\n").split("\n")
            numbered = lines[chunk.first_line - 1 : chunk.last_line]
            assert len(numbered) == len(of_chunk)
            assert all(part in line for part, line in zip(of_chunk, numbered, strict=True))
        apart = resolved(replace(wanted, overlap=0), name)
        with patch.object(chunking, "_LEAST", 1):
            every = chunks(text, apart, name)
        assert "".join("".join(chunk.text for chunk in every).split()) == "".join(text.split())
        if size is None:
            long = [chunk for chunk in every if len(chunk.text.strip()) >= chunking._LEAST]
            assert chunks(text, apart, name) == long


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
    """A phrase for a time names a span that is not empty, or is refused.

    Case and spaces make no difference.
    """
    text = _text(data)
    named = _interval(text)
    if named and named.since and named.until:
        assert named.since < named.until
    assert _interval(f" {text.replace(' ', '  ')} ") == named
    if text.isascii():
        assert _interval(text.swapcase()) == named
    with suppress(Invalid):
        window = when.window(None, text, text, now=NOW)
        assert window.since is None or window.until is None or window.since < window.until
    question.named_time(text, NOW)
    question.understood(text, NOW)


def _interval(text: str) -> when.Interval | None:
    with suppress(Invalid):
        return when.interval(text, now=NOW)
    return None


def policy_file(data: bytes) -> None:
    """A policy is read or refused, also for an unknown key, and a stricter one permits no more."""
    read = _policy(data)
    if read is None:
        return
    assert _policy(data + b"\nunknown_key: 1\n") is None
    for tool in sorted(read.named)[:4]:
        for call in _calls(tool, read.rules[tool]):
            permits = _permits(read, call)
            assert _permits(read, call) == permits
            for rule in _stricter(read.rules[tool]):
                stricter = replace(read, rules={**read.rules, tool: rule})
                assert permits >= _permits(stricter, call)
            # The rules of a tool bind those that give the same access.
            for member, leader in policy.LEADERS.items():
                if leader == tool and member not in read.named:
                    assert permits >= _permits(read, replace(call, tool=member))
            untrusted = policy.ActivePolicies(policies=(policy.DEFAULT, read))
            assert permits >= untrusted.judge(call).permitted <= _permits(policy.DEFAULT, call)


def _policy(data: bytes) -> policy.Policy | None:
    with suppress(policy.InvalidPolicy):
        return policy.parse(data, "policy.yaml")
    return None


def _permits(read: policy.Policy, request: policy.Request) -> bool:
    return policy.ActivePolicies(policies=(read,)).judge(request).permitted


def _calls(tool: str, rule: policy.Rule) -> Iterator[policy.Request]:
    """Yields calls of a tool that are near the limits of a rule."""
    most = rule.max_ttl_seconds or 0
    spaces = [pattern.replace("*", "a") for pattern in (rule.namespaces or ())[:3]]
    for operation, namespace, kind, ttl in product(
        policy.Operation,
        (None, "other.x", *spaces),
        (None, policy.ALL, "task"),
        (None, most, most + 1),
    ):
        yield policy.Request(
            tool=tool, operation=operation, at=NOW, namespace=namespace, context=kind,
            ttl_seconds=ttl,
        )  # fmt: skip


def _stricter(rule: policy.Rule) -> Iterator[policy.Rule]:
    yield replace(rule, operations=rule.operations[1:])
    yield replace(rule, namespaces=(rule.namespaces or ())[1:])
    yield replace(rule, contexts=(rule.contexts or ())[1:])
    yield replace(rule, max_ttl_seconds=(rule.max_ttl_seconds or 1) - 1)


def procedure(data: bytes) -> None:
    """A procedure is read, and each event leads to a state; or its faults are listed."""
    result = reading.read(data)
    read = result.procedure
    for fault in (*result.faults, *result.warnings):
        assert fault.reason
        assert 1 <= (fault.line or 1) <= data.count(b"\n") + data.count(b"\r") + 1
    if read is None:
        assert result.faults
        return
    assert not result.faults
    for name, state in read.states.items():
        for event, target in state.transitions.items():
            run = machine.Run(read, {})
            run.state = name
            run.apply(machine.after_event(run, event, 0))
            assert run.state == target
            assert run.current.terminal == (not run.accepts or run.current.action is not None)
    assert mermaid(read).count(" as s") == len(read.states)
    assert len(tree(read.definition)) >= len(read.states)


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
    # The next line is read, unless the log leaves something open or nests deeper than is read.
    if not re.search(rb"[ \t>*+.)\d-]{100}", data):
        more = data + b"\n\n## 2026-11-19\n\n- decided: Zig over C, because it is small\n"
        longer = log.parse(more, path="MEMORY.md", digest="0" * 64, modified=NOW, dates=dict)
        assert not isinstance(longer, Problem)
        added = [record.memory.title for record in longer[len(read) :]]
        assert longer[: len(read)] == read
        assert added == ([] if log.unclosed(data.decode("utf-8-sig")) else ["Zig over C"])


def settings(data: bytes) -> None:
    """Settings are read, each in its type; what can't be used is a warning.

    One that is changed is read as it was given, and no other one changes. Comments stay, also when
    it is removed again.
    """
    path = file("config.toml", data)
    read = config.load(user=path, project=path)
    for setting in config.SETTINGS:
        assert type(read[setting.key]) is type(setting.default)
        assert setting.check(read[setting.key]) == read[setting.key]
    with a_project("configured") as mind:
        (mind.mind.home / "config.toml").write_bytes(data)
        (mind.mind.folder / "config.toml").write_bytes(data)
        setting = config.SETTINGS[len(data) % len(config.SETTINGS)]
        value = read[setting.key]
        text = ",".join(value) if isinstance(value, tuple) else str(value).lower()
        is_user = setting.scope is config.Scope.USER
        place = (mind.mind.home if is_user else mind.mind.folder) / "config.toml"
        is_new = setting.key.rpartition(".")[2].encode() not in data
        comments = {line for line in data.splitlines() if line.startswith(b"#") and is_new}
        with suppress(Invalid, LaterFormat):
            opened = mind.mind.reopened()
            after = change(Call(opened), setting, text, user=is_user)
            expected = {each.key: opened.config.values[each.key] for each in config.SETTINGS}
            if setting.key not in {change.key for change in after.mind.config.waiting}:
                expected[setting.key] = value
            assert expected == {key: after.mind.config.values[key] for key in expected}
            assert comments <= set(place.read_bytes().splitlines())
            change(after, setting, None, user=is_user)
            assert comments <= set(place.read_bytes().splitlines())


def token_file(data: bytes) -> None:
    """A file of tokens is read or refused, and written to be read; no token is for two users."""
    path = file("tokens.toml", data)
    with suppress(MindError):
        members = tokens.read(path)
        assert len({member.digest for member in members.values()}) == len(members)
        tokens.write(path, members.values())
        assert tokens.read(path) == members


def audit_record(data: bytes) -> None:
    """A record has one form only."""
    with suppress(Invalid):
        link = chain.link_of(data)
        assert chain.line_of(link) == data.removesuffix(b"\n") + b"\n"
        chain.fault(link, b"key")


def hook(data: bytes) -> None:
    """A hook in a project answers any JSON in the form of its client, fenced and briefly.

    A list holds the events of a session, in which each occurs twice.
    """
    try:
        read = json.loads(data)
    except (ValueError, RecursionError):
        return
    client = list(events.CLIENTS)[len(data) % len(events.CLIENTS)]
    with a_project("hooked") as mind:
        root = os.fspath(mind.mind.project.root)
        # A hook reads the index, and git's answers, as they are.
        mind.mind.trust.checker()
        finding.listing(mind)
        for folder in (mind.mind.folder / ".local", mind.mind.home):
            shutil.rmtree(folder / "sessions", ignore_errors=True)
        environ = {"HOME": os.fspath(scratch()), "MIND_HOME": os.fspath(mind.mind.home)}
        for given in read[:6] if isinstance(read, list) else [read]:
            if isinstance(given, dict):
                given["cwd"] = root
                if given.get("workspace_roots"):
                    given["workspace_roots"] = [root]
            for _ in range(2):
                answer = respond(json.dumps(given).encode(), client, environ)
                if answer is not None:
                    event = events.recognised(given, client)
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
            memory = lines.from_data(read)
            assert lines.from_data(lines.to_data(memory)) == memory


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
    **{name: partial(sessions.transcripts, client) for name, client in sessions.NAMES.items()},
}
