"""Searching the other projects in the shared index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mimo.frozen import NamedTuple, replace
from mimo.guard import policy as policies
from mimo.guard.policy import ActivePolicies, Call, Operation
from mimo.index.rows import Hit, Request
from mimo.index.search import search
from mimo.mind import Mind
from mimo.operations.finding import FLOOR, NEAREST, THRESHOLD, Options, check_length
from mimo.operations.sharing import server_of, working_copy
from mimo.text.phrases import notices

if TYPE_CHECKING:
    from mimo.index.postgres.connection import Connected
    from mimo.index.postgres.source import View


class SharedMatch(NamedTuple):
    """A memory of another project that matches."""

    hit: Hit
    view: View
    approved: bool
    """True if the project's own user has approved its text."""


def search_others(
    mind: Mind, text: str, options: Options
) -> tuple[list[SharedMatch], int, str | None]:
    """Returns the best matches of the other projects in the shared index, best first.

    The second value is the number of these projects. Each project's policy binds, and the notice
    names the projects that it excludes. Raises `StorageFailed` if the server can't be used.
    """
    from mimo.index.postgres import source

    check_length(text)
    server = server_of(mind)
    own = working_copy(mind).identity if mind.has_project else ""
    skipped: list[str] = []

    def choose(sql: Connected) -> Sequence[View]:
        views = source.others(sql, own)
        return [view for view in views if _permits(mind, view, skipped)]

    models = mind.embedder, lambda: mind.encoder
    with source.opened(server, choose, *models, mind.shared_role) as opened:
        answer = search(opened, _request(mind, text, options))
        views = {view.project: view for view in opened.views}
        approved = opened.approved(answer.hits)
    hits = answer.hits
    best = hits[0].score if hits else 0.0
    if options.threshold is None and best < max(FLOOR, THRESHOLD / (answer.considered + 1)):
        hits = ()
    matches = [
        SharedMatch(hit, views[hit.project], (hit.project, hit.record.memory.id) in approved)
        for hit in hits
    ]
    return matches, len(views), notices(*skipped, answer.notice)


def _request(mind: Mind, text: str, options: Options) -> Request:
    return Request(
        text,
        replace(options.filter, private=False),
        limit=options.limit,
        threshold=THRESHOLD if options.threshold is None else options.threshold,
        nearest=min(options.limit, NEAREST) if options.threshold is None else 0,
        now=mind.local_now(),
    )


def _permits(mind: Mind, view: View, skipped: list[str]) -> bool:
    """Returns whether a project's policy permits a search by this caller."""
    if view.policy is None:
        return True
    call = Call(tool="mind_search", operation=Operation.READ, agent=mind.agent, at=mind.now())
    try:
        stated = policies.parse(view.policy.encode(), policies.FILE)
    except policies.InvalidPolicy:
        skipped.append(f"{view.name} was skipped: its policy is invalid")
        return False
    verdict = ActivePolicies(policies=(policies.DEFAULT, stated)).judge(call)
    if not verdict.permitted:
        skipped.append(f"{view.name} was skipped: its policy does not permit `mind_search`")
    return verdict.permitted
