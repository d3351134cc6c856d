"""Searching the organisation: this project, and the others in the shared index."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
    names_of,
    plain,
    policy,
    question,
    replace,
    row_of,
    rows,
    rows_of,
    searching,
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

_ONLY_HERE = "a query without a subject lists this project only"

SCOPE = "org"
"""The scope of such a search, and of its rows from other projects."""


class Others(NamedTuple):
    """The answer of the other projects in the shared index."""

    asked: searching.Asked
    names: Mapping[int, str]
    """The names of these projects."""
    approved: Collection[tuple[int, str]]
    """The project and the id of each match whose text the project's own user has approved."""
    notice: str | None


def search_others(call: Call, text: str, options: finding.Options) -> Others:
    """Returns the answer of the other projects in the shared index.

    Each project's policy binds, and the notice names the projects that it excludes. Raises
    `StorageFailed` if the server can't be used.
    """
    from mimo.extensions.team.postgres import source

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
        asked = searching.request(call, text, options)._replace(by_meaning=True)
        result = index_search.search(opened, asked)
        names = {view.project: _name(view) for view in opened.views}
        approved = opened.approved(result.hits)
    remarks = [_skipped(names, reason) for reason, names in skipped.items()]
    return Others(
        searching.Asked(None, options.filter, (result,)),
        names,
        approved,
        join_texts(*remarks, result.notice),
    )


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
    from mimo.extensions.team.postgres.writing import LONGEST_NAME

    return plain(view.name, LONGEST_NAME) or f"project {view.project}"


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
    searching.check_length(query)
    asking = question.understood(query, call.mind.local_now())
    if call.mind.has_project and asking.way is not question.Way.SEARCH:
        answer = searching.search(call, query, options, with_user=True)
        return rows_of(answer.matches, types), join_texts(answer.notice, answer.beyond, _ONLY_HERE)
    try:
        others = search_others(call, query, options)
    except StorageFailed as error:
        answer = across.search_projects(call, query, options, private=False)
        instead = f"{error.message}; these are from the projects on this machine"
        notice = join_texts(instead, answer.notice, answer.beyond)
        return rows_of(answer.matches, types), notice
    pool: list[searching.Asked] = []
    problem = None
    if call.mind.has_project:
        pool.append(searching.ask(call, query, asking, options, by_meaning=True))
        if own := call.user():
            problem = searching.add_users(pool, own, query, asking, options)
    (result,) = others.asked.tries
    here = {hit.record.memory.id for asked in pool for hit in asked.tries[-1].hits}
    # A project without an id does not know which of these is its own.
    hits = tuple(hit for hit in result.hits if hit.record.memory.id not in here)
    pool.append(others.asked._replace(tries=(replace(result, hits=hits),)))
    matches = searching.ordered(query, pool, -1)
    considered = sum(asked.tries[-1].considered for asked in pool)
    all_hits = [hit for _, hit in matches]
    count = searching.row_count(all_hits, considered, options)
    names = names_of(types)
    rows = [
        rows_of([(asked.call, hit)], types)[0] if asked.call else _row(others, hit, names)
        for asked, hit in matches[:count]
    ]
    is_weak = bool(rows and rows[0].weak and options.threshold is None)
    missing = None if others.names else "no other project in the shared index can be read by you"
    remark = searching.WEAK if is_weak else None
    beyond = searching.beyond(all_hits, count, options)
    return rows, join_texts(call.notice, others.notice, problem, remark, missing, beyond)


def _row(others: Others, hit: Hit, names: Mapping[Kind, str]) -> SearchResult:
    """Returns the row of a memory of another project, which may not be on this machine."""
    memory = rows.facts_of(
        hit.record,
        hit.newer,
        hit.competing,
        is_approved=(hit.project, hit.record.memory.id) in others.approved,
        is_private=False,
        file=hit.record.place.path,
        scope=SCOPE,
    )
    return row_of(memory, hit, others.names[hit.project], names)
