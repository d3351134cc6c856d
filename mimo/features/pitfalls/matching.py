"""Matching edges with a task: by meaning, by rare words, by names and by code.

An edge is considered if its stack is that of the project, or if the task names a technology of it.
Its strength is the cosine of the task with the most similar phrase of the edge, and a little for
each rare word that both contain. The strongest edges apply. The constants are measured: see
docs/lab/retrieval.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain

from mimo.features.pitfalls.edge import DETECTED, Edge, restricting, subject, tech, techs
from mimo.features.pitfalls.failures import naming
from mimo.frozen import NamedTuple
from mimo.text import patterns
from mimo.text.background import rarity
from mimo.text.clean import compiled
from mimo.text.phrases import SENTENCE_END
from mimo.text.tokens import LOOKS, is_chore, is_unspaced, query_terms, tokenize

ENOUGH = 0.48
"""The strength from which an edge applies."""

NEAR, STRONGEST = 0.1, 0.75
"""The strength that an edge may lack to the strongest one, and the most that this one counts."""

PER_NAT = 0.0125
"""The strength for each nat of the rarity of shared words."""

MOST_NATS = 20.0
"""The rarity of shared words that counts."""

KEYWORD = 4.5
"""The rarity from which a keyword in the task suffices, if the meaning does not contradict."""

KEYWORD_COSINE, _SHARE = 0.2, 0.5
"""The cosine that suffices with such a keyword if this share of the task's words are shared."""

LIKELY_STRENGTH, LIKELY_REMAINDER = 0.44, 0.25
"""The strength that suffices with such a keyword, or with this cosine of the rest of the task."""

NOUN_REMAINDER, CHORE_REMAINDER = 0.2, 0.3
"""The cosine of the rest that a task needs if it shares a single word, or if it is a chore, such as
to rename or to list."""

NATS_ALONE = 12.0
"""The rarity of shared words from which an edge applies if there is no model."""

SURE, LIKELY, OF_STACK = 0.9, 0.5, 0.1
"""The confidence of a match by code, name or rare words; by a keyword; and by the stack alone."""

_MIDDLE, _SLOPE = 0.51, 13.5
"""The strength at which half of the edges were right, and the steepness, in a logistic fit."""

_UNSPACED_RARITY = 4.0
"""The rarity of a pair of characters of a script that the list of rarities does not know."""

_SHORTEST_START = 4
"""Minimum length of a keyword that may start a longer word: `auth`, but not `id`."""

_MOST_PHRASES, _MOST_SENTENCES = 12, 12
_FEWEST_WORDS, _MOST_WORDS = 2, 10
_LONG = 300
"""The characters of a task beyond which it is near to an edge by more than a noun."""

Cosines = Callable[[str, Sequence[str]], Sequence[float]]
"""Returns the cosine of a task with each text; those of an unknown text are 0."""


class Task(NamedTuple):
    """A planned change."""

    intent: str
    stack: tuple[str, ...] = ()
    code: str = ""
    dependencies: tuple[str, ...] = ()
    """The names of packages that the project uses."""


class Match(NamedTuple):
    """The reason that an edge applies."""

    edge: Edge
    confidence: float
    matched_on: str
    of_stack: bool = False
    """True if the stack is among the reasons."""


class _Evidence(NamedTuple):
    """The reasons for an edge."""

    edge: Edge
    context: tuple[str, ...]
    """Technologies of the edge in the stack."""
    keywords: tuple[str, ...]
    shared: frozenset[str]
    """Stems that the task shares with title, tasks, keywords and context."""
    words: tuple[str, ...]
    """Those of them that do not name the stack."""
    share: float
    """The share of the task's words that these are."""
    names: tuple[str, ...]
    code: tuple[str, ...]
    phrase: str
    cosine: float

    @property
    def nats(self) -> float:
        return sum(map(_rarity, self.words))

    @property
    def strength(self) -> float:
        return self.cosine + PER_NAT * min(self.nats, MOST_NATS)

    @property
    def rarest(self) -> float:
        """Returns the rarity of the rarest keyword."""
        stems = (tokenize(word, as_written=True) for word in self.keywords)
        return max((sum(map(_rarity, word)) for word in stems), default=0.0)


def matches(
    edges: Iterable[Edge], task: Task, cosines: Cosines | None, *, stack_alone: bool = False
) -> list[Match]:
    """Returns the edges that apply to a task, by confidence.

    Without `cosines`, words alone decide. With `stack_alone`, edges follow of which only the stack
    matches. An unapproved edge never displaces an approved one.
    """
    stack = techs(task.stack).union(task.dependencies)
    words = subject(task.intent)
    considered = [edge for edge in edges if _is_of_stack(edge, stack, words)]
    # The texts of approved edges are compared first, as there may be a limit.
    considered.sort(key=lambda edge: not edge.trusted)
    likeness = _likeness(considered, task.intent, cosines) if cosines else None
    evidence = [_evidence(edge, task, words, stack, likeness) for edge in considered]
    strongest = max((e.strength for e in evidence), default=0.0)
    approved = max((e.strength for e in evidence if e.edge.trusted), default=0.0)
    result = []
    for each in evidence:
        best = approved if each.edge.trusted else strongest
        confidence = _confidence(each, best, task.intent, cosines)
        if not confidence and stack_alone and each.context:
            confidence = OF_STACK
        if confidence:
            result.append(Match(each.edge, confidence, _reasons(each), bool(each.context)))
    return sorted(result, key=_order)


def _order(match: Match) -> tuple[float, int, bool, str]:
    edge = match.edge
    return (-match.confidence, edge.severity.rank, not edge.trusted, edge.title)


def _confidence(evidence: _Evidence, best: float, intent: str, cosines: Cosines | None) -> float:
    """Returns the probability that an edge applies; 0 if it should not be reported."""
    if evidence.names or evidence.code:
        return SURE
    if evidence.edge.type != "edge":
        # A failed decision warns only of being repeated.
        return 0.0
    least = _required_remainder(evidence, intent)
    has_keyword = evidence.rarest >= KEYWORD
    if cosines is None:
        if least >= CHORE_REMAINDER:
            return 0.0
        return SURE if evidence.nats >= NATS_ALONE else LIKELY if has_keyword else 0.0
    strength = evidence.strength
    is_subject = evidence.share >= _SHARE and evidence.cosine >= KEYWORD_COSINE
    is_likely = strength >= LIKELY_STRENGTH or (has_keyword and is_subject)
    if not is_likely or strength < min(best, STRONGEST) - NEAR:
        return 0.0
    remainder = _remainder(evidence, intent, cosines)
    if remainder < least:
        return 0.0
    confidence = round(1 / (1 + math.exp(_SLOPE * (_MIDDLE - strength))), 2)
    if strength >= ENOUGH:
        return confidence
    suffices = has_keyword or (evidence.shared and remainder >= LIKELY_REMAINDER)
    return max(LIKELY, confidence) if suffices else 0.0


def _remainder(evidence: _Evidence, intent: str, cosines: Cosines) -> float:
    """Returns the cosine of a task without the words that it shares with an edge.

    A task that is near to an edge by a noun alone is ordinary work: without the name, to upgrade
    Redis is far from a pitfall of its memory. Phrases of the noun alone, such as `add an alert`,
    do not count. Returns the whole cosine if the task has no other subject, or is long.
    """
    if len(intent) > _LONG:
        return evidence.cosine
    words, shared = intent.split(), evidence.shared
    others = [word for word in words if shared.isdisjoint(tokenize(word))]
    remainder = " ".join(others)
    if others == words or not subject(remainder):
        return evidence.cosine
    phrases = [*_titles(evidence.edge), *_sentences(evidence.edge)]
    return max(cosines(remainder, [t for t in phrases if subject(t) - shared]), default=0.0)


def _required_remainder(evidence: _Evidence, intent: str) -> float:
    """Returns the cosine that the rest of a task needs.

    A task that is only about looks or texts runs into an edge only if the edge is about them.
    Another chore does if it is near without the shared nouns, or shares its first word, its verb.
    """
    lowered, shared = intent.lower(), evidence.shared
    words = compiled(r"\w+").findall(lowered)
    if looks := LOOKS.intersection(words):
        return 0.0 if shared.issuperset(tokenize(" ".join(looks))) else math.inf
    # A long task is more than to show something.
    is_of_verb = not shared.isdisjoint(tokenize(intent)[:1])
    if not is_of_verb and is_chore(lowered, shows=len(words) <= _MOST_WORDS):
        return CHORE_REMAINDER
    if len(intent) > _LONG:
        return 0.0
    # The rest of a short task is too little to compare.
    terms = {frozenset(stems) for stems in map(tokenize, intent.split())}
    is_noun = evidence.share < _SHARE and sum(not shared.isdisjoint(term) for term in terms) == 1
    return NOUN_REMAINDER if is_noun else 0.0


def applies(edge: Edge, stack: frozenset[str]) -> bool:
    """Returns whether the stack tags of an edge permit it in a project with this stack."""
    if not stack or not restricting(edge):
        return True
    return not stack.isdisjoint(map(tech, edge.stack_tags))


def _is_of_stack(edge: Edge, stack: frozenset[str], words: frozenset[str]) -> bool:
    """Returns whether an edge may concern a project with this stack, or a task with these words.

    The edges of the project itself always may, and all edges if the stack is unknown.
    """
    if applies(edge, stack):
        return True
    return any(
        len(tag) >= _SHORTEST_START and words.issuperset(query_terms(tag).full)
        for tag in edge.stack_tags
    )


def _likeness(edges: Sequence[Edge], intent: str, cosines: Cosines) -> Mapping[str, float]:
    """Returns the cosine of each phrase of the edges; titles and tasks are compared first."""
    titles = chain.from_iterable(map(_titles, edges))
    texts = list(dict.fromkeys([*titles, *chain.from_iterable(map(_sentences, edges))]))
    return dict(zip(texts, cosines(intent, texts), strict=True))


def _evidence(
    edge: Edge,
    task: Task,
    words: frozenset[str],
    stack: frozenset[str],
    likeness: Mapping[str, float] | None,
) -> _Evidence:
    tags = (tag for tag in edge.stack_tags if tech(tag) in DETECTED)
    named = frozenset(tokenize(" ".join((*task.stack, *tags))))
    detection = edge.detection
    texts = (edge.title, *detection.intent, *detection.tasks, *detection.context)
    shared = words & subject("\n".join(texts))
    stack_words = dict.fromkeys((*edge.stack_tags, *detection.context))
    phrases = [*_titles(edge), *_sentences(edge)] if likeness else []
    phrase = max(phrases, key=lambda text: (likeness or {})[text], default="")
    return _Evidence(
        edge=edge,
        context=tuple(word for word in stack_words if tech(word) in stack),
        keywords=tuple(word for word in detection.intent if _has(task.intent, words, word)),
        shared=shared,
        words=tuple(sorted(shared - named)),
        share=len(shared - named) / len(words) if words else 0.0,
        names=_names(edge, task.intent, words),
        code=tuple(_in_code(edge, task.code)),
        phrase=phrase,
        cosine=likeness[phrase] if likeness and phrase else 0.0,
    )


def _reasons(evidence: _Evidence) -> str:
    """Returns the reasons in words, such as `context: vercel; intent: token`."""
    detection = evidence.edge.detection
    in_keywords = set(tokenize(" ".join(evidence.keywords)))
    in_context = [word for word in detection.context if in_keywords.isdisjoint(tokenize(word))]
    stems = set(evidence.words) - in_keywords
    named = [word for word in in_context if stems.intersection(tokenize(word))]
    stems.difference_update(tokenize(" ".join(named)))
    texts = "\n".join((evidence.edge.title, *detection.tasks, *detection.intent))
    words = [word.lower() for word in re.findall(r"[^\W_]+", texts)]
    like = [evidence.phrase] if evidence.phrase and evidence.strength >= ENOUGH else []
    reasons = {
        "context": [*evidence.context, *named],
        "intent": evidence.keywords,
        "name": evidence.names,
        "words": [word for word in words if stems.intersection(tokenize(word))],
        "like": like,
        "code": evidence.code,
    }
    return "; ".join(
        f"{name}: {', '.join(dict.fromkeys(values))}" for name, values in reasons.items() if values
    )


def _titles(edge: Edge) -> Iterator[str]:
    """Yields the phrases by which an edge is meant to be recognised."""
    if edge.type == "edge":
        phrases = [word for word in edge.detection.intent if len(word.split()) > 1]
        yield from (edge.title, *(*edge.detection.tasks, *phrases)[:_MOST_PHRASES])


def _sentences(edge: Edge) -> Iterator[str]:
    if edge.type == "edge":
        for text in (edge.description, edge.workaround):
            lines = (line.strip() for line in text.splitlines())
            sentences = chain.from_iterable(compiled(SENTENCE_END).split(line) for line in lines)
            yield from [sentence for sentence in sentences if len(sentence) > 3][:_MOST_SENTENCES]


def _has(intent: str, words: frozenset[str], keyword: str) -> bool:
    """Returns whether an intent has a keyword: its stems, or words that begin with it."""
    stems = query_terms(keyword).full
    if stems and words.issuperset(stems):
        return True
    named = keyword.casefold()
    bare = re.escape(named.rstrip("0123456789") if len(named) > _SHORTEST_START else named)
    pattern = rf"\b{bare}\b" if len(keyword) < _SHORTEST_START else rf"(?:^|\W|_){bare}"
    return re.search(pattern, intent.casefold()) is not None


def _names(edge: Edge, intent: str, words: frozenset[str]) -> tuple[str, ...]:
    """Returns the words by which a task repeats a failed decision."""
    if edge.type == "edge":
        return ()
    if edge.names and (match := naming(edge.names).search(intent)):
        return (match[0].lower(),)
    title = subject(edge.title)
    return tuple(sorted(title)) if len(title) >= _FEWEST_WORDS and title <= words else ()


@cache
def _rarity(stem: str) -> float:
    return _UNSPACED_RARITY if is_unspaced(stem[:1]) else rarity(stem)


def _in_code(edge: Edge, code: str) -> Iterator[str]:
    """Yields each pattern that matches code, with the line of its first match."""
    if not code:
        return
    data = code.encode("utf-8", "replace")
    for pattern, literal in edge.probes:
        usable = patterns.compiled(pattern, literal=literal)
        if isinstance(usable, patterns.Unusable):
            continue
        line = next(patterns.lines(usable, data), None)
        if line is not None:
            yield f"{pattern} (line {line + 1})"
