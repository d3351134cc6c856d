"""Committing, pulling and pushing the memory."""

from collections.abc import Sequence

from mimo.domain import changes
from mimo.domain.memory import Memory, Problem
from mimo.errors import Invalid
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import capture
from mimo.store import commit as commits
from mimo.store import files
from mimo.store.commit import Pending
from mimo.store.repository import Repository
from mimo.store.revisions import is_memory


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
            capture.check_secrets(mind, {one.path: text}, file=one.path)


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
