"""The commands of items, which the store of LangGraph calls."""

from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from typing import Annotated, Any

from mimo.api import (
    Arg,
    Call,
    Command,
    Conflict,
    Denied,
    Effect,
    Filter,
    Hint,
    Invalid,
    Json,
    Kind,
    MindError,
    Needs,
    Operation,
    Problem,
    Record,
    Request,
    SecretDetected,
    StorageFailed,
    Tool,
    command,
    finding,
    frozen,
    join_texts,
    policy,
    refresh,
    removing,
    replace,
    saving,
    searching,
    undoing,
)
from mimo.extensions.adapters.items import TAG, Item, fields_of, item_of, matches, place_of

ITEMS = Tool(name="items", description="Items of other frameworks")
_FILTER = Filter(tags=frozenset({TAG}), approved=True)
_TRIES = 5
_MOST_RANKED = 30_000
"""The number of items, the newest, that a query is compared with."""

Namespace = Annotated[tuple[str, ...], Arg("Labels of the namespace, the outermost first")]
Key = Annotated[str, Arg("Key of the item in its namespace")]
Items = Annotated[Json, Arg("Objects with `namespace`, `key`, `value` and `searched`")]
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
    errors=(Conflict, Denied, Invalid, SecretDetected, StorageFailed),
)
def put(
    call: Call,
    items: Items,
    *,
    private: Annotated[bool, Arg("Keep new ones on this machine")] = True,
) -> Changed:
    """Store items, replace their values, or remove those without a value; all or none"""
    edits = _edits(call, items)
    if None in edits.values():
        request = policy.Request(
            tool=ITEMS.name,
            like="mind_rm",
            operation=Operation.WRITE,
            agent=call.agent,
            at=call.mind.now(),
        )
        call.mind.guard.authorise(request)
    return _apply(call, edits, private=private)


@command(
    ITEMS,
    operation="delete",
    effect=Effect.DESTROY,
    toolset="adapters",
    needs=Needs(Operation.WRITE, like="mind_rm"),
    errors=(Conflict, Invalid, StorageFailed),
)
def delete(call: Call, items: Items) -> Changed:
    """Remove items, all or none; the user can restore them"""
    return _apply(call, dict.fromkeys(_edits(call, items)), private=True)


def _edits(call: Call, items: Any) -> dict[_Name, Item | None]:
    """Returns the items of an argument by name, None for those without a value.

    Raises `Invalid` for an item that can't be stored.
    """
    now, edits = call.mind.now(), dict[_Name, Item | None]()
    for row in items if isinstance(items, list) else [items]:
        named = row if isinstance(row, dict) else {}
        namespace, key, value = (named.get(part) for part in ("namespace", "key", "value"))
        labels = tuple(namespace) if isinstance(namespace, list) else (None,)
        if not isinstance(key, str) or not all(isinstance(label, str) for label in labels):
            raise Invalid("an item has a namespace, which is a list of texts, and a text as key")
        if value is not None and not isinstance(value, dict):
            raise Invalid("the value of an item must be an object")
        place_of(labels, key, private=True)
        edits[labels, key] = None
        if value is not None:
            item = Item(
                namespace=labels,
                key=key,
                value=value,
                created=now,
                updated=now,
                is_searched=named.get("searched") is not False,
            )
            saving.draft(Kind.FACT, **fields_of(item, {}))
            edits[labels, key] = item
    return edits


def _apply(call: Call, edits: Mapping[_Name, Item | None], *, private: bool) -> Changed:
    """Makes changes of items; if one fails, the files are as before."""
    has_changed = False
    try:
        for name, item in edits.items():
            if item is None:
                copies = _copies(call, *name)
                for record in copies:
                    removing.remove_record(call, record)
                has_changed |= bool(copies)
            else:
                has_changed |= _put(call, item, private=private)
    except BaseException as error:
        _revert(call, error)
        raise
    return Changed(changed=has_changed)


def _revert(call: Call, error: BaseException) -> None:
    """Undoes the changes of a failed command; if it can't, the hint of `error` states so."""
    if (entry := undoing.entry_id()) is None:
        return
    try:
        undoing.undo(call, entry)
    except MindError:
        if isinstance(error, MindError):
            remark = Hint("some items are changed; see ", Command("undo", list=True))
            error.hint = join_texts(error.hint, remark) or ""


def _put(call: Call, item: Item, *, private: bool) -> bool:
    """Stores an item and returns whether there was one.

    If another process changes it at the same time, the new value replaces that, too.
    """
    tries = _TRIES
    while True:
        tries -= 1
        try:
            return _put_once(call, item, private=private)
        except Conflict:
            if not tries:
                raise


def _put_once(call: Call, item: Item, *, private: bool) -> bool:
    record = _record(call, item.namespace, item.key, private=private)
    elsewhere = _record(call, item.namespace, item.key, private=not private)
    if record is not None:
        changed = replace(item, created=record.memory.created)
        saving.edit(call, record, **fields_of(changed, record.memory.extra))
    else:
        place = place_of(item.namespace, item.key, private=private)
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
    call.count_uses([record])
    return ItemRows(items=(_row(item),))


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
    items = {
        id: item
        for id, item in _newest(call).items()
        if item.namespace[: len(namespace)] == namespace and matches(item.value, filter or {})
    }
    rows = _ranked(call, query, items) if query else [_row(item) for item in items.values()]
    return ItemRows(items=tuple(rows[offset : offset + limit]))


@command(
    ITEMS,
    operation="namespaces",
    effect=Effect.READ,
    toolset="adapters",
    needs=Needs(Operation.READ, like="mind_list"),
)
def namespaces(call: Call) -> Namespaces:
    """Return the namespaces that have items, sorted"""
    return Namespaces(namespaces=tuple(sorted({item.namespace for item in _newest(call).values()})))


def _newest(call: Call) -> dict[str, Item]:
    """Returns all items by the ids of their memories, the last changed first.

    Of a private and a shared copy, it is the newer.
    """
    records = finding.listing(call, finding.Options(filter=_FILTER)).records
    items = [(item, record.memory.id) for record in records if (item := item_of(record))]
    items.sort(key=lambda row: row[0].updated, reverse=True)
    newest: dict[_Name, tuple[Item, str]] = {}
    for item, id in items:
        newest.setdefault((item.namespace, item.key), (item, id))
    return {id: item for item, id in newest.values()}


def _ranked(call: Call, query: str, items: dict[str, Item]) -> list[ItemRow]:
    """Returns the items that searches may find, the nearest to a query first.

    Those that neither words nor meaning bring near have the score 0. The query is compared as it
    is: it asks for no time and no list.
    """
    searching.check_length(query)
    items = {id: item for id, item in items.items() if item.is_searched}
    among = replace(_FILTER, ids=frozenset(islice(items, _MOST_RANKED)))
    index = refresh.up_to_date(call)
    asked = Request(query, among, len(items), now=None, by_meaning=True)
    hits = index.search(asked).hits
    if refresh.reread(call, [hit.record for hit in hits]):
        hits = index.search(asked).hits
    scores = {hit.record.memory.id: hit.score for hit in hits}
    return [
        _row(items[id], scores.get(id, 0.0))
        for id in dict.fromkeys((*scores, *items))
        if id in items
    ]


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
    return records[0] if is_same and call.mind.trust.trusted(records[0].place.approval) else None


def _row(item: Item, score: float | None = None) -> ItemRow:
    return ItemRow(
        namespace=item.namespace,
        key=item.key,
        value=item.value,
        created=item.created,
        updated=item.updated,
        score=score,
    )
