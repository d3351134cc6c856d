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
    examples=("mind trust", "mind trust k3v7mq p2w9xa", "mind trust --follow"),
)
def trust(
    mind: Mind,
    ids: Ids = (),
    *,
    follow: Annotated[bool, Arg("Approve what later commits and edits bring, too")] = False,
) -> TrustState:
    """Approve the memories that are here now

    Memory that came with a clone or a pull is somebody else's text. Until it is approved it is
    found and labelled, and never put into an agent's context. Look first: `mind review` shows what
    came, from whom. The setting `trust.only` narrows whose later commits --follow believes.
    """
    if ids and follow:
        raise Invalid("`--follow` is for all memories", hint="name no ids with it")
    if ids:
        approval.approve(mind, ids)
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
