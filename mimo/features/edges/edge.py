"""Edges: known pitfalls, and the conditions under which they apply.

An edge is a memory of type `edge`. Its text describes the problem, `## Workaround` the solution,
and its front matter the stack, the words and the code by which it is recognised.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from mimo.errors import Invalid
from mimo.text import patterns
from mimo.text.patterns import LONGEST
from mimo.text.tokens import QUESTION_WORDS, query_terms, tokenize

_WORKAROUND = "## Workaround"
_MOST_PATTERNS = 100
"""Maximum number of keywords, or patterns, of one kind."""
_HEADING = re.compile(r"\\*## Workaround[ \t]*")
_CODE_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_SHORTEST_SPAN = 4


class Severity(StrEnum):
    """The severity of an edge."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Returns 0 for the worst."""
        return ("critical", "warning", "info").index(self)


class Detection(NamedTuple):
    """The words and patterns by which an edge is recognised."""

    context: tuple[str, ...] = ()
    """Words for the technologies of a project."""
    intent: tuple[str, ...] = ()
    """Words for a task."""
    code: tuple[str, ...] = ()
    """Regular expressions for code."""

    def __bool__(self) -> bool:
        """Returns whether it has any word or pattern."""
        return bool(self.context or self.intent or self.code)

    @classmethod
    def read(cls, given: Any) -> "Detection":
        """Returns the detection in an argument. Raises `Invalid` if it is malformed."""
        if not isinstance(given, Mapping):
            raise _wrong("must be an object", given)
        if unknown := sorted(str(key) for key in given if key not in cls._fields):
            raise _wrong(f"has no `{unknown[0]}`", given)
        kept = {}
        for name, words in given.items():
            if not isinstance(words, list | tuple) or not all(isinstance(w, str) for w in words):
                raise _wrong(f"`{name}` must be a list of strings", words)
            kept[name] = tuple(dict.fromkeys(word.strip() for word in words if word.strip()))
            if len(kept[name]) > _MOST_PATTERNS:
                raise _wrong(f"`{name}` has more than {_MOST_PATTERNS} items", len(kept[name]))
            if long := next((word for word in kept[name] if len(word) > LONGEST), None):
                raise _wrong(f"`{name}` has an item of more than {LONGEST} characters", long[:40])
        return cls(**kept)


class Edge(NamedTuple):
    """A known pitfall and its workaround."""

    id: str
    title: str
    description: str
    workaround: str
    detection: Detection
    stack_tags: tuple[str, ...]
    severity: Severity
    verified_count: int = 0
    of_project: bool = False
    """False for a global edge, which the user has for all projects."""
    trusted: bool = True
    """True if the text is approved; global edges always are."""
    file: str = ""
    """The path of its file: relative to the project, or absolute for a global edge."""
    line: int = 1
    type: str = "edge"
    """The type of its memory: `edge`, or `decision` for one that failed."""
    names: tuple[str, ...] = ()
    """Words of a failed decision's title, in lower case, any of which shows that it applies."""

    @property
    def probes(self) -> tuple[tuple[str, bool], ...]:
        """Returns the patterns to search in code, each with whether it is literal.

        An edge without patterns is recognised by the code in backticks in its title.
        """
        if self.detection.code:
            return tuple((pattern, False) for pattern in self.detection.code)
        spans = (span.strip() for span in _CODE_SPAN.findall(self.title))
        return tuple((span, True) for span in spans if len(span) >= _SHORTEST_SPAN)

    @property
    def stack_words(self) -> tuple[str, ...]:
        """Returns the words to compare with a stack."""
        return tuple(dict.fromkeys((*self.stack_tags, *self.detection.context)))


def edge_of(id: str, title: str, content: str, extra: Mapping[str, Any]) -> Edge:
    """Returns the edge in a memory with these fields; malformed ones are ignored."""
    lines = content.split("\n")
    place = next((n for n, ln in enumerate(lines) if ln.rstrip() == _WORKAROUND), len(lines))
    text = (ln[1:] if ln[:1] == "\\" and _HEADING.fullmatch(ln) else ln for ln in lines[:place])
    description = "\n".join(text).strip("\n")
    workaround = "\n".join(lines[place + 1 :]).strip("\n")
    if not workaround and (separate := str(extra.get("workaround") or "")):
        # A line of MEMORY.md has both in its text, and the workaround in a field of its own.
        workaround = separate
        description = "\n".join([title, *lines[1:]])
    fields = extra.get("detection")
    fields = fields if isinstance(fields, Mapping) else {}
    detection = Detection(*(_words(fields.get(name)) for name in Detection._fields))
    level = str(extra.get("severity", "")).strip().lower()
    default = Severity.WARNING if detection else Severity.INFO
    count = extra.get("verified_count")
    return Edge(
        id=id,
        title=title,
        description=description,
        workaround=workaround,
        detection=detection,
        stack_tags=_words(extra.get("stack_tags")),
        severity=Severity(level) if level in list(Severity) else default,
        verified_count=count if type(count) is int and count >= 0 else 0,
    )


def memory_of(edge: Edge) -> tuple[str, dict[str, Any]]:
    """Returns the text and the front matter of an edge's memory; `edge_of` reads them back."""
    lines = edge.description.split("\n")
    text = "\n".join(f"\\{line}" if _HEADING.fullmatch(line) else line for line in lines)
    if edge.workaround:
        text += f"\n\n{_WORKAROUND}\n{edge.workaround}"
    detection = {name: list(words) for name, words in edge.detection._asdict().items() if words}
    extra = {
        "severity": edge.severity.value,
        "stack_tags": list(edge.stack_tags),
        "detection": detection,
    }
    return text, {key: value for key, value in extra.items() if value}


def title_key(title: str) -> str:
    """Returns a title in the form in which titles are compared."""
    plain = unicodedata.normalize("NFKC", title).casefold()
    return " ".join(re.findall(r"\w+", plain)) or plain.strip()


def _words(value: Any) -> tuple[str, ...]:
    """Returns the strings of a list, or of a text with commas; other items are left out."""
    pieces = value.split(",") if isinstance(value, str) else value
    if not isinstance(pieces, list | tuple):
        return ()
    words = (str(piece).strip() for piece in pieces if isinstance(piece, str | int | float))
    return tuple(dict.fromkeys(word for word in words if word))[:_MOST_PATTERNS]


def _wrong(must: str, given: Any) -> Invalid:
    return Invalid(
        f"detection {must}, not `{str(given)[:60]}`",
        hint='it is {"context": […], "intent": […], "code": […]}, each a list of strings',
        details={"field": "detection"},
    )


# Matching: an edge applies to a stack, to a task, or to a piece of code.


_SIGNALS = 3
"""Context, intent and code; the confidence is the share of them that match."""
_STACK_ALONE = 0.3
_TITLE, _TITLE_OF_STACK, _NAMED_CODE = 0.6, 0.4, 0.8
_SHORTEST_START = 4
"""Minimum length of a keyword that may start a longer word: `auth`, but not `id`."""

_GENERIC = (
    "add build call change check create fix get handle implement install make need new remove run"
    " set setup start stop test update us work write"
)
"""Words without a subject: most tasks begin with one of them."""

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
"""Endings of file names, or whole names, for each language."""


class Question:
    """A task to compare with edges."""

    def __init__(self, intent: str, stack: Iterable[str] = (), code: str = "") -> None:
        """Take a task, the technologies of its project, and code."""
        self.intent = intent
        self.stack = tuple(stack)
        self.code = code
        self.words = subject(intent)
        """The stems of the intent."""
        self.techs = frozenset(map(tech, self.stack))


class Match(NamedTuple):
    """The reason that an edge applies."""

    edge: Edge
    confidence: float
    matched_on: str
    of_stack: bool
    """True if the stack is among the reasons."""
    hits: int
    """The number of keywords and patterns that match."""

    @property
    def stack_alone(self) -> bool:
        """Returns whether the stack is the only reason."""
        return self.of_stack and self.confidence == _STACK_ALONE

    @property
    def order(self) -> tuple[float, int, int, str]:
        """Returns a sort key: by confidence, then by severity."""
        return (-self.confidence, self.edge.severity.rank, -self.hits, self.edge.title)


def endings(edge: Edge) -> frozenset[str]:
    """Returns the file name endings of an edge whose tags are all languages; else none."""
    texts = [_ENDINGS.get(tech(word), "") for word in edge.stack_tags]
    return frozenset(ending for text in texts for ending in text.split() if all(texts))


def subject(text: str) -> frozenset[str]:
    """Returns the stems of the words that name the subject of a text."""
    return frozenset(query_terms(text).content) - _generic() - QUESTION_WORDS


@cache
def _generic() -> frozenset[str]:
    return frozenset(tokenize(_GENERIC))


def tech(name: str) -> str:
    """Returns the canonical name of a technology: `Next.js` and `next` are `nextjs`."""
    plain = re.sub(r"[^a-z0-9+#]", "", name.casefold())
    return _ALIASES.get(plain, plain)


def match(edge: Edge, question: Question) -> Match | None:
    """Returns the reason that an edge applies; None if it does not.

    An edge of the project without detection is recognised by its title.
    """
    stack = [word for word in edge.stack_words if tech(word) in question.techs]
    code = list(_in_code(edge, question.code))
    if edge.of_project and not edge.detection:
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


def _by_title(edge: Edge, question: Question, stack: list[str], code: list[str]) -> Match | None:
    title = _shared(edge.title, question)
    techs = {tech(word) for word in re.findall(r"[\w.+#]+", edge.title)}
    named = [name for name in question.stack if tech(name) in techs]
    confidence = max(
        _NAMED_CODE if code else 0.0,
        _TITLE if title else 0.0,
        _TITLE_OF_STACK if named or stack else 0.0,
    )
    if not confidence:
        return None
    return _match(edge, confidence, bool(stack or named), title=title, stack=named, code=code)


def _match(edge: Edge, confidence: float, of_stack: bool, **matched: list[str]) -> Match:
    reasons = (f"{name}: {', '.join(words)}" for name, words in matched.items() if words)
    return Match(
        edge=edge,
        confidence=confidence,
        matched_on="; ".join(reasons),
        of_stack=of_stack,
        hits=sum(map(len, matched.values())),
    )


def _names(keyword: str, question: Question) -> bool:
    """Returns whether an intent has a keyword: its stems, or words that begin with it."""
    stems = tokenize(keyword)
    if stems and question.words.issuperset(stems):
        return True
    bare = re.escape(keyword.casefold())
    pattern = rf"\b{bare}\b" if len(keyword) < _SHORTEST_START else rf"(?:^|\W|_){bare}"
    return re.search(pattern, question.intent.casefold()) is not None


def _shared(title: str, question: Question) -> list[str]:
    """Returns the words of a title whose stems are in the intent."""
    words = re.findall(r"[^\W_]+", title)
    stems = question.words & subject(title)
    shared = (word.lower() for word in words if stems.intersection(tokenize(word)))
    return list(dict.fromkeys(shared))


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
