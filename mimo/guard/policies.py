"""The policies in force: the project's `policy.yaml`, or what holds without one."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from mimo.disk import STORE
from mimo.errors import Denied, MindError
from mimo.frozen import frozen
from mimo.guard.policy import (
    DEFAULT,
    EVERY,
    FAMILIES,
    LEADERS,
    LIMIT,
    Limit,
    Operation,
    PiiAction,
    Policy,
    Rule,
    folded,
    stricter,
)
from mimo.memory.ids import is_pattern
from mimo.store import files

# `policy.yaml` -> a policy, or all that is wrong with it, each with its line.


T = TypeVar("T")
KeyPath = tuple[str | int, ...]

CONTEXTS = ("session", "agent", "task")
MAX_BYTES = 64 * 1024
_MOST = 1_000_000
_LONGEST_TTL = 10 * 365 * 24 * 3600
_RULE_KEYS = ("allowed_namespaces", "operations", "allowed_context_types", "max_ttl_seconds")


class Fault(NamedTuple):
    """One thing that is wrong, and the line that it stands on, from 1."""

    line: int
    reason: str


class Faulty(Exception):
    """A text is no policy; `faults` are all that is wrong, in the order of their lines."""

    def __init__(self, faults: list[Fault]) -> None:
        """Keep the faults, of which there is at least one."""
        super().__init__(faults[0].reason)
        self.faults = tuple(sorted(faults))


def parse(data: bytes, source: str) -> Policy:
    """Returns the policy that a file says; what it leaves out is as by default.

    Raises `Faulty`: who mistypes a key must not believe that it protects anything.
    """
    header, lines = _loaded(data)
    reader = _Reader(lines)
    policy = reader.policy(header, source)
    if reader.faults:
        raise Faulty(reader.faults)
    return policy


def _loaded(data: bytes) -> tuple[dict[str, Any], Mapping[KeyPath, int]]:
    from mimo.memory.codec import yaml
    from mimo.memory.codec.document import Unreadable, decode

    try:
        text, _ = decode(data, MAX_BYTES)
        return yaml.read(text).data, yaml.lines(text)
    except yaml.NotAMapping:
        raise Faulty([Fault(1, "must be a mapping, such as `tool_permissions:`")]) from None
    except Unreadable as error:
        raise Faulty([Fault(error.line or 1, error.reason.removeprefix("header: "))]) from None


class _Reader:
    """Reads the parts of a file, and keeps what is wrong with them."""

    def __init__(self, lines: Mapping[KeyPath, int]) -> None:
        self.faults: list[Fault] = []
        self._lines = lines

    def policy(self, header: Mapping[str, Any], source: str) -> Policy:
        parts = self._mapping((), header, ("tool_permissions", "rate_limits", "pii"))
        rules = dict(self._rules(("tool_permissions",), parts.get("tool_permissions", {})))
        place = ("rate_limits",)
        limits = self._mapping(place, parts.get("rate_limits", {}), ("tools", "namespaces"))
        tools = dict(self._limits((*place, "tools"), limits.get("tools", {}), self._tool))
        for member, leader in LEADERS.items():
            if leader in tools and member not in tools:
                own = DEFAULT.tool_limits.get(member, tools[leader])
                tools[member] = stricter(own, tools[leader])
        namespaces = dict(
            self._limits((*place, "namespaces"), limits.get("namespaces", {}), self._pattern)
        )
        pii = self._mapping(("pii",), parts.get("pii", {}), ("on_write",))
        word = pii.get("on_write", DEFAULT.on_write.value)
        return Policy(
            rules={**DEFAULT.rules, **rules},
            named=frozenset(rules),
            tool_limits={**DEFAULT.tool_limits, **tools},
            namespace_limits={**namespaces, **DEFAULT.namespace_limits, **namespaces},
            on_write=self._word(("pii", "on_write"), word, PiiAction) or PiiAction.REFUSE,
            source=source,
        )

    def _rules(self, place: KeyPath, value: Any) -> Iterator[tuple[str, Rule]]:
        for name, told in self._named(place, value, self._tool):
            given = self._mapping((*place, name), told, _RULE_KEYS)
            rule = DEFAULT.rules.get(folded(name), Rule())
            yield folded(name), self._rule((*place, name), given, rule)

    def _rule(self, place: KeyPath, given: Mapping[str, Any], rule: Rule) -> Rule:
        changes: dict[str, Any] = {"line": self._line(place)}
        if "operations" in given:
            here = (*place, "operations")
            changes["operations"] = self._each(
                here, given["operations"], lambda at, word: self._word(at, word, Operation)
            )
        if "allowed_namespaces" in given:
            here = (*place, "allowed_namespaces")
            changes["namespaces"] = self._each(here, given["allowed_namespaces"], self._pattern)
        if "allowed_context_types" in given:
            here = (*place, "allowed_context_types")
            changes["contexts"] = self._each(here, given["allowed_context_types"], self._context)
        if "max_ttl_seconds" in given:
            here = (*place, "max_ttl_seconds")
            most = self._number(here, given["max_ttl_seconds"], 0, _LONGEST_TTL)
            changes["max_ttl_seconds"] = None if most is None else int(most)
        return replace(rule, **changes)

    def _limits(
        self, place: KeyPath, value: Any, check: Callable[[KeyPath, Any], str | None]
    ) -> Iterator[tuple[str, Limit]]:
        for name, told in self._named(place, value, check):
            here = (*place, name)
            given = self._mapping(here, told, ("sustained", "burst"))
            rate = self._number((*here, "sustained"), given.get("sustained", 10), 0.001, _MOST)
            burst = self._number((*here, "burst"), given.get("burst", 50), 1, _MOST)
            key = name if check == self._pattern else folded(name)
            yield key, Limit(rate or LIMIT.sustained, int(burst or LIMIT.burst))

    def _named(
        self, place: KeyPath, value: Any, check: Callable[[KeyPath, Any], str | None]
    ) -> Iterator[tuple[str, Any]]:
        """Yields what is said of each name; one that is spelled in two ways is a fault."""
        seen: set[str] = set()
        for name, told in self._mapping(place, value).items():
            if check((*place, name), name) is None:
                continue
            same = name if check == self._pattern else folded(name)
            if same in seen:
                self._fault((*place, name), f"`{name}` stands twice")
            seen.add(same)
            yield name, told

    def _mapping(
        self, place: KeyPath, value: Any, known: tuple[str, ...] | None = None
    ) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._fault(place, f"{_named(place)} must be a mapping")
            return {}
        for key in value:
            if known is not None and key not in known:
                self._fault((*place, key), f"unknown key `{key}`; here are {', '.join(known)}")
        return value

    def _each(
        self, place: KeyPath, value: Any, check: Callable[[KeyPath, Any], T | None]
    ) -> tuple[T, ...]:
        if not isinstance(value, list):
            self._fault(place, f"{_named(place)} must be a list")
            return ()
        found = (check((*place, number), item) for number, item in enumerate(value))
        return tuple(item for item in found if item is not None)

    def _word(self, place: KeyPath, value: Any, words: type[T]) -> T | None:
        try:
            return words(value)  # type: ignore[call-arg]  # an enumeration of ours
        except ValueError:
            known = ", ".join(str(word) for word in words)  # type: ignore[attr-defined]
            self._fault(place, f"{_told(value)} must be one of {known}")
            return None

    def _context(self, place: KeyPath, value: Any) -> str | None:
        if value in CONTEXTS:
            return str(value)
        self._fault(place, f"{_told(value)} must be one of {', '.join(CONTEXTS)}")
        return None

    def _pattern(self, place: KeyPath, value: Any) -> str | None:
        if isinstance(value, str) and is_pattern(value):
            return value
        self._fault(place, f"{_told(value)} is no pattern of a namespace, such as `session.*`")
        return None

    def _tool(self, place: KeyPath, value: Any) -> str | None:
        if isinstance(value, str):
            name = folded(value)
            if name in (EVERY, *FAMILIES) or name.isidentifier():
                return value
        self._fault(place, f"{_told(value)} is no name of a tool")
        return None

    def _number(self, place: KeyPath, value: Any, low: float, high: float) -> float | None:
        whole = isinstance(low, int)
        right = type(value) is int or (type(value) is float and not whole)
        if right and low <= value <= high:
            return float(value) if not whole else int(value)
        kind = "a whole number" if whole else "a number"
        self._fault(place, f"{_named(place)} must be {kind} from {low:g} to {high:,}")
        return None

    def _fault(self, place: KeyPath, reason: str) -> None:
        self.faults.append(Fault(self._line(place), reason))

    def _line(self, place: KeyPath) -> int:
        """Returns the line of a place, or of what it stands in where it is left out."""
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place, 1)


def _named(place: KeyPath) -> str:
    words = [str(part) for part in place if isinstance(part, str)]
    return f"`{words[-1]}`" if words else "the policy"


def _told(value: Any) -> str:
    return f"`{str(value)[:60]}`"


_GRAIN_NS = 50_000_000

FILE = f"{STORE}/policy.yaml"


@frozen
class Found:
    """What a look at the file came to."""

    policies: tuple[Policy, ...]
    """Each must permit a call; none at all where the file is invalid, which permits nothing."""
    faults: tuple[tuple[int, str], ...] = ()
    """What is wrong with the file, with the lines."""
    digest: str = ""
    """Of the file; empty where there is none."""
    trusted: bool = True
    """Whether somebody here approved the file; one that nobody did can only narrow."""

    @property
    def told(self) -> str:
        """Returns what is wrong first, with its place."""
        line, reason = self.faults[0]
        return f"{FILE}:{line}: {reason}"


class Policies:
    """Reads the file when it has changed; an approval counts at once."""

    def __init__(self, root: Path | None, trusted: Callable[[str], bool]) -> None:
        """Take a project's root, and what tells whether a digest is approved."""
        self._path = root / FILE if root else None
        self._trusted = trusted
        self._seen: tuple[object, ...] | None = None
        self._digest = ""
        self._policy: Policy | None = None
        self._faults: tuple[tuple[int, str], ...] = ()

    def stamp(self) -> tuple[object, ...] | None:
        """Returns what tells one state of the file from another; None where there is none."""
        try:
            status = self._path.lstat() if self._path else None
        except FileNotFoundError:
            return None
        except OSError as error:
            return (str(error),)
        if status is None:
            return None
        return (status.st_mtime_ns, status.st_size, status.st_ctime_ns, status.st_ino)

    def found(self) -> Found:
        """Returns the policies in force, or why there are none."""
        stamp = self.stamp()
        if stamp is None or self._path is None:
            return Found(policies=(DEFAULT,))
        if stamp != self._seen:
            self._read(self._path)
            # A change within the grain of the clock would not show: such a file is read again.
            fresh = isinstance(stamp[0], int) and time.time_ns() - stamp[0] < _GRAIN_NS
            self._seen = None if fresh else stamp
        trusted = self._trusted(self._digest)
        if self._policy is None:
            return Found(policies=(), faults=self._faults, digest=self._digest, trusted=trusted)
        policies = (self._policy,) if trusted else (DEFAULT, self._policy)
        return Found(policies=policies, digest=self._digest, trusted=trusted)

    def _read(self, path: Path) -> None:

        self._policy, self._faults, self._digest = None, (), ""
        try:
            data, _ = files.look(path, limit=MAX_BYTES)
            self._digest = files.digest(data)
            self._policy = parse(data, FILE)
        except Faulty as error:
            self._faults = error.faults
        except (OSError, MindError) as error:
            self._faults = ((1, f"it can't be read: {error}"),)


def invalid(found: Found) -> Denied:
    """Returns the refusal of every call while the file is invalid."""
    line, reason = found.faults[0]
    more = f" (and {len(found.faults) - 1} more)" if len(found.faults) > 1 else ""
    error = Denied(
        f"the policy is invalid, so no tool may be used: {found.told}{more}",
        hint="mend the file; `mind policy check` tells all that is wrong with it",
        details={"file": FILE, "line": line, "fault": reason},
    )
    error.reason = "policy"
    return error
