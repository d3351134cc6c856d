"""A first look at memory that came from somebody else."""

from datetime import datetime
from typing import Annotated

from mimo.commands.types import Out
from mimo.domain.memory import Kind
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services.arrivals import arrivals


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
