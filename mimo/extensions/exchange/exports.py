"""Exports as JSON and text: mind's own, mem0, jrnl, the MCP reference server, and conversations."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from mimo.api import (
    LARGEST_JSON,
    Draft,
    Invalid,
    Kind,
    Link,
    Problem,
    Source,
    Unreadable,
    bullets,
    check_store,
    codec,
    foreign,
    header_of,
    loads_or_none,
    replace,
)
from mimo.extensions.exchange import lines
from mimo.extensions.exchange.notes import first_moment, is_marked, is_private, link_of, read

_UNDATED = datetime(2000, 1, 1, tzinfo=UTC)
"""Not used: only files with a date are parsed."""


def formats_of(content: str) -> list[str]:
    """Returns the formats that a text of JSON, or of JSON in lines, may have."""
    line = _first_object(content) or {}
    if line.get("kind") == "mind":
        return ["mind"]
    if line.get("type") in ("entity", "relation"):
        return ["mcp-memory"]
    data = [line] if _is_lines(content) else foreign.parsed(content)
    if isinstance(data, dict):
        if isinstance(data.get("entries"), list) and "tags" in data:
            return ["jrnl"]
        if isinstance(data.get("entities"), list):
            return ["mcp-memory"]
        if isinstance(data.get("results"), list):
            return ["mem0"]
    items = data if isinstance(data, list) else []
    keys = next((item.keys() for item in items if isinstance(item, dict)), set[str]())
    if {"id", "title", "issue_type"} <= keys:
        return ["beads"]
    marks = {"mapping": "chatgpt", "chat_messages": "claude-chats", "memory": "mem0"}
    return [format for mark, format in marks.items() if mark in keys]


_UPPER = 20
"""The number of lines of which the first that is an object shows the format."""

_PROBLEM = "\0problem"
"""The key of the reason for which a line can't be read. No text of JSON in lines has it."""


def _objects(source: Source, what: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the objects of a file of JSON or of JSON in lines, each with its place.

    A line that can't be read has only its `_PROBLEM`: the others count.
    """
    names = [source.path.name] if source.is_file else source.named(".jsonl", ".json")
    for name in names:
        content = source.text(name, LARGEST_JSON)
        if _is_lines(content):
            yield from _of_lines(content, what)
            continue
        data = foreign.parsed(content)
        for key in ("results", "memories"):
            if isinstance(data, dict) and isinstance(data.get(key), list):
                data = data[key]
        for number, item in enumerate(data if isinstance(data, list) else [data], 1):
            if not isinstance(item, dict):
                raise Unreadable(f"item {number} is not {what}")
            yield f"item {number}", item


def _of_lines(content: str, what: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in enumerate(content.split("\n"), 1):
        if line.strip("\ufeff \t\r"):
            try:
                data = foreign.parsed(line)
            except Unreadable as error:
                data = {_PROBLEM: error.reason}
            yield (
                f"line {number}",
                data if isinstance(data, dict) else {_PROBLEM: f"it is not {what}"},
            )


def _broken(place: str, data: Mapping[str, Any]) -> Iterator[Draft]:
    """Yields the draft of a line that can't be read, which names it."""
    if reason := data.get(_PROBLEM):
        yield Draft(key=place, group="lines", skipped=str(reason))


def _is_lines(content: str) -> bool:
    """Returns whether a text has one object on each line, of which some may be broken."""
    head, _, tail = content.lstrip("\ufeff \t\r\n").partition("\n")
    if not tail.strip() or _first_object(content) is None:
        return False
    # If not, the first line is broken, or the text is a single object on several lines.
    return loads_or_none(head) is not None or loads_or_none(content) is None


def _first_object(content: str) -> Mapping[str, Any] | None:
    """Returns the object on the first of the upper lines that is one, or None."""
    text = content.lstrip("\ufeff \t\r\n")
    for line in text.split("\n", _UPPER)[:_UPPER] if not text.startswith("[") else ():
        data = loads_or_none(line)
        if data is not None:
            return data if isinstance(data, dict) else None
    return None


# mind's own exports.


def mind(source: Source) -> Iterator[Draft]:
    """Yields the memories of an export by mind: lines of JSON, or files in a folder or one of them.

    Raises `Invalid` for a later version of the format and for a file that was cut, and
    `StorageFailed` for the store of a later version of mind.
    """
    check_store(source)
    markdown = source.named(".md")
    if source.is_file and not markdown:
        yield from _lines(source)
        return
    for name in markdown:
        note = read(source, name)
        if note.problem or not note.is_own:
            if name.rpartition("/")[2].lower() not in ("index.md", "readme.md"):
                reason = note.problem or "its header has no id, type and date of a memory"
                yield Draft(key=name, group="files", skipped=reason)
            continue
        path = f".mind/facts/{name.rpartition('/')[2]}"
        data = source.content(name, 1024 * 1024)
        if header_of(data, path=path):
            # Its chunks are copies, and its id would be that of the file when it is ingested here.
            yield Draft(key=name, group="files", skipped="it is an ingested file; ingest it here")
            continue
        data = lines.without_links(data)
        file = codec.parse(data, path=path, modified=_UNDATED)
        if isinstance(file, Problem):
            yield Draft(key=name, group="files", skipped=file.reason)
        else:
            memory = lines.without_additions(file.memory)
            group = f"{memory.type.value}s"
            private = is_private(source, note)
            yield Draft(key=memory.id, group=group, whole=memory, is_unique=True, private=private)


def _lines(source: Source) -> Iterator[Draft]:
    count, end = 0, None
    for place, data in _objects(source, "a memory"):
        match data.get("kind"):
            case "mind":
                if not isinstance(data.get("format"), int) or data["format"] > lines.FORMAT:
                    raise Invalid(
                        f"the export has format {data.get('format')}; this mind reads "
                        f"{lines.FORMAT}",
                        hint="update mind",
                    )
            case "memory":
                count += 1
                try:
                    memory = lines.from_data(data)
                except Invalid as error:
                    key = str(data.get("id") or place)
                    yield Draft(key=key, group="memories", skipped=f"{place}: {error.message}")
                    continue
                yield Draft(
                    key=memory.id,
                    group=f"{memory.type.value}s",
                    whole=memory,
                    is_unique=True,
                    private=is_marked(data) or is_marked(memory.extra),
                )
            case "end":
                end = data.get("memories")
            case None:
                count += _PROBLEM in data
                yield from _broken(place, data)
    if end != count:
        raise Invalid(
            f"`{source.path}` is not complete: it has {count:,} memories, and its end is missing"
            if end is None
            else f"`{source.path}` is not complete: it has {count:,} of {end} memories",
            hint="export it again",
        )


# Facts.


def mcp_memory(source: Source) -> Iterator[Draft]:
    """Yields the entities of the MCP reference server's graph; relations become links."""
    entities: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    relations: defaultdict[str, dict[Link, None]] = defaultdict(dict)
    details: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    skipped: list[Draft] = []
    for place, data in _graph(source):
        name = foreign.text(data.get("name") or data.get("entityName") or data.get("id"))
        start = foreign.text(data.get("from") or data.get("from_id"))
        end = foreign.text(data.get("to") or data.get("to_id"))
        if data.get("type", "entity") == "entity" and name:
            entities[name].append(data)
        elif data.get("type") == "relation" and start and end and not is_marked(data):
            label = foreign.text(data.get("relationType") or data.get("relation_type")) or ""
            relations[start][link_of(label, end)] = None
            if more := _unused(data, _OF_RELATION):
                details[start].append({"relation": label, "to": end, **more})
        elif _PROBLEM in data:
            skipped += _broken(place, data)
        else:
            reason = "it is neither an entity nor a relation"
            reason = "it is a private relation" if start and is_marked(data) else reason
            skipped.append(Draft(key=place, group="others", skipped=reason))
    for name, parts in entities.items():
        yield _entity(name, parts, tuple(relations.pop(name, ())), details.get(name))
    yield from skipped
    for start, links in relations.items():
        reason = "the relation begins at an entity that is not in the file"
        for link in links:
            key = f"{start} {link.type} {link.to}"
            yield Draft(key=key, group="relations", skipped=reason)


def _entity(
    name: str,
    parts: Sequence[Mapping[str, Any]],
    links: tuple[Link, ...],
    details: Sequence[Mapping[str, Any]] | None,
) -> Draft:
    """Returns an entity, of which the file may have several parts.

    `details` are the other fields of the relations that begin at it.
    """
    lines: list[str] = []
    problem = None
    for data in parts:
        observations = data.get("observations")
        listed = [observations] if isinstance(observations, str) else observations or []
        if not isinstance(listed, list):
            problem = "its observations are not a list"
            break
        texts = (
            json.dumps(item, ensure_ascii=False) if isinstance(item, list | dict) else item
            for item in listed
        )
        # The file may have an entity twice, the second time with more observations.
        earlier = set(lines)
        lines += [line for item in texts if (line := foreign.text(item)) and line not in earlier]
    kind = next(filter(None, (foreign.text(data.get("entityType")) for data in parts)), None)
    created = next(filter(None, (first_moment(data, _CREATED) for data in parts)), None)
    fields = {
        key: value
        for data in parts
        for key, value in _unused(data, _OF_ENTITY).items()
        # The date is that of the memory, and the id may be the name.
        if not (key in _CREATED and created and foreign.moment(value) == created) and value != name
    }
    extra, prose = foreign.divided(
        {"entity_type": kind, **fields, "relation_details": details}, "mcp"
    )
    return Draft(
        key=name,
        group="entities",
        content=foreign.joined(bullets(lines), *prose),
        created=created,
        title=name,
        tags=foreign.tags(*(data.get("tags") for data in parts)),
        links=links,
        extra=extra,
        private=any(map(is_marked, parts)),
        skipped=problem,
    )


_CREATED = ("createdAt", "created_at", "created", "timestamp", "updatedAt", "updated_at")
_OF_ENTITY = frozenset("type name entityName entityType observations tags".split())
_OF_RELATION = frozenset("type from from_id to to_id relationType relation_type".split())


def _graph(source: Source) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields entities and relations, also of the server's answer `read_graph`."""
    for place, data in _objects(source, "an object"):
        if isinstance(data.get("entities"), list):
            for kind in ("entities", "relations"):
                listed = data.get(kind) or []
                for number, item in enumerate(listed if isinstance(listed, list) else [listed], 1):
                    word = "entity" if kind == "entities" else "relation"
                    yield (
                        f"{kind} {number}",
                        {**item, "type": word} if isinstance(item, dict) else {},
                    )
        else:
            yield place, data


_OF_MEM0 = frozenset("id memory categories created_at score".split())


def mem0(source: Source) -> Iterator[Draft]:
    """Yields the memories of an export of mem0."""
    for place, data in _objects(source, "a memory of mem0"):
        content = foreign.text(data.get("memory") or data.get("data"))
        key = foreign.text(data.get("id"))
        if not content:
            reason = str(data.get(_PROBLEM) or "it has no text")
            yield Draft(key=key or place, group="memories", skipped=reason)
            continue
        extra, prose = foreign.divided(
            {name: value or None for name, value in data.items() if name not in _OF_MEM0}, "mem0"
        )
        categories = data.get("categories")
        yield Draft(
            key=key or foreign.digest(content),
            is_unique=True,
            group="memories",
            content=foreign.joined(content, *prose),
            created=foreign.moment(data.get("created_at"))
            or foreign.moment(data.get("updated_at")),
            tags=foreign.tags(categories if isinstance(categories, list) else None),
            extra=extra,
            private=is_marked(data),
        )


_OF_BEADS = frozenset(
    "id title description design acceptance_criteria notes status priority issue_type created_at"
    " labels dependencies comments close_reason".split()
)
_TEXTS_OF_BEADS = ("design", "acceptance_criteria", "notes", "close_reason")


def beads(source: Source) -> Iterator[Draft]:
    """Yields the issues of beads: bugs as issues, all others as plans; dependencies are links."""
    for place, data in _objects(source, "an issue of beads"):
        key, title = foreign.text(data.get("id")), foreign.text(data.get("title"))
        status = foreign.text(data.get("status"))
        if not key or not title or status == "tombstone":
            reason = "it was deleted" if status == "tombstone" else "it has no id and title"
            reason = str(data.get(_PROBLEM) or reason)
            yield Draft(key=key or place, group="issues", skipped=reason)
            continue
        kind, labels = foreign.text(data.get("issue_type")), data.get("labels")
        texts = [(name.replace("_", " "), foreign.text(data.get(name))) for name in _TEXTS_OF_BEADS]
        rest = {name: value or None for name, value in data.items() if name not in _OF_BEADS}
        extra, prose = foreign.divided({"issue_type": kind, **rest}, "beads")
        priority = data.get("priority")
        rank = priority if isinstance(priority, int) and 0 <= priority <= 4 else 2
        yield Draft(
            key=key,
            group="issues",
            type=Kind.ISSUE if kind == "bug" else Kind.PLAN,
            content=foreign.joined(
                foreign.text(data.get("description")) or title,
                *(f"### {name.capitalize()}\n\n{text}" for name, text in texts if text),
                *(f"**{by or 'comment'}:** {text}" for by, text in _comments(data)),
                *prose,
            ),
            created=foreign.moment(data.get("created_at")),
            title=title,
            tags=foreign.tags(labels if isinstance(labels, list) else None),
            status=status,
            importance=(9 - 2 * rank) / 10,
            links=tuple(_dependencies(data)),
            extra=extra,
            private=is_marked(data),
        )


def _comments(data: Mapping[str, Any]) -> Iterator[tuple[str | None, str]]:
    listed = data.get("comments")
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, dict) and (text := foreign.text(item.get("text"))):
            yield foreign.text(item.get("author")), text


def _dependencies(data: Mapping[str, Any]) -> Iterator[Link]:
    listed = data.get("dependencies")
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, dict) and (to := foreign.text(item.get("depends_on_id"))):
            # `blocks` is the kind of a dependency: the other issue blocks this one.
            kind = foreign.text(item.get("type")) or "blocks"
            yield link_of("depends on" if kind == "blocks" else kind, to)


_OF_ENTRY = frozenset("title body date time tags starred".split())
_STAMPED = re.compile(r"^\[([^\[\]\n]{8,40})\] ?(.*)$", re.M)
_BARE = re.compile(r"^(\d{4}-\d\d-\d\d \d{1,2}:\d\d(?: [AaPp][Mm])?) (.*)$", re.M)
"""The first lines of entries: since version 2, and before."""
_DATES = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%d %b %Y", "%d %B %Y", "%b %d %Y", "%B %d %Y", "%m/%d/%y", "%d/%m/%y",
)  # fmt: skip
_TIMES = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p", "")
_WEEKDAY = re.compile(r"\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b", re.I)
_BEGINNING = 4_000
"""The characters of a text that show whether it is a journal."""
_SAMPLE = 200
"""The number of stamps by which the form of all is recognised."""


def _stamps(content: str) -> tuple[str, list[re.Match[str]]]:
    """Returns the form of the times of a journal, as its settings have it, and its entries.

    It is the form that fits most of the first stamps; of two, the one with the day first. Lines of
    another form belong to the text.
    """
    best: tuple[str, list[re.Match[str]]] = ("", [])
    for pattern in (_STAMPED, _BARE):
        marks = list(pattern.finditer(content))
        forms = [f"{day} {time}".strip() for day in _DATES for time in _TIMES]
        sample = [_plain_stamp(mark[1]) for mark in marks[:_SAMPLE]]
        form = max(forms, key=lambda form: sum(_time_of(text, form) is not None for text in sample))
        entries = [mark for mark in marks if _time_of(_plain_stamp(mark[1]), form)]
        best = max(best, (form, entries), key=lambda pair: len(pair[1]))
    return best


def _plain_stamp(text: str) -> str:
    """Returns a stamp without the weekday, commas and the `T` between date and time."""
    words = _WEEKDAY.sub(" ", text.replace(",", " "))
    return " ".join(re.sub(r"(?<=\d)T(?=\d)", " ", words).split())


def _time_of(stamp: str, form: str) -> datetime | None:
    with suppress(ValueError):
        return datetime.strptime(stamp, form)  # noqa: DTZ007 - a journal has the time of the clock
    return None


def is_journal(content: str) -> bool:
    """Returns whether a text begins with an entry of jrnl."""
    _, entries = _stamps(content[:_BEGINNING])
    return bool(entries) and not content[: entries[0].start()].strip("\ufeff \r\n")


def jrnl(source: Source) -> Iterator[Draft]:
    """Yields the entries of a journal of jrnl, as JSON or as its own text."""
    names = [source.path.name] if source.is_file else source.named(".txt", ".json")
    for name in names:
        content = source.text(name, LARGEST_JSON)
        if content.lstrip().startswith("{"):
            data = foreign.parsed(content)
            entries = data.get("entries") if isinstance(data, dict) else None
            if not isinstance(entries, list):
                raise Unreadable("not an export of jrnl: it has no `entries`")
            for number, entry in enumerate(entries, 1):
                if not isinstance(entry, dict):
                    raise Unreadable(f"entry {number} is not an object")
                when = f"{entry.get('date')} {entry.get('time')}"
                title, body = foreign.text(entry.get("title")), foreign.text(entry.get("body"))
                draft = _entry(when, title, body, starred=entry.get("starred") is True)
                extra, prose = foreign.divided(_unused(entry, _OF_ENTRY), "jrnl")
                # jrnl lists the tags of the text in lower case.
                listed = {
                    tag.casefold(): tag for tag in (*foreign.tags(entry.get("tags")), *draft.tags)
                }
                yield replace(
                    draft,
                    content=foreign.joined(draft.content, *prose),
                    tags=foreign.tags([*draft.tags], [*listed.values()]),
                    extra={**draft.extra, **extra},
                    private=is_marked(entry),
                )
        else:
            yield from _entries(content)


def _entries(content: str) -> Iterator[Draft]:
    form, starts = _stamps(content)
    if not starts:
        raise Unreadable("no entry of jrnl: each begins with `[date time]`")
    if content[: starts[0].start()].strip("\ufeff \n"):
        reason = "it is not an entry: no `[date time]` is above it"
        yield Draft(key="the beginning", group="others", skipped=reason)
    ends = [match.start() for match in starts[1:]] + [len(content)]
    for match, end in zip(starts, ends, strict=True):
        title = match[2].strip()
        is_starred = title.endswith(" *")
        yield _entry(
            f"{_time_of(_plain_stamp(match[1]), form):%Y-%m-%d %H:%M:%S}",
            title.removesuffix(" *"),
            content[match.end() : end].strip("\n") or None,
            starred=is_starred,
        )


def _entry(when: str, title: str | None, body: str | None, *, starred: bool) -> Draft:
    words = " ".join(filter(None, (title, body)))
    return Draft(
        # Minutes, since the export as JSON has no seconds.
        key=f"{_minutes(when)} {title or ''}".strip(),
        group="entries",
        type=Kind.OBSERVATION,
        content=foreign.joined(title, body),
        created=foreign.moment(when),
        title=title,
        tags=foreign.tags([tag.rstrip(".,;:!?") for tag in re.findall(r"(?<!\S)@[^\s@,]+", words)]),
        extra={"starred": True} if starred else {},
    )


def _minutes(when: str) -> str:
    match = re.match(r"(\S+) (\d{1,2}):(\d{2})", when)
    return f"{match[1]} {int(match[2]):02}:{match[3]}" if match else when


# Conversations: only the user's own words, as private context that waits for a review.


def chatgpt(source: Source) -> Iterator[Draft]:
    """Yields the conversations of an export of ChatGPT."""
    for data in _conversations(source):
        key = foreign.text(data.get("conversation_id") or data.get("id"))
        mapping = data.get("mapping")
        nodes = _path(mapping if isinstance(mapping, dict) else {}, data.get("current_node"))
        turns = [words for node in nodes if (words := _words(node))]
        yield _conversation(key, data.get("title"), data.get("create_time"), turns)


def _path(mapping: Mapping[str, Any], current: object) -> list[Mapping[str, Any]]:
    """Returns the messages that lead to the current one; abandoned branches are left out."""
    path: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    while isinstance(current, str) and current not in seen:
        seen.add(current)
        node = mapping.get(current)
        if not isinstance(node, dict):
            break
        if isinstance(node.get("message"), dict):
            path.append(node["message"])
        current = node.get("parent")
    return path[::-1]


def _words(message: Mapping[str, Any]) -> str | None:
    """Returns the text that a user typed; None for any other message."""
    author, content, metadata = (message.get(key) for key in ("author", "content", "metadata"))
    if not isinstance(author, dict) or author.get("role") != "user":
        return None
    if isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation"):
        return None
    parts = content.get("parts") if isinstance(content, dict) else None
    if not isinstance(parts, list):
        return None
    return foreign.text("\n\n".join(filter(None, map(_part, parts))))


def _part(part: object) -> str | None:
    """Returns the text of a part of a message, also of one that was spoken."""
    if isinstance(part, dict) and part.get("content_type") == "audio_transcription":
        return foreign.text(part.get("text"))
    return part if isinstance(part, str) else None


def claude_chats(source: Source) -> Iterator[Draft]:
    """Yields the conversations and the projects' documents of an export of Claude.ai."""
    for data in _conversations(source):
        messages = data.get("chat_messages")
        turns = [
            words
            for message in _branch(messages if isinstance(messages, list) else [], data)
            if message.get("sender") == "human" and (words := _typed(message))
        ]
        key = foreign.text(data.get("uuid"))
        yield _conversation(key, data.get("name"), data.get("created_at"), turns)
    for name in source.files:
        if name.rpartition("/")[2] == "projects.json":
            projects = source.json(name)
            for project in projects if isinstance(projects, list) else ():
                if isinstance(project, dict):
                    yield from _project(project)


def _branch(messages: Sequence[Any], conversation: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the messages that lead to the current one; all, if they do not name their parents."""
    entries: list[Mapping[str, Any]]
    entries = [message for message in messages if isinstance(message, dict)]
    if not all(isinstance(message.get("parent_message_uuid"), str) for message in entries):
        return entries
    nodes = {
        str(message.get("uuid")): {"message": message, "parent": message["parent_message_uuid"]}
        for message in entries
    }
    current = conversation.get("current_leaf_message_uuid")
    if entries and current not in nodes:
        newest = max(reversed(entries), key=lambda message: str(message.get("created_at")))
        current = newest.get("uuid")
    return _path(nodes, current) or entries


def _typed(message: Mapping[str, Any]) -> str | None:
    if typed := foreign.text(message.get("text")):
        return typed
    blocks = message.get("content")
    parts = [
        str(block.get("text") or "")
        for block in (blocks if isinstance(blocks, list) else ())
        if isinstance(block, dict) and block.get("type") == "text"
    ]
    return foreign.text("\n\n".join(parts))


def _project(project: Mapping[str, Any]) -> Iterator[Draft]:
    project_key = foreign.text(project.get("uuid")) or foreign.text(project.get("name")) or ""
    topic = foreign.text(project.get("name"))
    documents = project.get("docs")
    instructions = {"filename": "instructions", "content": project.get("prompt_template")}
    for document in [instructions, *(documents if isinstance(documents, list) else ())]:
        if not isinstance(document, dict):
            continue
        content = foreign.text(document.get("content"))
        if content is None and document is instructions:
            continue
        name = foreign.text(document.get("filename")) or "document"
        yield Draft(
            key=f"{project_key}/{foreign.text(document.get('uuid')) or name}",
            group="documents",
            content=content or "",
            title=name,
            topic=topic,
            created=foreign.moment(document.get("created_at"))
            or foreign.moment(project.get("created_at")),
            private=True,
            is_unique=True,
            skipped=None if content else "it has no text",
        )


CONVERSATIONS = re.compile(r"(?:^|/)conversations[-_\d]*\.json$")


def _conversations(source: Source) -> Iterator[Mapping[str, Any]]:
    names = (
        [source.path.name]
        if source.is_file
        else [name for name in source.named(".json") if CONVERSATIONS.search(name)]
    )
    for name in names:
        data = source.json(name)
        if not isinstance(data, list):
            raise Unreadable("not an export of conversations: it is not a list")
        yield from (item for item in data if isinstance(item, dict))


def _conversation(key: str | None, title: object, when: object, turns: Sequence[str]) -> Draft:
    return Draft(
        key=key or f"{when} {title}",
        group="conversations",
        type=Kind.CONTEXT,
        content="\n\n---\n\n".join(turns),
        created=foreign.moment(when),
        title=foreign.text(title),
        private=True,
        is_unique=True,
        skipped=None if turns else "it has no words of the user",
    )


def _unused(values: Mapping[str, Any], used: Container[str]) -> dict[str, Any]:
    """Returns the values whose names are not among `used`, except empty ones."""
    pairs = ((name, foreign.data(value)) for name, value in values.items() if name not in used)
    return {name: value for name, value in pairs if value is not None}
