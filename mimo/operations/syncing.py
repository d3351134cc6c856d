"""Committing, pulling and pushing the memory."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from mimo.errors import Invalid
from mimo.frozen import frozen
from mimo.guard import privacy
from mimo.memory import changes
from mimo.memory.model import Memory, Problem
from mimo.mind import Mind
from mimo.store import commit, files, init
from mimo.store import commit as commits
from mimo.store.commit import Pending
from mimo.store.files import unshared_folder
from mimo.store.git import Repository
from mimo.store.revisions import is_memory

# Letting git merge memories field by field.


LACKING = "git merges memories here as plain text"


def install(root: Path) -> bool:
    """Sets the merge driver in the repository's own settings; returns whether that is new.

    Where there is no git, or no repository, nothing is to be done.
    """
    repository = Repository(root)
    with suppress(Invalid):
        return repository.is_there() and repository.install_driver()
    return False


def in_repository(root: Path) -> bool:
    """Returns whether a git repository is around the project, without asking git."""
    return any((folder / ".git").exists() for folder in (root, *root.parents))


def lacking(root: Path) -> str | None:
    """Returns what to say where git would merge memories as text; None where all is well.

    A clone brings `.gitattributes`, but never a setting that names a program to run.
    """
    if not in_repository(root):
        return None
    with suppress(Invalid):
        if not Repository(root).merges():
            return LACKING
    return None


# What could carry private files of a project into git.


_SHOWN = 3


@frozen
class Leak:
    """A way by which private files reach git, and how to close it."""

    message: str
    hint: str
    file: str


def leaks(root: Path) -> Iterator[Leak]:
    """Yields what is wrong with the project's ignore rules, and private files that git tracks.

    There is nothing to report outside a git repository.
    """
    if not in_repository(root):
        return
    if init.IGNORE_FILE in init.lacking(root):
        yield Leak(
            message=f"{init.IGNORE_FILE} lacks rules that keep private files out of git",
            hint="`mind doctor --fix` restores them; `mind sync` never commits such files",
            file=init.IGNORE_FILE,
        )
    files = commit.unshared(root)
    if files:
        some = ", ".join(files[:_SHOWN]) + (", …" if len(files) > _SHOWN else "")
        folders = " ".join(sorted({unshared_folder(path) or path for path in files}))
        yield Leak(
            message=f"git tracks files that must stay on this machine: {some}",
            hint=f"`git rm -rf --cached -- {folders}` and a commit untrack them; earlier commits "
            "keep them",
            file=files[0],
        )


@frozen
class Sync:
    """What a sync did, or would do."""

    commit: str | None
    branch: str | None
    message: str | None
    pending: tuple[Pending, ...]
    pulled: str | None = None
    pushed: bool = False


def repository(mind: Mind) -> Repository:
    """Returns the repository that the project is in.

    Raises `Invalid` if there is none, git is missing, or git would hang on its files.
    """
    found = Repository(mind.project.root)
    if found.folder is None:
        raise Invalid(
            "the project is in no git repository",
            hint="`git init` makes one; without git every memory is kept all the same",
        )
    return found


def sync(
    mind: Mind,
    *,
    message: str | None,
    pull: bool = False,
    push: bool = False,
    dry_run: bool = False,
) -> Sync:
    """Commits the shared files of `.mind/` and nothing else, then pulls and pushes as asked."""
    place = repository(mind)
    commits.check_idle(place)
    commits.check_shared(place)
    pending = commits.pending(place)
    _check_secrets(mind, pending)
    message = (message or _message(mind, pending)) if pending else None
    done: dict[str, str | None] = {"commit": None, "pulled": None}
    if not dry_run:
        if message:
            done["commit"] = commits.commit(place, message, [one.path for one in pending])
            if done["commit"] is None:
                message, pending = None, ()
        done["pulled"] = commits.pull(place) if pull else None
        if push:
            commits.push(place)
    return Sync(
        branch=commits.branch(place),
        message=message,
        pending=pending,
        pushed=push and not dry_run,
        **done,
    )


def _check_secrets(mind: Mind, pending: Sequence[Pending]) -> None:
    """Raises `SecretDetected` where a file that would be committed holds a secret."""
    for one in pending:
        path = files.safe_path(mind.project.root, one.path)
        if one.change != "removed" and path.is_file():
            text = files.read(path).decode("utf-8", "replace")
            privacy.check_secrets({one.path: text}, by_person=mind.author is None, file=one.path)


def _message(mind: Mind, pending: Sequence[Pending]) -> str:
    """Returns a message that says what was remembered, in the memories' own titles."""
    titles: dict[str, list[str]] = {change: [] for change in changes.VERBS}
    agents = []
    memories = [one for one in pending if is_memory(one.path)]
    for one in memories or pending:
        memory = None if one.change == "removed" else _memory(mind, one.path)
        name = f"{memory.type.value}: {memory.heading}" if memory else _name(one.path)
        titles[one.change].append(changes.one_line(name))
        if memory and memory.by and one.change == "added":
            agents.append(memory.by)
    return changes.message(titles, agents)


def _name(path: str) -> str:
    """Returns the id that a file of memories is named for; the path of any other file."""
    return path.rpartition("/")[2].removesuffix(".md") if is_memory(path) else path


def _memory(mind: Mind, path: str) -> Memory | None:
    """Returns the memory in a file; None for what holds none or several."""
    if not is_memory(path):
        return None
    found = mind.store.read(path)
    if isinstance(found, Problem) or len(found) != 1:
        return None
    return found[0].memory
