"""Questions to several memories: a project's and the user's, or all projects'.

Each other project is asked through its own guard. The memory that the user has for all projects
needs none: it is asked beside a project in the same call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from mimo.call import Call
from mimo.data.disk import STORE, working_directory
from mimo.data.files import CONFIG
from mimo.errors import (
    Command,
    Denied,
    Hint,
    Invalid,
    MindError,
    RateLimited,
    SearchFailed,
    StorageFailed,
    join_texts,
)
from mimo.frozen import replace
from mimo.guard.policy import Operation, Request
from mimo.operations.disclosure import hides_private
from mimo.operations.finding import Options
from mimo.operations.searching import (
    STAY_OPEN,
    Answer,
    Asked,
    add_users,
    answered,
    ask,
    check_length,
)
from mimo.project import git
from mimo.project.projects import Registered, Registry

T = TypeVar("T")


def search_projects(
    call: Call, text: str, options: Options, *, private: bool, group: str | None = None
) -> Answer:
    """Returns the matches of all registered projects and of the user's memory, as one pool.

    Each other project is searched through its own guard, and its private memories are neither
    matched nor named unless a person asks for `private` ones. The notice names the projects that
    could not be searched, with the reason. Otherwise as `searching.search`.
    """
    from mimo.when.question import understood

    check_length(text)
    asking = understood(text, call.mind.local_now())

    def ask_one(target: Call, here: bool) -> Asked:
        hides = hides_private(call, is_here=here, is_asked=private)
        shared = replace(options, filter=replace(options.filter, shared=True))
        return ask(target, text, asking, shared if hides else options, by_meaning=True)

    answers, skipped = ask_each(call, "mind_search", ask_one, group=group)
    pool = [asked for _, _, asked in reversed(answers)]
    if (user := call.user()) and (problem := add_users(pool, user, text, asking, options)):
        skipped.append(problem)
    answer = answered(text, asking, pool, options)
    incomplete = [f"{name}: {call.notice}" for name, call, _ in answers if call.notice]
    return replace(answer, notice=join_texts(*skipped, *incomplete, answer.notice))


def root_in_git(call: Call) -> Path:
    """Returns the folder below which a command line looks at the changes in git.

    It is that of the project. Outside of any project it is the top of the working tree, if git has
    a project below it. Raises `NoProject` if there is neither.
    """
    if call.mind.is_outside and call.author is None and (here := working_directory()):
        top = git.output(here, "rev-parse", "--show-toplevel")
        words = ("ls-files", "--", f"**/{STORE}/{CONFIG}")
        if top and git.run(Path(top), *words, index=True, globs=True).stdout:
            return Path(top)
    return call.mind.project.root


def ask_each(
    call: Call,
    tool: str,
    question: Callable[[Call, bool], T],
    *,
    diagnosis: bool = False,
    among: Iterable[Registered] | None = None,
    group: str | None = None,
) -> tuple[list[tuple[str, Call, T]], list[str]]:
    """Returns each registered project's name, memory and answer, the open one's last; and problems.

    `among` replaces the registered projects and the open one: the caller may open all of them. With
    a `group` of the setting `projects.groups`, only its projects are asked.
    `question` gets a project, and whether it is the open one. The policy of each other project
    permits, limits and records the call of `tool`. A project with `search_all` off is asked only if
    it is the open one. Each problem is the reason for which a project was skipped, which reveals
    nothing of its policy.
    """
    registry = call.registered() if among is None else Registry(projects=tuple(among))
    here = call.mind.project.root if among is None and call.mind.has_project else None
    if group is not None:
        registry = registry._replace(projects=_of_group(call, registry.projects, group))
        here = next((entry.path for entry in registry.projects if entry.path == here), None)
    answers: list[tuple[str, Call, T]] = []
    skipped = [registry.problem.message] if registry.problem else []
    for number, entry in enumerate(registry.projects):
        call.check_cancelled()
        if entry.path == here or not entry.search_all:
            continue
        stays, target = number < STAY_OPEN, None
        try:
            target = call.at(entry, stays=stays)
            if target is None:
                skipped.append(f"{entry.name} is missing")
                continue
            request = Request(
                tool=tool,
                operation=Operation.READ,
                diagnosis=diagnosis,
                agent=call.agent,
                user=call.account,
                at=call.mind.now(),
            )
            with target.mind.guard.passing(request, call.mind.timer.monotonic):
                answers.append((entry.name, target, question(target, False)))
        except Exception as error:  # one broken project must not stop the others
            if call.console.halted and call.console.halted():
                raise
            skipped.append(Hint(f"{entry.name} was skipped: ", _reason(error, tool)))
        finally:
            if target and not stays:
                target.mind.close()  # A later use of a part opens it again.
    if here:
        names = (entry.name for entry in registry.projects if entry.path == here)
        name = next(names, call.mind.project.name)
        try:
            answers.append((name, call, question(call, True)))
        except (SearchFailed, StorageFailed) as error:
            skipped.append(f"{name}: {error.message}")
    return answers, skipped


def _of_group(call: Call, entries: Iterable[Registered], group: str) -> tuple[Registered, ...]:
    """Returns the registered projects of a group. Raises `Invalid` if it has none."""
    pairs = [pair.partition("/")[::2] for pair in call.mind.config["projects.groups"]]
    names = {project.strip() for name, project in pairs if name.strip() == group}
    members = tuple(
        entry for entry in entries if not names.isdisjoint((entry.name, f"{entry.path}"))
    )
    if not members:
        groups = ", ".join(sorted({f"`{name.strip()}`" for name, _ in pairs})) or "none yet"
        raise Invalid(
            f"no registered project is in the group `{group}`",
            hint=Hint(
                f"groups: {groups}; see the setting `projects.groups` and ", Command("projects")
            ),
        )
    return members


def _reason(error: Exception, tool: str) -> str:
    """Returns the reason for skipping a project, without rules or names of its policy."""
    if isinstance(error, Denied):
        invalid = error.reason == "policy"
        return "its policy is invalid" if invalid else f"its policy does not permit `{tool}`"
    if isinstance(error, RateLimited):
        return "its policy permits no more calls for now"
    code = error.code if isinstance(error, MindError) else type(error).__name__
    return Hint(f"it can't be read ({code}); run ", Command("doctor"), " there")
