"""Retired tool names of earlier versions: MCP clients can call them, but they are not listed.

They stay through all 2.x versions.
"""

import re
from enum import StrEnum
from typing import Annotated

from mimo.call import Call
from mimo.call.spec import Arg, Effect, Needs, Omitted, Out, command
from mimo.errors import Invalid, SecretDetected, StorageFailed
from mimo.features.notes.memory_tool import MemorySearch, Stored, Threshold
from mimo.features.notes.memory_tool import search as memory_search
from mimo.features.notes.memory_tool import store as memory_store
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.memory.model import Category, Kind
from mimo.operations import finding, searching
from mimo.operations.rows import (
    Facts,
    Importance,
    Limit,
    Query,
    Tags,
    facts_of_hits,
    narrowed,
    relevance,
    view,
)


class Store(StrEnum):
    """The parts of the memory that `ask_mimo` distinguished."""

    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"


KINDS: dict[Store, tuple[str, ...]] = {
    Store.EPISODIC: (Kind.OBSERVATION, Kind.ACTION, Kind.CHECKPOINT, Kind.CONTEXT, Kind.ISSUE),
    Store.SEMANTIC: (Kind.FACT, Kind.DECISION, Kind.INSIGHT, Kind.EDGE, Kind.PLAN),
    Store.PROCEDURAL: (),
}
"""The types of memory in each part; procedures are not memories."""

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
class RouterDecision:
    """The part of the memory that a question is about."""

    primary_store: Store
    secondary_stores: tuple[Store, ...]
    confidence: float
    reasoning: str
    requires_synthesis: bool


def route_of(question: str) -> RouterDecision:
    """Returns the parts of the memory that a question is about, by its words.

    If no word points to a part that has memories, all of these are searched.
    """
    words = set(re.findall(r"\w+", question.lower()))
    points = {part: len(words & typical) for part, typical in _WORDS.items()}
    points[Store.EPISODIC] += 1
    total = sum(points.values())
    primary = max(points, key=lambda part: points[part])
    is_open = not words & (_WORDS[Store.EPISODIC] | _WORDS[Store.SEMANTIC])
    secondary = tuple(
        part
        for part, n in points.items()
        if part is not primary and (n / total > _SHARE_OF_SECONDARY or (is_open and KINDS[part]))
    )
    confidence = round(points[primary] / total, 2)
    evidence = ", ".join(sorted(words & _WORDS[primary])) or "nothing points elsewhere"
    return RouterDecision(
        primary_store=primary,
        secondary_stores=secondary,
        confidence=confidence,
        reasoning=f"{primary}: {evidence}",
        requires_synthesis=confidence < _SURE or bool(secondary),
    )


class KnowledgeOperation(StrEnum):
    """The operations of `knowledge`."""

    QUERY = "query"
    TEACH = "teach"


@view("id content type score trust outcome weak")
class Recalled(Facts):
    """A memory that matches a question."""

    score: float | None


@frozen
class StoreResults:
    """The matches in each part of the memory."""

    episodic: tuple[Recalled, ...]
    semantic: tuple[Recalled, ...]
    procedural: tuple[Recalled, ...]


@frozen
class Answer:
    """The answer to a question."""

    query_id: str
    router_decision: RouterDecision
    results: StoreResults
    synthesis: Annotated[str | None, Out("Always null: no language model is called")]
    context_id: str


@frozen
class Knowledge:
    """The matches of a query, or the result of teaching."""

    results: Omitted[tuple[Recalled, ...]] = None
    count: Omitted[int] = None
    status: Omitted[str] = None
    id: Omitted[str] = None
    triples_created: Omitted[int] = None


@command(
    "store_fact",
    effect=Effect.WRITE,
    needs=Needs(Operation.WRITE, also="mind_add"),
    toolset="legacy",
    errors=(Invalid, SecretDetected, StorageFailed),
    instead="memory with operation `store`",
)
def store_fact(
    call: Call,
    content: Annotated[str, Arg("What to remember")],
    category: Annotated[Category, Arg("Category of the memory")],
    *,
    importance: Importance = 0.5,
    tags: Tags = (),
) -> Stored:
    """Store a fact, an observation, an action or a plan"""
    return memory_store(call, content, category=category, importance=importance, tags=tags)


@command(
    "search_vibes",
    effect=Effect.READ,
    needs=Needs(Operation.READ, also="mind_search"),
    toolset="legacy",
    errors=(Invalid,),
    instead="memory with operation `search`",
)
def search_vibes(
    call: Call,
    query: Query,
    *,
    limit: Limit = 10,
    threshold: Threshold = None,
) -> MemorySearch:
    """Find the memories that best match a query"""
    return memory_search(call, query, limit=limit, threshold=threshold)


@command(
    "ask_mimo",
    effect=Effect.READ,
    toolset="legacy",
    errors=(Invalid,),
    instead="mind_search",
)
def ask_mimo(call: Call, query: Annotated[str, Arg("A question")]) -> Answer:
    """Answer a question from the part of the memory that it is about"""
    route = route_of(query)
    name = call.mind.randomness(8).hex()
    limits = {route.primary_store: _PRIMARY_LIMIT}
    limits |= dict.fromkeys(route.secondary_stores, _SECONDARY_LIMIT)
    matches = {
        part.value: _recalled(call, query, part, limit=limits.get(part, 0)) for part in Store
    }
    return Answer(
        query_id=name,
        router_decision=route,
        results=StoreResults(**matches),
        synthesis=None,
        context_id=f"ctx_{name}",
    )


@command(
    "knowledge",
    effect=Effect.WRITE,
    needs=Needs(Operation.WRITE, also="mind_search"),
    any_format=lambda arguments: arguments["operation"] is KnowledgeOperation.QUERY,
    toolset="legacy",
    errors=(Invalid, SecretDetected, StorageFailed),
    instead="memory with operation `search` or `store`",
)
def knowledge(
    call: Call,
    *,
    operation: Annotated[KnowledgeOperation, Arg("Operation")] = KnowledgeOperation.QUERY,
    query: Annotated[str | None, Arg("A question, for `query`")] = None,
    entity: Annotated[str | None, Arg("A name, for `query`")] = None,
    predicate: Annotated[str | None, Arg("A relation: of `entity`, or to teach")] = None,
    text: Annotated[str | None, Arg("A statement, for `teach`")] = None,
    subject: Annotated[str | None, Arg("Subject of a taught relation")] = None,
    object: Annotated[str | None, Arg("Object of a taught relation")] = None,
    limit: Limit = 10,
) -> Knowledge:
    """Query the memory, or teach a statement"""
    if operation is KnowledgeOperation.TEACH:
        parts = (subject, predicate, object)
        statement = text or (" ".join(part for part in parts if part) if all(parts) else None)
        if not statement:
            raise Invalid("`teach` needs a text, or a subject, a predicate and an object")
        stored = memory_store(call, statement)
        return Knowledge(status="learned", id=stored.id, triples_created=int(not text))
    question = query or " ".join(part for part in (entity, predicate) if part)
    if not question:
        raise Invalid("`query` needs a query or an entity")
    rows = _recalled(call, question, Store.SEMANTIC, limit=limit)
    return Knowledge(results=rows, count=len(rows))


def _recalled(call: Call, query: str, part: Store, *, limit: int) -> tuple[Recalled, ...]:
    kinds = KINDS[part]
    if not limit or not kinds:
        return ()
    options = finding.Options(filter=narrowed(call, types=kinds), limit=limit)
    hits = searching.search(call, query, options).hits
    return tuple(
        memory.row(
            Recalled,
            content=hit.record.memory.text,
            score=relevance(hit),
            weak=searching.is_weak(hit),
        )
        for hit, memory in zip(hits, facts_of_hits([(call, hit) for hit in hits]), strict=True)
    )
