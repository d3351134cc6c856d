"""The memory at an earlier revision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mimo.call import Call
from mimo.errors import Command, Hint, NotFound
from mimo.frozen import frozen
from mimo.project import projects

if TYPE_CHECKING:
    from mimo.project.revisions import Commit


@frozen
class Past:
    """The memory at a commit."""

    call: Call
    commit: Commit
    label: str
    """Its date and, unless an agent asks, its subject, a text of its author."""


def at(call: Call, revision: str) -> Past:
    """Returns the memory at a commit, branch, tag or date.

    The last commit that changed it names its index, which is cached, and dates the memories that
    have no date. Raises `Invalid` outside a git repository, and `NotFound` if the project had no
    memory.
    """
    from mimo.index.index import Index
    from mimo.operations.syncing import repository
    from mimo.project import revisions
    from mimo.project.revisions import PastStore, Uncounted

    root = repository(call)
    commit = revisions.resolve(root, revision, now=call.mind.local_now())
    day = f"{commit.when.astimezone(call.mind.zone):%Y-%m-%d}"
    if not revisions.tree_id(root, commit.id):
        raise NotFound(
            f"there was no memory at {commit.short} ({day})",
            hint=Hint(Command("log"), " lists the commits that have some"),
        )

    changed = revisions.last_change(root, commit)

    def parts() -> dict[str, Any]:
        owner = projects.index_owner(call.mind.home, call.mind.randomness)
        index = Index.open_past(call.mind.index_folder, changed.id[:20], call.mind.embedder, owner)
        call.mind.trusting(index)
        trust = call.mind.trust.of_past()
        index.approvals.checker = trust.checker
        return {
            "store": PastStore(root, changed),
            "index": index,
            "embedder": call.mind.embedder,
            "trust": trust,
            "accesses": Uncounted(call.mind.project.root),
        }

    key = call.mind.index_folder / changed.id
    subject = f": {commit.subject}" if call.agent is None else ""
    label = f"as of {day} ({commit.short}{subject})"
    return Past(call=call.on(call.mind.beside(key, parts)), commit=commit, label=label)
