"""Names of earlier versions that old callers still use; MCP answers to them without listing them.

They stay through all 2.x versions.
"""

import re
from enum import StrEnum
from typing import Annotated

from mimo.commands.common import Importance, Limit, Tags, Trust, narrowed, trust_of
from mimo.commands.spec import Arg, Effect, Omitted, Out, command
from mimo.errors import Invalid, SecretDetected, StorageFailed
from mimo.features.notes.memory_tool import MemorySearch, Stored, Threshold
from mimo.features.notes.memory_tool import search as memory_search
from mimo.features.notes.memory_tool import store as memory_store
from mimo.frozen import frozen
from mimo.memory.model import Category, Kind, Outcome
from mimo.mind import Mind
from mimo.operations import finding

# Which part of the memory a question is about, told from its words.


class Store(StrEnum):
    """The parts that the retired tool knew."""

    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"


KINDS: dict[Store, tuple[str, ...]] = {
    Store.EPISODIC: (Kind.OBSERVATION, Kind.ACTION, Kind.CHECKPOINT, Kind.CONTEXT, Kind.ISSUE),
    Store.SEMANTIC: (Kind.FACT, Kind.DECISION, Kind.INSIGHT, Kind.EDGE, Kind.PLAN),
    Store.PROCEDURAL: (),
}
"""The types of memory that each part holds; procedures are no memories."""

_WORDS = {
    Store.EPISODIC: frozenset(
        "remember recall when before after yesterday last happened did".split()
    ),
    Store.SEMANTIC: frozenset("relationship between depends graph related what who is why".split()),
    Store.PROCEDURAL: frozenset("code bug fix function how run implement build deploy".split()),
}
_SHARE_OF_SECONDARY = 0.2
_SURE = 0.7
_PRIMARY_LIMIT, _SECONDARY_LIMIT = 10, 5


@frozen
class Route:
    """Where to look first, where else, and why."""

    primary: Store
    secondary: tuple[Store, ...]
    confidence: float
    reasoning: str

    @property
    def requires_synthesis(self) -> bool:
        """Returns whether the answer has to be put together from several parts."""
        return self.confidence < _SURE or bool(self.secondary)

    def limit(self, part: Store) -> int:
        """Returns how many memories of a part to answer with."""
        if part is self.primary:
            return _PRIMARY_LIMIT
        return _SECONDARY_LIMIT if part in self.secondary else 0


def route_of(question: str) -> Route:
    """Returns the parts of the memory that a question is about."""
    words = set(re.findall(r"\w+", question.lower()))
    points = {part: len(words & known) for part, known in _WORDS.items()}
    points[Store.EPISODIC] += 1
    total = sum(points.values())
    primary = max(points, key=lambda part: points[part])
    secondary = tuple(
        part
        for part, n in points.items()
        if part is not primary and n / total > _SHARE_OF_SECONDARY
    )
    told = ", ".join(sorted(words & _WORDS[primary])) or "nothing points elsewhere"
    return Route(
        primary=primary,
        secondary=secondary,
        confidence=round(points[primary] / total, 2),
        reasoning=f"{primary}: {told}",
    )


class KnowledgeOperation(StrEnum):
    """What `knowledge` is asked to do."""

    QUERY = "query"
    TEACH = "teach"


@frozen
class Recalled:
    """A memory that a question brought up."""

    id: str
    content: str
    type: Kind
    score: float
    trust: Trust
    outcome: Omitted[Outcome] = None


@frozen
class RouterDecision:
    """Which part of the memory a question is about."""

    primary_store: Store
    secondary_stores: tuple[Store, ...]
    confidence: float
    reasoning: str
    requires_synthesis: bool


@frozen
class StoreResults:
    """What each part of the memory has to say."""

    episodic: tuple[Recalled, ...]
    semantic: tuple[Recalled, ...]
    procedural: tuple[Recalled, ...]


@frozen
class Answer:
    """What a question brought up."""

    query_id: str
    router_decision: RouterDecision
    results: StoreResults
    synthesis: Annotated[str | None, Out("Always null: no language model is asked")]
    context_id: str


@frozen
class Knowledge:
    """What `knowledge` knows, or what it has learnt."""

    results: Omitted[tuple[Recalled, ...]] = None
    count: Omitted[int] = None
    status: Omitted[str] = None
    id: Omitted[str] = None
    triples_created: Omitted[int] = None


@command(
    "store_fact",
    effect=Effect.WRITE,
    toolset="legacy",
    errors=(Invalid, SecretDetected, StorageFailed),
    instead="memory with operation `store`",
)
def store_fact(
    mind: Mind,
    content: Annotated[str, Arg("What to remember")],
    category: Annotated[Category, Arg("What kind of memory it is")],
    *,
    importance: Importance = 0.5,
    tags: Tags = (),
) -> Stored:
    """Store a fact, an observation, an action or a plan"""
    return memory_store(mind, content, category=category, importance=importance, tags=tags)


@command(
    "search_vibes",
    effect=Effect.READ,
    toolset="legacy",
    errors=(Invalid,),
    instead="memory with operation `search`",
)
def search_vibes(
    mind: Mind,
    query: Annotated[str, Arg("Words or a question")],
    *,
    limit: Limit = 10,
    threshold: Threshold = finding.THRESHOLD,
) -> MemorySearch:
    """Find the memories that best match a query"""
    return memory_search(mind, query, limit=limit, threshold=threshold)


@command(
    "ask_mimo",
    effect=Effect.READ,
    toolset="legacy",
    errors=(Invalid,),
    instead="mind_search",
)
def ask_mimo(mind: Mind, query: Annotated[str, Arg("A question")]) -> Answer:
    """Answer a question from the part of the memory that it is about"""
    route = route_of(query)
    name = mind.randomness(8).hex()
    return Answer(
        query_id=name,
        router_decision=RouterDecision(
            primary_store=route.primary,
            secondary_stores=route.secondary,
            confidence=route.confidence,
            reasoning=route.reasoning,
            requires_synthesis=route.requires_synthesis,
        ),
        results=StoreResults(
            **{part.value: _recalled(mind, query, part, limit=route.limit(part)) for part in Store}
        ),
        synthesis=None,
        context_id=f"ctx_{name}",
    )


@command(
    "knowledge",
    effect=Effect.WRITE,
    toolset="legacy",
    errors=(Invalid, SecretDetected, StorageFailed),
    instead="memory with operation `search` or `store`",
)
def knowledge(
    mind: Mind,
    *,
    operation: Annotated[KnowledgeOperation, Arg("What to do")] = KnowledgeOperation.QUERY,
    query: Annotated[str | None, Arg("A question, for `query`")] = None,
    entity: Annotated[str | None, Arg("A name to ask about, for `query`")] = None,
    predicate: Annotated[str | None, Arg("A relation: of `entity` to ask for, or to teach")] = None,
    text: Annotated[str | None, Arg("A statement, for `teach`")] = None,
    subject: Annotated[str | None, Arg("Who or what a taught relation is about")] = None,
    object: Annotated[str | None, Arg("What the subject is related to")] = None,
    limit: Limit = 10,
) -> Knowledge:
    """Ask what is known, or teach a statement"""
    if operation is KnowledgeOperation.TEACH:
        parts = (subject, predicate, object)
        statement = text or (" ".join(part for part in parts if part) if all(parts) else None)
        if not statement:
            raise Invalid("`teach` needs a text, or a subject, a predicate and an object")
        stored = memory_store(mind, statement)
        return Knowledge(status="learned", id=stored.id, triples_created=int(not text))
    wanted = query or " ".join(part for part in (entity, predicate) if part)
    if not wanted:
        raise Invalid("`query` needs a query or an entity")
    rows = _recalled(mind, wanted, Store.SEMANTIC, limit=limit)
    return Knowledge(results=rows, count=len(rows))


def _recalled(mind: Mind, query: str, part: Store, *, limit: int) -> tuple[Recalled, ...]:
    kinds = KINDS[part]
    if not limit or not kinds:
        return ()
    found = finding.search(
        mind, query, finding.Options(filter=narrowed(mind, types=kinds), limit=limit)
    )
    return tuple(
        Recalled(
            id=hit.record.memory.id,
            content=hit.record.memory.text,
            type=hit.record.memory.type,
            score=round(hit.score, 4),
            trust=trust_of(mind, hit.record),
            outcome=hit.record.memory.outcome,
        )
        for hit in found.hits
    )
