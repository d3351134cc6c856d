"""The decision tools of MAMA 1.0, as old callers know them: MCP answers without listing them.

`save_decision`, `save_checkpoint` and `load_checkpoint` are spellings of the present tools. They
all stay through the 2.x versions.
"""

from typing import Annotated

from mimo.commands.common import Limit
from mimo.commands.evolve import Evolved
from mimo.commands.evolve import outcome as evolve_outcome
from mimo.commands.rows import Remembered, remembered
from mimo.commands.spec import Arg, Effect, command
from mimo.commands.types import Omitted, Out
from mimo.domain.memory import SUPERSEDES, Kind, Record
from mimo.domain.outcomes import outcome_of
from mimo.domain.query import Filter
from mimo.domain.topics import topic_key
from mimo.errors import (
    AmbiguousId,
    Conflict,
    Invalid,
    NotFound,
    SearchFailed,
    SecretDetected,
    StorageFailed,
)
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import accesses, graph, recall, upkeep


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
    accesses.note(mind, records)
    told = f"{len(records)} on `{topic}`" if records else f"no decision on `{topic}`"
    return History(history=remembered(mind, records), message=told)


def _on_topic(mind: Mind, topic: str | None) -> tuple[Record, ...]:
    if not topic:
        return ()
    wanted = Filter(types=frozenset({Kind.DECISION}), topic=topic)
    return recall.listing(mind, narrowed=wanted, limit=-1).records


def _nearest(mind: Mind, topic: str) -> str | None:
    """Returns a topic that begins with the same word, as the old tool fell back to."""
    first = topic_key(topic).partition("_")[0]
    near = upkeep.ask(mind, lambda index: index.nearest_topics(topic))
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
    found = recall.search(mind, question, narrowed=wanted, limit=limit)
    rows = remembered(mind, [hit.record for hit in found.hits])
    return Suggestions(suggestions=rows, message=f"{len(rows)} bear on the question")


@command("list_decisions", effect=Effect.READ, toolset="legacy", instead="search/recent")
def list_decisions(mind: Mind, *, limit: Limit = 20) -> DecisionList:
    """List the decisions in force"""
    wanted = Filter(types=frozenset({Kind.DECISION}), in_force=True)
    rows = remembered(mind, recall.listing(mind, narrowed=wanted, limit=limit).records)
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
    newer = recall.successor(mind, evolved.id)
    return None if newer else "name what takes its place with evolve/supersede"
