"""`mind load …`: where work stopped, and what is known around a decision."""

from datetime import datetime
from typing import Annotated

from mimo.commands.common import Competing, Trust, Warning, trust_of
from mimo.commands.rows import Remembered, remembered
from mimo.commands.spec import Arg, Effect, command
from mimo.commands.types import Json, Omitted, Out
from mimo.domain import ages, lists
from mimo.domain.memory import MAX_CONTENT_BYTES, Kind, Outcome, Section
from mimo.errors import AmbiguousId, NotFound
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import accesses, checkpoints, decisions, graph
from mimo.services.checkpoints import Resumed, Whose
from mimo.services.graph import Graph

CONTEXT_DEPTH = 2
MOST_RELATED = 50
"""Memories around a decision that an answer names."""


@frozen
class Checkpoint:
    """Where work stopped."""

    summary: Annotated[str | None, Out("What was done; null where there is no checkpoint")]
    open_files: tuple[str, ...]
    next_steps: Annotated[Json, Out("A text or a list of steps, as they were given; null: none")]
    timestamp: datetime | None
    id: Omitted[str] = None
    age: Annotated[Omitted[str], Out("How old it is, in words", omit=True)] = None
    made: Annotated[
        Omitted[Whose],
        Out("Whether it was made on this branch, this machine, or elsewhere", omit=True),
    ] = None
    branch: Omitted[str] = None
    by: Annotated[Omitted[str], Out("The program that saved it", omit=True)] = None
    author: Annotated[
        Omitted[str], Out("Who committed it, if it was made elsewhere", omit=True)
    ] = None
    trust: Annotated[Omitted[Trust], Out(omit=True)] = None
    file: Omitted[str] = None
    notice: Omitted[str] = None


@frozen
class RelatedMemory:
    """A memory that links lead to."""

    id: str
    type: Kind
    title: str
    depth: Annotated[int, Out("How many links away it is")]
    created_at: datetime
    trust: Trust
    outcome: Omitted[Outcome]
    warning: Warning
    superseded_by: Omitted[str]


@frozen
class RelatedLink:
    """A link between two memories; the newer one holds it."""

    source: str
    target: str
    type: str
    given: Annotated[Omitted[str], Out("The words that were given for the type", omit=True)] = None


@frozen
class Context:
    """A memory, whole, and what links lead to from it."""

    memory: Remembered
    related: tuple[RelatedMemory, ...]
    links: tuple[RelatedLink, ...]
    missing: Annotated[tuple[str, ...], Out("Targets of links that are not there")]
    competing: Competing
    notice: Omitted[str] = None


@command(
    "load/checkpoint",
    effect=Effect.READ,
    toolset="load",
    examples=("mind load checkpoint", "mind load checkpoint --json"),
    description="""\
Resume your last work session.

Use when:
- Starting a new coding session
- User says "continue from yesterday"
- Returning after a break

Don't use for:
- The reasons behind one decision → use load/context
- Browsing what happened lately → use search/recent

Returns: Session summary, open files, next steps""",
)
def checkpoint(mind: Mind) -> Checkpoint:
    """Show where work stopped

    The newest checkpoint that was made on this machine and branch; else one made on this machine;
    else anybody's, saying whose it is and how old.
    """
    resumed = checkpoints.latest(mind)
    if resumed is None:
        told = "there is no checkpoint yet; save/checkpoint (`mind save checkpoint`) makes one"
        return Checkpoint(summary=None, open_files=(), next_steps=None, timestamp=None, notice=told)
    accesses.note(mind, [resumed.record])
    return _checkpoint(mind, resumed)


def _checkpoint(mind: Mind, resumed: Resumed) -> Checkpoint:
    memory = resumed.record.memory
    steps = lists.steps_of(memory.sections.get(Section.NEXT_STEPS, ""))
    age = ages.age(memory.created, mind.now())
    return Checkpoint(
        summary=memory.content,
        open_files=lists.items_of(memory.sections.get(Section.OPEN_FILES, "")),
        next_steps=list(steps) if isinstance(steps, tuple) else steps,
        timestamp=memory.created,
        id=memory.id,
        age=age,
        made=resumed.whose,
        branch=resumed.branch,
        by=memory.by,
        author=resumed.author,
        trust=trust_of(mind, resumed.record),
        file=resumed.record.place.path,
        notice=_whose(resumed, age),
    )


def _whose(resumed: Resumed, age: str) -> str | None:
    """Returns a remark where the checkpoint is not one of this machine and branch."""
    if resumed.whose is Whose.BRANCH:
        return None
    if resumed.whose is Whose.MACHINE:
        where = f"branch {resumed.branch}" if resumed.branch else "this machine"
        return f"made on {where}, {age}"
    return f"made by {resumed.author or 'somebody'} elsewhere, {age}; nothing of it was made here"


@command(
    "load/context",
    effect=Effect.READ,
    toolset="load",
    errors=(NotFound, AmbiguousId),
    examples=("mind load context auth_strategy", "mind load context k3v7mq --json"),
    description="""\
Load one decision with its reasons, what it replaced, and everything linked within two steps.

Use when:
- You are about to touch something that a known decision covers
- Search named a decision and you need the whole of it

Don't use for:
- Finding out which decisions there are → use search/by_context or search/by_topic
- Where work stopped → use load/checkpoint""",
)
def context(
    mind: Mind,
    id: Annotated[
        str,
        Arg(
            "Id of a memory, or a start or end of it, or a decision's topic",
            alias=("topic", "memory_id", "decision_id"),
            complete="id",
        ),
    ],
) -> Context:
    """Show a decision whole, with what is linked to it

    Of a topic on which several decisions compete the newest is shown, and the others are named.
    """
    record = decisions.newest(mind, id)
    accesses.note(mind, [record])
    around = graph.traverse(mind, [record.memory.id], depth=CONTEXT_DEPTH, most=MOST_RELATED + 1)
    (row,) = remembered(mind, [record], most=MAX_CONTENT_BYTES)
    return Context(
        memory=row,
        related=related(mind, around),
        links=tuple(
            RelatedLink(source=edge.source, target=edge.target, type=edge.type, given=edge.given)
            for edge in around.edges
        ),
        missing=around.missing,
        competing=row.competing,
        notice=f"only the nearest {MOST_RELATED} are named" if around.cut else None,
    )


def related(mind: Mind, around: Graph) -> tuple[RelatedMemory, ...]:
    """Returns what a walk came to, without where it began."""
    nodes = [node for node in around.nodes if node.depth]
    rows = remembered(mind, [node.record for node in nodes])
    return tuple(
        RelatedMemory(
            id=row.id,
            type=row.type,
            title=row.title,
            depth=node.depth,
            created_at=row.created_at,
            trust=row.trust,
            outcome=row.outcome,
            warning=row.warning,
            superseded_by=row.superseded_by,
        )
        for node, row in zip(nodes, rows, strict=True)
    )
