"""`mind load …`: where work stopped, and what is known around a decision."""

from datetime import datetime
from typing import Annotated

from mimo.commands.common import (
    Competing,
    Limit,
    Remembered,
    Trust,
    TrustLabel,
    Warning,
    facts,
    remembered,
    trust_of,
)
from mimo.commands.spec import Arg, Effect, Json, Omitted, Out, command
from mimo.errors import (
    AmbiguousId,
    Conflict,
    Invalid,
    NotFound,
    SearchFailed,
    SecretDetected,
    StorageFailed,
)
from mimo.features import decisions, graph
from mimo.features.decisions import checkpoints
from mimo.features.decisions.checkpoints import Resumed, Whose
from mimo.features.decisions.commands import Evolved
from mimo.features.decisions.commands import outcome as evolve_outcome
from mimo.frozen import frozen
from mimo.memory.model import (
    MAX_CONTENT_BYTES,
    SUPERSEDES,
    Filter,
    Kind,
    Outcome,
    Record,
    Section,
    topic_key,
)
from mimo.memory.outcomes import outcome_of
from mimo.memory.relations import Graph
from mimo.mind import Mind
from mimo.operations import finding, refresh
from mimo.rendering.results import day, labels, render, row_labels, tagged
from mimo.rendering.screen import Screen, accent, bad, dim, strong, warn
from mimo.text import calendar, phrases

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
    finding.note(mind, [resumed.record])
    return _checkpoint(mind, resumed)


def _checkpoint(mind: Mind, resumed: Resumed) -> Checkpoint:
    memory = resumed.record.memory
    steps = phrases.steps_of(memory.sections.get(Section.NEXT_STEPS, ""))
    age = calendar.age(memory.created, mind.now())
    return Checkpoint(
        summary=memory.content,
        open_files=phrases.items_of(memory.sections.get(Section.OPEN_FILES, "")),
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
    finding.note(mind, [record])
    around = graph.traverse(mind, [record.memory.id], depth=CONTEXT_DEPTH, most=MOST_RELATED + 1)
    (row,) = remembered(mind, [record], most=MAX_CONTENT_BYTES)
    return Context(
        memory=row,
        related=related(mind, around),
        links=links_in(around),
        missing=around.missing,
        competing=row.competing,
        notice=f"only the nearest {MOST_RELATED} are named" if around.cut else None,
    )


def related(mind: Mind, around: Graph) -> tuple[RelatedMemory, ...]:
    """Returns the memories of a graph without those where the walk began."""
    nodes = [node for node in around.nodes if node.depth]
    memories = facts(mind, [node.record for node in nodes])
    return tuple(
        memory.row(RelatedMemory, depth=node.depth)
        for node, memory in zip(nodes, memories, strict=True)
    )


def links_in(around: Graph, *, given: bool = True) -> tuple[RelatedLink, ...]:
    """Returns the links of a graph, with the words given for their types unless `given` is off."""
    return tuple(
        RelatedLink(
            source=edge.source,
            target=edge.target,
            type=edge.type,
            given=edge.given if given else None,
        )
        for edge in around.edges
    )


# The decision tools of MAMA 1.0, as old callers know them: MCP answers without listing them.


@frozen
class History:
    """The decisions on a topic."""

    success: bool = True
    history: Annotated[tuple[Remembered, ...], Out("Newest first")]
    message: str


@frozen
class Suggestions:
    """Decisions that bear on a question."""

    success: bool = True
    suggestions: Annotated[tuple[Remembered, ...], Out("Best first")]
    message: str


@frozen
class DecisionList:
    """The decisions in force."""

    success: bool = True
    list: Annotated[tuple[Remembered, ...], Out("Newest first")]
    count: int


@frozen
class OutcomeUpdate:
    """What came of noting an outcome."""

    success: bool = True
    evolved: Evolved
    message: Omitted[str] = None


@command(
    "recall_decision",
    effect=Effect.READ,
    toolset="legacy",
    instead="search/by_topic",
)
def recall_decision(
    mind: Mind, topic: Annotated[str, Arg("The topic of the decisions")]
) -> History:
    """Show the history of the decisions on a topic"""
    found = _on_topic(mind, topic) or _on_topic(mind, _nearest(mind, topic))
    chain = graph.traverse(
        mind, [one.memory.id for one in found], depth=graph.MAX_DEPTH, types=(SUPERSEDES,)
    )
    records = graph.newest_first(chain)
    finding.note(mind, records)
    told = f"{len(records)} on `{topic}`" if records else f"no decision on `{topic}`"
    return History(history=remembered(mind, records), message=told)


def _on_topic(mind: Mind, topic: str | None) -> tuple[Record, ...]:
    if not topic:
        return ()
    wanted = Filter(types=frozenset({Kind.DECISION}), topic=topic)
    return finding.listing(mind, finding.Options(filter=wanted)).records


def _nearest(mind: Mind, topic: str) -> str | None:
    """Returns a topic that begins with the same word, as the old tool fell back to."""
    first = topic_key(topic).partition("_")[0]
    near = refresh.up_to_date(mind).nearest_topics(topic)
    return next((one for one in near if first and topic_key(one).startswith(first)), None)


@command(
    "suggest_decision",
    effect=Effect.READ,
    toolset="legacy",
    errors=(Invalid, SearchFailed),
    instead="search/by_context",
)
def suggest_decision(
    mind: Mind,
    question: Annotated[str, Arg("The question", wire="userQuestion", alias=("question", "query"))],
    *,
    limit: Limit = 5,
    recency_weight: Annotated[
        float | None, Arg("Not used any more", wire="recencyWeight", ge=0, le=1)
    ] = None,
) -> Suggestions:
    """Find the decisions that bear on a question"""
    wanted = Filter(types=frozenset({Kind.DECISION}))
    found = finding.search(mind, question, finding.Options(filter=wanted, limit=limit))
    rows = remembered(mind, [hit.record for hit in found.hits])
    return Suggestions(suggestions=rows, message=f"{len(rows)} bear on the question")


@command("list_decisions", effect=Effect.READ, toolset="legacy", instead="search/recent")
def list_decisions(mind: Mind, *, limit: Limit = 20) -> DecisionList:
    """List the decisions in force"""
    wanted = Filter(types=frozenset({Kind.DECISION}), in_force=True)
    rows = remembered(
        mind, finding.listing(mind, finding.Options(filter=wanted, limit=limit)).records
    )
    return DecisionList(list=rows, count=len(rows))


@command(
    "update_outcome",
    effect=Effect.WRITE,
    toolset="legacy",
    errors=(Invalid, NotFound, AmbiguousId, SecretDetected, Conflict, StorageFailed),
    instead="evolve/outcome",
)
def update_outcome(
    mind: Mind,
    id: Annotated[
        str,
        Arg("Id or topic of the decision", wire="decisionId", alias=("topic", "id", "decision_id")),
    ],
    outcome: Annotated[str, Arg("SUCCESS, FAILED, PARTIAL or pending, in any case")],
    *,
    failure_reason: Annotated[str | None, Arg("What went wrong", alias="reason")] = None,
    limitation: Annotated[str | None, Arg("What is only half good")] = None,
) -> OutcomeUpdate:
    """Mark how a decision turned out"""
    named = outcome_of(outcome)
    reason = "\n".join(text for text in (failure_reason, limitation) if text) or None
    evolved = evolve_outcome(mind, id, named.value if named else "PENDING", reason)
    return OutcomeUpdate(evolved=evolved, message=_advice(mind, evolved, outcome))


def _advice(mind: Mind, evolved: Evolved, word: str) -> str | None:
    if word.strip().casefold() != "superseded":
        return None
    newer = finding.successor(mind, evolved.id)
    return None if newer else "name what takes its place with evolve/supersede"


# How it looks to resume work, and to see a decision with all around it.


@render.register
def _(result: Checkpoint, screen: Screen) -> None:
    if result.summary is None:
        screen.line("no checkpoint")
        screen.note(result.notice or "")
        return
    where = f" on {result.branch}" if result.branch else ""
    by = f" by {result.by}" if result.by else ""
    marks = labels(trust=result.trust or TrustLabel.TRUSTED)
    screen.line(strong(f"Checkpoint, {result.age}{where}{by}"), *marks)
    if result.notice:
        screen.line(warn(result.notice))
    screen.blank()
    screen.markdown(result.summary)
    _list(screen, "Next steps", result.next_steps)
    _list(screen, "Open files", list(result.open_files))
    screen.blank()
    screen.line(accent(result.id or ""), dim(f"  {result.file}"))


def _list(screen: Screen, title: str, items: object) -> None:
    """Write a list under its title, or a text that was given instead of one."""
    if not items:
        return
    screen.blank()
    screen.line(strong(title))
    if isinstance(items, str):
        screen.markdown(items)
        return
    for item in items if isinstance(items, list) else []:
        first, *more = str(item).splitlines() or [""]
        screen.line(f"- {first}", indent=2)
        for line in more:
            screen.line(line, indent=4)


@render.register
def _(result: Context, screen: Screen) -> None:
    if result.notice:
        screen.note(result.notice)
    show(result.memory, screen, whole=True)
    if result.related:
        screen.blank()
        screen.line(strong("Linked"))
    links = {(link.source, link.target): link.type for link in result.links}
    for other in result.related:
        _related(other, result.memory.id, links, screen)
    for target in result.missing:
        screen.line(dim(f"links to {target}, which is not there"), indent=2)


def _related(
    other: RelatedMemory, start: str, links: dict[tuple[str, str], str], screen: Screen
) -> None:
    out, back = links.get((start, other.id)), links.get((other.id, start))
    how = f"{out} → " if out else f"← {back} " if back else "· "
    marks = labels(outcome=other.outcome, superseded_by=other.superseded_by, trust=other.trust)
    screen.line(dim(how), other.title, *marks, indent=2 * other.depth)
    screen.line(accent(other.id), dim(f"  {day(other.created_at)}"), indent=2 * other.depth + 2)
    if other.warning:
        screen.line(bad(other.warning), indent=2 * other.depth + 2)


def show(row: Remembered, screen: Screen, *, whole: bool = False) -> None:
    """Write one memory with all that says whether it still holds."""
    screen.line(strong(row.title), *row_labels(row))
    if row.warning:
        screen.text(row.warning, indent=2)
    about = (row.type, row.topic, day(row.created_at), tagged(row.tags), row.by)
    screen.line(accent(row.id), "  ", dim("  ".join(part for part in about if part)), indent=2)
    text = _without_title(row)
    if whole:
        if text:
            screen.blank()
            screen.markdown(text)
        if row.reasoning:
            screen.blank()
            screen.line(strong("Reasoning"))
            screen.markdown(row.reasoning)
        return
    if text:
        screen.text(_cut(text), indent=2)
    if row.reasoning:
        screen.text(f"because {_cut(row.reasoning)}", indent=2)


def _without_title(row: Remembered) -> str:
    first, _, rest = row.content.strip().partition("\n")
    same = first.lstrip("# ").strip() == row.title.strip().rstrip("…")
    return (rest if same else row.content).strip("\n")


def _cut(text: str) -> str:
    lines = text.strip().splitlines()
    return "\n".join([*lines[:4], *(["…"] if len(lines) > 4 else [])])
