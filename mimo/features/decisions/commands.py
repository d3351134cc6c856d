"""`mind save …` and `mind evolve …`: decisions and their outcomes, checkpoints, insights."""

from enum import StrEnum
from typing import Annotated, Literal

from mimo.call import Call, Surface
from mimo.call.spec import Arg, Effect, Json, Omitted, Out, command, notes_of
from mimo.errors import (
    AmbiguousId,
    Conflict,
    Hint,
    Invalid,
    NotFound,
    Option,
    SecretDetected,
    StorageFailed,
    join_texts,
)
from mimo.features import decisions
from mimo.features.decisions import relations
from mimo.frozen import frozen
from mimo.memory import outcomes
from mimo.memory.ids import with_handles
from mimo.memory.model import Kind, Outcome, Section, topic_key
from mimo.memory.outcomes import outcome_of
from mimo.operations import saving
from mimo.operations.rows import (
    Again,
    Already,
    Because,
    File,
    OtherPrivate,
    Owner,
    Private,
    Tags,
    Untrusted,
    Warning,
    result_of,
)
from mimo.rendering import Screen, bad, dim, good, ident, titled
from mimo.rendering.results import count, idents, render, row_labels, row_warnings
from mimo.text import phrases

MOST_TOPIC = 200
"""Characters of the longest topic."""

_CONFIDENCE = Arg("Confidence in it, 0 to 1", agents="", ge=0, le=1)
Confidence = Annotated[float, _CONFIDENCE]
OtherConfidence = Annotated[float, _CONFIDENCE._replace(listed=False)]
Reasoning = Arg(
    "Reasons, and the alternatives considered",
    agents="Why, and the alternatives",
    alias="because",
    named=True,
)
_LINKS = Arg(
    "Links to earlier memories: `{to, type}`, or `TYPE:ID` such as builds_on:k3v7mq; other"
    " types are supersedes, refines, contradicts, implements, relates_to or your own words",
    agents="builds_on:ID, refines:, contradicts:, implements:, relates_to:",
    form={"type": "array", "items": {"type": "string"}},
)
Links = Annotated[tuple[Json, ...], _LINKS]
OtherLinks = Annotated[tuple[Json, ...], _LINKS._replace(listed=False)]
"""The links of what is seldom linked."""
OtherTags = Annotated[tuple[str, ...], notes_of(Tags)[0]._replace(listed=False)]


FailureReason = Annotated[
    str | None,
    Arg(
        "Reason for the outcome; required for a failure",
        alias="limitation",
        listed=False,
        surfaces=Surface.MCP,
    ),
]
"""The reason for the outcome of a decision that is saved with it."""

Decision = Annotated[
    str,
    Arg(
        "Id, short id or topic of the decision",
        agents="Id or topic",
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
"""Accepted spellings of an outcome."""


class Status(StrEnum):
    """The status of a checkpoint: only an active one is resumed."""

    ACTIVE = "active"
    ARCHIVED = decisions.ARCHIVED


@frozen
class SavedDecision:
    """A decision that was saved."""

    id: str
    topic: str
    title: str
    confidence: float
    supersedes: Annotated[tuple[str, ...], Out("Ids of the decisions that it supersedes")]
    file: File
    private: bool
    already: Already = None
    notice: Omitted[str] = None
    scope: Owner = None


@frozen
class SavedCheckpoint:
    """A checkpoint that was saved."""

    id: str
    title: str
    open_files: tuple[str, ...]
    file: File
    private: bool
    notice: Omitted[str] = None


@frozen
class SavedInsight:
    """An insight that was saved."""

    id: str
    title: str
    file: File
    private: bool
    already: Already = None
    notice: Omitted[str] = None


@frozen
class Evolved:
    """A decision with its new outcome."""

    id: str
    topic: Omitted[str]
    title: str
    outcome: Annotated[Outcome | None, Out("Null if it is open again")]
    reason: str | None
    confidence_before: float
    confidence: float
    warning: Warning
    trust: Untrusted
    file: File
    notice: Omitted[str] = None


@command(
    "save/decision",
    effect=Effect.WRITE,
    toolset="save",
    errors=(Invalid, NotFound, AmbiguousId, SecretDetected, StorageFailed),
    examples=(
        'mind save decision auth_strategy "Use JWT" --because "No session store is needed"',
        'mind save decision cache "Redis" --because "Shared" --link builds_on:k3v7mq',
        "git log -1 --format=%B | mind save decision release_process --because 'see the commit'",
    ),
    description="""\
Use when: a technology, architecture or design was chosen. Records the decision and why, and
supersedes the current one on its topic.
Don't use for: lessons → save/insight; stopping → save/checkpoint; how it turned out →
evolve/outcome""",
    title="Save a decision",
)
def decision(
    call: Call,
    topic: Annotated[
        str,
        Arg(
            "Topic, spelled the same each time, such as auth_strategy",
            agents="Such as auth_strategy",
            complete="topic",
        ),
    ],
    decision: Annotated[str, Arg("The decision", agents="", stdin=True)],
    reasoning: Annotated[str, Reasoning],
    *,
    confidence: Confidence = 0.7,
    links: Links = (),
    tags: Tags = (),
    keep_current: Annotated[
        bool,
        Arg("Do not supersede the current decision on the topic", agents=""),
    ] = False,
    private: Private = False,
    again: Again = False,
    type: Annotated[
        str | None,
        Arg(
            "user_decision or assistant_insight, for earlier versions",
            listed=False,
            surfaces=Surface.MCP,
        ),
    ] = None,
    outcome: Annotated[
        str | None, Arg("Outcome, if it is known", listed=False, surfaces=Surface.MCP)
    ] = None,
    failure_reason: FailureReason = None,
) -> SavedDecision:
    """Save a decision and the reasons for it

    It supersedes the current decision on the topic, which stays, linked. Without text on the
    command line, the decision is read from standard input or written in $EDITOR.
    """
    result = outcome_of(outcome) if outcome else None
    outcomes.check_reason(result, failure_reason, field="failure_reason")
    sections = _section(Section.REASONING, _not_blank(reasoning))
    if failure_reason and failure_reason.strip():
        sections[Section.OUTCOME] = outcomes.entry(result, failure_reason, on=call.mind.now())
    draft = saving.draft(
        Kind.DECISION,
        decision,
        topic=_topic(topic),
        confidence=confidence,
        tags=tags,
        outcome=result,
        links=relations.links_of(call, links),
        sections=sections,
        extra=_involvement(type),
    )
    saved = decisions.save(call, draft, private=private, keep=keep_current, again=again)
    return _saved_decision(call, saved)


def _saved_decision(call: Call, saved: decisions.Saved) -> SavedDecision:
    return result_of(
        call,
        saved.record,
        SavedDecision,
        topic=saved.record.memory.topic or "",
        confidence=saved.record.memory.confidence or 0.0,
        supersedes=saved.supersedes if call.origin.guard.permits("mind_list") else (),
        already=saved.already or None,
        notice=join_texts(saved.notice, call.notice),
    )


@command(
    "save/checkpoint",
    effect=Effect.WRITE,
    toolset="save",
    errors=(Invalid, NotFound, AmbiguousId, SecretDetected, StorageFailed),
    examples=(
        'mind save checkpoint "Login works, refresh is half done" --next "Write the expiry test"',
        'mind save checkpoint "Parser done" --open-file src/parse.py --open-file src/lex.py',
        'mind save checkpoint "Parser done" --next-step "Errors" --next-step "Docs"',
    ),
    description="""\
Use when: a session stops, the context is compacted, work is put aside. Stores where the work is.
Don't use for: choices → save/decision; lessons → save/insight""",
    title="Save a checkpoint",
)
def checkpoint(
    call: Call,
    summary: Annotated[
        str,
        Arg("Finished work and its state", agents="", words=True, stdin=True),
    ],
    *,
    open_files: Annotated[
        tuple[str, ...], Arg("Files being edited", agents="", complete="path")
    ] = (),
    next_steps: Annotated[
        Json,
        Arg(
            "Next steps: a text, or a list",
            agents="",
            form={"type": "array", "items": {"type": "string"}},
            alias="next",
            many=True,
        ),
    ] = None,
    status: Annotated[
        Status, Arg("Status; an archived one is not resumed", listed=False)
    ] = Status.ACTIVE,
    reasoning: Because = None,
    links: OtherLinks = (),
    tags: OtherTags = (),
    private: OtherPrivate = False,
) -> SavedCheckpoint:
    """Save the state of the work

    `mind load checkpoint` shows it again. Steps become a task list in the file: a step that is
    ticked there is no longer a next step.
    """
    steps = _steps(next_steps)
    sections = _section(Section.OPEN_FILES, phrases.bullets(open_files)) | _section(
        Section.NEXT_STEPS, steps if isinstance(steps, str) else phrases.tasks(steps)
    )
    draft = saving.draft(
        Kind.CHECKPOINT,
        summary,
        tags=tags,
        status=None if status is Status.ACTIVE else status.value,
        links=relations.links_of(call, links),
        sections=sections,
        reasoning=reasoning,
    )
    record = decisions.save_checkpoint(call, draft, private=private)
    files = phrases.items_of(record.memory.sections.get(Section.OPEN_FILES, ""))
    return result_of(call, record, SavedCheckpoint, open_files=files)


@command(
    "save/insight",
    effect=Effect.WRITE,
    toolset="save",
    errors=(Invalid, NotFound, AmbiguousId, SecretDetected, StorageFailed),
    examples=(
        'mind save insight "Safari drops cookies without SameSite" --tag safari',
        'mind save insight "50 requests a second at most" --category api --source docs/api.md',
    ),
    description="""\
Use when: you found out a gotcha, limit, workaround or cause of a bug. Notes the lesson.
Don't use for: choices → save/decision; plain facts → memory""",
    title="Save a lesson",
)
def insight(
    call: Call,
    insight: Annotated[str, Arg("The lesson", agents="", words=True, stdin=True)],
    *,
    category: Annotated[str | None, Arg("Kind of lesson, such as performance", agents="")] = None,
    tags: Tags = (),
    source: Annotated[str | None, Arg("Its source: a file, a link, a person", agents="")] = None,
    reasoning: Because = None,
    links: OtherLinks = (),
    private: Private = False,
    again: Again = False,
) -> SavedInsight:
    """Save a lesson for later sessions"""
    draft = saving.draft(
        Kind.INSIGHT,
        insight,
        category=category,
        tags=tags,
        source=source,
        reasoning=reasoning,
        links=relations.links_of(call, links),
    )
    stored = saving.store_once(call, draft, private=private, again=again)
    already, notice = stored.already or None, join_texts(stored.notice, call.notice)
    return result_of(call, stored.record, SavedInsight, already=already, notice=notice)


def _topic(topic: str) -> str:
    """Returns a topic on one line; raises `Invalid` if it has no word or is too long."""
    if not topic_key(topic):
        raise Invalid(
            "the topic is empty",
            hint="name the topic, such as auth_strategy",
            details={"field": "topic"},
        )
    if len(topic) > MOST_TOPIC:
        raise Invalid(
            f"a topic of {len(topic):,} characters is too long",
            hint="a topic is a few words; the decision comes after it",
            details={"field": "topic"},
        )
    return " ".join(topic.split())


def _not_blank(reasoning: str) -> str:
    """Returns the reasoning; raises `Invalid` if it is blank."""
    if not reasoning.strip():
        raise Invalid(
            "reasoning is empty", hint="give the reasoning", details={"field": "reasoning"}
        )
    return reasoning


def _section(name: Section, text: str) -> dict[Section, str]:
    """Returns the section, or nothing if the text is blank."""
    return {name: text} if text.strip() else {}


def _steps(value: Json) -> str | list[str]:
    """Returns the next steps as given; raises `Invalid` for anything but texts."""
    steps = value if isinstance(value, list) else [value]
    if any(isinstance(step, dict | list | bool) for step in steps):
        raise Invalid(
            "`next_steps` must be a text or a list of texts",
            hint='write each step as a text, such as ["Run the tests", "Merge"]',
            details={"field": "next_steps"},
        )
    texts = ["" if step is None else str(step) for step in steps]
    return texts if isinstance(value, list) else texts[0]


def _involvement(type: str | None) -> dict[str, str]:
    """Returns the header key for the `type` argument of earlier versions."""
    if type in (None, "assistant_insight"):
        return {}
    if type == "user_decision":
        return {"user_involvement": "approved"}
    raise Invalid(
        f"`type` must be user_decision or assistant_insight, not `{type}`",
        hint="leave it out; `save/insight` saves a lesson",
        details={"field": "type"},
    )


@command(
    "evolve/outcome",
    effect=Effect.WRITE,
    toolset="evolve",
    of_user=True,
    errors=(Invalid, NotFound, AmbiguousId, SecretDetected, Conflict, StorageFailed),
    examples=(
        'mind evolve outcome auth_strategy failed --reason "Tokens could not be revoked"',
        "mind evolve outcome k3v7mq success",
    ),
    description="""\
Use when: a decision proved itself (SUCCESS), half worked (PARTIAL) or broke (FAILED). Marks it.
Don't use for: deciding something else → evolve/supersede""",
    title="Mark an outcome",
)
def outcome(
    call: Call,
    id: Decision,
    outcome: Annotated[
        Literal["SUCCESS", "FAILED", "PARTIAL", "PENDING"],
        Arg(
            "Outcome; PENDING reopens the decision",
            agents="",
            spellings=SPELLINGS,
        ),
    ],
    reason: Annotated[
        str | None,
        Arg(
            "Reason for the outcome; required for a failure",
            agents="Required for FAILED",
            short="r",
            alias=("because", "failure_reason", "limitation"),
            named=True,
        ),
    ] = None,
) -> Evolved:
    """Mark how a decision turned out

    A success raises its confidence, a failure lowers it. From then on, every list, search result
    and answer marks a failed decision.
    """
    record, previous = decisions.conclude(call, id, outcome_of(outcome), reason)
    memory = record.memory
    return result_of(
        call,
        record,
        Evolved,
        outcome=memory.outcome,
        reason=outcomes.reason(memory),
        confidence_before=previous,
        confidence=previous if memory.confidence is None else memory.confidence,
        warning=outcomes.warning(memory),
    )


@command(
    "evolve/supersede",
    effect=Effect.WRITE,
    toolset="evolve",
    of_user=True,
    errors=(Invalid, NotFound, AmbiguousId, SecretDetected, StorageFailed),
    examples=(
        'mind evolve supersede auth_strategy "Use sessions" --because "They can be revoked"',
    ),
    description="""\
Use when: a decision is abandoned, or its reasons no longer hold. Replaces it with a new one.
Don't use for: first decisions → save/decision; how one turned out → evolve/outcome""",
    title="Replace a decision",
)
def supersede(
    call: Call,
    id: Decision,
    decision: Annotated[str, Arg("The new decision", agents="", stdin=True)],
    reasoning: Annotated[str | None, Reasoning._replace(agents="")] = None,
    *,
    confidence: OtherConfidence = 0.7,
    reason: Annotated[
        str | None,
        Arg(
            "What was wrong with the old decision",
            agents="This or reasoning is required",
            short="r",
        ),
    ] = None,
    links: OtherLinks = (),
    private: OtherPrivate = False,
) -> SavedDecision:
    """Replace a decision with a new one

    The old decision stays in the chain, unchanged. The new one gets its topic and tags.
    """
    if reasoning is None and reason is None:
        raise Invalid(
            "`reasoning` is missing",
            hint=Hint(
                "give the reasons with ",
                Option(because=True),
                ", or what was wrong with ",
                Option(reason=True),
            ),
            details={"field": "reasoning"},
        )
    reasons = _not_blank(reasoning) if reasoning else ""
    draft = saving.draft(
        Kind.DECISION,
        decision,
        confidence=confidence,
        links=relations.links_of(call, links),
        sections=_section(Section.REASONING, reasons),
    )
    saved = decisions.supersede(call, id, draft, reason=reason, private=private)
    return _saved_decision(call, saved)


@render.register
def _(result: SavedDecision, screen: Screen) -> None:
    _saved(result, screen)
    if result.supersedes:
        screen.line("supersedes ", *idents(result.supersedes), indent=2)


@render.register
def _(result: SavedCheckpoint, screen: Screen) -> None:
    _saved(result, screen)
    if result.open_files:
        screen.line(dim(f"{count(len(result.open_files), 'open file')} noted"), indent=2)


@render.register
def _(result: SavedInsight, screen: Screen) -> None:
    _saved(result, screen)


def _saved(result: SavedDecision | SavedCheckpoint | SavedInsight, screen: Screen) -> None:
    remark = "  stored before" if getattr(result, "already", None) else ""
    title = titled(result.title)
    marks = row_labels(result, brief=True)
    screen.line(good("✓ "), ident(result.id), "  ", title, remark, *marks)


@render.register
def _(result: Evolved, screen: Screen) -> None:
    title = titled(result.title)
    screen.line(good("✓ "), ident(result.id), "  ", title, *row_labels(result, brief=True))
    if result.outcome is None:
        screen.line("open again: no outcome yet", indent=2)
    for warning in row_warnings(result):
        screen.line(bad(with_handles(warning)), indent=2)
    if result.confidence != result.confidence_before:
        moved = f"confidence {result.confidence_before:g} → {result.confidence:g}"
        screen.line(dim(moved), indent=2)
