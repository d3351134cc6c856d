"""The commands of items, which the store of LangGraph calls."""

from datetime import datetime
from typing import Annotated

from mimo.api import (
    Arg,
    Call,
    Conflict,
    Effect,
    Filter,
    Invalid,
    Json,
    Kind,
    Needs,
    Operation,
    Problem,
    Record,
    SecretDetected,
    StorageFailed,
    Tool,
    command,
    finding,
    frozen,
    removing,
    replace,
    saving,
)
from mimo.extensions.adapters.items import TAG, Item, fields_of, item_of, matches, place_of

ITEMS = Tool(name="items", description="Items of other frameworks")
_FILTER = Filter(tags=frozenset({TAG}), approved=True)
_TRIES = 5

Namespace = Annotated[tuple[str, ...], Arg("Labels of the namespace, the outermost first")]
Key = Annotated[str, Arg("Key of the item in its namespace")]
_Name = tuple[tuple[str, ...], str]


@frozen
class ItemRow:
    """An item, and how well it matches."""

    namespace: tuple[str, ...]
    key: str
    value: Json
    created: datetime
    updated: datetime
    score: float | None = None


@frozen
class ItemRows:
    """Items; none or one if a single one was asked for."""

    items: tuple[ItemRow, ...]


@frozen
class Namespaces:
    """Namespaces that have items."""

    namespaces: tuple[tuple[str, ...], ...]


@frozen
class Changed:
    """The result of a change: True if there was an item."""

    changed: bool


@command(
    ITEMS,
    operation="put",
    effect=Effect.WRITE,
    toolset="adapters",
    needs=Needs(Operation.WRITE, like="mind_add"),
    errors=(Conflict, Invalid, SecretDetected, StorageFailed),
)
def put(
    call: Call,
    namespace: Namespace,
    key: Key,
    value: Annotated[Json, Arg("The value", object=True)],
    *,
    private: Annotated[bool, Arg("Keep it on this machine")] = True,
    searched: Annotated[bool, Arg("Whether searches for items find it")] = True,
) -> Changed:
    """Store an item, or replace its value"""
    if not isinstance(value, dict):
        raise Invalid("the value of an item must be an object")
    tries = _TRIES
    while True:
        tries -= 1
        try:
            return Changed(changed=_put(call, namespace, key, value, private, searched))
        except Conflict:
            if not tries:
                raise


def _put(
    call: Call, namespace: tuple[str, ...], key: str, value: Json, private: bool, searched: bool
) -> bool:
    """Stores an item and returns whether there was one."""
    now = call.mind.now()
    item = Item(
        namespace=namespace,
        key=key,
        value=dict(value) if isinstance(value, dict) else {},
        created=now,
        updated=now,
        is_searched=searched,
    )
    record = _record(call, namespace, key, private=private)
    elsewhere = _record(call, namespace, key, private=not private)
    if record is not None:
        changed = replace(item, created=record.memory.created)
        saving.edit(call, record, **fields_of(changed, record.memory.extra))
    else:
        place = place_of(namespace, key, private=private)
        # The text of another author does not become the user's by replacing a part of it.
        instead = call.mind.store.digest(place) if call.mind.store.stamp(place) else None
        draft = saving.draft(Kind.FACT, tags=(TAG,), **fields_of(item, {}))
        saving.store(call, draft, private=private, path=place, instead=instead)
    if elsewhere is not None:
        # Last: a private value must not be shared, nor be lost if the new one can't be stored.
        removing.remove_record(call, elsewhere)
    return bool(record or elsewhere)


@command(
    ITEMS,
    operation="get",
    effect=Effect.READ,
    toolset="adapters",
    needs=Needs(Operation.READ, like="mind_show"),
    errors=(Invalid,),
)
def get(call: Call, namespace: Namespace, key: Key) -> ItemRows:
    """Return an item"""
    copies = [
        (item, record) for record in _copies(call, namespace, key) if (item := item_of(record))
    ]
    if not copies:
        return ItemRows(items=())
    item, record = max(copies, key=lambda copy: copy[0].updated)
    finding.note(call, [record])
    return ItemRows(items=(_row(item),))


@command(
    ITEMS,
    operation="delete",
    effect=Effect.DESTROY,
    toolset="adapters",
    needs=Needs(Operation.WRITE, like="mind_rm"),
    errors=(Conflict, Invalid, StorageFailed),
)
def delete(call: Call, namespace: Namespace, key: Key) -> Changed:
    """Remove an item; the user can restore it"""
    copies = _copies(call, namespace, key)
    for record in copies:
        removing.remove_record(call, record)
    return Changed(changed=bool(copies))


@command(
    ITEMS,
    operation="search",
    effect=Effect.READ,
    toolset="adapters",
    needs=Needs(Operation.READ, like="mind_search"),
    errors=(Invalid,),
)
def search(
    call: Call,
    namespace: Annotated[tuple[str, ...], Arg("First labels of the namespaces")] = (),
    *,
    query: Annotated[str | None, Arg("Words to look for")] = None,
    filter: Annotated[Json, Arg("Conditions on members of the value")] = None,
    limit: Annotated[int, Arg("Maximum number of items", ge=0)] = 10,
    offset: Annotated[int, Arg("Number of items to skip", ge=0)] = 0,
) -> ItemRows:
    """Return the items of some namespaces: the newest, or those that best match a query"""
    rows = _matching(call, query) if query else _newest(call)
    chosen = [
        _row(item, score)
        for item, score in rows
        if item.namespace[: len(namespace)] == namespace and matches(item.value, filter or {})
    ]
    return ItemRows(items=tuple(chosen[offset : offset + limit]))


@command(
    ITEMS,
    operation="namespaces",
    effect=Effect.READ,
    toolset="adapters",
    needs=Needs(Operation.READ, like="mind_list"),
)
def namespaces(call: Call) -> Namespaces:
    """Return the namespaces that have items, sorted"""
    return Namespaces(namespaces=tuple(sorted({item.namespace for item, _ in _newest(call)})))


def _newest(call: Call) -> list[tuple[Item, float | None]]:
    """Returns all items, the last changed first; of a private and a shared copy, the newer."""
    records = finding.listing(call, finding.Options(filter=_FILTER)).records
    items = [item for record in records if (item := item_of(record))]
    items.sort(key=lambda item: item.updated, reverse=True)
    newest: dict[_Name, Item] = {}
    for item in items:
        newest.setdefault((item.namespace, item.key), item)
    return [(item, None) for item in newest.values()]


def _matching(call: Call, query: str) -> list[tuple[Item, float | None]]:
    """Returns the items that match a query, the best first."""
    current = {(item.namespace, item.key): item for item, _ in _newest(call) if item.is_searched}
    total = finding.listing(call, finding.Options(filter=_FILTER, limit=1)).total
    options = finding.Options(filter=_FILTER, limit=max(1, total), threshold=0.0)
    hits = finding.search(call, query, options).hits
    best: dict[_Name, tuple[Item, float | None]] = {}
    for hit in hits:
        item = item_of(hit.record)
        if item and item == current.get(name := (item.namespace, item.key)):
            best.setdefault(name, (item, hit.score))
    return list(best.values())


def _copies(call: Call, namespace: tuple[str, ...], key: str) -> list[Record]:
    """Returns the memories of an item: a private one, a shared one of another author, or both."""
    both = (_record(call, namespace, key, private=private) for private in (True, False))
    return [record for record in both if record]


def _record(call: Call, namespace: tuple[str, ...], key: str, *, private: bool) -> Record | None:
    """Returns the memory of an item; None if it is missing, or the user has not approved it."""
    place = place_of(namespace, key, private=private)
    records = call.mind.store.read(place) if call.mind.store.stamp(place) else ()
    if isinstance(records, Problem) or not records:
        return None
    item = item_of(records[0])
    is_same = item is not None and (item.namespace, item.key) == (namespace, key)
    return records[0] if is_same and call.mind.trust.trusted(records[0].place.digest) else None


def _row(item: Item, score: float | None = None) -> ItemRow:
    return ItemRow(
        namespace=item.namespace,
        key=item.key,
        value=item.value,
        created=item.created,
        updated=item.updated,
        score=score,
    )
