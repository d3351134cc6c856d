"""The memory as it was: a commit, seen like the present."""

from typing import TYPE_CHECKING, Any

from mimo.errors import NotFound
from mimo.frozen import frozen
from mimo.mind import Mind

if TYPE_CHECKING:
    from mimo.store.revisions import Commit


@frozen
class Past:
    """The memory at a commit."""

    mind: Mind
    commit: "Commit"

    @property
    def told(self) -> str:
        """Returns which state it is, in words."""
        about = self.commit
        return f"as of {about.when:%Y-%m-%d} ({about.short}: {about.subject})"


def at(mind: Mind, revision: str) -> Past:
    """Returns the memory as it was at a commit, branch, tag or date.

    Its index is kept by what it holds, so that a second look is as quick as one at the present.
    Raises `Invalid` outside git, and `NotFound` where there was none.
    """
    from mimo.index.index import open_past
    from mimo.operations.syncing import repository
    from mimo.store import projects, revisions
    from mimo.store.revisions import PastStore, Uncounted

    found = repository(mind)
    commit = revisions.resolve(found, revision, now=mind.now())
    state = revisions.state(found, commit.id)
    if not state:
        raise NotFound(
            f"there was no memory at {commit.short} ({commit.when:%Y-%m-%d})",
            hint="`mind log` lists the commits that have some",
        )

    def parts() -> dict[str, Any]:
        owner = projects.index_owner(mind.home, mind.randomness)
        return {
            "store": PastStore(found, commit),
            "index": mind.trusting(open_past(mind.index_folder, state[:20], mind.embedder, owner)),
            "embedder": mind.embedder,
            "trust": mind.trust,
            "accesses": Uncounted(mind.project.root),
        }

    key = mind.index_folder / state / commit.id
    return Past(mind=mind.beside(key, parts), commit=commit)
