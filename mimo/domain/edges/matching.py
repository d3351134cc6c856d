"""When an edge applies: to a stack, to what somebody is about to do, to a piece of code."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from mimo.domain import patterns
from mimo.domain.edges.edge import Edge
from mimo.domain.tokens import QUESTION_WORDS, query_terms, tokenize

_SIGNALS = 3
"""Context, intent and code: an edge that all of them name is sure to be meant."""
_STACK_ALONE = 0.3
_TITLE, _TITLE_OF_STACK, _NAMED_CODE = 0.6, 0.4, 0.8
_SHORTEST_START = 4
"""Letters of a keyword that may be the beginning of a longer word: `auth`, but not `id`."""

_GENERIC = (
    "add build call change check create fix get handle implement install make need new remove run"
    " set setup start stop test update us work write"
)
"""Words that name no subject: every task begins with one of them."""

_ALIASES = {
    "next": "nextjs",
    "node": "nodejs",
    "vue": "vuejs",
    "js": "javascript",
    "ts": "typescript",
    "py": "python",
    "golang": "go",
    "postgres": "postgresql",
    "k8s": "kubernetes",
    "tailwind": "tailwindcss",
}

_SCRIPTS = "js jsx mjs cjs ts tsx mts cts vue svelte astro html"
_ENDINGS = {
    "python": "py pyi ipynb",
    "javascript": _SCRIPTS,
    "typescript": _SCRIPTS,
    "go": "go",
    "rust": "rs",
    "ruby": "rb erb",
    "java": "java",
    "kotlin": "kt kts",
    "php": "php",
    "csharp": "cs",
    "swift": "swift",
    "css": "css scss less",
    "sql": "sql",
    "docker": "dockerfile containerfile",
}
"""How the names of files end, or what they are, in the languages that an edge may be about."""


class Question(NamedTuple):
    """What somebody is about to do."""

    intent: str
    stack: tuple[str, ...] = ()
    code: str = ""
    words: frozenset[str] = frozenset()
    """The stems of the intent; made by `asked`."""
    techs: frozenset[str] = frozenset()


class Match(NamedTuple):
    """That an edge applies, and why."""

    edge: Edge
    confidence: float
    matched_on: str
    of_stack: bool
    """Whether the stack is among the reasons."""
    hits: int
    """How many keywords and patterns speak for it."""

    @property
    def stack_alone(self) -> bool:
        """Returns whether nothing but the stack speaks for it."""
        return self.of_stack and self.confidence == _STACK_ALONE

    @property
    def order(self) -> tuple[float, int, int, str]:
        """Returns what sorts the surest and the worst first."""
        return (-self.confidence, self.edge.severity.rank, -self.hits, self.edge.title)


def asked(intent: str, stack: Iterable[str] = (), code: str = "") -> Question:
    """Returns a question ready to be held against edges."""
    named = tuple(stack)
    return Question(
        intent=intent,
        stack=named,
        code=code,
        words=subject(intent),
        techs=frozenset(tech(name) for name in named),
    )


def endings(edge: Edge) -> frozenset[str]:
    """Returns how files in the languages that an edge names end; none where it names none."""
    named = (_ENDINGS.get(tech(word)) for word in edge.stack_tags)
    return frozenset(ending for found in named if found for ending in found.split())


def subject(text: str) -> frozenset[str]:
    """Returns the stems of the words that say what a text is about."""
    return frozenset(query_terms(text).content) - _generic() - QUESTION_WORDS


@cache
def _generic() -> frozenset[str]:
    """Returns the stems of words that name no subject."""
    return frozenset(tokenize(_GENERIC))


def tech(name: str) -> str:
    """Returns the one name of a technology: `Next.js` and `next` are `nextjs`."""
    plain = re.sub(r"[^a-z0-9+#]", "", name.casefold())
    return _ALIASES.get(plain, plain)


def match(edge: Edge, question: Question, *, of_project: bool = False) -> Match | None:
    """Returns why an edge applies, or None where it doesn't.

    One `of_project` that says nothing of how it is recognised is recognised by its title.
    """
    stack = [word for word in stack_words(edge) if tech(word) in question.techs]
    code = list(_in_code(edge, question.code))
    if of_project and not edge.detection:
        return _by_title(edge, question, stack, code)
    named = [tag for tag in edge.stack_tags if len(tag) >= _SHORTEST_START]
    context = [word for word in (*edge.detection.context, *named) if _names(word, question)]
    intent = [word for word in edge.detection.intent if _names(word, question)]
    if not edge.detection.intent and len(shared := _shared(edge.title, question)) > 1:
        intent = shared
    where = list(dict.fromkeys([*stack, *context]))
    signals = sum(map(bool, (where, intent, code)))
    if not signals:
        return None
    alone = stack and not (intent or code)
    confidence = _STACK_ALONE if alone else signals / _SIGNALS
    return _match(edge, confidence, bool(stack), context=where, intent=intent, code=code)


def stack_words(edge: Edge) -> tuple[str, ...]:
    """Returns the words that a stack is compared with."""
    return tuple(dict.fromkeys((*edge.stack_tags, *edge.detection.context)))


def _by_title(edge: Edge, question: Question, stack: list[str], code: list[str]) -> Match | None:
    title = _shared(edge.title, question)
    named = [name for name in question.stack if tech(name) in _techs_in(edge.title)]
    confidence = max(
        _NAMED_CODE if code else 0.0,
        _TITLE if title else 0.0,
        _TITLE_OF_STACK if named or stack else 0.0,
    )
    if not confidence:
        return None
    return _match(edge, confidence, bool(stack or named), title=title, stack=named, code=code)


def _match(edge: Edge, confidence: float, of_stack: bool, **found: list[str]) -> Match:
    told = (f"{name}: {', '.join(words)}" for name, words in found.items() if words)
    return Match(
        edge=edge,
        confidence=confidence,
        matched_on="; ".join(told),
        of_stack=of_stack,
        hits=sum(map(len, found.values())),
    )


def _names(keyword: str, question: Question) -> bool:
    """Returns whether an intent names a keyword: by its stems, or by words that begin with it."""
    stems = tokenize(keyword)
    if stems and question.words.issuperset(stems):
        return True
    bare = keyword.casefold()
    if len(bare) < _SHORTEST_START:
        return re.search(rf"\b{re.escape(bare)}\b", question.intent.casefold()) is not None
    return re.search(rf"(?:^|\W|_){re.escape(bare)}", question.intent.casefold()) is not None


def _shared(title: str, question: Question) -> list[str]:
    """Returns the words of a title whose stems the intent has, too."""
    words = re.findall(r"[^\W_]+", title)
    stems = question.words & subject(title)
    found = (word for word in words if stems.intersection(tokenize(word)))
    return list(dict.fromkeys(word.lower() for word in found))


def _techs_in(title: str) -> frozenset[str]:
    return frozenset(tech(word) for word in re.findall(r"[\w.+#]+", title))


def _in_code(edge: Edge, code: str) -> Iterator[str]:
    """Yields each pattern that is found in code, with the first line on which it is."""
    if not code:
        return
    data = code.encode("utf-8", "replace")
    for pattern, literal in probes(edge):
        usable = patterns.compiled(pattern, literal=literal)
        if isinstance(usable, patterns.Unusable):
            continue
        line = next(patterns.lines(usable, data), None)
        if line is not None:
            yield f"{pattern} (line {line + 1})"


def probes(edge: Edge) -> tuple[tuple[str, bool], ...]:
    """Returns what is looked for in code, each with whether it is meant literally."""
    found = [(pattern, False) for pattern in edge.detection.code]
    return (*found, *((span, True) for span in edge.literals))
