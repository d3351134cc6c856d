"""The memories that links lead to: by id, or else by its handle or another name."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from mimo.frozen import NamedTuple
from mimo.index import rows
from mimo.index.schema import from_digest, from_sql, marks, portions
from mimo.memory.model import Record
from mimo.memory.naming import Named, Names, Rank, key_of, tail_of


class LinkTarget(NamedTuple):
    """The target of a link, and the file with the link."""

    target: str
    near: str = ""


class Loose(NamedTuple):
    """A link that leads nowhere, or to several memories that are equally near."""

    source: str
    target: str
    approval: str
    """The name that approves the text with the link."""
    rivals: tuple[str, ...] = ()
    """The ids of these memories, sorted; the first one counts."""


def resolved(
    sql: sqlite3.Connection, links: Iterable[LinkTarget], *, shared: bool = False
) -> dict[LinkTarget, tuple[int, ...]]:
    """Returns the key of the memory that each link leads to; none for links that lead nowhere.

    If several are equally near, the first by id counts, and the others follow. With `shared`, a
    link leads to a private memory only if it leads to no other one.
    """
    keys_of: dict[LinkTarget, tuple[int, ...]] = {}
    left = list(dict.fromkeys(links))
    for among in ("AND m.private = 0", "") if shared else ("",):
        keys: dict[str, int] = {}
        for ids in portions(list({link.target for link in left})):
            query = "SELECT m.id, m.key FROM memories m WHERE m.shadowed = 0 AND m.id IN"
            keys.update(sql.execute(f"{query} ({marks(ids)}) {among}", ids).fetchall())
        keys_of |= {link: (keys[link.target],) for link in left if link.target in keys}
        left = [link for link in left if link not in keys_of]
        if left:
            names = _names(sql, {tail_of(key_of(link.target)) for link in left}, among)
            meant = {link: tuple(names.meant(link.target, link.near)) for link in left}
            keys_of |= {link: memories for link, memories in meant.items() if memories}
            left = [link for link in left if link not in keys_of]
    return keys_of


def _names(sql: sqlite3.Connection, tails: Iterable[str], among: str) -> Names:
    """Returns the memories that pass the condition `among`, by their names with these tails."""
    named: list[tuple[str, Named]] = []
    for some in portions(list(tails)):
        selected = sql.execute(
            "SELECT m.id, n.rank, coalesce(nullif(n.name, ''), n.tail), m.key, m.path,"
            " approved(m.approval)"
            " FROM names n CROSS JOIN memories m ON m.key = n.memory"
            f" WHERE n.tail IN ({marks(some)}) AND m.shadowed = 0 {among}"
            # Without a path, no memory with this handle is nearer than another one.
            f" UNION ALL SELECT m.id, {Rank.ID}, m.handle, m.key, '', approved(m.approval)"
            f" FROM memories m WHERE m.handle IN ({marks(some)}) AND +m.shadowed = 0 {among}",
            (*some, *some),
        )
        for id, rank, name, key, path, is_approved in selected:
            named.append((id, Named(Rank(rank), name, key, from_sql(path), bool(is_approved))))
    return Names([each for _, each in sorted(named)])


def named(
    sql: sqlite3.Connection, target: str, *, near: str = "", shared: bool = False
) -> Record | None:
    """Returns the memory that a link in the file `near` leads to, as `resolved` does."""
    link = LinkTarget(target, near)
    keys = resolved(sql, [link], shared=shared).get(link, ())[:1]
    return next(iter(rows.by_key(sql, keys).values()), None)


def titled(sql: sqlite3.Connection, title: str) -> Record | None:
    """Returns the only memory with that title or another name, in any case, or None."""
    text = title.strip().casefold()
    candidates = rows.select(
        sql,
        "WHERE m.shadowed = 0 AND m.parent IS NULL AND (lower(m.title) = lower(?1) OR m.title IS"
        " NULL AND (typeof(m.content) <> 'text' OR instr(lower(m.content), lower(?1))))",
        (title.strip(),),
    )
    meant = [record for record in candidates if text and record.memory.heading.casefold() == text]
    if meant or not text:
        return meant[0] if len(meant) == 1 else None
    keys = next(iter(resolved(sql, [LinkTarget(title)]).values()), ())
    return rows.by_key(sql, keys).get(keys[0]) if len(keys) == 1 else None


def named_links(
    sql: sqlite3.Connection, types: Sequence[str] = (), *, shared: bool = False
) -> list[tuple[str, LinkTarget, str]]:
    """Returns the links that name no id: the source's id, what they want, and its approval, sorted.

    Only links of `types`; empty means all. With `shared`, private memories do not matter.
    """
    among, ids = ("AND m.private = 0", "WHERE private = 0") if shared else ("", "")
    of_types = f"AND links.type IN ({marks(types)})" if types else ""
    selected = sql.execute(
        "SELECT DISTINCT m.id, target, m.path, m.approval FROM links"
        " CROSS JOIN memories m ON m.key = source WHERE m.shadowed = 0"
        f" AND target NOT IN (SELECT id FROM memories {ids}) {among} {of_types}",
        types,
    )
    return sorted(
        (id, LinkTarget(target, from_sql(path)), from_digest(name))
        for id, target, path, name in selected
    )


def loose_links(sql: sqlite3.Connection) -> tuple[Loose, ...]:
    """Returns the links that lead nowhere, or to several memories that are equally near, sorted."""
    links = named_links(sql)
    keys = resolved(sql, [link for _, link, _ in links])
    several = [key for keys_of in keys.values() if len(keys_of) > 1 for key in keys_of]
    ids: dict[int, str] = {}
    for some in portions(several):
        selected = sql.execute(f"SELECT key, id FROM memories WHERE key IN ({marks(some)})", some)
        ids.update(selected.fetchall())
    return tuple(
        Loose(source, link.target, approval, tuple(ids[key] for key in keys.get(link, ())))
        for source, link, approval in links
        if len(keys.get(link, ())) != 1
    )
