"""Relations between memories, the words for them, and the graph that links make.

A link is stored in the newer memory and read from there: "this memory supersedes that one".
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from mimo.frozen import NamedTuple, frozen
from mimo.memory.model import SUPERSEDES, Record

MAX_DEPTH = 5
"""Most links between a memory and the start of a walk."""


class Node(NamedTuple):
    """A memory of the graph."""

    record: Record
    depth: int
    """Number of links to the nearest start; 0 for a start."""


class Edge(NamedTuple):
    """A link between two memories of the graph."""

    source: str
    """The id of the memory that holds the link."""
    target: str
    type: str
    given: str | None
    """The words that were given for the type, if they differ."""
    confidence: float | None


@frozen
class Graph:
    """Memories and every link between them."""

    start: tuple[str, ...]
    """The ids of the memories that it was walked from."""
    nodes: tuple[Node, ...]
    """The nearest first; those equally near by age, newest first, then by id."""
    edges: tuple[Edge, ...]
    """In the order of their sources and targets among the nodes, then by type."""
    missing: tuple[str, ...]
    """Ids in links or starts without a memory; sorted."""
    cut: bool = False
    """True if there are more nodes than requested."""

    def newest_first(self) -> list[Record]:
        """Returns the memories, newest first; of equal age, the superseding one first."""
        waiting = [node.record for node in self.nodes]
        waiting.sort(key=lambda record: record.memory.created, reverse=True)
        newer: dict[str, set[str]] = {}
        for edge in self.edges:
            if edge.type == SUPERSEDES:
                newer.setdefault(edge.target, set()).add(edge.source)
        records: list[Record] = []
        while waiting:
            moment, left = waiting[0].memory.created, {record.memory.id for record in waiting}
            equal = [record for record in waiting if record.memory.created == moment]
            free = [record for record in equal if not newer.get(record.memory.id, set()) & left]
            records.append((free or equal)[0])
            waiting.remove(records[-1])
        return records


class Relation(StrEnum):
    """The type of a link, as read from the memory that holds it."""

    SUPERSEDES = "supersedes"
    REFINES = "refines"
    CONTRADICTS = "contradicts"
    BUILDS_ON = "builds_on"
    DEBATES = "debates"
    SYNTHESIZES = "synthesizes"
    IMPLEMENTS = "implements"
    OUTCOME_OF = "outcome_of"
    FOLLOWS = "follows"
    RELATES_TO = "relates_to"

    @property
    def meaning(self) -> str:
        """Returns the meaning for the memory that holds the link, in one line."""
        return _MEANINGS[self]

    @property
    def aliases(self) -> tuple[str, ...]:
        """Returns synonyms; a Korean stem includes all of its endings."""
        return tuple(word.strip() for word in _ALIASES[self].split(","))


_MEANINGS: Mapping[Relation, str] = {
    Relation.SUPERSEDES: "replaces the other, which no longer holds",
    Relation.REFINES: "makes the other better or more precise; both hold",
    Relation.CONTRADICTS: "states the opposite of the other",
    Relation.BUILDS_ON: "takes the other for its base and goes further",
    Relation.DEBATES: "argues with the other or weighs it against alternatives",
    Relation.SYNTHESIZES: "brings the other together with more into one",
    Relation.IMPLEMENTS: "puts the other into practice",
    Relation.OUTCOME_OF: "came of the other, or was caused by it",
    Relation.FOLLOWS: "comes after the other in time",
    Relation.RELATES_TO: "has to do with the other",
}

_ALIASES: Mapping[Relation, str] = {
    Relation.SUPERSEDES: (
        "replaces, obsoletes, deprecates, overrides, retires, takes the place of, makes obsolete, "
        "supplants, revokes, 대체, 대신, 폐기, 교체"
    ),
    Relation.REFINES: (
        "improves, improves on, clarifies, amends, corrects, polishes, fine-tunes, narrows, "
        "details, elaborates, enhances, tweaks, sharpens, optimizes, adjusts, specifies, revises, "
        "tightens, fixes, simplifies, cleans up, revision of, improved version of, more precise, "
        "better version of, 개선, 보완, 구체화, 정교화, 다듬, 수정, 보강"
    ),
    Relation.CONTRADICTS: (
        "conflicts with, opposes, disagrees with, refutes, disproves, inconsistent with, "
        "incompatible with, not compatible with, opposed to, contradiction, goes against, at odds "
        "with, contrary to, opposite of, clashes with, violates, denies, undermines, rejects, "
        "모순, 충돌, 반대, 상충, 반박"
    ),
    Relation.BUILDS_ON: (
        "builds upon, based on, extends, derived from, derives from, expands, inspired by, "
        "motivated by, informed by, depends on, relies on, grows out of, continues, uses, "
        "evolution, evolves from, rooted in, founded on, presupposes, made possible by, builds "
        "upon the idea of, grounded in, rests on, originates from, developed from, extension of, "
        "stands on, 기반, 바탕, 확장, 파생, 토대, 발전"
    ),
    Relation.DEBATES: (
        "discusses, argues with, argues against, raises doubts about, casts doubt on, raises "
        "questions about, tradeoffs of, questions, challenges, considers, weighs, disputes, "
        "doubts, alternative to, alternatives to, pros and cons of, critique of, critical of, "
        "counterargument to, objection to, evaluates, 토론, 논쟁, 논의, 의문, 검토, 대안"
    ),
    Relation.SYNTHESIZES: (
        "combines, merges, summarizes, consolidates, unifies, integrates, aggregates, brings "
        "together, distils, summary of, synthesis of, fusion of, joins, blend of, overview of, "
        "compiles, recap of, digest of, summarises, ties together, roll-up of, gathers, 종합, "
        "요약, 통합, 병합, 합침, 합치"
    ),
    Relation.IMPLEMENTS: (
        "implementation, carries out, realizes, fulfils, executes, applies, delivers, performs, "
        "enacts, puts into practice, realises, completes, accomplishes, rolls out, ships, carries "
        "through, codes, code for, 구현, 실행, 실현, 적용, 이행"
    ),
    Relation.OUTCOME_OF: (
        "outcome, result of, results from, resulted from, consequence of, effect of, caused by, "
        "produced by, came out of, due to, because of, arises from, stems from, triggered by, "
        "conclusion of, product of, fallout of, aftermath of, findings from, lesson from, learned "
        "from, spawned by, 결과, 로 인한, 때문"
    ),
    Relation.FOLLOWS: (
        "after, comes after, came after, happened after, later than, next, next after, next step "
        "after, follow-up to, subsequent to, preceded by, temporal, then, since, afterwards, "
        "sequel to, continuation of, 이후, 다음, 후속, 뒤이음, 뒤이어, 나중"
    ),
    Relation.RELATES_TO: (
        "related, relation, association, associated with, see, see also, similar to, like, about, "
        "mentions, references, refers to, cites, concerns, connected with, linked to, link, goes "
        "with, compare, 관련, 연관, 연결, 참고, 참조, 비슷, 유사"
    ),
}
"""Synonyms of each type, separated by commas."""
