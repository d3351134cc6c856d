"""Edges: those of the user, of the project and of its stack, and what runs into them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from mimo.errors import Conflict, EdgeExists, Invalid
from mimo.features.edges import changes, stack
from mimo.features.edges import edge as edges
from mimo.features.edges.checking import Warned, check
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
"""Edges for which only the stack speaks: more would drown what is meant."""


@frozen
class Known:
    """An edge, and whose it is."""

    edge: Edge
    record: Record
    of_project: bool
    trusted: bool
    """Whether somebody here approved the text; what lies in the user's own home is approved."""

    def file(self, mind: Mind) -> str:
        """Returns its file: relative to the project, or absolute for one of everybody's."""
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
    """Returns all edges that hold here: the project's before everybody's."""
    return [*(of_project(mind) if mind.has_project else []), *of_everybody(mind)]


def problems(mind: Mind, known: Iterable[Known]) -> Iterator[Problem]:
    """Yields each file of the user's home, and each pattern of `known`, that can't be used."""
    yield from GlobalEdges(mind.home).all()[1]
    for one in known:
        for pattern, reason in unusable(one.edge.detection):
            told = f"the pattern `{pattern}` of {one.edge.id} never matches: {reason}"
            yield Problem(path=one.file(mind), line=one.record.place.line, reason=told)


def unusable(detection: Detection) -> list[tuple[str, str]]:
    """Returns the patterns for code that can't be used, each with the reason."""
    made = ((pattern, patterns.compiled(pattern)) for pattern in detection.code)
    return [(pattern, one.reason) for pattern, one in made if isinstance(one, patterns.Unusable)]


def technologies(mind: Mind) -> tuple[str, ...]:
    """Returns what the project is made with: told from its files, and by its log."""
    if not mind.has_project:
        return ()
    told = finding.listing(mind, finding.Options(filter=Filter(topic=STATE_TOPIC))).records
    trusted = mind.trust.checker()
    named = (
        tag
        for one in told
        if one.memory.category == "stack" and trusted(one.place.digest)
        for tag in one.memory.tags
    )
    return tuple(dict.fromkeys((*stack.detect(mind.project.root), *named)))


def warnings(
    mind: Mind, known: Iterable[Known], intent: str, *, code: str, techs: tuple[str, ...] | None
) -> list[tuple[Known, Match]]:
    """Returns those that apply to what the caller is about to do, the surest first.

    Of those equally sure, the approved ones come first, and are never crowded out by others.

    `techs` is the stack where that is not to be told from the project.
    """
    named = technologies(mind) if techs is None else techs
    question = edges.asked(intent, named, code)
    met = (
        (one, match)
        for one in known
        if (match := edges.match(one.edge, question, of_project=one.of_project))
    )
    sure = sorted(met, key=lambda one: (one[1].order, not one[0].trusted))
    by_stack = [one for one in sure if one[1].stack_alone]
    alone = sorted(by_stack, key=lambda one: not one[0].trusted)[_MOST_OF_STACK:]
    return [one for one in sure if one not in alone]


@frozen
class Hit:
    """A place at which a change runs into an edge, or into a decision that failed."""

    known: Known
    warned: Warned


def run_into(mind: Mind, added: Iterable[Added]) -> list[Hit]:
    """Returns what a change runs into, file by file and line by line."""
    known = [*_failed(mind), *everything(mind)]
    by_edge = {id(one.edge): one for one in known}
    found = check([(one.edge, one.of_project) for one in known], added, stack=technologies(mind))
    return [Hit(known=by_edge[id(warned.edge)], warned=warned) for warned in found]


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
    """Writes an edge that holds in every project. Raises `EdgeExists` for a title that is known."""
    draft = _draft(title, description, workaround, detection, stack_tags, severity)
    store = GlobalEdges(mind.home)
    with store.locked():
        _refuse_double(of_everybody(mind), title)
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

    An edge that is not approved does not keep its title for itself.
    """
    draft = _draft(title, description, workaround, detection, stack_tags, severity)
    _refuse_double([one for one in of_project(mind) if one.trusted], title)
    return saving.store(mind, draft, private=private)


def add_starter(mind: Mind) -> tuple[list[Record], list[Record]]:
    """Copies the well-known edges to the user's home; returns the new ones, and those known."""
    store = GlobalEdges(mind.home)
    with store.locked():
        titles = {edges.title_key(one.edge.title) for one in of_everybody(mind)}
        here = [one for one in starter() if edges.title_key(one.memory.heading) in titles]
        missing = [one for one in starter() if one not in here]
        return [store.adopt(one) for one in missing], here


def added_by(
    mind: Mind, names: tuple[str, ...], *, staged: bool, rev: str | None, code: str | None
) -> Iterator[Added]:
    """Returns what is to be checked; raises `Invalid` where more than one thing is named."""
    if sum((bool(names), staged, rev is not None, code is not None)) > 1:
        raise Invalid(
            "files, --staged, --diff and --code say different things",
            hint="name one of them; none is what changed since the last commit",
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
    return [_as_edge(_of_project(mind, record)) for record in found]


def _as_edge(known: Known) -> Known:
    told = outcomes.warning(known.record.memory) or ""
    edge = known.edge._replace(workaround=told, severity=Severity.WARNING)
    return replace(known, edge=edge)


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
            hint="say what goes wrong in a few words",
            details={"field": "title"},
        )
    content = check_content(content_of(check_content(description).strip(), workaround.strip()))
    tags = saving.clean_tags(stack_tags)
    extra = extra_of(detection, tags, severity)
    return saving.draft(Kind.EDGE, content, title=name, extra=extra)


def _refuse_double(known: Iterable[Known], title: str) -> None:
    key = edges.title_key(title)
    for one in known:
        if edges.title_key(one.edge.title) == key:
            raise EdgeExists(
                f"there is an edge `{one.edge.title}`: {one.edge.id}",
                hint="change its file, or say in the title what is different",
                details={"id": one.edge.id},
            )
