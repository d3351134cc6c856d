"""The reasons for which files can't be used, as the caller may read them.

A reason may quote the file, and an agent reads it as mind's own words. So an agent gets the reason
of an approved file only.
"""

from __future__ import annotations

from mimo.frozen import replace
from mimo.memory.model import Problem
from mimo.mind import Mind
from mimo.store.files import CONFIG

_WITHHELD = "it can't be used; since it is not approved here, only people see the reason"


def shown(mind: Mind, path: str, reason: str) -> str:
    """Returns the reason for which a file can't be used; `path` is relative to the project."""
    if mind.agent is None or mind.trust.trusted(mind.store.digest(path)):
        return reason
    return _WITHHELD


def of_problem(mind: Mind, problem: Problem) -> Problem:
    """Returns a problem with the reason as the caller may read it."""
    return replace(problem, reason=shown(mind, problem.path, problem.reason))


def of_settings(mind: Mind) -> tuple[str, ...]:
    """Returns the warnings about the settings; an agent gets only the number of the project's."""
    warnings = mind.config.warnings
    if mind.agent is None or not mind.has_project:
        return warnings
    place = f"{mind.folder / CONFIG}: "
    kept = tuple(warning for warning in warnings if not warning.startswith(place))
    hidden = len(warnings) - len(kept)
    return (*kept, f"{place}problems that only people see: {hidden:,}") if hidden else kept
