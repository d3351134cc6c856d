"""The review list: everything that needs a decision by the user."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path

from mimo import disk
from mimo.frozen import frozen
from mimo.memory import decay
from mimo.memory.model import Kind, Outcome, Record, topic_key
from mimo.memory.relations import Relation
from mimo.mind import Mind
from mimo.operations import finding, refresh
from mimo.store import files
from mimo.store.files import lock
from mimo.store.projects import index_owner, known_owner, own_name

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Reviewed:
    """The reviewed items that are hidden until they change: `.mind/.local/reviewed-…`."""

    def __init__(self, root: Path, owner: str) -> None:
        """Keep the project's root and the secret of its user; nothing is read yet."""
        self._folder = root / ".mind" / ".local"
        self._path = self._folder / own_name("reviewed", owner)

    def keys(self) -> frozenset[str]:
        """Returns the keys of hidden items; none if the file can't be read."""
        try:
            text = disk.read(self._path).decode("ascii", "replace")
        except OSError:
            return frozenset()
        return frozenset(line for line in text.split() if _DIGEST.fullmatch(line))

    def add(self, key: str) -> None:
        """Hides an item. Raises `StorageFailed`."""
        with self._locked():
            self._write(self.keys() | {key})

    def remove(self, key: str) -> None:
        """Shows an item again. Raises `StorageFailed`."""
        with self._locked():
            self._write(self.keys() - {key})

    def _write(self, keys: Iterable[str]) -> None:
        data = "".join(f"{key}\n" for key in sorted(keys)).encode()
        files.replace(self._path, data, mode=0o600)

    def _locked(self) -> AbstractContextManager[None]:
        return lock(self._folder / "reviewed.lock")


class Waiting(StrEnum):
    """The reason why an item needs a decision, most urgent first."""

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
"""The kinds that need neither git nor a comparison of all pairs."""

BY_CHOICE = (
    Waiting.VERSIONS,
    Waiting.DECISIONS,
    Waiting.CONTRADICTION,
    Waiting.DOUBLE,
)

_AT_ONCE = 500
"""Ids in one query: older builds of SQLite take 999 at most."""
_COMPARED = 200
"""The newest memories that are compared with all others; comparing all would take minutes."""


@frozen
class Choice:
    """One side of a conflict: a value, or a whole memory."""

    text: str
    record: Record | None = None
    """None for a value in the item's own memory."""


@frozen
class Item:
    """One item that needs a decision."""

    kind: Waiting
    why: str
    file: str
    line: int | None = None
    record: Record | None = None
    """The memory that it is about; None if the file can't be read."""
    field: str | None = None
    """The field with several versions."""
    choices: tuple[Choice, ...] = ()
    evidence: str = ""
    """Other data on which the item depends: if it changes, a hidden item is shown again."""
    remedy: str | None = None
    """The command that resolves it, if there is one."""

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
        """Returns the key of a hidden item, which depends on the texts of its memories."""
        records = [self.record, *(choice.record for choice in self.choices)]
        texts = sorted({f"{r.memory.id}\0{r.memory.text}" for r in records if r is not None})
        data = "\0".join((self.kind, self.file, self.field or "", self.evidence, *texts))
        return hashlib.sha256(data.encode("utf-8", "replace")).hexdigest()


def reviewed(mind: Mind) -> Reviewed:
    """Returns the hidden items of the project."""
    return Reviewed(mind.project.root, index_owner(mind.home, mind.randomness))


def waiting(
    mind: Mind, kinds: Iterable[Waiting] = Waiting, *, kept: bool = False
) -> tuple[Item, ...]:
    """Returns the items that need a decision, most urgent first.

    Items that were hidden on this machine are included only with `kept`.
    """
    wanted = frozenset(kinds)
    records = finding.listing(mind).records
    owner = None if kept else known_owner(mind.home)
    seen = Reviewed(mind.project.root, owner).keys() if owner else frozenset()
    items: list[Item] = []
    for kind in (kind for kind in Waiting if kind in wanted):
        for item in _FINDERS[kind](mind, records):
            mind.heed()
            if item.key not in seen:
                items.append(item)
    return tuple(items)


def count(mind: Mind) -> dict[str, int]:
    """Returns the number of items of each cheap kind."""
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
            others = [version.text for version in memory.competing if version.field == name]
            yield Item(
                kind=Waiting.VERSIONS,
                why=f"the branches disagree on {name}",
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
    parts = (mind.index.competing(names[n : n + _AT_ONCE]) for n in range(0, len(names), _AT_ONCE))
    for name in (name for part in parts for name in part):
        record = by_id[name]
        topics.setdefault(topic_key(record.memory.topic or ""), []).append(record)
    for rivals in topics.values():
        topic = rivals[0].memory.topic
        yield _between(Waiting.DECISIONS, rivals, f"{len(rivals)} decisions on {topic} are current")


def _contradictions(mind: Mind, records: Sequence[Record]) -> Iterator[Item]:
    holding = [record for record in records if _contradicted(record)]
    pairs: dict[frozenset[str], tuple[Record, Record]] = {}
    for record in holding:
        for to in _contradicted(record):
            other = mind.index.named(to)
            if other and other.memory.id != record.memory.id:
                pairs.setdefault(frozenset((record.memory.id, other.memory.id)), (record, other))
    newer = mind.index.superseded_by(list({name for pair in pairs for name in pair}))
    for record, other in pairs.values():
        superseded = {record.memory.id, other.memory.id} & newer.keys()
        failed = Outcome.FAILED in (record.memory.outcome, other.memory.outcome)
        if not superseded and not failed:
            yield _between(
                Waiting.CONTRADICTION, (record, other), f"it contradicts {other.memory.heading}"
            )


def _contradicted(record: Record) -> list[str]:
    return [link.to for link in record.memory.links if link.type == Relation.CONTRADICTS]


def _untrusted(mind: Mind, records: Sequence[Record]) -> Iterator[Item]:
    files: dict[tuple[str, str], Record] = {}
    trusted = mind.trust.checker()
    for record in records:
        if not trusted(record.place.digest):
            # The messages of commits share a path, and each has its own digest.
            files.setdefault((record.place.path, record.place.digest), record)
    for (path, _), record in files.items():
        yield Item(
            kind=Waiting.UNTRUSTED,
            why="this text is not approved here; no agent gets it",
            file=path,
            line=record.place.line,
            record=record,
            evidence=record.place.digest,
        )


def _outdated(mind: Mind, records: Sequence[Record]) -> Iterator[Item]:
    from mimo.operations import freshness

    for source in freshness.checked(mind, records):
        if source.message:
            yield Item(
                kind=Waiting.OUTDATED,
                why=source.message,
                file=source.part.place.path,
                line=source.part.place.line,
                record=source.part,
                evidence=f"{source.state}\0{source.part.place.digest}",
                remedy=source.remedy,
            )


def _stale(mind: Mind, records: Sequence[Record]) -> Iterator[Item]:
    from mimo.features.review.stale import Stale, stale

    by_id: dict[str, list[Stale]] = {}
    for citation in stale(mind, records):
        by_id.setdefault(citation.record.memory.id, []).append(citation)
    newer = mind.index.superseded_by(list(by_id))
    for citations in [citations for name, citations in by_id.items() if name not in newer]:
        first = citations[0]
        reasons = "; ".join(dict.fromkeys(citation.reason for citation in citations))
        yield Item(
            kind=Waiting.STALE,
            why=f"since {first.since.committed:%Y-%m-%d} ({first.since.short}) {reasons}",
            file=first.record.place.path,
            line=first.record.place.line,
            record=first.record,
            evidence=f"{first.since.id}\0{reasons}",
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
        yield _between(Waiting.DOUBLE, (record, other), "the two memories are near-duplicates")


def _is_linked(record: Record, other: Record) -> bool:
    """Returns whether one of two memories links to the other."""
    ends = ((record, other), (other, record))
    return any(link.to == to.memory.id for held, to in ends for link in held.memory.links)


def _fading(mind: Mind, _: Sequence[Record]) -> Iterator[Item]:
    from mimo.operations import overview

    for fading in overview.at_risk(mind, decay.AT_RISK).fading:
        left = f"{fading.days:.0f} days left" if fading.days else "it counts as forgotten"
        yield Item(
            kind=Waiting.FADING,
            why=f"it fades: {left}",
            file=fading.record.place.path,
            line=fading.record.place.line,
            record=fading.record,
        )


def _between(kind: Waiting, rivals: Sequence[Record], why: str) -> Item:
    ordered = sorted(rivals, key=lambda rival: (rival.memory.created, rival.memory.id))[::-1]
    first = ordered[0]
    return Item(
        kind=kind,
        why=why,
        file=first.place.path,
        line=first.place.line,
        record=first,
        choices=tuple(Choice(text=record.memory.text, record=record) for record in ordered),
    )


_FINDERS: dict[Waiting, Callable[[Mind, Sequence[Record]], Iterator[Item]]] = {
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
