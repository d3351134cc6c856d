"""The first look at memory of other authors, as text."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

from mimo.commands.spec import Out
from mimo.errors import Invalid, MindError
from mimo.features import values
from mimo.frozen import frozen
from mimo.memory.model import Kind, Record
from mimo.mind import Mind
from mimo.operations import finding, overview
from mimo.rendering.results import count, day
from mimo.rendering.screen import Part, Screen, accent, dim, strong, warn
from mimo.store import procedures, revisions
from mimo.store.git import Repository
from mimo.store.trust import TrustState
from mimo.text.phrases import cut

# Approving what a project's files say.


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
    return tuple((finding.source(mind, name) or (finding.one(mind, name),))[0] for name in wanted)


# What came from somebody else and nobody here has approved: a first look.


NEWEST = 5


@frozen
class Arrivals:
    """What nobody here has approved."""

    records: tuple[Record, ...]
    """Newest first."""
    authors: Mapping[str, int]
    """Who last committed how many of the files, the most first."""
    procedures: tuple[str, ...]
    """Names of all that could be run once it is approved."""
    policy: bool
    """Whether a policy came along, which can only narrow what is permitted."""
    yours: int
    """How many files the history attributes to the user's own address, which proves nothing."""

    @property
    def files(self) -> int:
        """Returns how many files hold them."""
        return len({record.place.path for record in self.records})

    @property
    def by_type(self) -> dict[str, int]:
        """Returns how many there are of each type, the most first."""
        return dict(Counter(record.memory.type.value for record in self.records).most_common())

    @property
    def newest(self) -> Sequence[Record]:
        """Returns those to look at first."""
        return self.records[:NEWEST]


def arrivals(mind: Mind) -> Arrivals | None:
    """Returns what nobody here has approved; None where there is nothing."""
    known, trusted = overview.everything(mind), mind.trust.checker()
    records = tuple(one for one in known if not trusted(one.place.digest))
    procedures = tuple(name for name, path in _procedures(mind.folder) if _is_new(mind, path))
    if not records and not procedures:
        return None
    policy = mind.folder / "policy.yaml"
    return Arrivals(
        records=records,
        authors=_authors(mind, {record.place.path for record in records}),
        procedures=procedures,
        policy=policy.is_file() and _is_new(mind, policy),
        yours=len({one.place.digest for one in records} & mind.trust.by_own_address()),
    )


def _authors(mind: Mind, paths: set[str]) -> dict[str, int]:
    repository = Repository(mind.project.root)
    try:
        last = revisions.last_touches(repository) if repository.is_there() else {}
    except MindError:
        return {}
    found = Counter(last[path].author for path in paths if path in last)
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _procedures(folder: Path) -> list[tuple[str, Path]]:
    return [(path.stem, path) for path in sorted((folder / "procedures").glob("*.md"))]


def _is_new(mind: Mind, path: Path) -> bool:
    relative = path.relative_to(mind.project.root).as_posix()
    return not mind.trust.approved(mind.store.digest(relative))


# A first look at memory that came from somebody else.


@frozen
class Arrived:
    """One of the newest memories that nobody here has approved."""

    id: str
    type: Kind
    title: str
    created_at: datetime


@frozen
class FirstLook:
    """What nobody here has approved yet: no agent is given it, nothing of it runs."""

    memories: int
    files: int
    by_type: Annotated[dict[str, int], Out("How many memories of each type")]
    authors: Annotated[dict[str, int], Out("Who last committed how many files, as git names them")]
    newest: tuple[Arrived, ...]
    procedures: Annotated[tuple[str, ...], Out("Procedures that could run once they are approved")]
    policy: Annotated[bool, Out("Whether a policy.yaml came along; it can only narrow")]
    yours: Annotated[
        int, Out("Files last committed under your own address, which anyone can write")
    ] = 0


def look_of(mind: Mind) -> FirstLook | None:
    """Returns a first look; None where all is approved."""
    found = arrivals(mind)
    if found is None:
        return None
    return FirstLook(
        memories=len(found.records),
        files=found.files,
        by_type=found.by_type,
        authors=dict(found.authors),
        newest=tuple(
            Arrived(
                id=one.memory.id,
                type=one.memory.type,
                title=one.memory.heading,
                created_at=one.memory.created,
            )
            for one in found.newest
        ),
        procedures=found.procedures,
        policy=found.policy,
        yours=found.yours,
    )


_MOST = 5
_LONGEST = 200
"""Characters that are shown of a title or a name: a longer one would hide the text around it."""


def show_look(look: FirstLook, screen: Screen) -> None:
    """Write what nobody here has approved."""
    memories = count(look.memories, "memory", "memories")
    screen.line(warn(f"{memories} here that nobody on this machine has approved"))
    rows: list[tuple[str, Part]] = [("types", _listed(look.by_type))]
    if look.authors:
        rows.append(("last committed by", _listed(look.authors)))
    if look.procedures:
        rows.append(("procedures", warn(", ".join(look.procedures))))
    if look.policy:
        rows.append(("policy", "policy.yaml, which can only narrow what is permitted"))
    screen.pairs(rows, indent=2)
    for one in look.newest:
        screen.line(
            dim(f"{day(one.created_at)}  {one.type:<11} "), strong(short(one.title)), indent=2
        )
        screen.line(accent(one.id), indent=4)
    if (more := look.memories - len(look.newest)) > 0:
        screen.line(dim(f"and {more:,} more"), indent=2)
    if look.yours:
        many = count(look.yours, "file was", "files were")
        screen.line(f"{many} last committed under your own address, which anyone can write;")
        screen.line("approve just those with ", accent("`mind trust --mine`"))


def short(text: str) -> str:
    """Returns a title or a name that another author chose, cut if it is long."""
    return cut(text, _LONGEST)


def _listed(numbers: dict[str, int]) -> str:
    first = [f"{short(name)} {number:,}" for name, number in list(numbers.items())[:_MOST]]
    rest = len(numbers) - _MOST
    return ", ".join([*first, *([f"and {rest:,} more"] if rest > 0 else [])])
