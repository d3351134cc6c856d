"""Approving what a project's files say."""

from collections.abc import Iterable

from mimo.domain.memory import Record
from mimo.errors import Invalid
from mimo.mind import Mind
from mimo.services import overview, recall, sources, values
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
    here, only = digests(mind), mind.config["trust.only"]
    if state.follow and not only:
        left = sum(not mind.trust.trusted(digest) for digest in here)
        but = f", but for {left:,} message{'s'[: left - 1]} of commits" if left else ""
        return f"everything here is trusted, later changes too{but}"
    check = mind.trust.trusted if state.follow else mind.trust.approved
    approved = sum(check(digest) for digest in here)
    if not here:
        return "nothing to approve yet"
    told = f"{approved:,} of {len(here):,} files are"
    if state.follow:
        return f"{told} trusted; later changes by {', '.join(only)} are, too"
    return f"{told} approved"


def approve_all(mind: Mind, *, follow: bool) -> None:
    """Approves every file as it is now; with `follow`, later changes too.

    Where the user's settings name whom to believe, that goes for what those committed alone.
    """
    _repair(mind)
    mind.trust.approve(digest for digest in digests(mind) if mind.trust.vouched(digest))
    if follow:
        mind.trust.follow(follow)


def _repair(mind: Mind) -> None:
    """Moves damaged lists of approvals aside, and tells the user."""
    if message := mind.trust.repair():
        mind.note("trust", message)


def approve(mind: Mind, wanted: Iterable[str]) -> tuple[Record, ...]:
    """Approves the files of these memories, or ingested files, and returns one record of each."""
    _repair(mind)
    records = _named(mind, wanted)
    mind.trust.approve(record.place.digest for record in records)
    return records


def revoke(mind: Mind, wanted: Iterable[str]) -> tuple[Record, ...]:
    """Takes back the approval of these memories. Raises `Invalid` where all is followed."""
    records = _named(mind, wanted)
    mind.trust.revoke(record.place.digest for record in records)
    followed = [one for one in records if mind.trust.trusted(one.place.digest)]
    if followed:
        raise Invalid(
            f"`{followed[0].memory.id}` stays trusted: everything here is, later changes too",
            hint="`mind untrust` takes all of that back, then `mind trust ID` approves single ones",
        )
    return records


def _named(mind: Mind, wanted: Iterable[str]) -> tuple[Record, ...]:
    """Returns the memories of all these ids before anything is done with the first."""
    return tuple((sources.named(mind, name) or (recall.one(mind, name),))[0] for name in wanted)
