"""What a change runs into, told to other programs: SARIF 2.1.0 and GitHub's annotations."""

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

# Which edges, and decisions that failed, a change runs into.


_FEWEST_WORDS = 2
_MOST_PER_FILE = 20
"""Lines of one file that are told for one edge."""


class Warned(NamedTuple):
    """A place at which a change runs into an edge."""

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
    """The stems that must all stand close together, where there is no pattern."""
    endings: frozenset[str]
    """Of which the file's name must have one; any where empty."""
    needs: frozenset[str]
    """Technologies of which the project, or the file's path, must name one; any where empty."""


def check(
    edges: Iterable[tuple[Edge, bool]], added: Iterable[Added], *, stack: Sequence[str]
) -> Iterator[Warned]:
    """Yields what a change runs into, file by file and line by line.

    Each edge comes with whether it is of the project: one of everybody's that names a stack holds
    where the project, or the path of the file, has something of that. One that names a language
    holds in files of it alone. One without patterns is met where all words of its title stand in
    lines that follow each other.
    """
    ready = [probe for edge, own in edges if (probe := _probe(edge, own, stack)) is not None]
    for file in added:
        met = [(probe, place) for probe in ready for place in _places(probe, file)]
        rank = {id(probe): place for place, probe in enumerate(ready)}
        for probe, (line, text, why) in sorted(met, key=lambda one: (one[1][0], rank[id(one[0])])):
            yield Warned(edge=probe.edge, path=file.path, line=line, text=text, matched_on=why)


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
    """Returns each line at which a file's change meets an edge: number, text and why."""
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
    """Returns whether an edge may be met in a file at all."""
    if probe.endings:
        name = path.rpartition("/")[2].lower()
        return not probe.endings.isdisjoint(name.split("."))
    return not probe.needs or not probe.needs.isdisjoint(_techs_of(path))


def _by_pattern(probe: _Probe, hunks: Sequence[Hunk]) -> Iterator[tuple[int, str, str]]:
    # Hunks are kept apart by a line that no pattern with a dot crosses.
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
    """Returns the names in a file's path: of its folders, and the parts of its own name."""
    names = path.replace("/", ".").replace("-", ".").replace("_", ".").split(".")
    return {tech(name) for name in names if name}


_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {Severity.INFO: "note", Severity.WARNING: "warning", Severity.CRITICAL: "error"}
_COMMANDS = {Severity.INFO: "notice", Severity.WARNING: "warning", Severity.CRITICAL: "error"}
_LONGEST_TITLE = 200


class Reported(NamedTuple):
    """One place at which a change runs into something."""

    rule: str
    """The id of the edge, or of the decision that failed."""
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
        """Returns in words what is met and what to do about it."""
        told = f"{self.title}. {self.workaround}" if self.workaround else self.title
        return told if self.trusted else f"{told} (from a memory that nobody here approved)"


def annotations(places: Iterable[Reported]) -> str:
    """Returns workflow commands, which GitHub shows at the lines that they name."""
    return "\n".join(_annotation(place) for place in places)


def sarif(places: Sequence[Reported], *, version: str) -> str:
    """Returns a log in SARIF 2.1.0, with one rule for each edge that was met."""
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
    told = f"{whole}\n\nWhat to do: {place.workaround}" if place.workaround else whole
    return {
        "id": place.rule,
        "shortDescription": {"text": place.title[:_LONGEST_TITLE]},
        "fullDescription": {"text": whole},
        "help": {"text": told},
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
    told = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_COMMANDS[place.severity]} {told}::{_data(place.message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
