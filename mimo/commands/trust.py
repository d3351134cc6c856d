"""`mind trust` and `mind untrust`: whose text an agent may be given."""

from typing import Annotated

from mimo.commands.look import FirstLook, look_of
from mimo.commands.spec import Arg, Effect, Needs, Surface, command
from mimo.commands.types import Omitted, Out
from mimo.domain.policy import Operation
from mimo.errors import AmbiguousId, Invalid, NotFound, StorageFailed
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import approval

Ids = Annotated[
    tuple[str, ...], Arg("Only these memories, by their ids; all unless given", complete="id")
]


@frozen
class TrustState:
    """How far the project's files are trusted."""

    path: str
    trust: Annotated[str, Out("How far the files here are trusted")]
    approved: Annotated[int, Out("How many files are approved as they are now")]
    total: Annotated[int, Out("How many files may be approved")]
    changed: Annotated[Omitted[tuple[str, ...]], Out("The ids that were named", omit=True)] = None
    left: Annotated[FirstLook | None, Out("What is not approved yet", omit=True)] = None


@command(
    "mind_trust",
    cli="trust",
    effect=Effect.WRITE,
    idempotent=True,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE, person=True),
    errors=(Invalid, NotFound, AmbiguousId, StorageFailed),
    examples=("mind trust", "mind trust k3v7mq p2w9xa", "mind trust --follow", "mind trust --mine"),
)
def trust(
    mind: Mind,
    ids: Ids = (),
    *,
    follow: Annotated[bool, Arg("Approve what reaches the default branch later, too")] = False,
    mine: Annotated[bool, Arg("Only memories whose last commit names your own address")] = False,
) -> TrustState:
    """Approve the memories that are here now

    Memory that came with a clone or a pull is another author's text. Until it is approved it is
    found and labelled, and never put into an agent's context. What mind writes for you, and what
    you commit in this clone under your own address, needs no approval. Look first: `mind review`
    shows what came, and from whom.

    With --follow, what reaches the default branch later is trusted, too; the setting `trust.only`
    narrows that to some authors. Outside git, --follow trusts later edits. With --mine, memories
    that the history attributes to your own address are approved: for a fresh clone of your own
    repository, since anyone can write any address into a commit.
    """
    if (ids and follow) or (mine and (ids or follow)):
        raise Invalid(
            "ids, `--follow` and `--mine` approve different things", hint="name one of them"
        )
    if ids:
        approval.approve(mind, ids)
    elif mine:
        approval.approve_own(mind)
    else:
        approval.approve_all(mind, follow=follow)
    return _state(mind, ids)


@command(
    "mind_untrust",
    cli="untrust",
    effect=Effect.WRITE,
    idempotent=True,
    toolset="extra",
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE, person=True),
    errors=(Invalid, NotFound, AmbiguousId, StorageFailed),
    examples=("mind untrust", "mind untrust k3v7mq"),
)
def untrust(mind: Mind, ids: Ids = ()) -> TrustState:
    """Take back all approvals for this project, or those of some memories"""
    if ids:
        approval.revoke(mind, ids)
    else:
        mind.trust.forget()
    return _state(mind, ids)


def _state(mind: Mind, ids: tuple[str, ...]) -> TrustState:
    digests = approval.digests(mind)
    return TrustState(
        path=str(mind.project.root),
        trust=approval.describe(mind),
        approved=sum(mind.trust.approved(digest) for digest in digests),
        total=len(digests),
        changed=ids or None,
        left=look_of(mind),
    )
