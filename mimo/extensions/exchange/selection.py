"""Which memories an export has, and reading them in portions: a project may have very many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mimo.api import Filter, Link, Memory, Record, frozen, redacted, refresh, replace, survey
from mimo.extensions.exchange.lines import Exported, Target

if TYPE_CHECKING:
    from mimo.api import Call

BATCH = 500
"""Memories that are read at once."""


@frozen
class Counts:
    """The numbers of memories that pass the filter and are left out, each by its first reason."""

    elsewhere: int = 0
    """Documents, commits and comments of the project, which are not in `.mind/`."""
    ingested: int = 0
    """Ingested files."""
    private: int = 0
    untrusted: int = 0


@frozen
class Selection:
    """The memories of an export."""

    chosen: tuple[survey.Standing, ...]
    """Oldest first, those of the same time by id."""
    hidden: frozenset[str]
    """The ids of private and unapproved memories that it must not name."""
    left_out: Counts

    @property
    def included(self) -> Counts:
        """Returns the numbers of its private and unapproved memories."""
        return Counts(
            private=sum(standing.private for standing in self.chosen),
            untrusted=sum(not standing.approved for standing in self.chosen),
        )


def select(call: Call, conditions: Filter, *, private: bool, untrusted: bool) -> Selection:
    """Returns the memories that pass a filter and may leave the project.

    Ingested files and documents outside `.mind/` are left out: the project has them anyway.
    """
    index = refresh.up_to_date(call)
    standings = index.ask(survey.standings, Filter())
    passing = standings if conditions == Filter() else index.ask(survey.standings, conditions)
    own_files = [standing for standing in passing if standing.path.startswith(".mind/")]
    parts = {standing.parent for standing in own_files if standing.parent is not None}
    single = [standing for standing in own_files if standing.parent is None]
    public = [standing for standing in single if private or not standing.private]
    chosen = tuple(standing for standing in public if untrusted or standing.approved)
    names = {standing.id for standing in chosen}
    secret = (standing.id for standing in standings if standing.private or not standing.approved)
    return Selection(
        chosen=chosen,
        hidden=frozenset(id for id in secret if id not in names),
        left_out=Counts(
            elsewhere=len(passing) - len(own_files),
            ingested=len(parts),
            private=len(single) - len(public),
            untrusted=len(public) - len(chosen),
        ),
    )


def exported(call: Call, selection: Selection) -> Iterator[Exported]:
    """Yields the memories of a selection with their secrets masked.

    One that is removed meanwhile is left out. Raises `Cancelled`.
    """
    reader = _Reader(call, selection)
    for start in range(0, len(selection.chosen), BATCH):
        call.check_cancelled()
        yield from reader.read(selection.chosen[start : start + BATCH])


class _Reader:
    """Reads portions of a selection."""

    def __init__(self, call: Call, selection: Selection) -> None:
        self.index = call.mind.index
        self.hidden = selection.hidden
        self.shared = not selection.included.private
        self.chosen = {standing.id for standing in selection.chosen}
        self._targets: dict[tuple[str, str], tuple[str, Target | None]] = {}

    def read(self, standings: Sequence[survey.Standing]) -> Iterator[Exported]:
        ids = [standing.id for standing in standings]
        records = {record.memory.id: record for record in self.index.among(ids, Filter())}
        newer = self.index.newer(ids, shared=self.shared)
        present = [standing for standing in standings if standing.id in records]
        pairs = [
            (self._without_hidden_links(records[standing.id]), standing.path)
            for standing in present
        ]
        for standing, (memory, path) in zip(present, redacted(pairs).value, strict=True):
            successors = newer[standing.id].superseded_by
            yield Exported(
                memory=memory,
                private=standing.private,
                untrusted=not standing.approved,
                path=path,
                successor=next((id for id in successors if id in self.chosen), None),
                is_past=bool(successors),
                targets=self._named(memory.links, path),
            )

    def _without_hidden_links(self, record: Record) -> Memory:
        """Returns a memory without links to memories that the export must not name.

        An id contains words of the topic or the title. A link to no memory stays.
        """
        memory, path = record.memory, record.place.path
        if not self.hidden or not memory.links:
            return memory
        links = tuple(
            link for link in memory.links if self._target(link.to, path)[0] not in self.hidden
        )
        return replace(memory, links=links)

    def _named(self, links: Sequence[Link], path: str) -> dict[str, Target]:
        targets = ((link.to, self._target(link.to, path)[1]) for link in links)
        return {to: target for to, target in targets if target is not None}

    def _target(self, to: str, path: str) -> tuple[str, Target | None]:
        """Returns the id of the memory that a link in a file names, and it if it is exported."""
        if (to, path) not in self._targets:
            record: Record | None = self.index.named(to, near=path, shared=self.shared)
            id = record.memory.id if record else ""
            target = None
            if record and id in self.chosen:
                title = redacted(record.memory.heading).value
                target = Target(id, record.memory.type, title)
            self._targets[to, path] = id, target
        return self._targets[to, path]
