"""Searching the other projects in the shared index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mimo.call import Call
from mimo.errors import join_texts
from mimo.frozen import NamedTuple, replace
from mimo.guard import policy as policies
from mimo.guard.policy import ActivePolicies, Operation
from mimo.index.rows import Hit, Request, least
from mimo.index.search import search
from mimo.memory.note import plain
from mimo.operations.finding import NEAREST, THRESHOLD, Options, check_length
from mimo.operations.sharing import identity, server_of
from mimo.text.phrases import enumerated

if TYPE_CHECKING:
    from mimo.index.postgres.connection import Connected
    from mimo.index.postgres.source import View

_NAMED = 3
"""The number of skipped projects that a notice names."""

_LONGEST_NAME = 80


class SharedMatch(NamedTuple):
    """A memory of another project that matches."""

    hit: Hit
    project: str
    """The name of its project."""
    approved: bool
    """True if the project's own user has approved its text."""


def search_others(
    call: Call, text: str, options: Options
) -> tuple[list[SharedMatch], int, str | None]:
    """Returns the best matches of the other projects in the shared index, best first.

    The second value is the number of these projects. Each project's policy binds, and the notice
    names the projects that it excludes. Raises `StorageFailed` if the server can't be used.
    """
    from mimo.index.postgres import source

    check_length(text)
    server = server_of(call)
    project = (identity(call) or "") if call.mind.has_project and not call.mind.is_users else ""
    skipped: dict[str, list[str]] = {}

    def choose(sql: Connected) -> Sequence[View]:
        chosen = []
        for view in source.others(sql, project):
            if reason := _reason_to_skip(call, view):
                skipped.setdefault(reason, []).append(_name(view))
            else:
                chosen.append(view)
        return chosen

    models = call.mind.embedder, lambda: call.mind.encoder
    role: str | None = getattr(call.permissions, "role", None)
    with source.opened(server, choose, *models, role) as opened:
        answer = search(opened, _request(call, text, options))
        views = {view.project: view for view in opened.views}
        approved = opened.approved(answer.hits)
    hits = answer.hits
    best = hits[0].score if hits else 0.0
    if options.threshold is None and best < least(answer.considered):
        hits = ()
    matches = [
        SharedMatch(
            hit,
            _name(views[hit.project]),
            (hit.project, hit.record.memory.id) in approved,
        )
        for hit in hits
    ]
    remarks = [_skipped(names, reason) for reason, names in skipped.items()]
    return matches, len(views), join_texts(*remarks, answer.notice)


def _request(call: Call, text: str, options: Options) -> Request:
    return Request(
        text,
        replace(options.filter, private=False),
        limit=options.limit,
        threshold=THRESHOLD if options.threshold is None else options.threshold,
        nearest=min(options.limit, NEAREST) if options.threshold is None else 0,
        now=call.mind.local_now(),
    )


def _reason_to_skip(call: Call, view: View) -> str | None:
    """Returns the reason for which this caller may not search a project; None if it may."""
    if view.policy is None:
        return None
    request = policies.Request(
        tool="mind_search", operation=Operation.READ, agent=call.agent, at=call.mind.now()
    )
    try:
        stated = policies.parse(view.policy.encode(), policies.FILE)
    except policies.InvalidPolicy:
        return "policy is invalid"
    verdict = ActivePolicies(policies=(policies.DEFAULT, stated)).judge(request)
    return None if verdict.permitted else "policy does not permit `mind_search`"


def _skipped(names: Sequence[str], reason: str) -> str:
    """Returns the remark on the projects that were skipped for a reason; it names some."""
    if len(names) == 1:
        return f"{names[0]} was skipped: its {reason}"
    more = len(names) - _NAMED
    some = [*names[:_NAMED], f"{more} more"] if more > 0 else names
    return f"{enumerated(some)} were skipped: their {reason}"


def _name(view: View) -> str:
    """Returns the name of a project as one harmless line: anyone who may push has chosen it."""
    return plain(view.name, _LONGEST_NAME) or f"project {view.project}"
