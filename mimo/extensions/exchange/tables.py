"""The databases of claude-mem and of mcp-memory-service, whose rows become memories."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mimo.api import SUPERSEDES, Draft, Kind, Link, Source, bullets, database, foreign
from mimo.extensions.exchange.notes import is_marked, link_of

Row = Mapping[str, Any]

_KINDS = {
    "decision": Kind.DECISION,
    "discovery": Kind.INSIGHT,
    "learning": Kind.INSIGHT,
    "insight": Kind.INSIGHT,
    "error": Kind.INSIGHT,
    "bugfix": Kind.ACTION,
    "feature": Kind.ACTION,
    "change": Kind.ACTION,
    "refactor": Kind.ACTION,
    "planning": Kind.PLAN,
    "observation": Kind.OBSERVATION,
}
"""Types of memories of these tools in mind's words; any other one is a fact."""

_OBSERVATION = frozenset(
    "id title subtitle facts narrative text type concepts created_at created_at_epoch"
    " discovery_tokens relevance_count content_hash prompt_number synced_at origin_device_id"
    " origin_local_id sync_rev generated_by_model merged_into_project".split()
)
_SUMMARY = frozenset(
    "id request investigated learned completed next_steps notes created_at created_at_epoch"
    " discovery_tokens prompt_number synced_at origin_device_id origin_local_id sync_rev"
    " merged_into_project".split()
)


def claude_mem(source: Source) -> Iterator[Draft]:
    """Yields the observations and the summaries of sessions in a database of claude-mem."""
    tables = ("observations", "session_summaries", "sdk_sessions")
    rows = database.snapshot(source.path, tables, of="claude-mem", keep=False).tables
    yield from observations(rows.get("observations", ()))
    titles = {
        row.get("memory_session_id"): foreign.text(row.get("custom_title"))
        for row in rows.get("sdk_sessions", ())
    }
    yield from summaries(rows.get("session_summaries", ()), titles)


def observations(rows: Sequence[Row]) -> Iterator[Draft]:
    """Yields the rows of the table `observations`."""
    for row in rows:
        kind = foreign.text(row.get("type")) or ""
        columns = {
            name: foreign.data(value) for name, value in row.items() if name not in _OBSERVATION
        }
        extra, prose = foreign.divided({"claude_mem_type": kind or None, **columns}, "claude_mem")
        content = foreign.joined(
            foreign.text(row.get("subtitle")),
            foreign.text(row.get("narrative")) or foreign.text(row.get("text")),
            bullets(foreign.items(row.get("facts"))),
            *prose,
        )
        created = foreign.moment(row.get("created_at_epoch")) or foreign.moment(
            row.get("created_at")
        )
        title = foreign.text(row.get("title"))
        yield Draft(
            # Another database has the same numbers.
            key=f"observation/{foreign.digest(created, title or content)}",
            is_unique=True,
            group="observations",
            type=_KINDS.get(kind, Kind.OBSERVATION),
            content=content,
            created=created,
            title=title,
            tags=foreign.tags(foreign.items(row.get("concepts"))),
            project=foreign.text(row.get("project")),
            skipped=None if content or title else "the row is empty",
            extra=extra,
            private=is_marked(columns),
        )


_PARTS = ("request", "investigated", "learned", "completed", "next_steps", "notes")


def summaries(rows: Sequence[Row], titles: Mapping[Any, str | None]) -> Iterator[Draft]:
    """Yields the rows of the table `session_summaries`, which are private."""
    for row in rows:
        parts = [
            f"### {name.replace('_', ' ').capitalize()}\n\n{words}"
            for name in _PARTS
            if (words := foreign.text(row.get(name)))
        ]
        columns = {name: foreign.data(value) for name, value in row.items() if name not in _SUMMARY}
        extra, prose = foreign.divided(columns, "claude_mem")
        created = foreign.moment(row.get("created_at_epoch")) or foreign.moment(
            row.get("created_at")
        )
        session, request = row.get("memory_session_id"), foreign.text(row.get("request"))
        yield Draft(
            key=f"summary/{foreign.digest(created, session, request)}",
            is_unique=True,
            group="summaries",
            type=Kind.CONTEXT,
            content=foreign.joined(*parts, *prose) if parts else "",
            created=created,
            title=titles.get(session) or request,
            private=True,
            project=foreign.text(row.get("project")),
            skipped=None if parts else "the row is empty",
            extra=extra,
        )


_SERVICE = frozenset(
    "id content_hash content tags memory_type metadata created_at created_at_iso updated_at"
    " updated_at_iso deleted_at version confidence last_accessed superseded_by embedding_pending"
    " store".split()
)
_SIMILAR = "related"
"""The relation that the service finds by itself, from the similarity of two texts."""


def mcp_memory_service(source: Source) -> Iterator[Draft]:
    """Yields the memories of a database of mcp-memory-service."""
    tables = ("memories", "memory_graph")
    rows = database.snapshot(source.path, tables, of="mcp-memory-service", keep=False).tables
    yield from service_memories(rows.get("memories", ()), rows.get("memory_graph", ()))


def service_memories(rows: Sequence[Row], edges: Sequence[Row]) -> Iterator[Draft]:
    """Yields the rows of the table `memories`, with the links that are not mere similarity."""
    links: defaultdict[str, dict[Link, None]] = defaultdict(dict)
    for edge in edges:
        relation = foreign.text(edge.get("relationship_type")) or _SIMILAR
        start, end = foreign.text(edge.get("source_hash")), foreign.text(edge.get("target_hash"))
        if relation != _SIMILAR and start and end:
            links[start][link_of(relation, end, foreign.unit(edge.get("similarity")))] = None
    for row in rows:
        if newer := foreign.text(row.get("superseded_by")):
            links[newer][Link(to=foreign.text(row.get("content_hash")) or "", type=SUPERSEDES)] = (
                None
            )
    for row in rows:
        content, hash = foreign.text(row.get("content")), foreign.text(row.get("content_hash"))
        key = hash or foreign.digest(content)
        reason = "it was deleted there" if row.get("deleted_at") else None
        kind = foreign.text(row.get("memory_type"))
        metadata = foreign.data(row.get("metadata"))
        columns = {name: foreign.data(value) for name, value in row.items() if name not in _SERVICE}
        # A source in the metadata is that tool's own, and not where the memory comes from here.
        more = metadata if isinstance(metadata, dict) else {"metadata": metadata}
        extra, prose = foreign.divided({"memory_type": kind, **more, **columns}, "mcp")
        confidence = foreign.unit(row.get("confidence"))
        yield Draft(
            key=key,
            is_unique=True,
            group="memories",
            type=_KINDS.get(kind or "", Kind.FACT),
            content=foreign.joined(content, *prose) if content else "",
            created=foreign.moment(row.get("created_at"))
            or foreign.moment(row.get("created_at_iso")),
            tags=tuple(
                tag for tag in foreign.tags(foreign.text(row.get("tags"))) if tag != "untagged"
            ),
            # 1.0 is the default of the column, not a judgement.
            confidence=None if confidence == 1.0 else confidence,
            links=tuple(links.get(key, ())),
            skipped=reason or (None if content else "the row is empty"),
            extra=extra,
            private=is_marked({**columns, "metadata": metadata}),
        )
