"""Which edges, and decisions that failed, a change runs into."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from mimo.domain import patterns
from mimo.domain.diffs import Added, Hunk
from mimo.domain.edges.edge import Edge
from mimo.domain.edges.matching import endings, probes, stack_words, subject, tech
from mimo.domain.tokens import tokenize

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
