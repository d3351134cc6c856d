"""Approving what a project's files say."""

from mimo.mind import Mind
from mimo.services import overview, values
from mimo.store import procedures


def digests(mind: Mind) -> tuple[str, ...]:
    """Returns the digest of what may be approved, as it is now.

    That is each file that holds memories, values or a procedure, the policy, and each message of a
    commit.
    """
    memories = dict.fromkeys(record.place.digest for record in overview.everything(mind))
    files = [file.digest for file in procedures.listed(mind.project.root) if not file.problem]
    return (*memories, *files, *values.digests(mind), *mind.guard.digests())


def describe(mind: Mind) -> str:
    """Returns in words how far the project's files are trusted."""
    state = mind.trust.state
    if state.problem:
        return f"nothing is trusted: {state.problem}"
    here = digests(mind)
    if state.follow:
        left = sum(not mind.trust.trusted(digest) for digest in here)
        but = f", but for {left:,} message{'s'[: left - 1]} of commits" if left else ""
        return f"everything here is trusted, later changes too{but}"
    approved = sum(mind.trust.approved(digest) for digest in here)
    return f"{approved:,} of {len(here):,} files are approved" if here else "nothing to approve yet"


def approve_all(mind: Mind, *, follow: bool) -> None:
    """Approves every file as it is now; with `follow`, later changes too."""
    mind.trust.approve(digests(mind))
    if follow:
        mind.trust.follow(follow)
