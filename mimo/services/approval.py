"""Approving what a project's files say."""

from collections.abc import Iterable, Iterator

from mimo.domain.memory import Record
from mimo.errors import Invalid
from mimo.mind import Mind
from mimo.services import overview, recall, sources, values
from mimo.store import procedures
from mimo.store.trust import TrustState


def digests(mind: Mind) -> tuple[str, ...]:
    """Returns the digest of what may be approved, as it is now.

    That is each file that holds memories, values or a procedure, the policy, and each message of a
    commit.
    """
    memories = dict.fromkeys(record.place.digest for record in overview.everything(mind))
    files = [file.digest for file in procedures.listed(mind.project.root) if not file.problem]
    return (*memories, *files, *values.digests(mind), *mind.guard.digests())


def describe(mind: Mind) -> str:
    """Returns in words how far the project's files are trusted, and which changes are followed."""
    state = mind.trust.state
    if state.problem:
        return f"nothing is trusted: {state.problem}"
    here, trusted = digests(mind), mind.trust.checker()
    many = f"{sum(map(trusted, here)):,} of {len(here):,} files are trusted"
    parts = [many if here else "nothing to approve yet", *_followed(mind, state)]
    if mind.trust.has_earlier:
        parts.append(EARLIER)
    return "; ".join(parts)


EARLIER = (
    "approvals that an earlier version of mind made for this path are not used: "
    "run `mind trust` to approve again"
)


def _followed(mind: Mind, state: TrustState) -> Iterator[str]:
    """Yields which later changes are trusted."""
    only = ", ".join(mind.config["trust.only"])
    if address := mind.trust.own_address:
        yield f"what you commit here as {address} is trusted"
    if not state.follow:
        return
    if state.stopped:
        yield f"nothing is followed: {state.stopped}"
    elif state.branch:
        from mimo.store.vouching import short_name

        by = f" in commits by {only}" if only else ""
        yield f"what reaches {short_name(state.branch)}{by} is trusted"
    elif only:
        yield f"without git nothing by {only} can be followed"
    else:
        yield "later edits are trusted"


def approve_all(mind: Mind, *, follow: bool) -> None:
    """Approves every file as it is now; with `follow`, later changes too.

    Where the user's settings name whom to believe, that goes for what those committed alone.
    """
    _repair(mind)
    mind.trust.approve(filter(mind.trust.admitted(), digests(mind)))
    mind.trust.forget_earlier()
    if follow:
        mind.trust.follow(follow)


def _repair(mind: Mind) -> None:
    """Moves damaged lists of approvals aside, and tells the user."""
    if message := mind.trust.repair():
        mind.note("trust", message)


def approve_own(mind: Mind) -> None:
    """Approves the memories and values whose last commits name the user's own address.

    Anyone can write that into a commit: what could run, or widen what is permitted, is left out.
    """
    own = mind.trust.by_own_address()
    records = dict.fromkeys(record.place.digest for record in overview.everything(mind))
    mind.trust.approve(one for one in (*records, *values.digests(mind)) if one in own)


def approve(mind: Mind, wanted: Iterable[str]) -> tuple[Record, ...]:
    """Approves the files of these memories, or ingested files, and returns one record of each."""
    _repair(mind)
    records = _named(mind, wanted)
    mind.trust.approve(record.place.digest for record in records)
    return records


def revoke(mind: Mind, wanted: Iterable[str]) -> tuple[Record, ...]:
    """Takes back the approval of these memories. Raises `Invalid` where they are followed."""
    records = _named(mind, wanted)
    mind.trust.revoke(record.place.digest for record in records)
    followed = [one for one in records if mind.trust.trusted(one.place.digest)]
    if followed:
        raise Invalid(
            f"`{followed[0].memory.id}` stays trusted: it is part of what is followed",
            hint="`mind untrust` takes all of that back, then `mind trust ID` approves single ones",
        )
    return records


def _named(mind: Mind, wanted: Iterable[str]) -> tuple[Record, ...]:
    """Returns the memories of all these ids before anything is done with the first."""
    return tuple((sources.named(mind, name) or (recall.one(mind, name),))[0] for name in wanted)
