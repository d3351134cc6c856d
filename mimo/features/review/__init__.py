"""The review list: the items that need a decision of the user, and resolving them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Sized
from datetime import datetime
from enum import StrEnum
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any

from mimo.call import Call
from mimo.call.extensions import named
from mimo.data import disk, files
from mimo.data.locks import lock
from mimo.errors import AmbiguousId, Command, Conflict, Hint, Invalid, NotFound, Option
from mimo.features.review.trusting import reason_of, waiting_files
from mimo.frozen import frozen, replace
from mimo.index import survey
from mimo.index.schema import portions
from mimo.memory import decay
from mimo.memory.ids import handle_of
from mimo.memory.model import SUPERSEDES, Link, Memory, Outcome, Record
from mimo.memory.relations import Relation
from mimo.operations import consent, disclosure, lookup, overview, refresh, saving
from mimo.project.projects import index_owner, known_owner
from mimo.surroundings import Question
from mimo.text.clean import one_line
from mimo.text.phrases import cut, enumerated


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
    PROPOSAL = "proposal"
    FADING = "fading"


CHEAP = tuple(Waiting)[:6]
"""The kinds that need neither git nor a comparison of all pairs."""

LISTED = tuple(kind for kind in Waiting if kind is not Waiting.FADING)
"""The kinds whose items a review lists unasked; of the fading memories it states the number."""

PAIRS = (Waiting.CONTRADICTION, Waiting.DOUBLE)
"""The kinds whose items are about two memories, each of which may be in other items too."""

BY_CHOICE = (Waiting.VERSIONS, Waiting.DECISIONS, Waiting.CONTRADICTION, Waiting.DOUBLE)

BOTH = "both"

_COMPARED = 200
"""The newest memories that are compared with all others."""

_LONGEST = 600
"""Characters of a memory in a question."""
_READ_AT_ONCE = 100
"""The number of fading memories that are read at a time, as many as a review shows by default."""


@frozen
class Choice:
    """One side of a conflict: a value, or a whole memory."""

    text: str
    record: Record | None = None
    """None for a value in the item's own memory."""
    obstacle: str | None = None
    """The reason why the memory can't supersede the others; None if it can."""


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
    others: tuple[Item, ...] = ()
    """An item for each other field of the same merge with several versions."""
    evidence: str = ""
    """Other data on which the item depends: if it changes, a hidden item is shown again."""
    remedy: str | None = None
    """The command that resolves it, if there is one."""
    draft: Memory | None = None
    """The memory that an extension proposes, with the id of the proposal."""

    @property
    def id(self) -> str | None:
        """Returns the id of the memory that it is about, or of the file that was ingested."""
        if self.record is None:
            return self.draft.id if self.draft else None
        return self.record.parent or self.record.memory.id

    @property
    def ids(self) -> tuple[str, ...]:
        """Returns the ids of all memories that it is about."""
        choice_ids = (choice.record.memory.id for choice in self.choices if choice.record)
        return tuple(dict.fromkeys([*([self.id] if self.id else []), *choice_ids]))

    def is_before(self, time: datetime) -> bool:
        """Returns whether all memories that it is about were made before a time."""
        sides = [self.record, *(choice.record for choice in self.choices)]
        records = [record for record in sides if record]
        return bool(records) and all(record.memory.created < time for record in records)

    @property
    def against(self) -> str | None:
        """Returns the id of the other memory of a pair."""
        counterpart = self.choices[-1].record if self.kind in PAIRS else None
        return counterpart.memory.id if counterpart else None

    @property
    def key(self) -> str:
        """Returns the key of a hidden item, which depends on the texts of its memories."""
        records = [self.record, *(choice.record for choice in self.choices)]
        texts = sorted({f"{r.memory.id}\0{r.memory.text}" for r in records if r is not None})
        data = "\0".join((self.kind, self.file, self.field or "", self.evidence, *texts))
        return disk.sha256(data.encode("utf-8", "replace")).hex()


def waiting(
    call: Call, kinds: Iterable[Waiting] = Waiting, *, with_hidden: bool = False
) -> tuple[Item, ...]:
    """Returns the items that need a decision, most urgent first.

    Items that were hidden on this machine are included only with `with_hidden`.
    """
    return first(call, kinds, None, with_hidden=with_hidden)[0]


def first(
    call: Call,
    kinds: Iterable[Waiting],
    limit: int | None,
    *,
    with_hidden: bool = False,
    since: datetime | None = None,
) -> tuple[tuple[Item, ...], dict[Waiting, int]]:
    """Returns at most that many items, most urgent first, and the number of all of each kind.

    Items that were hidden on this machine are included only with `with_hidden`. With `since`, those
    of older memories are left out.
    """
    requested_kinds = frozenset(kinds)
    keys = frozenset[str]() if with_hidden else hidden(call)
    refresh.refresh(call)
    items: list[Item] = []
    numbers: dict[Waiting, int] = {}
    for kind in (kind for kind in Waiting if kind in requested_kinds):
        candidates = _FINDERS[kind](call)
        left = None if limit is None else max(0, limit - len(items))
        if keys or since or not isinstance(candidates, Sized):
            candidates = [
                item
                for item in _heeding(call, candidates)
                if item.key not in keys and not (since and item.is_before(since))
            ]
        numbers[kind] = len(candidates)
        items += _heeding(call, islice(candidates, left))
    return tuple(items), numbers


def _heeding(call: Call, items: Iterable[Item]) -> Iterator[Item]:
    """Yields items. Raises `Cancelled` between two of them if the call was."""
    for item in items:
        call.check_cancelled()
        yield item


def fading(call: Call) -> int:
    """Returns the number of memories that are at risk of being forgotten."""
    return len(overview.at_risk(call, decay.AT_RISK).fading)


def count(call: Call) -> dict[str, int]:
    """Returns the number of items of each cheap kind."""
    kinds = CHEAP
    if not hidden(call):
        kinds = tuple(kind for kind in CHEAP if kind is not Waiting.UNTRUSTED)
    _, numbers = first(call, kinds, 0)
    if Waiting.UNTRUSTED not in kinds:
        counted = call.index.cached(survey.approved, call.mind.trust.checker())
        numbers[Waiting.UNTRUSTED] = counted.unapproved + len(waiting_files(call))
    return {kind.value: numbers[kind] for kind in CHEAP if numbers[kind]}


# Hidden items: `.mind/.local/reviewed-…` has their keys.


def hidden(call: Call) -> frozenset[str]:
    """Returns the keys of the items that are hidden on this machine."""
    owner = known_owner(call.mind.home)
    return _keys(_hidden_file(call, owner)) if owner else frozenset()


def _hide(call: Call, keys: Iterable[str], *, off: bool = False) -> None:
    """Hides items until they change, or shows them again. Raises `StorageFailed`."""
    path = _hidden_file(call, index_owner(call.mind.home, call.mind.randomness))
    with lock(path.with_name("reviewed.lock")):
        changed = _keys(path).difference(keys) if off else _keys(path).union(keys)
        files.replace(path, "".join(f"{key}\n" for key in sorted(changed)).encode(), mode=0o600)


def _hidden_file(call: Call, owner: str) -> Path:
    return call.mind.project.root / ".mind" / ".local" / files.own_name("reviewed", owner)


def _keys(path: Path) -> frozenset[str]:
    """Returns the keys in a file; none if it can't be read."""
    try:
        text = disk.read(path).decode("ascii", "replace")
    except OSError:
        return frozenset()
    return frozenset(line for line in text.split() if re.fullmatch("[0-9a-f]{64}", line))


# Resolving items.


@frozen
class Resolved:
    """The items that were resolved, and the result."""

    items: tuple[Item, ...]
    message: str
    files: tuple[str, ...] = ()
    """The files that were changed."""


def settle(
    call: Call,
    reference: str,
    take: str,
    *,
    against: str | None = None,
    kind: Waiting | None = None,
    field: str | None = None,
) -> Resolved:
    """Chooses one of several versions or memories, or both, and returns the result.

    A chosen memory supersedes the others; nothing is removed. `against` is another memory of the
    same item. Raises `NotFound` if the memory has nothing to resolve, `AmbiguousId` if several
    items match, and `Invalid`.
    """
    if kind is not None and kind not in BY_CHOICE:
        raise Invalid(
            f"items of kind `{kind.value}` have no versions to take",
            hint=Hint(Command("review", kind=kind.value), " lists the possible commands"),
        )
    with saving.in_turn(call):  # Two processes may choose differently.
        return _settled(call, reference, take, against=against, kind=kind, field=field)


def _settled(
    call: Call,
    reference: str,
    take: str,
    *,
    against: str | None,
    kind: Waiting | None,
    field: str | None,
) -> Resolved:
    matches = _about(call, waiting(call, (kind,) if kind else BY_CHOICE), reference)
    if against is not None:
        matches = _about(call, matches, against)
    candidates = [part for item in matches for part in (item, *item.others)]
    items = [item for item in candidates if field in (None, item.field)]
    if not items:
        raise _nothing(reference, "to resolve")
    kinds = sorted({item.kind.value for item in items})
    if len(kinds) > 1 or (len(items) > 1 and items[0].kind is not Waiting.VERSIONS):
        hint = Hint("choose one with ", Option(kind=True), f": {', '.join(kinds)}")
        if len(kinds) == 1:
            ids = [set(item.ids) for item in items]
            other_ids = sorted(ids[0].union(*ids) - ids[0].intersection(*ids))
            hint = Hint(
                "name the other memory with ", Option(against=True), f": {', '.join(other_ids)}"
            )
        raise AmbiguousId(f"`{reference}` is in {len(items)} items", hint=hint)
    if items[0].kind is Waiting.VERSIONS:
        return _choose_version(call, items, take)
    return _choose_memory(call, items[0], take)


def choose(call: Call, rivals: Collection[Record]) -> str | None:
    """Returns the id of the competing decision that the client's user chooses; it supersedes them.

    Returns None without an answer, and if one of them is not approved. Raises `Conflict` if one of
    them changed meanwhile.
    """
    ids = {record.memory.id for record in rivals}
    items = [item for item in waiting(call, (Waiting.DECISIONS,)) if ids == set(item.ids)]
    if not items or not call.mind.trust.trusted(*(record.place.approval for record in rivals)):
        return None
    item = items[0]
    numbered = {str(number): choice for number, choice in enumerate(item.choices, 1)}
    free = tuple(number for number, choice in numbered.items() if not choice.obstacle)
    lines = [f"{one_line(item.why)}. Which one stays current? It supersedes the others."]
    for number, choice in numbered.items():
        if choice.record:
            memory, words = choice.record.memory, one_line(choice.text).split()
            day = f"{memory.created:%Y-%m-%d}"
            lines.append(f"{number}. {cut(' '.join(words), _LONGEST)} ({memory.id}, {day})")
    take = consent.answered(call, Question("\n".join(lines), free, (item.key,))) if free else ""
    if not take:
        return None
    with saving.in_turn(call):
        if item.key not in {each.key for each in waiting(call, (Waiting.DECISIONS,))}:
            raise Conflict("the decisions have changed since the question", hint="call it again")
        _choose_memory(call, item, take)
    return item.ids[int(take) - 1]


def keep(call: Call, reference: str, *, kind: Waiting | None = None, off: bool = False) -> Resolved:
    """Hides items until they change; with `off`, shows them again.

    Raises `NotFound` if the memory has no such items, and `Invalid` for items that can't be hidden.
    """
    keys = hidden(call)
    candidates = waiting(call, (kind,) if kind else Waiting, with_hidden=True)
    items = [item for item in _about(call, candidates, reference) if (item.key in keys) == off]
    if not items:
        raise _nothing(reference, "hidden" if off else "to review")
    if not off and (stuck := [item for item in items if item.kind is Waiting.VERSIONS]):
        raise Invalid(
            f"both versions of {stuck[0].field} would stay in {stuck[0].file}",
            hint=Hint(Command("review settle", stuck[0].id or "", take="1")),
        )
    weak = [item.id for item in items if item.kind is Waiting.FADING and item.id and not off]
    changed = [overview.keep(call, id, keep=True).place.path for id in weak]
    if item_keys := [item.key for item in items if off or item.kind is not Waiting.FADING]:
        _hide(call, item_keys, off=off)
    message = "is shown again" if off else "is hidden until it changes"
    return Resolved(items=tuple(items), message=message, files=tuple(changed))


def _about(call: Call, items: Sequence[Item], reference: str) -> list[Item]:
    """Returns the items about the memory, the ingested file or the unreadable file of that name."""
    if by_file := [item for item in items if item.record is None and item.file == reference]:
        return by_file
    parts = lookup.source(call, reference)
    id = parts[0].parent if parts else lookup.one(call, reference, surely=True).memory.id
    return [item for item in items if id in item.ids]


def _nothing(reference: str, purpose: str) -> NotFound:
    return NotFound(
        f"`{reference}` has nothing {purpose}",
        hint=Hint(
            Command("review"), " lists the items, with ", Option(all=True), " the hidden ones too"
        ),
    )


def _chosen(item: Item, take: str) -> Choice:
    """Returns the choice of that number. Raises `Invalid` if there is none."""
    choices = {str(number): choice for number, choice in enumerate(item.choices, 1)}
    if take not in choices:
        raise Invalid(
            f"`{take}` is not one of the versions",
            hint=f"take a number from 1 to {len(item.choices)}, or {BOTH}",
            details={"field": "take"},
        )
    return choices[take]


def _choose_version(call: Call, items: Sequence[Item], take: str) -> Resolved:
    from mimo.memory import merge

    record = items[0].record
    if record is None:
        raise Invalid("the item has no memory to resolve")
    memory = record.memory
    for item in items:
        field = str(item.field)
        if take != BOTH:
            text = _chosen(item, take).text
        elif merge.is_text(field):
            text = "\n\n".join(choice.text for choice in item.choices if choice.text)
        else:
            raise Invalid(
                f"`{field}` has one value", hint=f"take a number from 1 to {len(item.choices)}"
            )
        memory = merge.chosen(memory, field, text)
    changes = {
        name: getattr(memory, name)
        for name in Memory.__dataclass_fields__
        if getattr(memory, name) != getattr(record.memory, name)
    }
    saving.edit(call, record, **changes)
    fields = ", ".join(str(item.field) for item in items)
    result = "both texts are kept, one after the other" if take == BOTH else f"version {take}"
    return Resolved(items=tuple(items), message=f"{fields}: {result}", files=(record.place.path,))


def _choose_memory(call: Call, item: Item, take: str) -> Resolved:
    if take == BOTH:
        _hide(call, [item.key])
        return Resolved(items=(item,), message="both stay current")
    chosen = _chosen(item, take)
    winner = chosen.record
    if winner is None or chosen.obstacle:
        raise Invalid(chosen.obstacle or f"{take} is not a memory", hint=f"take another, or {BOTH}")
    losers = [c.record.memory for c in item.choices if c.record and c.record is not winner]
    names = {name for loser in losers for name in (loser.id, handle_of(loser.id), loser.title)}
    links = [
        link
        for link in winner.memory.links
        if not (link.type in (Relation.CONTRADICTS, SUPERSEDES) and link.to in names)
    ]
    links += [Link(to=loser.id, type=SUPERSEDES, confidence=1.0) for loser in losers]
    changed = saving.edit(call, winner, links=tuple(links))
    superseded = ", ".join(loser.heading for loser in losers)
    message = f"{winner.memory.heading} is current; it supersedes {superseded}"
    return Resolved(items=(item,), message=message, files=(changed.place.path,))


# Finding the items of each kind.


def _item(kind: Waiting, record: Record, why: str, **fields: Any) -> Item:
    """Returns an item about a memory."""
    place = record.place
    return Item(kind=kind, why=why, file=place.path, line=place.line, record=record, **fields)


def _between(kind: Waiting, rivals: Iterable[Record], why: str) -> Item:
    """Returns an item about several memories, newest first."""
    ordered = sorted(rivals, key=lambda rival: (rival.memory.created, rival.memory.id))[::-1]
    choices = tuple(
        Choice(text=record.memory.text, record=record, obstacle=_obstacle(record, ordered))
        for record in ordered
    )
    return _item(kind, ordered[0], why, choices=choices)


def _obstacle(record: Record, rivals: Iterable[Record]) -> str | None:
    """Returns why a memory can't supersede its rivals; None if it can."""
    if not record.place.owned:
        return f"`{record.place.path}` is a document that mind only reads"
    if not record.place.private and any(rival.place.private for rival in rivals):
        return f"`{record.memory.id}` is shared by git, and must not name a private memory"
    return None


def _unreadable(call: Call) -> Iterator[Item]:
    for problem in disclosure.of_problems(call):
        yield Item(
            kind=Waiting.UNREADABLE,
            why=problem.reason,
            file=problem.path,
            line=problem.line,
            evidence=call.mind.store.digest(problem.path),
        )


def _versions(call: Call) -> Iterator[Item]:
    for record in call.index.ask(survey.disputed):
        from mimo.memory.merge import current_version

        memory = record.memory
        fields = list(dict.fromkeys(version.field for version in memory.competing))
        items = []
        for field in fields:
            texts = [version.text for version in memory.competing if version.field == field]
            texts.insert(0, current_version(memory, field))
            choices = tuple(Choice(text=text) for text in texts)
            why = f"the branches disagree on {enumerated(fields)}"
            items.append(_item(Waiting.VERSIONS, record, why, field=field, choices=choices))
        head, *tail = items
        yield replace(head, others=tuple(tail))


class _Decisions:
    """The topics with several current decisions, which are read as they are asked for."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._topics = call.index.ask(survey.rivals)

    def __len__(self) -> int:
        return len(self._topics)

    def __iter__(self) -> Iterator[Item]:
        for keys in self._topics:
            rivals = self._call.index.ask(survey.records, keys)
            topic = rivals[keys[-1]].memory.topic
            why = f"{len(rivals)} decisions on {topic} are current"
            yield _between(Waiting.DECISIONS, rivals.values(), why)


def _contradictions(call: Call) -> Iterator[Item]:
    pairs: dict[frozenset[str], tuple[Record, Record]] = {}
    for record in call.index.ask(survey.contradicting):
        for link in record.memory.links:
            rival = (
                call.index.named(link.to, near=record.place.path)
                if link.type == Relation.CONTRADICTS
                else None
            )
            if rival and rival.memory.id != record.memory.id:
                pairs.setdefault(frozenset((record.memory.id, rival.memory.id)), (record, rival))
    newer = call.index.superseded_by(list({id for pair in pairs for id in pair}))
    for pair, (record, rival) in pairs.items():
        failed = Outcome.FAILED in (record.memory.outcome, rival.memory.outcome)
        if not failed and not pair & newer.keys():
            why = f"it contradicts {rival.memory.heading}"
            yield _between(Waiting.CONTRADICTION, (record, rival), why)


class _Untrusted:
    """The texts that are not approved, newest first; they are read as they are asked for."""

    def __init__(self, call: Call) -> None:
        self._call = call
        # Most often all are: finding that out takes a fifth of the time of listing them.
        unapproved = call.index.cached(survey.approved, call.mind.trust.checker()).unapproved
        texts = call.index.ask(survey.unapproved) if unapproved else []
        keys: dict[tuple[str, str], int] = {}
        for text in texts:
            keys.setdefault((text.path, "" if text.is_part else text.approval), text.key)
        self._keys = list(keys.values())
        self._files = waiting_files(call)

    def __len__(self) -> int:
        return len(self._files) + len(self._keys)

    def __iter__(self) -> Iterator[Item]:
        for path, why in self._files.items():
            evidence = "\0".join((why, *self._call.mind.store.approvals(path)))
            yield Item(kind=Waiting.UNTRUSTED, why=why, file=path, evidence=evidence)
        for some in portions(self._keys):
            records = self._call.index.ask(survey.records, some)
            competing = self._call.index.competing([r.memory.id for r in records.values()])
            for record in (records[key] for key in some if key in records):
                name = record.place.approval
                why = f"{reason_of(self._call, name)}: no agent gets it unasked, and a search"
                why = f"{why} labels it untrusted"
                if rivals := competing.get(record.memory.id):
                    why = f"it competes with {handle_of(rivals[0])}, which is current; {why}"
                yield _item(Waiting.UNTRUSTED, record, why, evidence=name)


def _outdated(call: Call) -> Iterator[Item]:
    from mimo.operations import freshness

    for source in freshness.checked(call, call.index.ask(survey.ingested)):
        if source.message:
            evidence = f"{source.state}\0{source.part.place.digest}"
            fields = {"evidence": evidence, "remedy": source.remedy}
            yield _item(Waiting.OUTDATED, source.part, source.message, **fields)


def _stale(call: Call) -> Iterator[Item]:
    from mimo.features.review.stale import Stale, stale

    by_id: dict[str, list[Stale]] = {}
    for citation in stale(call, call.index.ask(survey.citing)):
        by_id.setdefault(citation.record.memory.id, []).append(citation)
    newer = call.index.superseded_by(list(by_id))
    for citations in [citations for id, citations in by_id.items() if id not in newer]:
        since = citations[0].since
        reasons = "; ".join(dict.fromkeys(citation.reason for citation in citations))
        why = (
            f"since {since.committed.astimezone(call.mind.zone):%Y-%m-%d} ({since.short}) {reasons}"
        )
        yield _item(Waiting.STALE, citations[0].record, why, evidence=f"{since.id}\0{reasons}")


def _doubles(call: Call) -> Iterator[Item]:
    from mimo.index import doubles

    seen: set[frozenset[str]] = set()
    for record, twin in doubles.near_duplicates(call.index, _COMPARED):
        pair = frozenset((record.memory.id, twin.memory.id))
        if pair in seen:
            continue
        seen.add(pair)
        ends = ((record, twin), (twin, record))
        if not any(
            saving.leads_to(call, start, link, end)
            for start, end in ends
            for link in start.memory.links
        ):
            yield _between(Waiting.DOUBLE, (record, twin), "the two memories are near-duplicates")


def _proposals(call: Call) -> list[Item]:
    return [item for propose in named("drafts") for item in propose(call)]


class _Fading:
    """The fading memories, weakest first; their files are read as they are asked for."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._fading = overview.at_risk(call, decay.AT_RISK).fading

    def __len__(self) -> int:
        return len(self._fading)

    def __iter__(self) -> Iterator[Item]:
        for start in range(0, len(self), _READ_AT_ONCE):
            some = self._fading[start : start + _READ_AT_ONCE]
            for weak, record in overview.with_records(self._call, some):
                why = "its importance is low, but nothing fades here"
                if isfinite(weak.days):
                    left = f"{weak.days:.0f} days left" if weak.days else "it counts as forgotten"
                    why = f"it fades: {left}"
                yield _item(Waiting.FADING, record, why)


_FINDERS: dict[Waiting, Callable[[Call], Iterable[Item]]] = {
    Waiting.UNREADABLE: _unreadable,
    Waiting.VERSIONS: _versions,
    Waiting.DECISIONS: _Decisions,
    Waiting.CONTRADICTION: _contradictions,
    Waiting.UNTRUSTED: _Untrusted,
    Waiting.OUTDATED: _outdated,
    Waiting.STALE: _stale,
    Waiting.DOUBLE: _doubles,
    Waiting.PROPOSAL: _proposals,
    Waiting.FADING: _Fading,
}
