"""The reasons for which files can't be used, as the caller may read them.

A reason may quote the file, and an agent reads it as mind's own words. So an agent gets the reason
of an approved file only.
"""

from __future__ import annotations

from mimo.call import Call
from mimo.frozen import replace
from mimo.memory.model import Problem
from mimo.operations import refresh
from mimo.store.files import CONFIG

WITHHELD = "it can't be used; since it is not approved here, only people see the reason"


def shown(call: Call, path: str, reason: str) -> str:
    """Returns the reason for which a file can't be used; `path` is relative to the project."""
    if call.agent is None or call.mind.trust.trusted(call.mind.store.digest(path)):
        return reason
    return WITHHELD


def of_problems(call: Call) -> tuple[Problem, ...]:
    """Returns the files that could not be read as memories, with reasons for the caller."""
    problems = refresh.problems(call)
    if call.agent is None:
        return problems
    paths = {problem.path for problem in problems}
    approved = {path for path in paths if call.mind.trust.trusted(call.mind.store.digest(path))}
    return tuple(
        problem if problem.path in approved else replace(problem, reason=WITHHELD)
        for problem in problems
    )


def of_settings(call: Call) -> tuple[str, ...]:
    """Returns the warnings about the settings; an agent gets only the number of the project's."""
    warnings = call.mind.config.warnings
    if call.agent is None or not call.mind.has_project:
        return warnings
    place = f"{call.mind.folder / CONFIG}: "
    kept = tuple(warning for warning in warnings if not warning.startswith(place))
    hidden = len(warnings) - len(kept)
    return (*kept, f"{place}problems that only people see: {hidden:,}") if hidden else kept
