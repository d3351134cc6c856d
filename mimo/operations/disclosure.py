"""The disclosure of memories: what an answer shows, by their state and by the reader.

| state      | a person      | an agent                | another project | drawing or report   |
|------------|---------------|-------------------------|-----------------|---------------------|
| approved   | whole         | whole                   | whole           | whole               |
| unapproved | label         | label, not in sentences | label           | label, not a report |
| private    | label         | label                   | left out        | left out            |
| superseded | its successor | its successor           | its successor   | its successor       |

The labels come from `operations.rows.facts`. Mind's own sentences, such as hints, notices and
reasons, quote the words of an author (ids, titles, parts of a file) only if `may_quote`: an agent
reads them as mind's words. A private memory that is left out changes nothing in the answer either.
An unapproved memory does not supersede an approved one: its claim is named by its short id. To a
caller whom the policy does not permit to read, no sentence names a memory but by its short id.
"""

from __future__ import annotations

from collections.abc import Sequence

from mimo.call import Call
from mimo.data.disk import STORE
from mimo.data.files import CONFIG
from mimo.errors import Command, Hint
from mimo.frozen import replace
from mimo.index import survey
from mimo.memory.ids import handle_of
from mimo.memory.model import LOG, Problem
from mimo.operations import refresh

WITHHELD = "it can't be used; since it is not approved here, only people see the reason"
CLOSED = "it can't be used; the policy does not permit to read memories, so it is not named"


def may_quote(call: Call, *names: str) -> bool:
    """Returns whether mind's own sentences may quote the texts with these names to the caller."""
    return call.agent is None or call.mind.trust.trusted(*names)


def left_out(call: Call) -> Hint | None:
    """Returns the number of memories that wait for approval, so that no agent gets them unasked.

    None without any. An agent reads no path that another author chose.
    """
    files = call.index.cached(survey.left_out, call.mind.trust.checker())
    if not files:
        return None
    number, path = sum(files.values()), next(iter(files))
    where = f"in {len(files):,} files" if len(files) > 1 else f"of `{path}`"
    if call.agent is not None and (len(files) > 1 or path != LOG):
        where = ""
    notes = "1 note" if number == 1 else f"{number:,} notes"
    subject = " ".join(filter(None, (notes, where, "waits" if number == 1 else "wait")))
    return Hint(f"{subject} for approval: ", Command("review"))


def hides_private(call: Call, *, is_here: bool, is_asked: bool) -> bool:
    """Returns whether private memories of a project neither occur in an answer nor change it.

    `is_here` is true for the project that the call is made in, and `is_asked` if the caller asked
    for private memories of other projects, which only people get.
    """
    return not (is_here or (is_asked and call.agent is None))


def title_of(call: Call, id: str) -> str | None:
    """Returns the title of a memory or ingested file for a hint.

    Returns None if it is not approved, or the caller may not read memories.
    """
    record = call.mind.index.get(id)
    source = record or next(iter(call.mind.index.parts(id)), None)
    if source is None or not call.mind.trust.trusted(source.place.approval):
        return None
    if not call.origin.guard.permits("mind_list"):
        return None
    return record.memory.heading if record else source.origin


def names_of(call: Call, ids: Sequence[str]) -> list[str]:
    """Returns ids for a message, with short ids instead of those that no approved text has."""
    return [handle_of(id) if title_of(call, id) is None else id for id in ids]


def reason_for(call: Call, path: str, reason: str) -> str:
    """Returns the reason for which a file can't be used; `path` is relative to the project."""
    return reason if may_quote(call, *call.mind.store.approvals(path)) else WITHHELD


def of_problems(call: Call) -> tuple[Problem, ...]:
    """Returns the files that could not be read as memories, with reasons for the caller."""
    problems = refresh.problems(call)
    if not call.origin.guard.permits("mind_list"):
        return tuple(replace(problem, path=STORE, line=None, reason=CLOSED) for problem in problems)
    if call.agent is None:
        return problems
    paths = {problem.path for problem in problems}
    withheld = {path for path in paths if not may_quote(call, *call.mind.store.approvals(path))}
    return tuple(
        replace(problem, reason=WITHHELD) if problem.path in withheld else problem
        for problem in problems
    )


def of_settings(call: Call) -> tuple[str, ...]:
    """Returns the warnings about the settings; an agent gets only the number of the project's."""
    warnings = call.mind.config.warnings
    if not call.mind.has_project:
        return warnings
    place = f"{call.mind.folder / CONFIG}: "
    if call.agent is None:
        keys = ", ".join(f"`{change.key}`" for change in call.mind.config.waiting)
        waits = Hint(f"{place}changes of {keys} wait for approval: ", Command("review"))
        return (*warnings, waits) if keys else warnings
    visible = tuple(warning for warning in warnings if not warning.startswith(place))
    hidden = len(warnings) - len(visible)
    return (*visible, f"{place}problems that only people see: {hidden:,}") if hidden else visible
