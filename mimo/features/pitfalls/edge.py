"""Edges: known pitfalls, and the conditions under which they apply.

An edge is a memory of type `edge`. Its text describes the problem, `## Workaround` the solution,
and its front matter the stack, the words and the code by which it is recognised.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache, lru_cache

from mimo.errors import Invalid
from mimo.frozen import NamedTuple
from mimo.text.patterns import LONGEST
from mimo.text.tokens import QUESTION_WORDS, query_terms, tokenize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WORKAROUND = "## Workaround"
_MOST_PATTERNS = 100
"""Maximum number of keywords, or patterns, of one kind."""
_QUOTE_LENGTH = 60
"""Characters of a wrong value that an error shows."""
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
    tasks: tuple[str, ...] = ()
    """Phrases for the tasks in which it occurs: `keep users logged in`."""

    def __bool__(self) -> bool:
        """Returns whether it has any word, pattern or phrase."""
        return any(self)

    @classmethod
    def read(cls, value: Any) -> Detection:
        """Returns the detection in an argument. Raises `Invalid` if it is malformed."""
        if not isinstance(value, Mapping):
            raise _wrong(f"`detection` must be an object, not {_quote(value)}")
        if unknown := sorted(str(key) for key in value if key not in cls._fields):
            raise _wrong(f"`detection` has no field {_quote(unknown[0])}")
        fields = {}
        for name, words in value.items():
            if not isinstance(words, list | tuple) or not all(isinstance(w, str) for w in words):
                raise _wrong(
                    f"`{name}` of `detection` must be a list of strings, not {_quote(words)}"
                )
            fields[name] = tuple(dict.fromkeys(word.strip() for word in words if word.strip()))
            if (many := len(fields[name])) > _MOST_PATTERNS:
                raise _wrong(
                    f"`{name}` of `detection` has {many} items, more than {_MOST_PATTERNS}"
                )
            if long := next((word for word in fields[name] if len(word) > LONGEST), None):
                problem = f"has an item of more than {LONGEST} characters: {_quote(long)}"
                raise _wrong(f"`{name}` of `detection` {problem}")
        return cls(**fields)


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
    created: str = ""
    """The time in its file at which it was made, in ISO format."""
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


def _quote(value: Any) -> str:
    text = str(value)
    return f"`{text if len(text) <= _QUOTE_LENGTH else text[: _QUOTE_LENGTH - 1] + '…'}`"


def _wrong(problem: str) -> Invalid:
    return Invalid(
        problem,
        hint='it is {"tasks": […], "intent": […], "context": […], "code": […]}, lists of strings',
        details={"field": "detection"},
    )


# Technologies and words.


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

_IMPLIED = {
    "nodejs": "javascript",
    "typescript": "javascript",
    "react": "javascript",
    "vuejs": "javascript",
    "svelte": "javascript",
    "sveltekit": "svelte javascript",
    "nextjs": "react javascript",
    "django": "python",
    "fastapi": "python",
    "flask": "python",
    "supabase": "postgresql",
}
"""The technologies that a project of another one has as well."""

MARKERS = {
    "python": "pyproject.toml setup.py setup.cfg requirements.txt Pipfile",
    "node": "package.json",
    "typescript": "tsconfig.json",
    "rust": "Cargo.toml",
    "go": "go.mod",
    "ruby": "Gemfile",
    "java": "pom.xml build.gradle build.gradle.kts",
    "elixir": "mix.exs",
    "php": "composer.json",
    "docker": "Dockerfile docker-compose.yml docker-compose.yaml",
    "nextjs": "next.config.js",
    "vercel": "vercel.json",
    "firebase": "firebase.json",
}
"""The files at the root of a project, one of which shows that it has a technology."""
PACKAGES = {
    "sveltekit": "@sveltejs/kit",
    "svelte": "svelte",
    "nextjs": "next",
    "react": "react",
    "vue": "vue",
    "typescript": "typescript",
    "tailwind": "tailwindcss",
    "supabase": "@supabase/supabase-js",
    "firebase": "firebase",
}
FRAMEWORKS = ("fastapi", "django", "flask", "supabase")
"""The names of Python packages that are technologies."""

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


def endings(edge: Edge) -> frozenset[str]:
    """Returns the file name endings of an edge whose tags are all languages; else none."""
    texts = [_ENDINGS.get(tech(word), "") for word in edge.stack_tags]
    return frozenset(ending for text in texts for ending in text.split() if all(texts))


@lru_cache(1_000)
def subject(text: str) -> frozenset[str]:
    """Returns the stems of the words that name the subject of a text."""
    return frozenset(query_terms(text).content) - _generic() - QUESTION_WORDS


@cache
def _generic() -> frozenset[str]:
    return frozenset(tokenize(_GENERIC))


def techs(stack: Iterable[str]) -> frozenset[str]:
    """Returns the canonical names of a stack, and of the technologies that it implies."""
    names = frozenset(map(tech, stack))
    return names.union(*(_IMPLIED.get(name, "").split() for name in names))


def restricting(edge: Edge) -> frozenset[str]:
    """Returns the tags that keep an edge of the user to projects with one of them; maybe none.

    A tag that mind cannot detect in a project, such as `safari`, does not restrict an edge.
    """
    return frozenset() if edge.of_project else DETECTED.intersection(map(tech, edge.stack_tags))


def tech(name: str) -> str:
    """Returns the canonical name of a technology: `Next.js` and `next` are `nextjs`."""
    plain = re.sub(r"[^a-z0-9+#]", "", name.casefold())
    return _ALIASES.get(plain, plain)


DETECTED = techs((*MARKERS, *PACKAGES, *FRAMEWORKS)) - {"postgresql"}
"""The technologies that are surely found in a project that has them."""
