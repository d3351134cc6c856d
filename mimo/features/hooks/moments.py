"""The answers at the moments of a session: its start, a prompt, an edit, a summary, its end.

A note is given once in a session, and not at all if the client reads it from the block in an
instructions file. Before a tool writes, its text is checked against the known edges. At compaction
and at the end of a session the client's own summary is kept as a private memory.

Each moment imports what only it needs, because clients wait.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mimo.data import disk, files
from mimo.data.disk import STORE
from mimo.errors import Denied, MindError, NotFound, RateLimited
from mimo.features.hooks.events import (
    Dialect,
    Moment,
    Say,
    fenced,
    takes_context,
    without_fenced,
)
from mimo.features.hooks.scene import (
    CALLS,
    CLONE,
    MAX_COUNT,
    MAX_FILE_BYTES,
    Scene,
    Session,
    text_of_file,
)
from mimo.frozen import NamedTuple
from mimo.index.catalog import Catalog
from mimo.memory.note import Note, plain
from mimo.operations import asking
from mimo.project import projects
from mimo.text.clean import clean, storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mimo.features.pitfalls.checking import Hit
    from mimo.features.pitfalls.edge import Edge

PROMPT_BUDGET = 2_000
"""Maximum number of characters of the notes with a prompt."""

MAX_RELATED = 4
"""Maximum number of memories with a prompt, failed decisions that it names included."""


class Near(NamedTuple):
    """The comparison of a prompt by meaning, which a server makes."""

    project: tuple[tuple[str, float], ...] = ()
    """The ids of the nearest memories, and their cosines with the prompt."""
    user: tuple[tuple[str, float], ...] = ()
    """The nearest memories of the user's memory for all projects, and their cosines."""
    work: float = 0.0
    """The likeness of the prompt with work of consequence, less that with routine work."""
    edges: tuple[str, ...] | None = None
    """The ids of the pitfalls that the prompt runs into; None if no server compared them."""


_MAX_PROMPT = 4_000
_ANSWER_SECONDS = 1.0

_FILES = {
    Dialect.CLAUDE: ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"),
    Dialect.CODEX: ("AGENTS.override.md", "AGENTS.md"),
    Dialect.GEMINI: ("GEMINI.md",),
    Dialect.CURSOR: ("AGENTS.md",),
    Dialect.VSCODE: ("AGENTS.md", ".github/copilot-instructions.md"),
    Dialect.COPILOT: ("AGENTS.md", ".github/copilot-instructions.md"),
    Dialect.OPENCODE: ("AGENTS.md",),
}
"""The instructions files that each client gives to its agent."""
_MAX_CHECKPOINTS = 100

_LOG = f"{STORE}/MEMORY.md"
_MAX_WARNINGS = 20
"""Problems of the settings that are logged at a start."""

MAX_EDGES = 3
"""Maximum number of edges in one answer, the worst first."""
_MAX_CHECKED = 200
_MAX_TEXT = 200_000

MIN_LAST = 200
"""Characters of a last message that is worth a memory: `Done.` is not."""
MAX_SUMMARY = 20_000
"""Characters of a summary that are kept."""
MAX_TITLE = 100
"""Characters of the title of a summary."""

_NEW_CONTEXT = (Dialect.CLAUDE, Dialect.CODEX)
"""Clients that start a session again after compaction."""


def in_session(scene: Scene) -> Say:
    """Returns the reaction to an event, and remembers it in the file of the session."""
    moment = scene.event.moment
    resuming = moment is Moment.PROMPT and expose(scene)
    # A server is asked before other hooks have to wait.
    nearest = near(scene) if moment is Moment.PROMPT else None
    try:
        with scene.locked_sessions():
            session = scene.load_session(scene.event.session)
            say, changed = reaction(scene, session, resuming=resuming, near=nearest)
            if changed != session:
                scene.save_session(scene.event.session, changed)
            if moment is Moment.START:
                scene.remove_old_sessions()
            return say
    except MindError as error:
        from mimo.guard.privacy import for_log

        scene.log(f"no answer: {for_log(error.message)}")
        # Without a session file, notes are given at the start only: later ones would repeat.
        if moment is Moment.START:
            return reaction(scene, Session(), resuming=False)[0]
        return Say()


def reaction(
    scene: Scene, session: Session, *, resuming: bool, near: Near | None = None
) -> tuple[Say, Session]:
    """Returns the answer to an event, and the changed session.

    `resuming` is whether a prompt continues earlier work, and `near` the memories nearest to it by
    meaning, if a server compared them. Raises `MindError`.
    """
    event = scene.event
    if scene.allowed.capture:
        session = _with_work(scene, session)
    if event.moment is Moment.START:
        say, session = _at_start(scene, session)
        return _with_problems(scene, say), session
    if event.moment is Moment.PROMPT:
        return _with_prompt(scene, session, resuming=resuming, near=near or Near())
    if event.moment is Moment.TOOL:
        return _before_tool(scene, session)
    if event.moment is Moment.STOPPED:
        return _at_stop(scene, _with_message(scene, session))
    if event.moment is Moment.COMPACTED:
        if event.text:
            session = _keep_summary(scene, session, event.text)
        is_sure = event.dialect is not Dialect.GEMINI or event.source == "manual"
        if is_sure and event.dialect not in _NEW_CONTEXT:
            session = session._replace(shown=(), warned=())
        return Say(), session
    text = event.text or session.last
    if len(text) >= MIN_LAST:
        session = _keep_summary(scene, session, text, closing=True)._replace(last="")
    return Say(), session


def _with_work(scene: Scene, session: Session) -> Session:
    """Returns the session with the work of an event counted."""
    event, work, now = scene.event, session.work, scene.now.isoformat()
    if event.moment is Moment.PROMPT and event.by_user:
        work = work._replace(prompts=min(work.prompts + 1, MAX_COUNT), turn=now)
    if event.moment is Moment.TOOL:
        work = work._replace(edits=min(work.edits + 1, MAX_COUNT))
    if event.moment in (Moment.START, Moment.PROMPT, Moment.TOOL):
        work = work._replace(began=work.began or now)
    return session._replace(work=work)


def _at_stop(scene: Scene, session: Session) -> tuple[Say, Session]:
    """Returns the request to record what the session leaves, once in a session that worked."""
    if scene.source or not (scene.allowed.capture and scene.event.may_ask and scene.event.session):
        return Say(), session
    from mimo.features.hooks import capture

    if not (capture.has_worked(session.work) and capture.is_permitted(scene)):
        return Say(), session
    request = capture.request(scene, session)
    if not request:
        return Say(), session
    session = session._replace(work=session.work._replace(asked=True))
    if not capture.is_first(scene):
        return Say(), session
    scene.log("asked the agent to record what the session leaves")
    return Say(request=request), session


# The start of a session.


def _at_start(scene: Scene, session: Session) -> tuple[Say, Session]:
    """Returns the notes for a new session; a resumed one gets what it has not seen yet."""
    if scene.event.source != "resume":
        session = session._replace(shown=(), warned=())
    if scene.allowed.context and not scene.permits():
        return _refused(scene), session
    with scene.index() as catalog:
        notice = _first_notice(scene, catalog)
        if not scene.allowed.context:
            return notice or Say(), session
        if notice is None and catalog is not None and (left := catalog.left_out(_LOG)):
            notes, wait = ("1 note", "waits") if left == 1 else (f"{left:,} notes", "wait")
            say = Say(notice=f"mind: {notes} of `{_LOG}` {wait} for approval: `mind review`")
            return _sections(scene, catalog, session, say)
        return _sections(scene, catalog if notice is None else None, session, notice or Say())


def _with_problems(scene: Scene, say: Say) -> Say:
    """Returns an answer with a notice that names settings files with problems.

    Some clients give a notice to the agent, too, so only the log quotes the files.
    """
    warnings = scene.allowed.warnings
    if not warnings:
        return say
    from mimo.guard.privacy import for_log

    for warning in warnings[:_MAX_WARNINGS]:
        scene.log(f"settings: {for_log(warning)}")
    names = dict.fromkeys(clean(warning.partition(": ")[0]) for warning in warnings)
    paths = " and ".join(f"`{name}`" for name in names)
    notice = (
        f"mind: {paths} can't be used as written, so agents may get fewer notes or none; "
        "`mind config` lists the problems"
    )
    old_notice = say.notice.removeprefix("mind: ")
    return say._replace(notice=f"{notice}; {old_notice}" if old_notice else notice)


def _first_notice(scene: Scene, catalog: Catalog | None) -> Say | None:
    """Returns the reason for which a project's memory is not given; None if it is given."""
    approves_nothing = not (scene.trust.state.follow or scene.trust.state.approved)
    if catalog is None:
        if scene.is_outside or not _has_memories(scene.root):
            return None
        if approves_nothing:
            return _unapproved(scene, 0)
        return Say(
            notice="mind: this project's memory is not indexed yet; `mind status` indexes it"
        )
    if approves_nothing and (memories := catalog.memories()):
        return _unapproved(scene, memories)
    return None


def _refused(scene: Scene) -> Say:
    """Returns the reason why no notes are given: each time if the policy is invalid, else once."""
    policies, error = scene.guard.policies(), scene.refusal
    if policies.faults and error:
        reason = " ".join(clean(f"{error.message}; {error.hint}").split())
        return Say(notice=f"mind: agents get no memory: {reason}")
    session, mark = scene.load_session(CLONE), f"policy {policies.digest}"
    if mark in session.warned or not isinstance(error, Denied):
        return Say()
    scene.save_session(CLONE, session.and_warned([mark]))
    return Say(
        notice="mind: the policy permits no memory at the start of a session; "
        "`mind policy explain hook/start` shows the rule"
    )


def _unapproved(scene: Scene, count: int) -> Say:
    """Returns the notice about a clone without approved memories; nothing the second time."""
    session = scene.load_session(CLONE)
    if "untrusted" in session.warned:
        return Say()
    scene.save_session(CLONE, session.and_warned(["untrusted"]))
    memories = "memories" if not count else "1 memory" if count == 1 else f"{count:,} memories"
    return Say(
        notice=f"mind: this repository has {memories} that you have not approved, so agents do "
        "not see them; `mind review` shows them, `mind trust` approves them"
    )


def _has_memories(root: Path) -> bool:
    """Returns whether there is any file of a memory, reading each folder once."""
    with suppress(OSError):
        for folder in (root / ".mind").iterdir():
            if folder.name[0] != "." and folder.is_dir() and next(folder.glob("*.md"), None):
                return True
    return False


def _sections(
    scene: Scene, catalog: Catalog | None, session: Session, say: Say
) -> tuple[Say, Session]:
    """Returns the sections without the lines that the agent has in files or in this session."""
    from mimo.features import context

    sections = scene.of_user(context.of_user)
    if catalog is not None:
        notes = context.gather(catalog, private=True)
        sections += context.sections(notes._replace(checkpoint=_own_checkpoint(scene, catalog)))
    in_files = _lines_in_files(scene) if sections else ()
    read: list[str] = []
    new = []
    for title, lines in sections:
        read += [line.mark for line in lines if line.text in in_files]
        fresh = [line for line in lines if line.mark not in session.shown]
        if lines := tuple(line for line in fresh if line.text not in in_files):
            new.append(context.Section(title, lines))
    selection = context.within(new, scene.allowed.budget)
    marks = [line.mark for section in selection for line in section.lines]
    if selection:
        scene.log(f"{len(marks)} lines of notes")
    if selection:
        say = say._replace(context=fenced(context.rendered(selection), scene.source))
    return say, session.and_shown([*read, *marks])


# A prompt.


def expose(scene: Scene) -> bool:
    """Writes the tools that fit a prompt for the server; returns whether it resumes work."""
    if scene.is_outside or scene.user is not None:
        return False
    from mimo.features.hooks import exposure

    exposed = exposure.classify(scene.event.prompt, has_sessions=scene.allowed.sessions)
    tools = "every tool" if exposed.tools is None else f"{len(exposed.tools)} tools"
    line = f"{exposed.intent} ({exposed.confidence:g}): {tools}"
    try:
        exposure.write(scene.root, exposed._replace(session=scene.event.session, at=scene.now))
    except MindError as error:
        line += f"; not written: {error.message}"
    scene.log(line)
    sure = exposed.confidence >= exposure.SURE
    return sure and exposed.intent is exposure.Intent.RESUMING


def near(scene: Scene) -> Near:
    """Returns the memories nearest to a prompt by meaning, if a server of the user compares them.

    A hook itself compares words only, because loading the encoder takes too long.
    """
    if not (scene.allowed.context and takes_context(scene.event) and scene.permits()):
        return Near()
    request = {
        "ask": "near",
        "folder": str(scene.root),
        "prompt": scene.event.prompt[:_MAX_PROMPT],
        **asking.surroundings(scene.environ),
    }
    reply = asking.ask(str(scene.home), str(scene.root), request, _ANSWER_SECONDS) or {}
    try:
        project, user = (
            tuple((str(id), float(cosine)) for id, cosine in reply.get(name, ()))
            for name in ("near", "near_of_user")
        )
        edges = tuple(map(str, reply["edges"])) if "edges" in reply else None
        return Near(project, user, float(reply.get("work", 0.0)), edges)
    except (TypeError, ValueError):
        return Near()


def _with_prompt(
    scene: Scene, session: Session, *, resuming: bool, near: Near
) -> tuple[Say, Session]:
    """Returns the notes that certainly concern a prompt, and the checkpoint to resume."""
    if not (scene.allowed.context and takes_context(scene.event) and scene.permits()):
        return Say(), session
    from mimo.features.hooks.related import Matches, chosen, matches

    prompt, resumed, named, of_project = scene.event.prompt, None, [], Matches()
    resuming = resuming and scene.allows("load/checkpoint")
    with scene.index() as catalog:
        if catalog is not None:
            resumed = _own_checkpoint(scene, catalog) if resuming else None
            named = _named_failures(catalog, prompt)
            of_project = matches(catalog, prompt, near.project)
    of_user = scene.of_user(lambda catalog: [matches(catalog, prompt, near.user)])
    notes, users = chosen(prompt, of_project, *of_user, work=near.work, edges=near.edges)
    notes = [*named, *(note for note in notes if note not in named)][:MAX_RELATED]
    seen = {*session.shown, *((resumed.mark,) if resumed else ())}
    # A failure that a prompt names is repeated, once: the start of the session is far away.
    failures = {note.mark for note in named} - {*session.warned}
    seen -= failures
    notes = [note for note in notes if note.mark not in seen and _is_current(scene, note)]
    users = [note for note in users if note.mark not in session.shown]
    if resumed and resumed.mark in session.shown:
        resumed = None
    if not (resumed or notes or users):
        return Say(), session
    from mimo.features import context

    lines = [*(context.checkpoint(resumed) if resumed else ()), *map(context.as_line, notes)]
    lines += map(context.line_of_user, users)
    in_files = _lines_in_files(scene)
    texts, marks, budget = [], [], PROMPT_BUDGET
    for line in lines:
        if line.text in in_files and line.mark not in failures:
            marks.append(line.mark)
        elif len(line.text) < budget:
            budget -= len(line.text) + 1
            texts.append(line.text)
            marks.append(line.mark)
    say = Say(context=fenced("\n".join(texts), scene.source))
    session = session.and_warned([*failures.intersection(marks)]) if failures else session
    return say, session.and_shown(marks)


def _named_failures(catalog: Catalog, prompt: str) -> list[Note]:
    """Returns the failed decisions that a prompt names."""
    named = []
    if failed := catalog.failed(_MAX_CHECKED, private=True):
        from mimo.features.pitfalls.failures import names_of, naming

        text = prompt.lower()
        for note in failed:
            names = tuple(names_of(note.heading, note.superseded_by, catalog.holding, text))
            if names and naming(names).search(prompt):
                named.append(note)
    return named


def _is_current(scene: Scene, note: Note) -> bool:
    """Returns whether the file that a note was ingested from, if any, is unchanged."""
    if "/sources/" not in note.path:
        return True
    from mimo.operations.freshness import IngestedFiles

    owner = projects.index_owner(scene.home, os.urandom)
    for path, ingested in IngestedFiles(scene.root, owner).read().items():
        if ingested.kept == note.digest:
            try:
                return ingested.is_of((scene.root / path).lstat())
            except OSError:
                return False
    return True


def _lines_in_files(scene: Scene) -> frozenset[str]:
    """Returns the lines of the blocks in the instructions files of a client."""
    from mimo.features import context

    lines: set[str] = set()
    for name in _FILES[scene.event.dialect] if scene.user is None else ():
        with suppress(OSError, MindError):
            data, _ = disk.look(files.safe_path(scene.files_root, name), limit=MAX_FILE_BYTES)
            if b"MIND:CONTEXT" in data and (block := context.find(data)):
                lines.update(block.body.split("\n"))
    return frozenset(lines)


def _own_checkpoint(scene: Scene, catalog: Catalog) -> Note | None:
    """Returns the checkpoint to resume: of this machine and branch, else the next best."""
    from mimo.features import context
    from mimo.project.git import branch

    branches, current = scene.trust.checkpoints(), branch(scene.root)
    checkpoints, own_notes = list[Note](), list[Note]()
    for limit in (1, _MAX_CHECKPOINTS):  # Mostly, it is the newest one.
        checkpoints = context.checkpoints(catalog, limit, private=True)
        own_notes = [note for note in checkpoints if note.id in branches or note.private]
        for note in own_notes:
            if branches.get(note.id, current) == current:
                return note
    return next(iter(own_notes or checkpoints), None)


# A tool is about to write.


def _before_tool(scene: Scene, session: Session) -> tuple[Say, Session]:
    """Returns a question if a critical edge applies, a remark for any other, once a session."""
    edits = scene.event.edits if scene.allowed.edges else ()
    if not edits or not scene.permits():
        return Say(), session
    edges, stack = _edges(scene, "\n".join(edit.text[:_MAX_TEXT] for edit in edits))
    if not edges:
        return Say(), session
    from mimo.features.pitfalls.checking import added, check

    hit_by_edge: dict[Edge, Hit] = {}
    changes = [
        added(
            edit.path,
            edit.text[:_MAX_TEXT],
            # The files of a user of a server are elsewhere.
            edit.old or ("" if scene.user is not None else text_of_file(scene.root, edit.path)),
        )
        for edit in edits
    ]
    for hit in check(edges, changes, stack):
        if hit.edge.id not in session.warned:
            hit_by_edge.setdefault(hit.edge, hit)
    if not hit_by_edge:
        return Say(), session
    hits = sorted(hit_by_edge.values(), key=lambda hit: hit.edge.severity.rank)[:MAX_EDGES]
    names = [hit.edge.id for hit in hits]
    scene.log(f"pitfalls apply: {', '.join(names)}")
    labels = ["Known pitfall" if hit.edge.type == "edge" else "Failed decision" for hit in hits]
    texts = [f"{label}: {_described(hit)}" for label, hit in zip(labels, hits, strict=True)]
    critical = [_described(hit) for hit in hits if hit.edge.severity.rank == 0]
    # All of them count as reported, and a question has no other text beside it.
    suffix = "".join(f"; also: {text}" for text in texts[len(critical) :])
    say = Say(
        context=fenced("\n".join(f"- {text}" for text in texts), scene.source),
        notice=f"mind: {'; '.join(texts)}",
        stop=f"mind: a known pitfall applies: {'; '.join(critical)}{suffix}" if critical else "",
    )
    return say, session.and_warned(names)


def _edges(scene: Scene, text: str) -> tuple[list[Edge], Sequence[str]]:
    """Returns the edges to compare with a text, and the stack for those of the user.

    They are failed decisions, the project's edges, and the user's.
    """
    edges: list[Edge] = []
    stack: list[str] = []
    has_user_edges = scene.user is None and (scene.home / "edges").is_dir()
    with scene.index() as catalog:
        failed = catalog.failed(_MAX_CHECKED, private=True) if catalog else []
        notes = catalog.newest("edge", _MAX_CHECKED, private=True) if catalog else []
        # Most edits are made in projects without edges, so these are imported late.
        if catalog and (failed or notes):
            from mimo.features.context import failure
            from mimo.features.pitfalls.failures import as_edge

            text, holding = text.lower(), catalog.holding
            for note in failed:
                edge = as_edge(_edge(note), failure(note), note.superseded_by, holding, text)
                edges += [edge] if edge else []
            edges += map(_edge, notes)
        if catalog and has_user_edges:
            stack = catalog.stack()
    if has_user_edges:
        from mimo.features.pitfalls import storage

        if of_user := storage.read_all(scene.home)[0]:
            stack += [*storage.stack_of(scene.root), *storage.dependencies(scene.root)]
            return [*edges, *of_user], stack
    return edges, ()


def _edge(note: Note) -> Edge:
    from mimo.features.pitfalls.edge import edge_of
    from mimo.text.phrases import heading

    title = heading(note.title, note.text, note.topic or note.id)
    edge = edge_of(note.id, title, note.text, note.extra)
    return edge._replace(of_project=True, type=note.kind)


def _described(hit: Hit) -> str:
    """Returns an edge and its place in one line."""
    cure = f" → {plain(hit.edge.workaround, 200)}" if hit.edge.workaround.strip() else ""
    place = f"{plain(hit.path, 120)}, line {hit.line} of the new text"
    return f"{plain(hit.edge.title, 160)}{cure} ({place})"


# The client's own summary of a session.


def masked(text: str) -> str:
    """Returns a client's text without its secrets; an agent can't allow one for itself."""
    from mimo.privacy.model import without
    from mimo.privacy.secrets import secrets_in

    return without(text, secrets_in(text, cut=True, allowing=False))


def _with_message(scene: Scene, session: Session) -> Session:
    """Returns the session with the agent's last message, if a summary of it may be kept."""
    text = scene.event.text if scene.allowed.summaries else ""
    if text and all(scene.allows(tool, writes=True) for tool in CALLS[Moment.ENDED]):
        return session._replace(last=masked(text))
    return session


def _subject(text: str, scene: Scene) -> str:
    """Returns what a summary is about: its first sentences that are no heading or label."""
    import re

    from mimo.text.phrases import cut, plain_line

    for line in re.sub(r"(?s)<analysis>.*?</analysis>", "", text).splitlines():
        words = re.sub(r"^[\d.)#*\s]+|\*\*", "", plain_line(line))
        label, _, after = words.partition(":")
        words = after.strip() if len(label.split()) <= 4 and len(after.split()) > 2 else words
        is_mark = line.startswith(("<", "#")) or "previous conversation" in line
        if len(words.split()) > 2 and not is_mark and not words.endswith(":"):
            return cut(words[0].upper() + words[1:], MAX_TITLE).rstrip(".")
    return f"Session of {scene.now:%Y-%m-%d}"


def _keep_summary(scene: Scene, session: Session, text: str, *, closing: bool = False) -> Session:
    """Keeps a summary without its secrets; returns the session with the id of its memory.

    A session has one memory: a later summary replaces an earlier one, and one at the `closing` of
    the session is added below it. If the policy does not permit that, nothing is kept. Raises
    `MindError`.
    """
    from mimo.call import Call, Caller, Surface
    from mimo.memory.model import Kind
    from mimo.mind import Mind
    from mimo.operations import lookup, saving

    words = masked(storable(without_fenced(text)).strip()[:MAX_SUMMARY])
    if not words or not scene.allowed.summaries or scene.source:
        return session
    opened = Mind.open(
        scene.root, project=scene.root, environ=scene.environ, clock=lambda: scene.now
    )
    try:
        caller = Caller(surface=Surface.MCP, name=scene.event.dialect.value)
        call = Call(opened, caller)
        call.mind.check_format()
        with call.mind.guard.passing(scene.request(writes=True), call.mind.timer.monotonic):
            try:
                record = lookup.one(call, session.memory) if session.memory else None
            except NotFound:
                record = None
            if record:
                call.mind.guard.authorise(scene.request("mind_edit", writes=True))
                memory = record.memory
                both = f"{memory.content}\n\nAt the end: {words}" if closing else words
                # A title of the user's own stays.
                is_old = memory.title == _subject(memory.content, scene)
                title = memory.title if closing or not is_old else _subject(words, scene)
                saving.edit(call, record, content=both, title=title)
                return session
            title = _subject(words, scene)
            draft = saving.draft(Kind.CONTEXT, words, title=title, category="session")
            return session._replace(memory=saving.store(call, draft, private=True).memory.id)
    except (Denied, RateLimited) as error:
        scene.log(f"no summary is kept: {error.message}; {error.hint}")
        return session
    finally:
        opened.close()
