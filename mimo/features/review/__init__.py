"""What waits for a person: one list of everything that mind does not decide by itself."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path

from mimo.frozen import frozen
from mimo.memory import decay
from mimo.memory.model import Kind, Outcome, Record, topic_key
from mimo.memory.relations import Relation
from mimo.mind import Mind
from mimo.operations import finding, refresh
from mimo.store import files
from mimo.store.locking import lock
from mimo.store.projects import index_owner, known_owner, own_name

# Items that the user has reviewed and left as they are: `.mind/.local/reviewed-…`.


_DIGEST = re.compile(r"[0-9a-f]{64}")


class Reviewed:
    """The items of a review that are not to be shown again as they are."""

    def __init__(self, root: Path, owner: str) -> None:
        """Take the project's root and the secret of its user; nothing is read yet."""
        self._folder = root / ".mind" / ".local"
        self._path = self._folder / own_name("reviewed", owner)

    def keys(self) -> frozenset[str]:
        """Returns what was kept; nothing where that can't be read."""
        try:
            text = files.read(self._path).decode("ascii", "replace")
        except OSError:
            return frozenset()
        return frozenset(line for line in text.split() if _DIGEST.fullmatch(line))

    def add(self, key: str) -> None:
        """Keeps one. Raises `StorageFailed`."""
        with self._locked():
            self._write(self.keys() | {key})

    def remove(self, key: str) -> None:
        """Lets one be shown again. Raises `StorageFailed`."""
        with self._locked():
            self._write(self.keys() - {key})

    def _write(self, keys: Iterable[str]) -> None:
        data = "".join(f"{one}\n" for one in sorted(keys)).encode()
        files.replace(self._path, data, mode=0o600)

    def _locked(self) -> AbstractContextManager[None]:
        return lock(self._folder / "reviewed.lock")


class Waiting(StrEnum):
    """Why something waits for a person, the most urgent first."""

    UNREADABLE = "unreadable"
    VERSIONS = "versions"
    DECISIONS = "decisions"
    CONTRADICTION = "contradiction"
    UNTRUSTED = "untrusted"
    OUTDATED = "outdated"
    STALE = "stale"
    DOUBLE = "double"
    FADING = "fading"


CHEAP = (
    Waiting.UNREADABLE,
    Waiting.VERSIONS,
    Waiting.DECISIONS,
    Waiting.CONTRADICTION,
    Waiting.UNTRUSTED,
    Waiting.OUTDATED,
)
"""What needs neither git nor a comparison of everything with everything."""

SETTLED_BY_CHOICE = (
    Waiting.VERSIONS,
    Waiting.DECISIONS,
    Waiting.CONTRADICTION,
    Waiting.DOUBLE,
)

_AT_ONCE = 500
"""Ids that are asked for together: older builds of SQLite take 999 at most."""
_COMPARED = 200
"""So many of the newest memories are held against all others; to hold each would take minutes."""


@frozen
class Choice:
    """One of the things that contradict each other: a value, or a whole memory."""

    text: str
    record: Record | None = None
    """None for a value; the memory that holds it is the item's own."""


@frozen
class Item:
    """One thing that waits."""

    kind: Waiting
    why: str
    file: str
    line: int | None = None
    record: Record | None = None
    """The memory that it is about; None where the file can't be read."""
    field: str | None = None
    """The field of which there are several versions."""
    choices: tuple[Choice, ...] = ()
    evidence: str = ""
    """What else would have to change for it to be shown again."""
    remedy: str | None = None
    """The command that resolves it, if one does."""

    @property
    def id(self) -> str | None:
        """Returns the id of the memory that it is about, or of the file that was ingested."""
        if self.record is None:
            return None
        return self.record.parent or self.record.memory.id

    @property
    def ids(self) -> tuple[str, ...]:
        """Returns the ids of all memories that it is about."""
        others = (choice.record.memory.id for choice in self.choices if choice.record)
        return tuple(dict.fromkeys([*([self.id] if self.id else []), *others]))

    @property
    def key(self) -> str:
        """Returns what it is kept by once a person has looked at it: its memories' own words."""
        records = [self.record, *(choice.record for choice in self.choices)]
        said = sorted({f"{one.memory.id}\0{one.memory.text}" for one in records if one is not None})
        told = "\0".join((self.kind, self.file, self.field or "", self.evidence, *said))
        return hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()


def reviewed(mind: Mind) -> Reviewed:
    """Returns the items of the project that the user left as they are."""
    return Reviewed(mind.project.root, index_owner(mind.home, mind.randomness))


def waiting(
    mind: Mind, kinds: Iterable[Waiting] = Waiting, *, kept: bool = False
) -> tuple[Item, ...]:
    """Returns what waits for a person, most urgent first.

    What somebody has looked at on this machine and left as it is only comes with `kept`.
    """
    wanted = frozenset(kinds)
    records = finding.listing(mind).records
    owner = None if kept else known_owner(mind.home)
    seen = Reviewed(mind.project.root, owner).keys() if owner else frozenset()
    items: list[Item] = []
    for kind in (kind for kind in Waiting if kind in wanted):
        for item in _FOUND[kind](mind, records):
            mind.heed()
            if item.key not in seen:
                items.append(item)
    return tuple(items)


def count(mind: Mind) -> dict[str, int]:
    """Returns how many things of each kind wait, as far as that is quickly told."""
    numbers: dict[str, int] = {}
    for item in waiting(mind, CHEAP):
        numbers[item.kind.value] = numbers.get(item.kind.value, 0) + 1
    return numbers


def _unreadable(mind: Mind, _: Sequence[Record]) -> Iterator[Item]:
    for problem in refresh.problems(mind):
        yield Item(
            kind=Waiting.UNREADABLE,
            why=problem.reason,
            file=problem.path,
            line=problem.line,
        )


def _versions(_: Mind, records: Sequence[Record]) -> Iterator[Item]:
    from mimo.memory.merge import current_version

    for record in records:
        memory = record.memory
        for name in dict.fromkeys(one.field for one in memory.competing):
            others = [one.text for one in memory.competing if one.field == name]
            yield Item(
                kind=Waiting.VERSIONS,
                why=f"branches said different things of {name}",
                file=record.place.path,
                line=record.place.line,
                record=record,
                field=name,
                choices=tuple(
                    Choice(text=text) for text in (current_version(memory, name), *others)
                ),
            )


def _decisions(mind: Mind, records: Sequence[Record]) -> Iterator[Item]:
    by_id = {one.memory.id: one for one in records if one.memory.type is Kind.DECISION}
    topics: dict[str, list[Record]] = {}
    names = list(by_id)
    found = (mind.index.competing(names[n : n + _AT_ONCE]) for n in range(0, len(names), _AT_ONCE))
    for name in (name for part in found for name in part):
        record = by_id[name]
        topics.setdefault(topic_key(record.memory.topic or ""), []).append(record)
    for rivals in topics.values():
        topic = rivals[0].memory.topic
        yield _between(
            Waiting.DECISIONS, rivals, f"{len(rivals)} decisions on {topic} are in force at once"
        )


def _contradictions(mind: Mind, records: Sequence[Record]) -> Iterator[Item]:
    holding = [record for record in records if _contradicted(record)]
    pairs: dict[frozenset[str], tuple[Record, Record]] = {}
    for record in holding:
        for to in _contradicted(record):
            other = mind.index.named(to)
            if other and other.memory.id != record.memory.id:
                pairs.setdefault(frozenset((record.memory.id, other.memory.id)), (record, other))
    newer = mind.index.superseded_by(list({name for pair in pairs for name in pair}))
    for one, other in pairs.values():
        settled = {one.memory.id, other.memory.id} & newer.keys()
        failed = Outcome.FAILED in (one.memory.outcome, other.memory.outcome)
        if not settled and not failed:
            yield _between(
                Waiting.CONTRADICTION, (one, other), f"it contradicts {other.memory.heading}"
            )


def _contradicted(record: Record) -> list[str]:
    return [link.to for link in record.memory.links if link.type == Relation.CONTRADICTS]


def _untrusted(mind: Mind, records: Sequence[Record]) -> Iterator[Item]:
    files: dict[tuple[str, str], Record] = {}
    trusted = mind.trust.checker()
    for record in records:
        if not trusted(record.place.digest):
            # The messages of commits have one path, and a digest each.
            files.setdefault((record.place.path, record.place.digest), record)
    for (path, _), record in files.items():
        yield Item(
            kind=Waiting.UNTRUSTED,
            why="nobody here has approved this text; no agent is given it",
            file=path,
            line=record.place.line,
            record=record,
            evidence=record.place.digest,
        )


def _outdated(mind: Mind, records: Sequence[Record]) -> Iterator[Item]:
    from mimo.operations import freshness

    for one in freshness.checked(mind, records):
        if one.message:
            yield Item(
                kind=Waiting.OUTDATED,
                why=one.message,
                file=one.part.place.path,
                line=one.part.place.line,
                record=one.part,
                evidence=f"{one.state}\0{one.part.place.digest}",
                remedy=one.remedy,
            )


def _stale(mind: Mind, records: Sequence[Record]) -> Iterator[Item]:
    from mimo.features.review.stale import Stale, stale

    found: dict[str, list[Stale]] = {}
    for one in stale(mind, records):
        found.setdefault(one.record.memory.id, []).append(one)
    newer = mind.index.superseded_by(list(found))
    for several in [several for name, several in found.items() if name not in newer]:
        first = several[0]
        reasons = "; ".join(dict.fromkeys(one.reason for one in several))
        yield Item(
            kind=Waiting.STALE,
            why=f"since {first.since.when:%Y-%m-%d} ({first.since.short}) {reasons}",
            file=first.record.place.path,
            line=first.record.place.line,
            record=first.record,
            evidence=f"{first.since.commit}\0{reasons}",
        )


def _doubles(mind: Mind, records: Sequence[Record]) -> Iterator[Item]:
    from mimo.memory.duplicates import is_single

    single = [one for one in records if one.parent is None and is_single(one.memory)][:_COMPARED]
    newer = mind.index.superseded_by([one.memory.id for one in single])
    seen: set[frozenset[str]] = set()
    for record in [one for one in single if one.memory.id not in newer]:
        other = mind.index.much_like(record.memory)
        pair = frozenset((record.memory.id, other.memory.id)) if other else frozenset()
        if other is None or pair in seen or _is_linked(record, other):
            continue
        seen.add(pair)
        yield _between(Waiting.DOUBLE, (record, other), "two memories say much the same")


def _is_linked(one: Record, other: Record) -> bool:
    """Returns whether one of two memories says how it stands to the other."""
    ends = ((one, other), (other, one))
    return any(link.to == to.memory.id for held, to in ends for link in held.memory.links)


def _fading(mind: Mind, _: Sequence[Record]) -> Iterator[Item]:
    from mimo.operations import overview

    for one in overview.at_risk(mind, decay.AT_RISK).fading:
        left = f"{one.days:.0f} days left" if one.days else "it counts as forgotten"
        yield Item(
            kind=Waiting.FADING,
            why=f"it fades: {left}",
            file=one.record.place.path,
            line=one.record.place.line,
            record=one.record,
        )


def _between(kind: Waiting, rivals: Sequence[Record], why: str) -> Item:
    ordered = sorted(rivals, key=lambda one: (one.memory.created, one.memory.id), reverse=True)
    first = ordered[0]
    return Item(
        kind=kind,
        why=why,
        file=first.place.path,
        line=first.place.line,
        record=first,
        choices=tuple(Choice(text=one.memory.text, record=one) for one in ordered),
    )


_FOUND: dict[Waiting, Callable[[Mind, Sequence[Record]], Iterator[Item]]] = {
    Waiting.UNREADABLE: _unreadable,
    Waiting.VERSIONS: _versions,
    Waiting.DECISIONS: _decisions,
    Waiting.CONTRADICTION: _contradictions,
    Waiting.UNTRUSTED: _untrusted,
    Waiting.OUTDATED: _outdated,
    Waiting.STALE: _stale,
    Waiting.DOUBLE: _doubles,
    Waiting.FADING: _fading,
}
