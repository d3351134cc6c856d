"""Checks a change against edges; reports the hits as SARIF 2.1.0 or GitHub annotations."""

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import quote

from mimo.features.edges.diffs import Added, Hunk
from mimo.features.edges.edge import Edge, Severity, endings, probes, stack_words, subject, tech
from mimo.text import patterns
from mimo.text.tokens import tokenize

_FEWEST_WORDS = 2
_MOST_PER_FILE = 20
"""Maximum number of hits of one edge in one file."""


class Hit(NamedTuple):
    """A place in a change to which an edge applies."""

    edge: Edge
    path: str
    line: int
    """1-based."""
    text: str
    matched_on: str


class _Probe(NamedTuple):
    edge: Edge
    patterns: tuple[tuple[str, Any], ...]
    words: frozenset[str]
    """Stems that must all occur in one hunk, if there is no pattern."""
    endings: frozenset[str]
    """File name endings, one of which must match; empty for all."""
    needs: frozenset[str]
    """Technologies, one of which the project or the path must name; empty for all."""


def check(
    edges: Iterable[tuple[Edge, bool]], added: Iterable[Added], *, stack: Sequence[str]
) -> Iterator[Hit]:
    """Yields the edges that apply to a change, file by file and line by line.

    Each edge comes with whether it is of the project. A global edge with a stack applies only if
    the project, or the path of the file, names a technology of it. An edge with a language applies
    only to files of that language. An edge without patterns applies if all words of its title
    occur in consecutive lines.
    """
    ready = [probe for edge, own in edges if (probe := _probe(edge, own, stack)) is not None]
    for file in added:
        hits = [(probe, place) for probe in ready for place in _places(probe, file)]
        # Sorting is stable: the hits of one line stay in the order of the edges.
        for probe, (line, text, why) in sorted(hits, key=lambda hit: hit[1][0]):
            yield Hit(edge=probe.edge, path=file.path, line=line, text=text, matched_on=why)


def _probe(edge: Edge, own: bool, stack: Sequence[str]) -> _Probe | None:
    found = ((text, patterns.compiled(text, literal=literal)) for text, literal in probes(edge))
    usable = tuple((t, made) for t, made in found if not isinstance(made, patterns.Unusable))
    words = frozenset() if probes(edge) else subject(edge.title)
    if not usable and len(words) < _FEWEST_WORDS:
        return None
    needs = frozenset() if own else frozenset(map(tech, stack_words(edge)))
    if needs & {tech(name) for name in stack}:
        needs = frozenset()
    return _Probe(edge=edge, patterns=usable, words=words, endings=endings(edge), needs=needs)


def _places(probe: _Probe, file: Added) -> list[tuple[int, str, str]]:
    """Returns the lines of a file to which an edge applies: number, text and reason."""
    if not _is_about(probe, file.path):
        return []
    found: dict[int, tuple[int, str, str]] = {}
    if probe.patterns:
        for line, text, why in _by_pattern(probe, file.hunks):
            found.setdefault(line, (line, text, why))
            if len(found) == _MOST_PER_FILE:
                break
    else:
        for hunk in file.hunks:
            if place := _by_words(probe.words, hunk):
                found[place[0]] = place
    return list(found.values())


def _is_about(probe: _Probe, path: str) -> bool:
    """Returns whether an edge may apply to a file."""
    if probe.endings:
        name = path.rpartition("/")[2].lower()
        return not probe.endings.isdisjoint(name.split("."))
    return not probe.needs or not probe.needs.isdisjoint(_techs_of(path))


def _by_pattern(probe: _Probe, hunks: Sequence[Hunk]) -> Iterator[tuple[int, str, str]]:
    # A line with NUL separates hunks, so that no pattern matches across them.
    texts = [line for hunk in hunks for line in (*hunk.lines, "\0")]
    data = "\n".join(texts).encode("utf-8", "replace")
    starts = [0]
    for hunk in hunks:
        starts.append(starts[-1] + len(hunk.lines) + 1)
    for pattern, made in probe.patterns:
        for place in patterns.lines(made, data):
            number = bisect_right(starts, place) - 1
            offset = place - starts[number]
            if offset < len(hunks[number].lines):
                yield hunks[number].start + offset, texts[place], pattern


def _by_words(words: frozenset[str], hunk: Hunk) -> tuple[int, str, str] | None:
    if not words.issubset(tokenize("\n".join(hunk.lines))):
        return None
    shared = [len(words.intersection(tokenize(line))) for line in hunk.lines]
    best = max(range(len(shared)), key=lambda place: shared[place])
    return hunk.start + best, hunk.lines[best], f"all of its words: {', '.join(sorted(words))}"


def _techs_of(path: str) -> set[str]:
    """Returns the technologies in a path: its folders and the parts of the file name."""
    names = path.replace("/", ".").replace("-", ".").replace("_", ".").split(".")
    return {tech(name) for name in names if name}


# Reports for other programs.


_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {Severity.INFO: "note", Severity.WARNING: "warning", Severity.CRITICAL: "error"}
_COMMANDS = {Severity.INFO: "notice", Severity.WARNING: "warning", Severity.CRITICAL: "error"}
_LONGEST_TITLE = 200


class Reported(NamedTuple):
    """One hit in a report."""

    rule: str
    """The id of the edge, or of the failed decision."""
    title: str
    description: str
    workaround: str
    severity: Severity
    file: str
    line: int
    text: str
    trusted: bool

    @property
    def message(self) -> str:
        """Returns the problem and its workaround in words."""
        text = f"{self.title}. {self.workaround}" if self.workaround else self.title
        return text if self.trusted else f"{text} (from an unapproved memory)"


def annotations(places: Iterable[Reported]) -> str:
    """Returns workflow commands, which GitHub shows at the lines of the hits."""
    return "\n".join(_annotation(place) for place in places)


def sarif(places: Sequence[Reported], *, version: str) -> str:
    """Returns a log in SARIF 2.1.0, with one rule for each edge."""
    rules = {place.rule: place for place in reversed(places)}
    indexes = {rule: number for number, rule in enumerate(sorted(rules))}
    run = {
        "tool": {
            "driver": {
                "name": "mind",
                "semanticVersion": version,
                "rules": [_rule(rules[name]) for name in indexes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(place, indexes[place.rule]) for place in places],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2)


def _rule(place: Reported) -> dict[str, Any]:
    whole = place.description or place.title
    text = f"{whole}\n\nWhat to do: {place.workaround}" if place.workaround else whole
    return {
        "id": place.rule,
        "shortDescription": {"text": place.title[:_LONGEST_TITLE]},
        "fullDescription": {"text": whole},
        "help": {"text": text},
        "defaultConfiguration": {"level": _LEVELS[place.severity]},
        "properties": {"trusted": place.trusted},
    }


def _result(place: Reported, index: int) -> dict[str, Any]:
    mark = sha256(f"{place.rule}\n{place.file}\n{place.text.strip()}".encode("utf-8", "replace"))
    return {
        "ruleId": place.rule,
        "ruleIndex": index,
        "level": _LEVELS[place.severity],
        "message": {"text": place.message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(place.file, errors="replace")},
                    "region": {"startLine": place.line, "snippet": {"text": place.text}},
                }
            }
        ],
        "partialFingerprints": {"edgeAndLine/v1": mark.hexdigest()[:32]},
    }


def _annotation(place: Reported) -> str:
    properties = {"file": place.file, "line": str(place.line), "title": place.title}
    pairs = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_COMMANDS[place.severity]} {pairs}::{_data(place.message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
