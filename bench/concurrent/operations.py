"""The operations of the processes, and the history that they leave."""

from __future__ import annotations

import json
import mmap
import multiprocessing
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bench.concurrent.linearizable import Decision, Operation
from bench.stores import words

SLOTS = 40
"""The number of memories that all processes work on at a time."""

_WIDTH = 160
"""The bytes of a slot in the shared table."""

VALUES = 10
TOPICS = 12
NAMESPACE = "agent.concurrent"
_TAGS = ("red", "green", "blue")
_TOPIC_CALLS = 300
"""A process goes on to other topics after so many calls."""

WEIGHTS = {
    "add": 10, "edit": 13, "tag": 5, "untag": 4, "rm": 8, "undo": 4, "show": 13, "list": 7,
    "search": 9, "save": 2, "supersede": 2, "topic": 3, "keep": 3, "link": 3, "put": 7, "get": 6,
    "sync": 0.3,
}  # fmt: skip
CAN_BE_KILLED = ("add", "edit", "tag", "untag", "rm", "keep", "put")
"""Operations of which the history states all that an interrupted one may have done."""


_CHANGED = re.compile(r"(has changed|was removed) since (it was read|`.+`; nothing was undone)$")
"""The messages of operations that changed nothing, as another process has changed the file."""

_HELD = re.compile(
    r"` is held by (another process|process \d+)"
    r"|another process has been (writing|committing to) the index `"
    r"|\.lock': File exists"
)

_PERMITTED = {
    "NOT_FOUND": (re.compile("not found|^there is no|has nothing to undo"),),
    "AMBIGUOUS_ID": (re.compile("decisions on `.+` compete"),),
    "VALIDATION_ERROR": (re.compile("is not a tag of the memory"),),
    "STORAGE_ERROR": (_CHANGED, _HELD),
}
"""The messages of errors that operations may meet, by their codes."""


class Call(NamedTuple):
    """One operation: as a tool of the server, and as a command line."""

    name: str
    tool: str
    arguments: Mapping[str, Any]
    words: Sequence[str]
    about: Mapping[str, Any]
    """Data for the check of the history."""


class Outcome(NamedTuple):
    """The end of a call."""

    answer: Any = None
    error: str | None = None
    """The code of the error."""
    message: str = ""
    killed: bool = False
    is_behind: bool = False
    """True if the answer states that the index misses some files."""

    @property
    def is_permitted(self) -> bool:
        """Returns whether the operation did its work, or ended with an error that it may meet."""
        permitted = _PERMITTED.get(self.error or "", ())
        return not self.error or any(pattern.search(self.message) for pattern in permitted)

    @property
    def is_conflict(self) -> bool:
        """Returns whether another process had changed the file, so that nothing was done."""
        return bool(self.error == "STORAGE_ERROR" and _CHANGED.search(self.message))


class Table:
    """The memories that all processes work on: the name and the id of one in each slot.

    Processes that are forked from this one share it.
    """

    def __init__(self) -> None:
        """Makes an empty table."""
        self._shared = mmap.mmap(-1, SLOTS * _WIDTH)
        self._lock = multiprocessing.get_context("fork").Lock()

    def get(self, slot: int) -> tuple[str, str]:
        """Returns the name and the id of a slot's memory; empty for none."""
        with self._lock:
            row = self._shared[slot * _WIDTH : (slot + 1) * _WIDTH]
        name, _, id = row.rstrip(b"\0").decode().partition(" ")
        return name, id

    def put(self, slot: int, name: str, id: str) -> None:
        """Replaces a slot's memory."""
        row = f"{name} {id}".encode().ljust(_WIDTH, b"\0")
        with self._lock:
            self._shared[slot * _WIDTH : (slot + 1) * _WIDTH] = row


class Mix:
    """The operations of one process, in an order that the seed determines."""

    def __init__(self, process: int, seed: int, table: Table, anchors: Sequence[str]) -> None:
        """Takes the number of the process, and memories that others link to."""
        self._draw = random.Random(f"{seed} {process}")
        self._process, self._table, self._anchors = process, table, anchors
        self._calls = self._words = 0
        self._replaced: list[tuple[str, str]] = []
        """Memories that are in no slot any more."""

    def next(self) -> Call:
        """Returns the next operation."""
        self._calls += 1
        (name,) = self._draw.choices(list(WEIGHTS), list(WEIGHTS.values()))
        # Half of the operations meet at a fifth of the memories.
        hot = self._draw.random() < 0.5
        slot = self._draw.randrange(SLOTS // 5 if hot else SLOTS)
        memory, id = self._table.get(slot)
        if name == "rm" and self._replaced:
            memory, id = self._replaced.pop()
        on_value = name in ("put", "get")
        on_topic = name in ("save", "supersede", "topic")
        if on_value or on_topic or name in ("undo", "sync"):
            alone: Call = getattr(self, f"_{name}")()
            return alone
        if name == "add" or not id:
            return self._add(slot)
        call: Call = getattr(self, f"_{name}")(id)
        return call._replace(about={**call.about, "memory": memory, "slot": slot, "id": id})

    def done(self, call: Call, outcome: Outcome) -> None:
        """Puts a new memory into its slot."""
        if call.name == "add" and outcome.answer:
            slot = call.about["slot"]
            before = self._table.get(slot)
            if before[1]:
                self._replaced.append(before)
            self._table.put(slot, call.about["memory"], outcome.answer["id"])

    def _word(self) -> str:
        """Returns a word that no other text has."""
        self._words += 1
        number, word = self._words * 64 + self._process, ""
        while number:
            number, digit = divmod(number, 64)
            word += "bdfgklmnprstvzxj"[digit % 16] + "aeio"[digit // 16]
        return f"q{word}"

    def _text(self, name: str) -> str:
        # Lists show the first 80 characters.
        return f"{name} {self._word()} {words(self._draw, 6)}"[:80].strip()

    def _add(self, slot: int) -> Call:
        name = self._word()
        text = self._text(name)
        about = {"memory": name, "slot": slot, "text": text}
        return Call(
            "add",
            "mind_add",
            {"content": text, "tags": [f"slot{slot}"]},
            ("add", text, "--tag", f"slot{slot}"),
            about,
        )

    def _edit(self, id: str) -> Call:
        # The name of a memory stays, as it is how readers are understood.
        text = self._text(id.split("_")[1])
        words_ = ("edit", id, "--content", text)
        return Call("edit", "mind_edit", {"id": id, "content": text}, words_, {"text": text})

    def _tag(self, id: str) -> Call:
        tag = self._draw.choice(_TAGS)
        arguments = {"id": id, "add_tags": [tag]}
        return Call("tag", "mind_edit", arguments, ("edit", id, "--add-tag", tag), {"tag": tag})

    def _untag(self, id: str) -> Call:
        tag = self._draw.choice(_TAGS)
        arguments = {"id": id, "remove_tags": [tag]}
        return Call(
            "untag", "mind_edit", arguments, ("edit", id, "--remove-tag", tag), {"tag": tag}
        )

    def _rm(self, id: str) -> Call:
        return Call("rm", "mind_rm", {"id": id}, ("rm", id), {})

    def _show(self, id: str) -> Call:
        return Call("show", "mind_show", {"id": id}, ("show", id), {})

    def _keep(self, id: str) -> Call:
        off = self._draw.random() < 0.4
        line = ("keep", id, "--off") if off else ("keep", id)
        return Call("keep", "mind_keep", {"id": id, "off": off}, line, {"kept": not off})

    def _link(self, id: str) -> Call:
        to = self._draw.choice(self._anchors)
        return Call("link", "mind_link", {"id": id, "other": to}, ("link", id, to), {"link": to})

    def _list(self, id: str) -> Call:
        del id
        slot = self._draw.randrange(SLOTS)
        tag = f"slot{slot}"
        words_ = ("list", "--tag", tag, "--limit", "200")
        arguments = {"tags": [tag], "limit": 200, "budget": 20_000}
        return Call("list", "mind_list", arguments, words_, {"listed": slot})

    def _search(self, id: str) -> Call:
        name = id.split("_")[1]
        return Call("search", "mind_search", {"query": name}, ("search", name), {})

    def _undo(self) -> Call:
        return Call("undo", "mind_undo", {}, ("undo",), {})

    def _sync(self) -> Call:
        return Call("sync", "mind_sync", {}, ("sync",), {})

    def _topic_name(self) -> str:
        return f"topic{self._draw.randrange(TOPICS)}_{self._calls // _TOPIC_CALLS}"

    def _save(self) -> Call:
        topic, text = self._topic_name(), f"{self._word()} {words(self._draw, 4)}"
        arguments = {"topic": topic, "decision": text, "reasoning": "It is drawn"}
        line = ("save", "decision", topic, text, "--because", "It is drawn")
        return Call("save", "save_decision", arguments, line, {"topic": topic})

    def _supersede(self) -> Call:
        topic, text = self._topic_name(), f"{self._word()} {words(self._draw, 4)}"
        arguments = {"id": topic, "decision": text, "reasoning": "It is drawn"}
        line = ("evolve", "supersede", topic, text, "--because", "It is drawn")
        return Call("supersede", "evolve_supersede", arguments, line, {"topic": topic})

    def _topic(self) -> Call:
        topic = self._topic_name()
        return Call("topic", "mind_show", {"id": topic}, ("show", topic), {"topic": topic})

    def _put(self) -> Call:
        key, value = f"k{self._draw.randrange(VALUES)}", {"word": self._word()}
        arguments = {"namespace": NAMESPACE, "key": key, "value": value}
        line = ("value", "put", NAMESPACE, key, json.dumps(value))
        return Call("put", "putMemory", arguments, line, {"key": key, "value": value["word"]})

    def _get(self) -> Call:
        key = f"k{self._draw.randrange(VALUES)}"
        arguments = {"namespace": NAMESPACE, "key": key}
        return Call("get", "getMemory", arguments, ("value", "get", NAMESPACE, key), {"key": key})


class Row(NamedTuple):
    """One line of the history."""

    process: int
    start: int
    end: int
    name: str
    about: Mapping[str, Any]
    outcome: Outcome


_MEMORY_FILE = re.compile(r"/fact_(q[a-z]+)_")
_DECISION_FILE = re.compile(r"/(decision_(topic\w+)_\d{8}_\w{6})\.md$")
_VALUE_FILE = re.compile(rf"/values/{re.escape(NAMESPACE)}/(k\d+)\.md$")

Registers = Mapping[str, Sequence[Operation]]


def registers(rows: Iterable[Row]) -> Registers:
    """Returns the operations on each register. Failed ones are left out: they did nothing."""
    return _Reading(rows).registers


class _Reading:
    """Takes a history apart."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.registers: dict[str, list[Operation]] = defaultdict(list)
        self._decisions: dict[str, Decision] = {}
        rows = sorted(rows, key=lambda row: row.start)
        self._slots: dict[int, list[tuple[str, int]]] = defaultdict(list)
        """The memories that were ever in a slot, with the start of their first operation."""
        for row in rows:
            if row.name == "add":
                self._slots[row.about["slot"]].append((row.about["memory"], row.start))
            elif row.name in ("save", "supersede") and row.outcome.answer:
                answer = row.outcome.answer
                self._decisions[answer["id"]] = Decision(answer["id"], tuple(answer["supersedes"]))
        for row in rows:
            for register, kind, given in self._parts(row):
                end = None if row.outcome.killed else row.end
                operation = Operation(row.start, end, row.process, kind, given)
                self.registers[register].append(operation)

    def _parts(self, row: Row) -> Iterator[tuple[str, str, Any]]:
        """Yields what one line did to each register that it is about."""
        if row.outcome.error:
            yield from _failed(row)
        elif row.name == "list":
            yield from self._listed(row)
        elif row.name == "undo":
            yield from self._undone(row.outcome.answer)
        elif row.name in ("save", "supersede"):
            yield _register(row), "save", self._decisions[row.outcome.answer["id"]]
        elif row.name in _WRITTEN:
            given = row.about[_WRITTEN[row.name]] if _WRITTEN[row.name] else None
            if row.name == "add":
                given = {"text": given, "tags": frozenset({f"slot{row.about['slot']}"})}
            yield _register(row), row.name, given
        elif row.name in _READ and not row.outcome.killed:
            yield _register(row), "read", _READ[row.name](row)

    def _listed(self, row: Row) -> Iterator[tuple[str, str, Any]]:
        """Yields what a list shows of each memory that was ever in the slot.

        An answer to an agent may be cut at its budget; such a one shows no absence.
        """
        if row.outcome.answer.get("truncated"):
            return
        shown = {_name(memory): memory for memory in row.outcome.answer["memories"]}
        for memory, start in self._slots[row.about["listed"]]:
            if memory in shown:
                yield f"memory {memory}", "read", _seen(shown[memory])
            elif start < row.end:
                yield f"memory {memory}", "read", None

    def _undone(self, answer: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
        for file in answer["files"]:
            path, command = file["file"], answer["change"]["command"]
            if file["action"] == "nothing":
                continue
            if match := _MEMORY_FILE.search(path):
                yield f"memory {match[1]}", "undo", command
            elif match := _VALUE_FILE.search(path):
                yield f"value {match[1]}", "undo", command
            elif match := _DECISION_FILE.search(path):
                if file["action"] == "remove":
                    yield f"topic {match[2]}", "gone", match[1]
                elif match[1] in self._decisions:
                    yield f"topic {match[2]}", "back", self._decisions[match[1]]


def _name(memory: Mapping[str, Any]) -> str:
    return str((memory.get("title") or memory["content"]).partition(" ")[0])


def _seen(memory: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the parts of a memory that an answer shows. A list has no content but the title."""
    text = memory["content"] if "content" in memory else memory["title"]
    seen: dict[str, Any] = {"text": text, "tags": frozenset(memory.get("tags", ()))}
    if "sections" in memory:  # of `show`, which has the links
        seen["links"] = frozenset(link["to"].rpartition("_")[2] for link in memory["links"])
    if "decay_score" in memory or "protected" in memory:
        seen["kept"] = memory.get("protected", False)
    return seen


def _found(row: Row) -> Mapping[str, Any] | None:
    """Returns the parts of a memory that a search for its name shows; None if it is not found.

    To agents it shows tags only if they are asked for.
    """
    for match in row.outcome.answer["results"]:
        if _name(match) == row.about["memory"]:
            return {name: part for name, part in _seen(match).items() if name != "tags"}
    return None


_WRITTEN = {
    "add": "text", "edit": "text", "tag": "tag", "untag": "tag", "rm": "", "keep": "kept",
    "link": "link", "put": "value",
}  # fmt: skip
"""The operations that write, and the name of what they write."""

_READ: Mapping[str, Callable[[Row], Any]] = {
    "show": lambda row: _seen(row.outcome.answer),
    "search": _found,
    "get": lambda row: row.outcome.answer["value"]["word"],
    "topic": lambda row: row.outcome.answer["id"],
}
"""The parts that the operations that read see."""


def _register(row: Row) -> str:
    names = (("memory", "memory"), ("value", "key"), ("topic", "topic"))
    return next(f"{kind} {row.about[name]}" for kind, name in names if name in row.about)


def _failed(row: Row) -> Iterator[tuple[str, str, Any]]:
    """Yields what an error shows: a memory, a value or a tag that is missing."""
    if row.name == "untag" and row.outcome.error == "VALIDATION_ERROR":
        yield _register(row), "lacks", row.about["tag"]
    elif row.outcome.error == "AMBIGUOUS_ID" and "topic" in row.about:
        yield _register(row), "competes", None
    elif row.outcome.error == "NOT_FOUND" and row.name not in ("undo", "sync"):
        is_about_other = row.name == "link" and row.about["id"] not in row.outcome.message
        if not is_about_other:
            yield _register(row), "read", None
