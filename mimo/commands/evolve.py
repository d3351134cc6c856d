"""`mind evolve …`: how a decision turned out, and what takes its place."""

from typing import Annotated, Literal

from mimo.commands.common import File, Private, Warning
from mimo.commands.save import (
    Confidence,
    Links,
    Reasoning,
    SavedDecision,
    said,
    saved_decision,
    section,
)
from mimo.commands.spec import Arg, Effect, command
from mimo.commands.types import Omitted, Out
from mimo.domain import outcomes
from mimo.domain.memory import Kind, Outcome, Section
from mimo.errors import AmbiguousId, Conflict, Invalid, NotFound, SecretDetected, StorageFailed
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import capture, decisions, relations

Decision = Annotated[
    str,
    Arg(
        "Id of the decision, or a start or end of it, or its topic",
        alias=("topic", "memory_id", "decision_id", "decisionId"),
        complete="id",
    ),
]

SPELLINGS = {
    "success": "SUCCESS",
    "failed": "FAILED",
    "failure": "FAILED",
    "partial": "PARTIAL",
    "pending": "PENDING",
    "superseded": "PENDING",
}


@frozen
class Evolved:
    """A decision of which is known how it turned out."""

    id: str
    topic: Omitted[str]
    title: str
    outcome: Annotated[Outcome | None, Out("Null where it is open again")]
    reason: str | None
    confidence_before: float
    confidence: float
    warning: Warning
    file: File
    notice: Omitted[str] = None


@command(
    "evolve/outcome",
    effect=Effect.WRITE,
    toolset="evolve",
    errors=(Invalid, NotFound, AmbiguousId, SecretDetected, Conflict, StorageFailed),
    examples=(
        'mind evolve outcome auth_strategy failed --reason "Tokens could not be revoked"',
        "mind evolve outcome k3v7mq success",
    ),
    description="""\
Mark how a decision turned out. Later sessions see it wherever the decision shows up.

Use when:
- A decision has proved itself (SUCCESS), half worked (PARTIAL) or broke (FAILED, with the reason)
- The user reports how something went in production

Don't use for:
- Deciding something else instead → use evolve/supersede
- A lesson that belongs to no decision → use save/insight""",
)
def outcome(
    mind: Mind,
    id: Decision,
    outcome: Annotated[
        Literal["SUCCESS", "FAILED", "PARTIAL", "PENDING"],
        Arg("How it turned out; PENDING opens it again", spellings=SPELLINGS),
    ],
    reason: Annotated[
        str | None,
        Arg(
            "What went wrong or well; a failure needs one",
            short="r",
            alias=("failure_reason", "limitation"),
            named=True,
        ),
    ] = None,
) -> Evolved:
    """Mark how a decision turned out

    A success raises its confidence, a failure lowers it. What failed says so in every list, search
    result and answer from then on.
    """
    concluded = decisions.conclude(mind, id, outcomes.outcome_of(outcome), reason)
    memory = concluded.record.memory
    return Evolved(
        id=memory.id,
        topic=memory.topic,
        title=memory.heading,
        outcome=memory.outcome,
        reason=outcomes.reason(memory),
        confidence_before=concluded.before,
        confidence=concluded.before if memory.confidence is None else memory.confidence,
        warning=outcomes.warning(memory),
        file=concluded.record.place.path,
        notice=mind.notice,
    )


@command(
    "evolve/supersede",
    effect=Effect.WRITE,
    toolset="evolve",
    errors=(Invalid, NotFound, AmbiguousId, SecretDetected, StorageFailed),
    examples=(
        'mind evolve supersede auth_strategy "Use sessions" --because "They can be revoked"',
    ),
    description="""\
Replace a decision with a new one. The old one is kept, linked, and shown as superseded.

Use when:
- A known decision is given up for another one
- The reasons for it no longer hold

Don't use for:
- A first decision on a topic → use save/decision
- Only noting that it failed or worked → use evolve/outcome""",
)
def supersede(
    mind: Mind,
    id: Decision,
    decision: Annotated[str, Arg("What is decided instead", stdin=True)],
    reasoning: Annotated[str | None, Reasoning] = None,
    *,
    confidence: Confidence = 0.7,
    reason: Annotated[str | None, Arg("What was wrong with the old one", short="r")] = None,
    links: Links = (),
    private: Private = False,
) -> SavedDecision:
    """Replace a decision with a new one

    The old one stays as it is, in its place in the chain. The new one takes on its topic and tags.
    """
    if reasoning is None and reason is None:
        raise Invalid(
            "`reasoning` is missing",
            hint="say why with --because, or what was wrong with the old one with --reason",
            details={"field": "reasoning"},
        )
    draft = capture.draft(
        Kind.DECISION,
        decision,
        confidence=confidence,
        links=relations.links_of(mind, links),
        sections=section(Section.REASONING, said("reasoning", reasoning) if reasoning else ""),
    )
    return saved_decision(
        mind, decisions.supersede(mind, id, draft, reason=reason, private=private)
    )
