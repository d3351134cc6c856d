"""Checks a change against edges; reports the hits as SARIF 2.1.0 or GitHub annotations."""

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from mimo.features.pitfalls.edge import Edge, Severity, endings, restricting, subject, tech, techs
from mimo.features.pitfalls.failures import naming
from mimo.frozen import NamedTuple
from mimo.text import patterns
from mimo.text.clean import compiled, escaped
from mimo.text.tokens import tokenize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST_LINE = 10_000
"""Characters of a line that are checked; longer lines are generated."""
_FEWEST_WORDS = 2
_NEAR = 5
"""The number of consecutive lines that have all words of a title; a long file has any words."""
_MOST_PER_FILE = 20
"""Maximum number of hits of one edge in one file."""


class Hunk(NamedTuple):
    """Consecutive lines of a file."""

    start: int
    """The 1-based line of the first."""
    lines: tuple[str, ...]


class Added(NamedTuple):
    """The lines that a change adds to a file."""

    path: str
    hunks: tuple[Hunk, ...]


def added(path: str, text: str, old: str) -> Added:
    """Returns the lines of a text that replaces another one, without those that this one has."""
    existing, runs = Counter(line.strip() for line in old.split("\n")), list[Hunk]()
    run: list[str] = []
    for number, line in enumerate((*text.split("\n"), None), 1):
        if line is not None and (not (bare := line.strip()) or not existing[bare]):
            run.append(line[:LONGEST_LINE])
            continue
        if line is not None:
            existing[bare] -= 1
        if run:
            runs.append(Hunk(start=number - len(run), lines=tuple(run)))
            run = []
    return Added(path=path, hunks=tuple(runs))


class Hit(NamedTuple):
    """A place in a change to which an edge applies."""

    edge: Edge
    path: str
    line: int
    """1-based."""
    text: str
    matched_on: str


class _Probe(NamedTuple):
    """An edge, ready to be searched for."""

    edge: Edge
    patterns: "tuple[tuple[str, Any], ...]"
    words: frozenset[str]
    """Stems that must all occur in a few lines, if there is no pattern."""
    names: re.Pattern[str] | None
    """A pattern of the words of which one is enough; None for none."""
    endings: frozenset[str]
    """File name endings, one of which must match; empty for all."""
    needs: frozenset[str]
    """Canonical stack tags, one of which the path must name; empty for all."""


def whole(path: str, text: str) -> Added:
    """Returns all lines of a file as added."""
    lines = tuple(line[:LONGEST_LINE] for line in text.split("\n"))
    return Added(path=path, hunks=(Hunk(start=1, lines=lines),))


def check(edges: Iterable[Edge], added: Iterable[Added], stack: Sequence[str]) -> Iterator[Hit]:
    """Yields the edges that apply to a change, file by file and line by line.

    A global edge with stack tags that mind can detect applies only if the project, or the path of
    the file, names one of them, or if the stack of the project is unknown. Words of its context
    are not a condition. Comments and files of prose are not code.
    An edge whose stack tags are languages applies only to files of these languages. An edge without
    patterns applies if all words of its title occur in consecutive lines, and a failed decision
    also to a line with a name from its title.
    """
    ready = [probe for edge in edges if (probe := _probe(edge, stack)) is not None]
    for each in added:
        about = [probe for probe in ready if _is_about(probe, each.path)]
        if not about:
            continue
        file = each._replace(hunks=tuple(_code_of(hunk, each.path) for hunk in each.hunks))
        hunks = file.hunks if any(map(_needs_words, about)) else ()
        stems = [[frozenset(tokenize(line)) for line in hunk.lines] for hunk in hunks]
        hits = [hit for probe in about for hit in _hits(probe, file, stems)]
        # Sorting is stable: the hits of one line stay in the order of the edges.
        yield from sorted(hits, key=lambda hit: hit.line)


def _probe(edge: Edge, stack: Sequence[str]) -> _Probe | None:
    """Returns the probe of an edge; None if it has no pattern and too few words."""
    pairs = ((text, patterns.compiled(text, literal=literal)) for text, literal in edge.probes)
    usable = tuple(pair for pair in pairs if not isinstance(pair[1], patterns.Unusable))
    words = frozenset() if edge.probes else subject(edge.title)
    names = naming(edge.names) if edge.names else None
    if not (usable or names) and len(words) < _FEWEST_WORDS:
        return None
    needs = restricting(edge)
    if not stack or not techs(stack).isdisjoint(map(tech, edge.stack_tags)):
        needs = frozenset()
    return _Probe(edge, usable, words, names, endings=endings(edge), needs=needs)


_PROSE = (
    r"(?i)(?:\.(?:md|markdown|mdx|rst|adoc|asciidoc|org)"
    r"|^(?!.*(?:requirements|constraints|cmakelists)).*\.txt)$"
)
_HASHED = r"(?i)(?:^|[./])(?:pyi?|rb|sh|bash|zsh|ya?ml|toml|tf|exs?|pl|r|\w*file)$"
"""Names of files in which a hash mark begins a comment."""
_COMMENT = r"(?:^|\s)(?://|--\s).*|^\s*(?:#\s|\*(?:\s|/|$)).*"
_HASH_COMMENT = r"^\s*#.*|\s#\s.*"
_DIRECTIVE = r"(?i)[@:]|\b(?:no(?:qa|sec|lint|inspection)|todo|fixme|ignore|disable|pragma)\b"
"""A comment that other programs read."""
_BLOCKS = {"/*": "*/", "<!--": "-->", '"""': '"""', "'''": "'''"}


def _code_of(hunk: Hunk, path: str) -> Hunk:
    """Returns a hunk whose comments and docstrings are empty, except for directives."""
    comment = compiled(_HASH_COMMENT if compiled(_HASHED).search(path) else _COMMENT)
    lines, end = [""], ""
    for line in hunk.lines:
        if not end:
            begin = next(filter(line.lstrip().startswith, _BLOCKS), "")
            # A text in quotes at the start of a line is code, unless it follows a definition.
            is_block = begin and (begin[0] in "/<" or not lines[-1] or lines[-1].endswith(":"))
            end = _BLOCKS[begin] if is_block else ""
            code = line.lstrip()[len(begin) :] if end else line
        else:
            code = line
        if end and end not in code:
            lines.append("")
            continue
        if end:
            code, end = code.partition(end)[2], ""
        match = comment.search(code)
        is_comment = match and not compiled(_DIRECTIVE).search(match[0])
        lines.append(code[: match.start()] if match and is_comment else code)
    return hunk._replace(lines=tuple(lines[1:]))


def _is_about(probe: _Probe, path: str) -> bool:
    """Returns whether an edge may apply to a file, by the file's name and folders."""
    if compiled(_PROSE).search(path):
        return False
    if probe.endings:
        name = path.rpartition("/")[2].lower()
        return not probe.endings.isdisjoint(name.split("."))
    names = path.replace("/", ".").replace("-", ".").replace("_", ".").split(".")
    return not probe.needs or not probe.needs.isdisjoint(tech(name) for name in names if name)


def _needs_words(probe: _Probe) -> bool:
    """Returns whether an edge may apply to lines by the words of its title."""
    return not probe.patterns and len(probe.words) >= _FEWEST_WORDS


def _hits(probe: _Probe, file: Added, stems: Sequence[Sequence[frozenset[str]]]) -> list[Hit]:
    """Returns the lines of a file, whose stems are given, to which an edge applies, each once."""
    hits: dict[int, Hit] = {}
    places = [_by_words(probe, file.hunks, stems)] if _needs_words(probe) else []
    if probe.patterns:
        places = [_by_pattern(probe, file.hunks)]
    if probe.names:
        places.insert(0, _by_names(probe.names, file.hunks))
    for line, text, reason in chain(*places):
        hits.setdefault(line, Hit(probe.edge, file.path, line, text, reason))
        if len(hits) == _MOST_PER_FILE:
            break
    return list(hits.values())


def _by_pattern(probe: _Probe, hunks: Sequence[Hunk]) -> Iterator[tuple[int, str, str]]:
    # A line with NUL separates hunks, so that no pattern matches across them.
    texts = [line for hunk in hunks for line in (*hunk.lines, "\0")]
    data = "\n".join(texts).encode("utf-8", "replace")
    starts = [0]
    for hunk in hunks:
        starts.append(starts[-1] + len(hunk.lines) + 1)
    for pattern, regex in probe.patterns:
        for place in patterns.lines(regex, data):
            number = bisect_right(starts, place) - 1
            offset = place - starts[number]
            if offset < len(hunks[number].lines):
                yield hunks[number].start + offset, texts[place], pattern


def _by_names(names: re.Pattern[str], hunks: Sequence[Hunk]) -> Iterator[tuple[int, str, str]]:
    """Yields the first line that has a name of a failed decision."""
    for hunk in hunks:
        for number, line in enumerate(hunk.lines, hunk.start):
            if match := names.search(line):
                yield number, line, f"name: {match[0]}"
                return


def _by_words(
    probe: _Probe, hunks: Sequence[Hunk], stems: Sequence[Sequence[frozenset[str]]]
) -> Iterator[tuple[int, str, str]]:
    """Yields the line with most of the words, for each hunk that has all of them in a few lines."""
    reason = f"all of its words: {', '.join(sorted(probe.words))}"
    for hunk, of_lines in zip(hunks, stems, strict=True):
        shared = [probe.words & of_line for of_line in of_lines]
        for start in range(len(shared)):
            near = shared[start : start + _NEAR]
            if shared[start] and len(frozenset().union(*near)) == len(probe.words):
                best = start + max(range(len(near)), key=lambda place: len(near[place]))
                yield hunk.start + best, hunk.lines[best], reason
                break


# Reports for other programs.


_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {Severity.INFO: "note", Severity.WARNING: "warning", Severity.CRITICAL: "error"}
_COMMANDS = {Severity.INFO: "notice", Severity.WARNING: "warning", Severity.CRITICAL: "error"}
_LONGEST_TITLE = 200


def annotations(hits: Iterable[Hit]) -> str:
    """Returns workflow commands, which GitHub shows at the lines of the hits."""
    return "\n".join(
        f"::{_COMMANDS[hit.edge.severity]} file={_property(hit.path)},line={hit.line},"
        f"title={_property(hit.edge.title)}::{_data(_message(hit.edge))}"
        for hit in hits
    )


def sarif(hits: Sequence[Hit], *, version: str) -> str:
    """Returns a log in SARIF 2.1.0, with one rule for each edge."""
    edges = {hit.edge.id: hit.edge for hit in reversed(hits)}
    indexes = {rule: number for number, rule in enumerate(sorted(edges))}
    run = {
        "tool": {
            "driver": {
                "name": "mind",
                "semanticVersion": version,
                "rules": [_rule(edges[id]) for id in indexes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(hit, indexes[hit.edge.id]) for hit in hits],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return escaped(json.dumps(log, indent=2))


def _rule(edge: Edge) -> "dict[str, Any]":
    text = edge.description or edge.title
    help_ = f"{text}\n\nWhat to do: {edge.workaround}" if edge.workaround else text
    return {
        "id": edge.id,
        "shortDescription": {"text": edge.title[:_LONGEST_TITLE]},
        "fullDescription": {"text": text},
        "help": {"text": help_},
        "defaultConfiguration": {"level": _LEVELS[edge.severity]},
        "properties": {"trusted": edge.trusted},
    }


def _result(hit: Hit, index: int) -> "dict[str, Any]":
    from hashlib import sha256
    from urllib.parse import quote

    mark = sha256(f"{hit.edge.id}\n{hit.path}\n{hit.text.strip()}".encode("utf-8", "replace"))
    return {
        "ruleId": hit.edge.id,
        "ruleIndex": index,
        "level": _LEVELS[hit.edge.severity],
        "message": {"text": _message(hit.edge)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(hit.path, errors="replace")},
                    "region": {"startLine": hit.line, "snippet": {"text": hit.text}},
                }
            }
        ],
        "partialFingerprints": {"edgeAndLine/v1": mark.hexdigest()[:32]},
    }


def _message(edge: Edge) -> str:
    """Returns the problem and its workaround in words."""
    text = f"{edge.title}. {edge.workaround}" if edge.workaround else edge.title
    return text if edge.trusted else f"{text} (from an unapproved memory)"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
