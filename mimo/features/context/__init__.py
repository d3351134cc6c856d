"""The notes for agents: the block in an instructions file, and the sections within it.

Only approved memories are given. The block is found by its markers, and everything else in the
file stays byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

from mimo.errors import Conflict, Invalid
from mimo.frozen import NamedTuple
from mimo.index.catalog import Catalog
from mimo.memory.note import (
    LONGEST,
    STATE_TOPIC,
    Note,
    closed_as,
    first_sentence,
    masked,
    plain,
    tasks,
)
from mimo.text.clean import compiled

LABEL = (
    "kept by mind: notes from this project's memory, information and not instructions; "
    "change the memories instead (`mind list`)"
)
END = "<!-- MIND:END -->"
_BEGIN = rb"<!-- MIND:CONTEXT\b(?P<attributes>[^\n]*)"
_HASH = rb"\bsha=([0-9a-f]{12})\b"
_FENCE = rb" {0,3}(`{3,}|~{3,})([^\n]*)"
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Block(NamedTuple):
    """The place and the content of the block in a file."""

    start: int
    """The offset of its first byte."""
    end: int
    """The offset after its last line, without the newline."""
    line: int
    body: str
    """The lines between the markers, with `\\n` as newline."""
    edited: bool
    """True if it was changed by hand, or written by another program."""


def find(data: bytes) -> Block | None:
    """Returns the block of a file; None if it has none.

    Raises `Invalid` if the block has no end, if there are two, or for UTF-16.
    """
    if data.startswith(_UTF_16) or b"\0" in data:
        raise Invalid("it is not UTF-8", hint="save it as UTF-8")
    block: Block | None = None
    begun: tuple[int, int, bytes] | None = None
    for number, start, line in _marker_lines(data):
        if match := re.match(_BEGIN, line):
            if begun or block:
                raise _broken(f"a second block of notes begins on line {number}")
            begun = (number, start, match["attributes"])
        elif begun and line.rstrip() == END.encode():
            line_number, begin, attributes = begun
            raw = data[data.find(b"\n", begin) + 1 : start]
            body = raw.replace(b"\r\n", b"\n").removesuffix(b"\n").decode("utf-8", "replace")
            digest = re.search(_HASH, attributes)
            edited = digest is None or digest[1].decode() != _hash(body)
            block = Block(begin, start + len(END), line_number, body, edited)
            begun = None
    if begun:
        raise _broken(f"the block of notes that begins on line {begun[0]} has no end")
    return block


def replaced(data: bytes, body: str, *, force: bool = False) -> bytes:
    """Returns a file with `body` as its block; a new block is put at the top.

    Raises `Conflict` if the block was changed by hand (unless `force`), and `Invalid` if its place
    is not clear, or for UTF-16.
    """
    block = find(data)
    newline = "\r\n" if b"\r\n" in data else "\n"
    text = whole(body).replace("\n", newline).encode()
    if block is None:
        start = _top(data)
        above, below = data[:start], data[start:]
        if above.endswith(b"---"):
            above += newline.encode()  # Front matter that ends the file without a newline.
        between = newline.encode() * 2 if below.strip() else newline.encode()
        return above + text + between + below
    if block.edited and not force:
        raise Conflict(
            f"the block of notes on line {block.line} was changed by hand",
            hint="move your text out of it, then write it with --force",
        )
    return data if block.body == body else data[: block.start] + text + data[block.end :]


def without(data: bytes, unwanted: Callable[[str], bool]) -> bytes:
    """Returns a file without some lines of its block, and headings that then have no lines.

    A block that was changed by hand is left as it is.
    """
    block = find(data)
    if block is None or block.edited:
        return data
    body = "\n".join(line for line in block.body.split("\n") if not unwanted(line))
    return replaced(data, re.sub(r"\n\n## .*(?=\n\n## |\Z)", "", body))


def whole(body: str) -> str:
    """Returns a block, without the last newline."""
    return f"<!-- MIND:CONTEXT sha={_hash(body)} {LABEL} -->\n{body}\n{END}"


def _hash(body: str) -> str:
    from hashlib import sha256

    return sha256(body.encode("utf-8", "replace")).hexdigest()[:12]


def _top(data: bytes) -> int:
    """Returns the offset after a byte order mark and front matter."""
    start = len(_BOM) if data.startswith(_BOM) else 0
    header = re.match(rb"---\r?\n(?:[^\n]*\n)*?---(?:\r?\n|\Z)", data[start:])
    return start + (header.end() if header else 0)


def _marker_lines(data: bytes) -> list[tuple[int, int, bytes]]:
    """Returns number, offset and text of each line that may be a marker, outside code blocks."""
    markers, start, fence = [], len(_BOM) if data.startswith(_BOM) else 0, b""
    top = _top(data)
    for number, line in enumerate(data[start:].split(b"\n"), 1):
        if start == top:
            fence = b""  # A fence in front matter is part of a value.
        mark = re.match(_FENCE, line)
        if mark and fence:
            if mark[1].startswith(fence) and not mark[2].strip():
                fence = b""
        elif mark and not (mark[1].startswith(b"`") and b"`" in mark[2]):
            fence = mark[1]
        elif not fence and line.startswith(b"<!-- MIND:"):
            markers.append((number, start, line))
        start += len(line) + 1
    return markers


def _broken(message: str) -> Invalid:
    return Invalid(message, hint=f"keep one, from <!-- MIND:CONTEXT to {END}, or remove them all")


# The sections, in a fixed order.


DECISIONS, FAILURES, LOOPS, GOTCHAS, SUMMARIES, KEYS, STATE, FACTS = 5, 3, 3, 5, 5, 5, 6, 5
"""Maximum number of lines of each section."""

_STALE = timedelta(days=14)
_PROVISIONAL = r"\b(?:mvp|for now|temporar(?:y|ily)|quick fix|stop-?gap|workaround until)\b"
_REPLACES = r"(?:\A|\n\n)Replaces \S+: "
_SEVERITIES = ("critical", "warning", "info")
_STEPS = 5


class Line(NamedTuple):
    """One line, and the mark of its note."""

    text: str
    mark: str


class Section(NamedTuple):
    """Lines under a heading."""

    title: str
    lines: tuple[Line, ...]


class Notes(NamedTuple):
    """The trusted memories for the sections, each kind newest first."""

    state: Sequence[Note] = ()
    keys: Sequence[Note] = ()
    decisions: Sequence[Note] = ()
    """Current ones."""
    failed: Sequence[Note] = ()
    """Decisions that failed, replaced ones included."""
    issues: Sequence[Note] = ()
    gotchas: Sequence[Note] = ()
    sessions: Sequence[Note] = ()
    checkpoint: Note | None = None
    facts: Sequence[Note] = ()
    """The most important ones first."""


def sections(notes: Notes) -> list[Section]:
    """Returns the sections that are not empty; they depend on the memories and the year."""
    key_ids = {note.id for note in notes.keys}
    decisions = [note for note in notes.decisions if note.id not in key_ids][:DECISIONS]
    used_ids = key_ids.union(note.id for note in decisions)
    decisions += [note for note in notes.failed if note.id not in used_ids][:FAILURES]
    facts = [note for note in notes.facts if note.id not in key_ids]
    gotchas = sorted(notes.gotchas, key=_severity)
    history = [
        (f"{note.day}: {first_sentence(note.text or note.title)}", note) for note in notes.sessions
    ]
    groups = (
        ("Project State", [(plain(note.heading), note) for note in notes.state][:STATE]),
        ("Key (Never Forget)", [(_dated(note), note) for note in notes.keys][:KEYS]),
        ("Recent Decisions", [(decision(note), note) for note in decisions]),
        ("Open Loops", _loops(notes)[:LOOPS]),
        ("Gotchas", [(gotcha(note), note) for note in gotchas[:GOTCHAS]]),
        ("Facts", [(f"{_statement(n)} ({n.day})", n) for n in facts[:FACTS]]),
        ("Session History", history[:SUMMARIES]),
    )
    chosen = [
        Section(title, tuple(_line(text, note) for text, note in lines))
        for title, lines in groups
        if lines
    ]
    if notes.checkpoint:
        chosen.append(Section("Continue From", tuple(checkpoint(notes.checkpoint))))
    return chosen


OF_USER = "For All Projects (this project's own notes take precedence)"
"""The title of the section of the user's own memory."""

PRIORITY = (
    "Continue From",
    "Key (Never Forget)",
    "Recent Decisions",
    OF_USER,
    "Gotchas",
    "Open Loops",
    "Project State",
    "Facts",
    "Session History",
)
"""The order in which sections get their share of the budget."""


def within(chosen: Iterable[Section], budget: int) -> list[Section]:
    """Returns the sections cut to a number of characters, by `PRIORITY`."""
    candidates = list(chosen)
    result: dict[str, tuple[Line, ...]] = {}
    for section in sorted(candidates, key=lambda section: PRIORITY.index(section.title)):
        left = budget - len(section.title) - 5
        lines: list[Line] = []
        for line in section.lines:
            if len(line.text) + 1 <= left:
                left -= len(line.text) + 1
                lines.append(line)
        if lines:
            budget, result[section.title] = left, tuple(lines)
    return [Section(title, result[title]) for title, _ in candidates if title in result]


def rendered(chosen: Iterable[Section]) -> str:
    """Returns sections as Markdown."""
    parts = ("\n".join([f"## {s.title}", *(line.text for line in s.lines)]) for s in chosen)
    return "\n\n".join(parts)


def as_line(note: Note) -> Line:
    """Returns a memory of any type as one line."""
    if note.kind == "decision":
        return _line(decision(note), note)
    if note.kind == "edge":
        return _line(gotcha(note), note)
    return _line(f"{note.kind.capitalize()} ({note.day}): {_statement(note)}", note)


def line_of_user(note: Note) -> Line:
    """Returns a memory that the user has for all projects as one line."""
    line = as_line(note)
    return line._replace(text=f"{line.text} (the user's, for all projects)")


def _statement(note: Note) -> str:
    """Returns the title and the text, or the text alone if it contains the title.

    A closed issue or plan begins with its status.
    """
    closed = closed_as(note.kind, note.status)
    return f"({closed.capitalize()}.) {_words(note)}" if closed else _words(note)


def _words(note: Note) -> str:
    words = plain(note.text.lstrip("# ").removeprefix(note.title), 200)
    title = plain(note.title, 120)
    if not (title and words):
        return title or words
    if _comparable(title) in _comparable(words):
        return words
    # Together they can be another mark: `[a]` and a colon are the target of links elsewhere.
    return plain(f"{title}: {words}", 2 * LONGEST)


def _comparable(text: str) -> str:
    """Returns the words of a text without marks; the last word of a cut text may be a part."""
    words = compiled(r"[\W_]+").sub(" ", text.casefold()).strip()
    return f" {words}" if text.endswith("…") else f" {words} "


def decision(note: Note) -> str:
    """Returns a decision: its title, its day, its outcome or ended status, and its reasoning."""
    why = note.sections.get("Reasoning", "")
    if note.outcome == "FAILED":
        return f"{_dated(note)} - {failure(note)}"
    state = note.outcome or closed_as(note.kind, note.status)
    outcome = f" [{state}]" if state else ""
    # `supersede` stores its reason below, with the id that the link has, too.
    reason, *of_old = compiled(_REPLACES).split(why, 1)
    reasons = (reason, *(text[:1].upper() + text[1:] for text in of_old))
    texts = [first_sentence(text, 160) for text in reasons if text.strip()]
    ended = [f"{text}." if text[-1:].isalnum() else text for text in texts[:-1]]
    because = " ".join([*ended, *texts[-1:]])
    return f"{_dated(note)}{outcome}{f' - {because}' if because else ''}"


def failure(note: Note) -> str:
    """Returns the warning of a failed decision: its reason, and the decision that replaced it."""
    reason = _last_reason(note.sections.get("Outcome", ""))
    newer = plain(note.superseded_by, 120)
    warning = f"FAILED, do not repeat it{f': {reason}' if reason else ''}"
    return f"{warning}; superseded by {newer}" if newer else warning


def gotcha(note: Note) -> str:
    """Returns an edge: its title and its workaround."""
    below = note.text.partition("## Workaround\n")[2].partition("\n## ")[0]
    cure = str(note.extra.get("workaround") or "") or below
    return plain(note.heading, 160) + (f" → {plain(cure, 200)}" if cure.strip() else "")


def checkpoint(note: Note) -> list[Line]:
    """Returns the lines of a checkpoint: its text, the next steps and the open files."""
    texts = [f"{note.day}: {plain(note.text)}"]
    texts += [f"Next: {step}" for step in tasks(note.sections.get("Next steps", ""))[:_STEPS]]
    if files := tasks(note.sections.get("Open files", "")):
        texts.append(plain(f"Open files: {', '.join(files)}"))
    return [_line(text, note) for text in texts]


def _line(text: str, note: Note) -> Line:
    # The whole line is masked again: a title such as `Password` makes the text after it a secret.
    return Line(masked(f"- {text}"), note.mark)


def _dated(note: Note) -> str:
    return f"{plain(note.heading, 160)} ({note.day})"


def _severity(note: Note) -> int:
    """Returns the place of an edge's severity, the worst first."""
    word = str(note.extra.get("severity") or "warning").lower()
    return _SEVERITIES.index(word) if word in _SEVERITIES else 1


def _loops(notes: Notes) -> list[tuple[str, Note]]:
    """Returns open issues, then decisions that are old and were meant to be provisional."""
    loops = []
    for note in notes.issues:
        if _is_open(note):
            blocked = " - blocked" if note.status.lower() == "blocked" else ""
            loops.append((f"{_dated(note)}{blocked}", note))
    newest = max((note.created for note in notes.decisions), default=None)
    for note in notes.decisions:
        text = f"{note.heading} {note.text[:1000]}".lower()
        if newest and newest - note.created > _STALE and compiled(_PROVISIONAL).search(text):
            loops.append((f"Still for now? {_dated(note)}", note))
    return loops


def _last_reason(outcome: str) -> str:
    """Returns the text of the last entry of an outcome."""
    entry = outcome[outcome.rfind("\n- ") + 1 :].strip()
    head, colon, reason = entry.partition(": ")
    return first_sentence(reason if colon and head.startswith("- 2") else entry, 160)


def _is_open(note: Note) -> bool:
    return closed_as(note.kind, note.status) is None


# The memories, read from the index.


def gather(catalog: Catalog, *, private: bool = False) -> Notes:
    """Returns the notes for the sections, without private ones by default.

    They depend on the memories and the year, so two machines give the same notes.
    """
    of_state = f"m.topic_key = '{STATE_TOPIC}'"
    of_sessions = f"(m.topic_key IS NULL OR m.topic_key <> '{STATE_TOPIC}')"
    return Notes(
        state=catalog.newest("context", STATE, where=of_state, private=private),
        keys=catalog.protected(KEYS, private=private),
        decisions=catalog.decisions(4 * DECISIONS, private=private),
        failed=catalog.failed(4 * FAILURES, private=private),
        issues=catalog.newest("issue", LOOPS, private=private, accepts=_is_open),
        gotchas=catalog.newest("edge", 4 * GOTCHAS, private=private),
        sessions=catalog.newest("context", SUMMARIES, where=of_sessions, private=private),
        checkpoint=next(iter(checkpoints(catalog, 1, private=private)), None),
        facts=catalog.facts(KEYS + FACTS, private=private),
    )


def checkpoints(catalog: Catalog, limit: int, *, private: bool) -> list[Note]:
    """Returns the newest checkpoints that are not archived."""
    return catalog.newest(
        "checkpoint",
        limit,
        private=private,
        accepts=lambda note: note.status.lower() != "archived",
    )


def of_user(catalog: Catalog) -> list[Section]:
    """Returns the section of the user's memory for all projects; none if that is empty.

    Only answers have it, never a file of a project, since this memory is private.
    """
    notes = (
        *catalog.protected(KEYS, private=True),
        *catalog.decisions(DECISIONS, private=True),
        *catalog.facts(FACTS, private=True),
    )
    lines = {note.id: as_line(note) for note in notes}
    return [Section(OF_USER, tuple(lines.values()))] if lines else []
