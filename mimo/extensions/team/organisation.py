"""Searching the organisation: this project, and the others in the shared index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from mimo.api import (
    Call,
    Denied,
    Hit,
    Kind,
    NamedTuple,
    Operation,
    SearchResult,
    StorageFailed,
    across,
    enumerated,
    finding,
    join_texts,
    least,
    names_of,
    plain,
    policy,
    question,
    row_of,
    rows,
    rows_of,
)
from mimo.api import (
    search as index_search,
)
from mimo.extensions.team.sharing import identity, server_of
from mimo.extensions.team.tokens import user_of

if TYPE_CHECKING:
    from mimo.extensions.team.postgres.connection import Connected
    from mimo.extensions.team.postgres.source import View

_NAMED = 3
"""The number of skipped projects that a notice names."""

_LONGEST_NAME = 80


_ONLY_HERE = "a query without a subject lists this project only"

SCOPE = "org"
"""The scope of such a search, and of its rows from other projects."""


class SharedMatch(NamedTuple):
    """A memory of another project that matches."""

    hit: Hit
    project: str
    """The name of its project."""
    approved: bool
    """True if the project's own user has approved its text."""


def search_others(
    call: Call, text: str, options: finding.Options
) -> tuple[list[SharedMatch], int, str | None]:
    """Returns the best matches of the other projects in the shared index, best first.

    The second value is the number of these projects. Each project's policy binds, and the notice
    names the projects that it excludes. Raises `StorageFailed` if the server can't be used.
    """
    from mimo.extensions.team.postgres import source

    finding.check_length(text)
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
    user = user_of(call)
    with source.opened(server, choose, *models, user.role if user else None) as opened:
        answer = index_search.search(opened, finding.request(call, text, options))
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


def _reason_to_skip(call: Call, view: View) -> str | None:
    """Returns the reason for which this caller may not search a project; None if it may."""
    if view.policy is None:
        return None
    request = policy.Request(
        tool="mind_search", operation=Operation.READ, agent=call.agent, at=call.mind.now()
    )
    try:
        stated = policy.parse(view.policy.encode(), policy.FILE)
    except policy.InvalidPolicy:
        return "policy is invalid"
    verdict = policy.ActivePolicies(policies=(policy.DEFAULT, stated)).judge(request)
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


def search_organisation(
    call: Call, query: str, options: finding.Options, types: Sequence[str]
) -> tuple[list[SearchResult], str | None]:
    """Returns the best rows of this project and of the others in the shared index, and a notice.

    If the shared index can't be used, the projects on this machine are searched instead. Raises
    `Invalid` if no setting names one.
    """
    user = user_of(call)
    if user and user.projects and user.role is None:
        raise Denied(
            "your token is for single projects, and has no role in the shared index",
            hint="search this project, or all that are permitted with `scope` all",
        )
    server_of(call)
    if (
        call.mind.has_project
        and question.understood(query, call.mind.local_now()).way is not question.Way.SEARCH
    ):
        hits, answer = finding.search_with_user(call, query, options)
        return rows_of(hits, types), join_texts(answer.notice, _ONLY_HERE)
    try:
        shared_hits, projects, notice = search_others(call, query, options)
    except StorageFailed as error:
        matches, notice = across.search_projects(call, query, options, private=False)
        instead = f"{error.message}; these are from the projects on this machine"
        return rows_of(matches, types), join_texts(instead, notice)
    hits = []
    if call.mind.has_project:
        hits, answer = finding.search_with_user(call, query, options)
        if answer.listed and all(finding.is_weak(match.hit) for match in shared_hits):
            return rows_of(hits, types), join_texts(answer.notice, notice)
        hits = [] if answer.listed else hits
    ids = {hit.record.memory.id for _, hit in hits}  # A shallow clone does not know its project.
    shared_hits = [match for match in shared_hits if match.hit.record.memory.id not in ids]
    scored = list(zip(finding.places(hits), rows_of(hits, types), strict=True))
    names = names_of(types)
    scored += [((match.hit.score, True), _row(match, names)) for match in shared_hits]
    scored.sort(key=itemgetter(0), reverse=True)
    rows, remark = finding.sure_or_nearest(
        [row for _, row in scored], options, lambda row: row.weak
    )
    notice = join_texts(notice, remark)
    if not projects:
        notice = join_texts(notice, "no other project in the shared index can be read by you")
    return rows[: options.limit], join_texts(call.notice, notice)


def _row(match: SharedMatch, names: Mapping[Kind, str]) -> SearchResult:
    """Returns the row of a memory of another project, which may not be on this machine."""
    hit = match.hit
    memory = rows.facts_of(
        hit.record,
        hit.newer,
        hit.competing,
        is_approved=match.approved,
        is_private=False,
        file=hit.record.place.path,
        scope=SCOPE,
    )
    return row_of(memory, hit, match.project, names)
