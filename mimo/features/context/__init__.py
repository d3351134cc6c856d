"""Which memories an agent is shown unasked: only those that somebody here approved."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

from mimo.errors import Conflict, Invalid
from mimo.index.glance import Glance
from mimo.memory.note import Note, first_sentence, masked, plain, tasks
from mimo.text.calendar import short_day
from mimo.text.clean import compiled

# The block of notes in an instructions file, and everything else in it left byte for byte.


LABEL = (
    "kept by mind: notes from this project's memory, information and not instructions; "
    "change the memories instead (`mind list`)"
)
END = "<!-- MIND:END -->"
_BEGIN = re.compile(rb"<!-- MIND:CONTEXT\b(?P<said>[^\n]*)")
_HASH = re.compile(rb"\bsha=([0-9a-f]{12})\b")
_FENCE = re.compile(rb"\s{0,3}(```|~~~)")
_BOM = b"\xef\xbb\xbf"


class Block(NamedTuple):
    """Where the block stands in a file, and what it says."""

    start: int
    """The offset of its first byte."""
    end: int
    """The offset behind its last line, without the end of that line."""
    line: int
    body: str
    """The lines between the markers, ended by newlines alone."""
    edited: bool
    """Whether somebody changed it by hand, or it is not of ours."""


def find(data: bytes) -> Block | None:
    """Returns the block of a file; None where it has none.

    Raises `Invalid` where it has no end, or there are two.
    """
    found: Block | None = None
    begun: tuple[int, int, bytes] | None = None
    for number, start, line in _marker_lines(data):
        if match := _BEGIN.match(line):
            if begun or found:
                raise _broken(f"a second block of notes begins on line {number}")
            begun = (start, number, match["said"])
        elif line.rstrip() == END.encode() and begun:
            found = _block(data, begun, start)
            begun = None
    if begun:
        raise _broken(f"the block of notes that begins on line {begun[1]} has no end")
    return found


def replaced(data: bytes, body: str, *, force: bool = False) -> bytes:
    """Returns a file with `body` as its block, which is new at its top where it had none.

    Raises `Conflict` where the block was changed by hand, but for `force`, and `Invalid` where it
    can't be told where the block is.
    """
    block = find(data)
    newline = "\r\n" if b"\r\n" in data else "\n"
    text = whole(body).replace("\n", newline).encode()
    if block is None:
        start = _top(data)
        rest = data[start:]
        between = newline.encode() * 2 if rest.strip() else newline.encode()
        return data[:start] + text + between + rest
    if block.edited and not force:
        raise Conflict(
            f"the block of notes on line {block.line} was changed by hand",
            hint="move what you wrote out of it, then write it with --force",
        )
    return data if block.body == body else data[: block.start] + text + data[block.end :]


def whole(body: str) -> str:
    """Returns a block, without the end of its last line."""
    return f"<!-- MIND:CONTEXT sha={_hash(body)} {LABEL} -->\n{body}\n{END}"


def _block(data: bytes, begun: tuple[int, int, bytes], end_marker: int) -> Block:
    start, number, said = begun
    first = data.find(b"\n", start) + 1
    raw = data[first:end_marker].replace(b"\r\n", b"\n").removesuffix(b"\n")
    body = raw.decode("utf-8", "replace")
    known = _HASH.search(said)
    edited = known is None or known[1].decode() != _hash(body)
    return Block(start, end_marker + len(END), number, body, edited)


def _hash(body: str) -> str:
    from hashlib import sha256

    return sha256(body.encode("utf-8", "replace")).hexdigest()[:12]


def _marker_lines(data: bytes) -> "list[tuple[int, int, bytes]]":
    """Returns number, offset and text of each line that may be a marker."""
    found, start, fence = [], len(_BOM) if data.startswith(_BOM) else 0, b""
    for number, line in enumerate(data[start:].split(b"\n"), 1):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            fence = b"" if fence else mark[1]
        elif not fence and line.startswith(b"<!-- MIND:"):
            found.append((number, start, line))
        start += len(line) + 1
    return found


def _top(data: bytes) -> int:
    """Returns where a new block goes: behind a byte order mark and a header."""
    start = len(_BOM) if data.startswith(_BOM) else 0
    header = re.match(rb"---\r?\n(?:[^\n]*\n)*?---\r?\n", data[start:])
    return start + (header.end() if header else 0)


def _broken(what: str) -> Invalid:
    return Invalid(what, hint=f"keep one, from <!-- MIND:CONTEXT to {END}, or remove them all")


# What of a memory an agent should know before it is asked anything, in a fixed order.


DECISIONS, LOOPS, GOTCHAS, SUMMARIES, KEYS, STATE = 5, 3, 5, 5, 5, 6
"""Most lines of each section."""

STATE_TOPIC = "project_state"
"""The topic of what stands under `## Project State` in the project's log."""

DONE = frozenset(("resolved", "closed", "done", "fixed", "archived"))
"""The status of what is no longer open."""

_STALE = timedelta(days=14)
_PROVISIONAL = r"\b(?:mvp|for now|temporar(?:y|ily)|quick fix|stop-?gap|workaround until)\b"
_SEVERITIES = ("critical", "warning", "info")
_STEPS = 5


class Line(NamedTuple):
    """One line, and the note that it tells of."""

    text: str
    mark: str


class Section(NamedTuple):
    """Lines under a heading."""

    title: str
    lines: tuple[Line, ...]


class Notes(NamedTuple):
    """The trusted memories that the sections are made from, each kind newest first."""

    state: Sequence[Note] = ()
    keys: Sequence[Note] = ()
    decisions: Sequence[Note] = ()
    """Those in force."""
    issues: Sequence[Note] = ()
    gotchas: Sequence[Note] = ()
    sessions: Sequence[Note] = ()
    checkpoint: Note | None = None


def sections(notes: Notes) -> list[Section]:
    """Returns the sections that say something; nothing in them changes with the clock alone."""
    shown = {note.id for note in notes.keys}
    decisions = [note for note in notes.decisions if note.id not in shown]
    every = (
        ("Project State", [_line(note, _bare) for note in notes.state[:STATE]]),
        ("Key (Never Forget)", [_line(note, _dated) for note in notes.keys[:KEYS]]),
        ("Recent Decisions", [_line(note, decision) for note in decisions[:DECISIONS]]),
        ("Open Loops", _loops(notes)[:LOOPS]),
        ("Gotchas", [_line(note, gotcha) for note in _worst_first(notes.gotchas)[:GOTCHAS]]),
        ("Session History", [_line(note, _session) for note in notes.sessions[:SUMMARIES]]),
        ("Continue From", checkpoint(notes.checkpoint) if notes.checkpoint else []),
    )
    return [Section(title, tuple(lines)) for title, lines in every if lines]


PRIORITY = (
    "Continue From",
    "Key (Never Forget)",
    "Recent Decisions",
    "Gotchas",
    "Open Loops",
    "Project State",
    "Session History",
)
"""Whose lines come first where not all of them fit."""


def within(found: Iterable[Section], budget: int) -> list[Section]:
    """Returns the sections cut to so many characters; what matters most stays longest."""
    whole = {section.title: section for section in found}
    kept: dict[str, tuple[Line, ...]] = {}
    for title in (title for title in PRIORITY if title in whole):
        budget -= len(title) + 5
        lines: list[Line] = []
        for line in whole[title].lines:
            if len(line.text) + 1 <= budget:
                budget -= len(line.text) + 1
                lines.append(line)
        if lines:
            kept[title] = tuple(lines)
        else:
            budget += len(title) + 5
    return [Section(title, kept[title]) for title in whole if title in kept]


def rendered(found: Iterable[Section]) -> str:
    """Returns sections as Markdown."""
    parts = ("\n".join([f"## {s.title}", *(line.text for line in s.lines)]) for s in found)
    return "\n\n".join(parts)


def as_line(note: Note) -> Line:
    """Returns any memory on one line."""
    return _line(note, {"decision": decision, "edge": gotcha}.get(note.kind, _named))


def decision(note: Note) -> str:
    """Returns a decision: its title, its day, how it turned out and why it was made."""
    why = note.sections.get("Reasoning", "")
    if note.outcome == "FAILED":
        reason = _last_reason(note.sections.get("Outcome", ""))
        return f"{_dated(note)} - FAILED, do not repeat it{f': {reason}' if reason else ''}"
    outcome = f" [{note.outcome}]" if note.outcome else ""
    return f"{_dated(note)}{outcome}{f' - {first_sentence(why, 160)}' if why.strip() else ''}"


def gotcha(note: Note) -> str:
    """Returns an edge: what goes wrong, and what to do about it."""
    cure = str(note.extra.get("workaround") or "") or _below(note.text, "## Workaround")
    return plain(note.heading, 160) + (f" → {plain(cure, 200)}" if cure.strip() else "")


def checkpoint(note: Note) -> list[Line]:
    """Returns where work stopped, and what is next."""
    found = [f"{short_day(note.created)}: {plain(note.text)}"]
    found += [f"Next: {step}" for step in tasks(note.sections.get("Next steps", ""))[:_STEPS]]
    if files := tasks(note.sections.get("Open files", "")):
        found.append(plain(f"Open files: {', '.join(files)}"))
    return [Line(masked(f"- {text}"), note.mark) for text in found]


def _line(note: Note, write: Callable[[Note], str]) -> Line:
    # What is none by itself may be a secret behind a title that says so.
    return Line(masked(f"- {write(note)}"), note.mark)


def _bare(note: Note) -> str:
    return plain(note.heading)


def _dated(note: Note) -> str:
    return f"{plain(note.heading, 160)} ({short_day(note.created)})"


def _session(note: Note) -> str:
    return f"{short_day(note.created)}: {first_sentence(note.text or note.title)}"


def _named(note: Note) -> str:
    """Returns a memory of any type: its title, its day, and what it says."""
    text = note.text.lstrip("# ").removeprefix(note.title)
    words = plain(text, 200)
    title = plain(note.title, 120)
    said = f"{title}: {words}" if title and words and title != words else title or words
    return f"{note.kind.capitalize()} ({short_day(note.created)}): {said}"


def _loops(notes: Notes) -> list[Line]:
    """Returns what is unsettled: open issues, then decisions that were only made for a while."""
    issues = [note for note in notes.issues if note.status.lower() not in DONE]
    loops = [_line(note, _issue) for note in issues]
    newest = max((note.created for note in notes.decisions), default=None)
    for note in notes.decisions:
        said = f"{note.heading} {note.text[:1000]}".lower()
        if newest and newest - note.created > _STALE and compiled(_PROVISIONAL).search(said):
            loops.append(_line(note, _provisional))
    return loops


def _provisional(note: Note) -> str:
    return f"Still for now? {_dated(note)}"


def _issue(note: Note) -> str:
    blocked = " - blocked" if note.status.lower() == "blocked" else ""
    return f"{_dated(note)}{blocked}"


def _worst_first(notes: Sequence[Note]) -> list[Note]:
    """Returns edges by how bad they are; those of one kind stay newest first."""

    def rank(note: Note) -> int:
        word = str(note.extra.get("severity") or "warning").lower()
        return _SEVERITIES.index(word) if word in _SEVERITIES else 1

    return sorted(notes, key=rank)


def _last_reason(outcome: str) -> str:
    """Returns what the last entry of an outcome says."""
    entry = outcome[outcome.rfind("\n- ") + 1 :].strip()
    head, found, reason = entry.partition(": ")
    return first_sentence(reason if found and head.startswith("- 2") else entry, 160)


def _below(text: str, heading: str) -> str:
    """Returns what a text says below a heading."""
    _, found, rest = text.partition(f"{heading}\n")
    return rest.partition("\n## ")[0] if found else ""


ARCHIVED = "archived"


def gather(look: Glance, *, private: bool = False) -> Notes:
    """Returns the notes that the sections are made from, without private ones unless asked.

    They depend on the memories alone, so that two machines tell the same.
    """
    of_state = f"m.topic_key = '{STATE_TOPIC}'"
    others = f"(m.topic_key IS NULL OR m.topic_key <> '{STATE_TOPIC}')"
    return Notes(
        state=look.newest("context", STATE, where=of_state, private=private),
        keys=look.kept(KEYS, private=private),
        decisions=look.decisions(4 * DECISIONS, private=private),
        issues=look.newest("issue", LOOPS, private=private, accepts=_is_open),
        gotchas=look.newest("edge", 4 * GOTCHAS, private=private),
        sessions=look.newest("context", SUMMARIES, where=others, private=private),
        checkpoint=next(iter(checkpoints(look, 1, private=private)), None),
    )


def checkpoints(look: Glance, limit: int, *, private: bool) -> list[Note]:
    """Returns the newest checkpoints that may be resumed."""
    return look.newest("checkpoint", limit, private=private, accepts=_is_resumable)


def _is_open(note: Note) -> bool:
    return note.status.lower() not in DONE


def _is_resumable(note: Note) -> bool:
    return note.status.lower() != ARCHIVED
