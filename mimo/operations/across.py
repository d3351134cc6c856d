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
    MindError,
    RateLimited,
    SearchFailed,
    StorageFailed,
    join_texts,
)
from mimo.frozen import replace
from mimo.guard.policy import Operation, Request
from mimo.index.rows import Hit
from mimo.operations.disclosure import hides_private
from mimo.operations.finding import (
    Answer,
    Options,
    answer_of,
    approved,
    best_first,
    check_length,
    is_of_other_time,
    is_weak,
    note_sure,
    sure_or_nearest,
    with_room,
)
from mimo.project import git
from mimo.project.projects import Registered, Registry

T = TypeVar("T")

_STAY_OPEN = 16
"""The number of other projects that stay open: each takes several open files and 0.4 MB."""


def search_projects(
    call: Call, text: str, options: Options, *, private: bool
) -> tuple[list[tuple[Call, Hit]], str | None]:
    """Returns the best matches of all registered projects with their projects, best first.

    Each other project is searched through its own guard, and its private memories are neither
    matched nor named unless a person asks for `private` ones. The notice names the projects that
    could not be searched, with the reason. A memory with the same file in several projects, such as
    worktrees, is one match. Otherwise as `search`.
    """
    limit, options = options.limit, with_room(options)
    shared = replace(options, filter=replace(options.filter, shared=True))

    def search_one(target: Call, here: bool) -> Answer:
        if not hides_private(call, is_here=here, is_asked=private):
            return answer_of(target, text, options)
        answer = answer_of(target, text, shared)
        ids = [hit.record.memory.id for hit in answer.result.hits]
        newer = target.index.newer(ids, shared=True)
        competing = target.index.competing(ids, shared=True)
        hits = tuple(
            replace(hit, newer=newer[id], competing=competing.get(id, ()))
            for id, hit in zip(ids, answer.result.hits, strict=True)
        )
        return answer._replace(result=replace(answer.result, hits=hits))

    check_length(text)
    answers, skipped = ask_each(call, "mind_search", search_one)
    if user := call.user():
        try:
            user_answer = answer_of(user, text, approved(options))
            if not (user_answer.result.listed and answers):  # A list is about the projects.
                answers.append((user.mind.project.name, user, user_answer))
        except (SearchFailed, StorageFailed) as error:
            skipped.append(f"{user.mind.project.name}: {error.message}")
    # The matches of one project are better than a list of another one.
    is_listed = all(answer.result.listed for _, _, answer in answers)
    answers = [answer for answer in answers if answer[2].result.listed == is_listed]
    incomplete = [
        f"{name}: {problem}"
        for name, project, answer in answers
        if (problem := join_texts(project.notice, answer.result.notice))
    ]
    notice = join_texts(*skipped, *incomplete)
    if is_listed:
        matches, remark = _one_list([(project, answer) for _, project, answer in answers], limit)
        return matches, join_texts(notice, remark)
    matches = _distinct((project, answer) for _, project, answer in answers)
    notice = join_texts(notice, *dict.fromkeys(answer.remark for _, _, answer in answers))
    matches, remark = sure_or_nearest(best_first(matches), options, lambda match: is_weak(match[1]))
    matches = matches[:limit]
    for project in {project for project, _ in matches}:
        note_sure(project, [hit for owner, hit in matches if owner is project])
    return matches, join_texts(notice, remark)


def _one_list(
    answers: list[tuple[Call, Answer]], limit: int
) -> tuple[list[tuple[Call, Hit]], str | None]:
    """Returns the lists of several projects as one, newest first, and the remark on it.

    The memories of a time in one project are better than the newest ones of another, and are above
    those that only name it.
    """
    sure = [answer for answer in answers if not all(map(is_weak, answer[1].result.hits))]
    answers = sure or answers
    matches = _distinct(answers)
    matches.sort(key=lambda match: match[1].record.memory.created, reverse=True)
    matches.sort(key=lambda match: is_of_other_time(match[1]))
    matches = matches[:limit]
    owners = [project for project, hit in matches if not is_of_other_time(hit)]
    answers = [answer for answer in answers if answer[0] in owners] or answers
    hits = [hit for _, hit in matches]
    return matches, join_texts(*dict.fromkeys(answer.remark_on(hits) for _, answer in answers))


def _distinct(answers: Iterable[tuple[Call, Answer]]) -> list[tuple[Call, Hit]]:
    """Returns the matches of several projects, each memory once: that of the last project.

    Worktrees and clones of a repository have the same files. The open project's answer is last.
    """
    matches = {}
    for project, answer in answers:
        for hit in answer.result.hits:
            record = hit.record
            matches[record.memory.id, record.place.digest] = (project, hit)
    return list(matches.values())


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
) -> tuple[list[tuple[str, Call, T]], list[str]]:
    """Returns each registered project's name, memory and answer, the open one's last; and problems.

    `among` replaces the registered projects and the open one: the caller may open all of them.
    `question` gets a project, and whether it is the open one. The policy of each other project
    permits, limits and records the call of `tool`. A project with `search_all` off is asked only if
    it is the open one. Each problem is the reason for which a project was skipped, which reveals
    nothing of its policy.
    """
    registry = call.registered() if among is None else Registry(projects=tuple(among))
    here = call.mind.project.root if among is None and call.mind.has_project else None
    answers: list[tuple[str, Call, T]] = []
    skipped = [registry.problem.message] if registry.problem else []
    for number, entry in enumerate(registry.projects):
        call.check_cancelled()
        if entry.path == here or not entry.search_all:
            continue
        stays, target = number < _STAY_OPEN, None
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


def _reason(error: Exception, tool: str) -> str:
    """Returns the reason for skipping a project, without rules or names of its policy."""
    if isinstance(error, Denied):
        invalid = error.reason == "policy"
        return "its policy is invalid" if invalid else f"its policy does not permit `{tool}`"
    if isinstance(error, RateLimited):
        return "its policy permits no more calls for now"
    code = error.code if isinstance(error, MindError) else type(error).__name__
    return Hint(f"it can't be read ({code}); run ", Command("doctor"), " there")
