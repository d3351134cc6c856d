"""All projects of the user, each other one asked through its own guard."""

from typing import Generic, NamedTuple, Protocol, TypeVar

from mimo.domain.policy import Operation
from mimo.errors import Denied, MindError, RateLimited, SearchFailed, StorageFailed
from mimo.guard.call import Call
from mimo.mind import Mind
from mimo.store import projects

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Question(Protocol[T_co]):
    """What is asked of each project; `here` is the one that is open."""

    def __call__(self, mind: Mind, /, *, here: bool) -> T_co:
        """Returns the answer of a project."""


class Answer(NamedTuple, Generic[T]):
    """The answer of a project."""

    name: str
    mind: Mind
    here: bool
    value: T


class Answers(NamedTuple, Generic[T]):
    """The answers of all projects that could be asked, and why the others could not."""

    found: tuple[Answer[T], ...]
    skipped: tuple[str, ...]
    """The name of each skipped project with the reason, which tells nothing of its policy."""


def ask_each(
    mind: Mind, tool: str, question: Question[T], *, diagnosis: bool = False
) -> Answers[T]:
    """Returns what each registered project and the open one answer.

    Each other project permits, counts and records the call of `tool` as its own policy says. A
    project that the user keeps apart (`search_all`) is not asked, unless it is the open one.
    """
    registry = projects.registered(mind.home)
    here = mind.project.root if mind.has_project else None
    found: list[Answer[T]] = []
    skipped = [registry.problem] if registry.problem else []
    for known in registry.projects:
        mind.heed()
        if known.path == here or not known.search_all:
            continue
        try:
            other = mind.at(known)
            if other is None:
                skipped.append(f"{known.name} is gone")
                continue
            call = Call(
                tool=tool,
                operation=Operation.READ,
                diagnosis=diagnosis,
                agent=mind.agent,
                at=mind.now(),
            )
            with other.guard.passing(call, mind.timer.monotonic):
                found.append(Answer(known.name, other, False, question(other, here=False)))
        except Exception as error:  # one broken project must not stop the others
            if mind.halted and mind.halted():
                raise
            skipped.append(f"{known.name} was skipped: {_reason(error, tool)}")
    if here:
        name = next((one.name for one in registry.projects if one.path == here), mind.project.name)
        try:
            found.append(Answer(name, mind, True, question(mind, here=True)))
        except (SearchFailed, StorageFailed) as error:
            skipped.append(f"{name}: {error.message}")
    return Answers(tuple(found), tuple(skipped))


def _reason(error: Exception, tool: str) -> str:
    """Returns why a project was skipped, and neither a rule of its policy nor a name in it."""
    if isinstance(error, Denied):
        invalid = error.reason == "policy"
        return "its policy is invalid" if invalid else f"its policy does not permit `{tool}`"
    if isinstance(error, RateLimited):
        return "its policy permits no more calls for now"
    code = error.code if isinstance(error, MindError) else type(error).__name__
    return f"it can't be read ({code}); run `mind doctor` there"
