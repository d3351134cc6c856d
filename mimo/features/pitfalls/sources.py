"""The edges that apply here: of the user and of the project; adding and matching them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from mimo.call import Call
from mimo.data.disk import STORE
from mimo.data.files import CONFIG
from mimo.data.sqlite import Connection
from mimo.errors import Conflict, EdgeExists, Invalid
from mimo.features.pitfalls import changes, storage
from mimo.features.pitfalls.checking import Added, Hit, check
from mimo.features.pitfalls.edge import Detection, Edge, memory_of, subject, title_key
from mimo.features.pitfalls.failures import as_edge
from mimo.features.pitfalls.matching import LIKELY, Cosines, Match, Task, matches
from mimo.frozen import replace
from mimo.index.catalog import Catalog
from mimo.index.cosine import cosines
from mimo.index.embedding import ENCODED_LENGTH, FAILURES, is_elsewhere, open_encoder
from mimo.index.meanings import Meanings
from mimo.memory import ids, outcomes
from mimo.memory.model import Filter, Kind, Outcome, Problem, Record, check_content
from mimo.memory.note import STATE_TOPIC
from mimo.operations import across, disclosure, finding, saving
from mimo.project import git, projects
from mimo.project.projects import Registered
from mimo.text import patterns

_LONGEST_TITLE = 200
_MOST_ENCODED, _MOST_TASKS = 400, 32
"""The number of new phrases of edges that one answer encodes, in about 2 s; later ones go on."""


def all_edges(call: Call) -> list[Edge]:
    """Returns all edges: those of the project, then the global ones."""
    return [*(project_edges(call) if call.mind.has_project else []), *user_edges(call)]


def user_edges(call: Call) -> list[Edge]:
    """Returns the edges of the user's own home; users of a team's server have none."""
    return _of_home(call)[0]


def _of_home(call: Call) -> tuple[list[Edge], list[Problem]]:
    return storage.read_all(call.mind.home) if call.owns_home else ([], [])


def project_edges(call: Call, *, shared: bool = False) -> list[Edge]:
    """Returns the edges of the project: its gotchas, and the memories of type `edge`.

    With `shared`, private ones are left out.
    """
    options = finding.Options(filter=Filter(types=frozenset({Kind.EDGE}), shared=shared))
    return [_of_record(call, record) for record in finding.listing(call, options).records]


def failed(call: Call, *, shared: bool = False) -> list[Edge]:
    """Returns the project's failed decisions, replaced ones included, as edges.

    With `shared`, private ones are left out.
    """
    if not call.mind.has_project:
        return []
    conditions = Filter(
        types=frozenset({Kind.DECISION}), outcomes=frozenset({Outcome.FAILED}), shared=shared
    )
    records = finding.listing(call, finding.Options(filter=conditions)).records
    newer = call.index.superseded_by([record.memory.id for record in records])
    headings, trusted = {}, call.mind.trust.checker()
    for id, new in newer.items():
        successor = call.index.get(new)
        is_usable = successor is not None and trusted(successor.place.approval)
        headings[id] = successor.memory.heading if successor and is_usable else ""

    def edges(sql: Connection) -> list[Edge | None]:
        catalog = Catalog(sql)
        return [
            as_edge(
                _of_record(call, record),
                outcomes.warning(record.memory) or "",
                headings.get(record.memory.id, ""),
                catalog.holding,
            )
            for record in records
        ]

    return [edge for edge in call.index.ask(edges) if edge]


def problems(call: Call, edges: Iterable[Edge]) -> Iterator[Problem]:
    """Yields the global files, and the patterns of `edges`, that can't be used."""
    yield from _of_home(call)[1]
    for edge in edges:
        for pattern, reason in unusable(edge.detection):
            message = f"the pattern `{pattern}` of {edge.id} never matches: {reason}"
            if call.agent is not None and edge.of_project and not edge.trusted:
                message = disclosure.WITHHELD
            yield Problem(path=edge.file, line=edge.line, reason=message)


def unusable(detection: Detection) -> list[tuple[str, str]]:
    """Returns the patterns for code that can't be used, each with the reason."""
    compiled = ((pattern, patterns.compiled(pattern)) for pattern in detection.code)
    return [
        (text, regex.reason) for text, regex in compiled if isinstance(regex, patterns.Unusable)
    ]


def technologies(call: Call) -> tuple[str, ...]:
    """Returns the technologies of the project, from its files and from MEMORY.md."""
    if not call.mind.has_project:
        return ()
    records = finding.listing(call, finding.Options(filter=Filter(topic=STATE_TOPIC))).records
    trusted = call.mind.trust.checker()
    named = (
        tag
        for record in records
        if record.memory.category == "stack" and trusted(record.place.approval)
        for tag in record.memory.tags
    )
    return tuple(dict.fromkeys((*storage.stack_of(call.mind.project.root), *named)))


def dependencies(call: Call) -> tuple[str, ...]:
    """Returns the names of packages that the project uses."""
    return storage.dependencies(call.mind.project.root) if call.mind.has_project else ()


def stack_of(call: Call) -> tuple[str, ...]:
    """Returns the technologies and the packages of the project."""
    return (*technologies(call), *dependencies(call))


def warnings(
    call: Call,
    edges: Iterable[Edge],
    intent: str,
    *,
    code: str = "",
    techs: tuple[str, ...] | None = None,
    stack_alone: bool = False,
) -> list[Match]:
    """Returns the edges and failed decisions that apply to a task, by confidence.

    `techs` is the stack; None detects that of the project. With `stack_alone`, edges follow of
    which only the stack matches.
    """
    stack, used = (technologies(call), dependencies(call)) if techs is None else (techs, ())
    task = Task(intent, stack, code, used)
    candidates = [*failed(call), *edges]
    try:
        return matches(candidates, task, _cosines(call, intent), stack_alone=stack_alone)
    except FAILURES:
        return matches(candidates, task, None, stack_alone=stack_alone)


def approved_ids(call: Call, prompt: str) -> list[str]:
    """Returns the ids of the approved edges that apply to a prompt, by confidence."""
    matches = warnings(call, all_edges(call), prompt)
    return [match.edge.id for match in matches if match.edge.type == "edge" and match.edge.trusted]


def matching(call: Call, query: str) -> list[tuple[Edge, float]]:
    """Returns the global edges that a search finds, in any project, each with a relevance."""
    edges = user_edges(call)
    relevances = {m.edge: m.confidence for m in warnings(call, edges, query, techs=())}
    words = subject(query)
    for edge in edges:
        if words and words <= subject(f"{edge.title}\n{edge.description}\n{edge.workaround}"):
            relevances.setdefault(edge, LIKELY)
    return list(relevances.items())


def _cosines(call: Call, intent: str) -> Cosines | None:
    """Returns the function that compares texts with a task; None if no model can."""
    encoder = call.mind.encoder
    if encoder is None:
        return None
    meanings = call.mind.index.meanings if call.mind.has_project else None
    if is_elsewhere(encoder):  # Some edges are the user's own.
        encoder, meanings = open_encoder(call.mind.config, stays_here=True), None
        if encoder is None:
            return None
    meanings = meanings or Meanings(call.mind.home / "cache", encoder)
    encoded = cache(encoder.encode)

    def compared(task: str, texts: Sequence[str]) -> list[float]:
        is_new = encoded.cache_info().misses < _MOST_TASKS
        query = encoded(task if is_new else intent)
        return cosines(query, meanings.of(texts, limit=_MOST_ENCODED), ENCODED_LENGTH)

    return compared if encoded(intent) else None


def run_into(call: Call, added: Iterable[Added]) -> list[Hit]:
    """Returns the edges and failed decisions that apply to a change, line by line."""
    return list(check([*failed(call), *all_edges(call)], added, stack_of(call)))


def run_into_below(call: Call, root: Path, added: Sequence[Added]) -> tuple[list[Hit], list[str]]:
    """Returns what applies to a change of the projects in folders below, and problems.

    These are edges and failed decisions of the nearest project around each file, unless that is the
    one of `root`. It is asked if it is registered or tracked by git here, and if the caller may
    open it. An agent's call leaves out private ones.
    """
    root, top = root.resolve(), changes.top_of(root)
    of_folder: dict[Path, list[Added]] = {}
    for file in added:  # A diff that is given may name any path.
        folders = () if ".." in Path(file.path).parts else (top / file.path).parents
        inner = (folder for folder in folders if root in folder.parents)
        nearest = next((folder for folder in inner if (folder / STORE / CONFIG).is_file()), None)
        if nearest:
            of_folder.setdefault(nearest, []).append(file)

    def question(target: Call, _: bool) -> list[Hit]:
        shared = disclosure.hides_private(call, is_here=False, is_asked=True)
        edges = [*failed(target, shared=shared), *project_edges(target, shared=shared)]
        place = target.mind.project.root.relative_to(root).as_posix()
        edges = [edge._replace(file=f"{place}/{edge.file}") for edge in edges]
        return list(check(edges, of_folder[target.mind.project.root], stack_of(target)))

    registered = {entry.path: entry for entry in projects.registered(call.mind.home).projects}
    among = []
    for folder in of_folder:
        entry = registered.get(folder)
        # Code of other authors, such as a submodule or an installed package, may be below.
        tracked = f"{folder.relative_to(root)}/{STORE}/{CONFIG}"
        if not entry and not git.is_tracked(root, tracked):
            continue
        if call.may_open(folder, registered.values()):
            among.append(entry or Registered(path=folder, name=folder.name))
    answers, skipped = across.ask_each(call, "mind_edges_check", question, among=among)
    return [hit for _, _, hits in answers for hit in hits], skipped


def added_by(
    call: Call,
    root: Path,
    names: tuple[str, ...],
    *,
    staged: bool,
    rev: str | None,
    code: str | None,
) -> Iterator[Added]:
    """Yields the additions to check below a folder. Raises `Invalid` for more than one source."""
    if sum((bool(names), staged, rev is not None, code is not None)) > 1:
        raise Invalid(
            "`files`, `staged`, `diff` and `code` exclude each other",
            hint="name one of them (default: the changes since the last commit)",
        )
    if code is not None:
        return changes.of_text(code)
    if names:
        near = Path.cwd() if call.author is None else root
        return changes.of_files(root, names, near=near)
    return changes.of_git(root, staged=staged, rev=rev)


def add(call: Call, edge: Edge, *, private: bool = False) -> Record:
    """Writes a new edge to `.mind/edges/` of its project, or to the user's home if it is global.

    Raises `EdgeExists` if another edge there has its title; an unapproved one may have it.
    """
    title = " ".join(edge.title.split())
    if not title or len(title) > _LONGEST_TITLE:
        raise Invalid(
            f"a title has 1 to {_LONGEST_TITLE} characters",
            hint="name the problem in a few words",
            details={"field": "title"},
        )
    content, extra = memory_of(
        edge._replace(
            description=check_content(edge.description).strip(),
            workaround=edge.workaround.strip(),
            stack_tags=saving.clean_tags(edge.stack_tags),
        )
    )
    draft = saving.draft(Kind.EDGE, content, title=title, extra=extra)
    if edge.of_project:
        with saving.in_turn(call):
            _refuse_duplicate(project_edges(call), title)
            return saving.store(call, draft, private=private)
    with storage.locked(call.mind.home):
        _refuse_duplicate(user_edges(call), title)
        now = call.mind.now()
        name = ids.new_id(Kind.EDGE, title, now, ids.suffix(call.mind.randomness(4)))
        memory = replace(draft, id=name, created=now, by=call.author)
        return storage.create(call.mind.home, memory)


def add_starter(call: Call) -> tuple[list[Edge], int]:
    """Copies the well-known edges to the user's home.

    Returns the new ones, and the number of those whose title, id or file existed already.
    """
    with storage.locked(call.mind.home):
        existing = user_edges(call)
        ids_ = {edge.id for edge in existing}
        titles = {title_key(edge.title) for edge in existing}
        records = storage.starter()
        added = []
        for record in records:
            memory = record.memory
            if memory.id in ids_ or title_key(memory.heading) in titles:
                continue
            with suppress(Conflict):  # A file of that name is not readable as an edge.
                edge = storage.edge_in(storage.adopt(call.mind.home, record))
                added.append(edge._replace(file=str(call.mind.home / edge.file)))
        return added, len(records) - len(added)


def _of_record(call: Call, record: Record) -> Edge:
    trusted = call.mind.trust.trusted(record.place.approval)
    return storage.edge_in(record)._replace(of_project=True, trusted=trusted)


def _refuse_duplicate(edges: Iterable[Edge], title: str) -> None:
    key = title_key(title)
    for edge in edges:
        if edge.trusted and title_key(edge.title) == key:
            raise EdgeExists(
                f"the pitfall `{edge.title}` exists already: {edge.id}",
                hint="change its file, or choose a title that shows the difference",
                details={"id": edge.id},
            )
