"""Approving what a project's files say."""

from mimo.mind import Mind
from mimo.services import overview, values


def digests(mind: Mind) -> tuple[str, ...]:
    """Returns the digest of each file that holds memories, values or the policy, as it is now."""
    places = [record.place for record in overview.everything(mind)]
    memories = {place.path: place.digest for place in places}
    return (*memories.values(), *values.digests(mind), *mind.guard.digests())


def describe(mind: Mind) -> str:
    """Returns in words how far the project's files are trusted."""
    state = mind.trust.state
    if state.problem:
        return f"nothing is trusted: {state.problem}"
    if state.follow:
        return "everything here is trusted, later changes too"
    here = digests(mind)
    approved = sum(mind.trust.approved(digest) for digest in here)
    return f"{approved:,} of {len(here):,} files are approved" if here else "nothing to approve yet"


def approve_all(mind: Mind, *, follow: bool) -> None:
    """Approves every file as it is now; with `follow`, later changes too."""
    mind.trust.approve(digests(mind))
    if follow:
        mind.trust.follow(follow)
