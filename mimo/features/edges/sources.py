"""The edges that apply here: of the user and of the project; adding and matching them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from mimo.errors import Conflict, EdgeExists, Invalid
from mimo.features.edges import changes, checking, stack
from mimo.features.edges import edge as edges
from mimo.features.edges.checking import check
from mimo.features.edges.diffs import Added
from mimo.features.edges.edge import Detection, Edge, Match, Severity, content_of, extra_of
from mimo.features.edges.storage import GlobalEdges, starter
from mimo.frozen import frozen
from mimo.memory import ids, outcomes
from mimo.memory.log import STATE_TOPIC
from mimo.memory.model import Filter, Kind, Memory, Outcome, Problem, Record, check_content
from mimo.mind import Mind
from mimo.operations import finding, saving
from mimo.text import patterns

_TRIES = 5
_LONGEST_TITLE = 200
_MOST_OF_STACK = 3
"""Maximum number of edges that match by the stack only; more would hide the others."""


@frozen
class Known:
    """An edge, its memory and its owner."""

    edge: Edge
    record: Record
    of_project: bool
    trusted: bool
    """True if the text is approved; edges in the user's own home always are."""

    def file(self, mind: Mind) -> str:
        """Returns the path of its file: relative to the project, or absolute for a global edge."""
        path = self.record.place.path
        return path if self.of_project else str(mind.home / path)


def of_everybody(mind: Mind) -> list[Known]:
    """Returns the edges of the user's own home."""
    return [everybodys(record) for record in GlobalEdges(mind.home).all()[0]]


def everybodys(record: Record) -> Known:
    """Returns a memory of the user's own home as an edge."""
    return _known(record, of_project=False, trusted=True)


def of_project(mind: Mind) -> list[Known]:
    """Returns the edges of the project: its gotchas, and the memories of type `edge`."""
    found = finding.listing(
        mind, finding.Options(filter=Filter(types=frozenset({Kind.EDGE})))
    ).records
    return [_of_project(mind, record) for record in found]


def everything(mind: Mind) -> list[Known]:
    """Returns all edges: those of the project, then the global ones."""
    return [*(of_project(mind) if mind.has_project else []), *of_everybody(mind)]


def problems(mind: Mind, known: Iterable[Known]) -> Iterator[Problem]:
    """Yields the global files, and the patterns of `known`, that can't be used."""
    yield from GlobalEdges(mind.home).all()[1]
    for item in known:
        for pattern, reason in unusable(item.edge.detection):
            message = f"the pattern `{pattern}` of {item.edge.id} never matches: {reason}"
            yield Problem(path=item.file(mind), line=item.record.place.line, reason=message)


def unusable(detection: Detection) -> list[tuple[str, str]]:
    """Returns the patterns for code that can't be used, each with the reason."""
    made = ((pattern, patterns.compiled(pattern)) for pattern in detection.code)
    return [(pattern, one.reason) for pattern, one in made if isinstance(one, patterns.Unusable)]


def technologies(mind: Mind) -> tuple[str, ...]:
    """Returns the technologies of the project, from its files and from MEMORY.md."""
    if not mind.has_project:
        return ()
    records = finding.listing(mind, finding.Options(filter=Filter(topic=STATE_TOPIC))).records
    trusted = mind.trust.checker()
    named = (
        tag
        for record in records
        if record.memory.category == "stack" and trusted(record.place.digest)
        for tag in record.memory.tags
    )
    return tuple(dict.fromkeys((*stack.detect(mind.project.root), *named)))


def warnings(
    mind: Mind, known: Iterable[Known], intent: str, *, code: str, techs: tuple[str, ...] | None
) -> list[tuple[Known, Match]]:
    """Returns the edges that apply to a task, by confidence.

    At equal confidence approved edges come first, and others never displace them. `techs` is the
    stack; None detects that of the project.
    """
    named = technologies(mind) if techs is None else techs
    question = edges.asked(intent, named, code)
    met = (
        (item, match)
        for item in known
        if (match := edges.match(item.edge, question, of_project=item.of_project))
    )
    sure = sorted(met, key=lambda pair: (pair[1].order, not pair[0].trusted))
    by_stack = [pair for pair in sure if pair[1].stack_alone]
    alone = sorted(by_stack, key=lambda pair: not pair[0].trusted)[_MOST_OF_STACK:]
    return [pair for pair in sure if pair not in alone]


@frozen
class Hit:
    """A place in a change to which an edge, or a failed decision, applies."""

    known: Known
    place: checking.Hit


def run_into(mind: Mind, added: Iterable[Added]) -> list[Hit]:
    """Returns the edges and failed decisions that apply to a change, line by line."""
    known = [*_failed(mind), *everything(mind)]
    by_edge = {id(item.edge): item for item in known}
    found = check([(item.edge, item.of_project) for item in known], added, stack=technologies(mind))
    return [Hit(known=by_edge[id(place.edge)], place=place) for place in found]


def add(
    mind: Mind,
    title: str,
    *,
    description: str,
    workaround: str,
    detection: Detection,
    stack_tags: tuple[str, ...] = (),
    severity: Severity = Severity.WARNING,
) -> Record:
    """Writes a global edge. Raises `EdgeExists` if its title exists."""
    draft = _draft(title, description, workaround, detection, stack_tags, severity)
    store = GlobalEdges(mind.home)
    with store.locked():
        _refuse_duplicate(of_everybody(mind), title)
        now = mind.now()
        for _ in range(_TRIES):
            name = ids.new_id(Kind.EDGE, title, now, ids.suffix(mind.randomness(4)))
            try:
                return store.create(replace(draft, id=name, created=now, by=mind.author))
            except Conflict:
                continue
    raise Conflict("no free id was found", hint="try again")


def add_here(
    mind: Mind,
    title: str,
    *,
    description: str,
    workaround: str,
    detection: Detection,
    stack_tags: tuple[str, ...] = (),
    severity: Severity = Severity.WARNING,
    private: bool = False,
) -> Record:
    """Writes an edge of this project to `.mind/edges/`. Raises `EdgeExists`.

    The title of an unapproved edge may be used again.
    """
    draft = _draft(title, description, workaround, detection, stack_tags, severity)
    _refuse_duplicate([item for item in of_project(mind) if item.trusted], title)
    return saving.store(mind, draft, private=private)


def add_starter(mind: Mind) -> tuple[list[Record], list[Record]]:
    """Copies the well-known edges to the user's home; returns the new and the existing ones."""
    store = GlobalEdges(mind.home)
    with store.locked():
        titles = {edges.title_key(item.edge.title) for item in of_everybody(mind)}
        added, existing = [], []
        for record in starter():
            if edges.title_key(record.memory.heading) in titles:
                existing.append(record)
            else:
                added.append(store.adopt(record))
        return added, existing


def added_by(
    mind: Mind, names: tuple[str, ...], *, staged: bool, rev: str | None, code: str | None
) -> Iterator[Added]:
    """Yields the additions to check. Raises `Invalid` if more than one source is named."""
    if sum((bool(names), staged, rev is not None, code is not None)) > 1:
        raise Invalid(
            "files, --staged, --diff and --code exclude each other",
            hint="name one of them (default: the changes since the last commit)",
        )
    if code is not None:
        return changes.of_text(code)
    root = mind.project.root
    if names:
        return changes.of_files(root, names, near=Path.cwd())
    return changes.of_git(root, staged=staged, rev=rev)


def _known(record: Record, *, of_project: bool, trusted: bool) -> Known:
    edge = edges.edge_of(record.memory)
    return Known(edge=edge, record=record, of_project=of_project, trusted=trusted)


def _of_project(mind: Mind, record: Record) -> Known:
    return _known(record, of_project=True, trusted=mind.trust.trusted(record.place.digest))


def _failed(mind: Mind) -> list[Known]:
    """Returns the decisions that failed, as edges."""
    if not mind.has_project:
        return []
    conditions = Filter(outcomes=frozenset({Outcome.FAILED}))
    found = finding.listing(mind, finding.Options(filter=conditions)).records
    failed = []
    for record in found:
        known = _of_project(mind, record)
        warning = outcomes.warning(record.memory) or ""
        edge = known.edge._replace(workaround=warning, severity=Severity.WARNING)
        failed.append(replace(known, edge=edge))
    return failed


def _draft(
    title: str,
    description: str,
    workaround: str,
    detection: Detection,
    stack_tags: tuple[str, ...],
    severity: Severity,
) -> Memory:
    name = " ".join(title.split())
    if not name or len(name) > _LONGEST_TITLE:
        raise Invalid(
            f"a title has 1 to {_LONGEST_TITLE} characters",
            hint="name the problem in a few words",
            details={"field": "title"},
        )
    content = check_content(content_of(check_content(description).strip(), workaround.strip()))
    tags = saving.clean_tags(stack_tags)
    extra = extra_of(detection, tags, severity)
    return saving.draft(Kind.EDGE, content, title=name, extra=extra)


def _refuse_duplicate(known: Iterable[Known], title: str) -> None:
    key = edges.title_key(title)
    for item in known:
        if edges.title_key(item.edge.title) == key:
            raise EdgeExists(
                f"the edge `{item.edge.title}` exists already: {item.edge.id}",
                hint="change its file, or choose a title that shows the difference",
                details={"id": item.edge.id},
            )
