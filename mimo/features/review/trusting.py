"""Trust: approving the project's files, and a summary of those that are not approved yet."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from posixpath import normpath
from typing import Annotated

from mimo.call import Call
from mimo.call.spec import Omitted, Out
from mimo.config import FALLBACKS, SettingChange, setting
from mimo.data import disk, files
from mimo.data.disk import STORE
from mimo.data.files import SETTINGS
from mimo.errors import Command, Conflict, Hint, Invalid, MindError, join_texts
from mimo.features import values
from mimo.frozen import frozen
from mimo.guard.policy import FILE
from mimo.index import survey, tracking
from mimo.memory.approval import approval_of
from mimo.memory.model import Place, Record
from mimo.operations import consent, lookup, refresh, saving
from mimo.operations.rows import Facts, rows, view
from mimo.project import git, revisions
from mimo.project.approvals import TrustState
from mimo.rendering import Part, Screen, accent, dim, titled, warn
from mimo.rendering.results import count, lead, type_mark
from mimo.text.phrases import cut

_LIMIT = 5
"""Memories, and entries of a list, that a summary shows."""
_ASKED = 3
"""Memories that a client's user is asked to approve at once."""
_LONGEST = 200
"""Characters that are shown of a title or a name: a longer one would hide the text around it."""


def approvals(call: Call) -> dict[str, str]:
    """Returns the paths of the current texts that may be approved, by the names of the texts.

    These are the memories, the files with values or a procedure, the policy and the settings.
    """
    return _memories(call) | other_texts(call)


def _memories(call: Call) -> dict[str, str]:
    """Returns the paths of all memories, by the names of their texts."""
    return refresh.up_to_date(call).ask(survey.approvals)


def other_texts(call: Call) -> dict[str, str]:
    """Returns the paths of the texts that are not memories, by their names.

    Settings that need no approval are left out.
    """
    named = {name: _procedure(stem) for stem, name in _procedures(call).items()}
    named |= values.approvals(call) | dict.fromkeys(call.mind.guard.approvals(), FILE)
    waits = call.mind.config.waiting
    return named | dict.fromkeys(call.mind.store.approvals(SETTINGS) if waits else (), SETTINGS)


def waiting_files(call: Call) -> dict[str, str]:
    """Returns why each file that holds no memory waits for approval, by its path."""
    trusts = call.mind.trust.checker()
    waiting: dict[str, str] = {}
    for name, path in other_texts(call).items():
        is_procedure = path.startswith(f"{STORE}/procedures/")
        if not (call.mind.trust.approved if is_procedure else trusts)(name):
            why = "no agent gets it without a label"
            if path == SETTINGS:
                why = "; ".join(map(_change, call.mind.config.waiting))
                if call.agent is not None:  # It reads no value that another author chose.
                    why = ", ".join(change.key for change in call.mind.config.waiting)
            elif is_procedure:
                why = "it does not run before that"
            waiting[path] = f"{reason_of(call, name)}: {why}"
    if reason := call.mind.guard.policies().waiting():
        waiting[FILE] = reason[0]
    return waiting


def _change(change: SettingChange) -> str:
    """Returns the change of a setting in words."""
    active = setting(change.key).active(change.approved, change.value)
    active_text, file_text = (
        ", ".join(map(str, value)) or "empty" if isinstance(value, tuple) else str(value)
        for value in (active, change.value)
    )
    return f"`{change.key}` is {active_text} until {file_text} is approved"


def reason_of(call: Call, name: str) -> str:
    """Returns why a text is not approved."""
    if call.mind.trust.was_replaced(name):
        return "an earlier text came back"
    withdrew = call.mind.trust.has_come_back(name)
    return "you withdrew the approval" if withdrew else "not approved here"


def describe(call: Call) -> str:
    """Returns a description of the trust in the project's files, and of the followed changes."""
    state = call.mind.trust.state
    if state.problem:
        return f"nothing is trusted: {state.problem}"
    texts, trusted = other_texts(call), call.mind.trust.checker()
    memories = refresh.up_to_date(call).cached(survey.approved, trusted)
    total, approved = len(texts) + memories.texts, sum(map(trusted, texts)) + memories.approved
    many = f"{approved:,} of {total:,} texts are trusted"
    if total == 1:
        many = f"the text is {'' if approved else 'not '}trusted"
    elif approved in (0, total):
        subject = f"all {total:,} texts are" if approved else f"none of the {total:,} texts is"
        many = f"{subject} trusted"
    parts = [
        many if total else "nothing to approve yet",
        *_followed(call, state, is_incomplete=approved < total),
    ]
    with suppress(MindError):
        if approved < total and git.boundary(call.mind.project.root):
            parts.append(
                "this clone is shallow, so the authors of its oldest files are unknown: "
                "`git fetch --unshallow` gets the history"
            )
    return join_texts(*parts) or ""


def _followed(call: Call, state: TrustState, *, is_incomplete: bool) -> Iterator[str]:
    """Yields which later changes are trusted.

    Commits from before mind first read the repository here are not: another user may have made
    them with the same address.
    """
    only = ", ".join(call.mind.config["trust.only"])
    if address := call.mind.trust.own_address:
        commits = f"your new commits here as {address} are trusted"
        mine = (" (earlier ones after ", Command("trust", mine=True), ")") if is_incomplete else ()
        yield Hint(commits, *mine)
    if not state.follow:
        return
    if state.stopped:
        yield Hint("nothing is followed: ", state.stopped)
    elif only == FALLBACKS["trust.only"]:
        yield "nothing is followed: the setting `trust.only` can't be used"
    elif state.branch:
        from mimo.project.vouching import short_name

        by = f" in commits by {only}" if only else ""
        yield f"later changes of {short_name(state.branch)}{by} are trusted"
    elif only:
        yield f"without git, changes by {only} can't be followed"
    else:
        yield "later edits are trusted"


def approve_all(call: Call, *, follow: bool, digest: str | None = None) -> None:
    """Approves the current text of every file; with `follow`, later changes too.

    If the user's setting `trust.only` names authors, only files that they committed are approved.
    Raises `Conflict` if a digest is given and the texts that are not approved have another one.
    """
    _repair(call)
    paths = approvals(call)
    if digest not in (None, _unapproved(call, paths)):
        raise Conflict(
            "the texts that are not approved have changed since they were shown",
            hint="read them again, then approve them",
        )
    _approve_new(call, filter(call.mind.trust.admitted(), paths), paths)
    if FILE not in paths.values():
        call.mind.trust.approve_removal(FILE)
    call.mind.trust.retire_missing(reads=True)
    if follow:
        call.mind.trust.follow(follow)


def _approve_new(call: Call, texts: Iterable[str], paths: Mapping[str, str]) -> None:
    """Approves texts; the user has reviewed those that were not trusted before."""
    names, trusted = tuple(texts), call.mind.trust.checker()
    _approve(call, names, [name for name in names if not trusted(name)], paths)


def _approve(
    call: Call, texts: Iterable[str], reviewed: Sequence[str], paths: Mapping[str, str]
) -> None:
    """Approves texts, and that they supersede others: a later change must not undo that.

    `paths` has all texts of their files; what was approved there besides them is retired.
    """
    call.mind.trust.approve(texts, reviewed=reviewed, paths=paths)
    current: dict[str, set[str]] = {paths[name]: set() for name in reviewed}
    for name, path in paths.items():
        current.get(path, set()).add(name)
        if path in files.DECISIVE and call.mind.trust.trusted(name):
            call.mind.trust.keep(path, name)
    call.mind.trust.retire(current)
    call.mind.trust.approve(call.index.ask(tracking.new_claims))


def _repair(call: Call) -> None:
    """Moves a damaged database of approvals aside, with a note for the user."""
    if message := call.mind.trust.repair():
        call.note("trust", message)


def approve_own(call: Call) -> None:
    """Approves the memories and values whose last commits name the user's own address.

    Anyone can write that address into a commit: procedures and the policy are not approved. Raises
    `Invalid` outside git, without an address, and if the repository's settings name the address.
    """
    own_texts = call.mind.trust.by_own_address()
    paths = _memories(call) | values.approvals(call)
    _approve_new(call, (name for name in paths if name in own_texts), paths)


def approve(call: Call, references: Sequence[str], *, digest: str | None = None) -> None:
    """Approves the files of these memories, ingested files, or files by their paths.

    That of the policy may be missing. Raises `Conflict` if a digest is given and a text has another
    one: it changed since it was read.
    """
    _repair(call)
    by_path, ids = _of_paths(call, references)
    places = [record.place for record in _named(call, ids)]
    digests = [place.digest for place in places]
    digests += map(call.mind.store.digest, by_path.values())
    if digest is not None and any(each != digest for each in digests):
        names = ", ".join(f"`{name}`" for name in references)
        raise Conflict(
            f"{names} has changed since it was shown", hint="read it again, then approve it"
        )
    if FILE in map(normpath, references) and FILE not in by_path.values():
        call.mind.trust.approve_removal(FILE)
    if by_path:
        _approve(call, by_path, tuple(by_path), by_path)
    _approve_places(call, places)


def _approve_places(call: Call, places: Sequence[Place]) -> None:
    """Approves texts exactly as they were read from their places."""
    paths = {name: p.path for p in places for name in call.mind.store.approvals(p.path)}
    named = [place.approval for place in places]
    _approve(call, named, named, paths | {place.approval: place.path for place in places})
    call.mind.trust.retire_missing(reads=False)  # Another author may have moved the file.


def ask(call: Call, records: Iterable[Record]) -> None:
    """Asks the client's user to approve memories, in one question.

    It has the whole files of the first ones, if a file is one memory.
    """
    texts: dict[str, bytes] = {}
    places = []
    for place in [record.place for record in records if record.place.owned][:_ASKED]:
        data = text_of(call, place.path)
        if approval_of(place.path, data) == place.approval:
            texts[place.path] = data
            places.append(place)
    if texts and consent.agreed(call, texts, "agents may use it"):
        _approve_places(call, places)


def revoke(call: Call, references: Iterable[str]) -> None:
    """Revokes the approval of these memories or files, or of none.

    Raises `Invalid` if one is followed.
    """
    by_path, ids = _of_paths(call, references)
    records = _named(call, ids)
    for record in records:
        if call.mind.trust.follows(record.place.approval):
            raise Invalid(
                f"`{record.memory.id}` stays trusted: changes of its file are followed",
                hint=Hint(
                    Command("untrust"),
                    " revokes all trust, then ",
                    Command("trust", "ID"),
                    " approves single ones",
                ),
            )
    texts = [record.place.approval for record in records]
    claims = set[str]().union(*map(saving.claims_of, records))
    call.mind.trust.revoke([*texts, *claims, *by_path])


def text_of(call: Call, path: str) -> bytes:
    """Returns the bytes of a file that a person is about to approve; empty if it is missing."""
    with suppress(MindError, OSError):
        return disk.read(files.safe_path(call.mind.project.root, path))
    return b""


def _of_paths(call: Call, references: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Returns the texts without memory that are named by their paths, and the other references."""
    texts = other_texts(call) | dict.fromkeys(call.mind.store.approvals(SETTINGS), SETTINGS)
    paths = {FILE, SETTINGS, *texts.values()}
    names = {reference: normpath(reference) for reference in references}
    named = [path for path in names.values() if path in paths]
    ids = [reference for reference, path in names.items() if path not in paths]
    return {name: path for name, path in texts.items() if path in named}, ids


def _named(call: Call, references: Iterable[str]) -> tuple[Record, ...]:
    """Returns the memories of all these ids. Raises before any of them is changed."""
    matches = (lookup.source(call, name) or (lookup.one(call, name),) for name in references)
    return tuple(record for records in matches for record in records)


# The summary of files that are not approved yet.


@view("id type title created_at trust")
class Arrived(Facts):
    """One of the newest memories that are not approved here."""


@frozen
class FirstLook:
    """A summary of files that are not approved: no agent gets them, nothing in them runs."""

    memories: int
    files: int
    by_type: Annotated[dict[str, int], Out("Number of memories of each type")]
    authors: Annotated[dict[str, int], Out("Number of files by the author of their last commit")]
    newest: tuple[Arrived, ...]
    procedures: Annotated[tuple[str, ...], Out("Procedures that could run after an approval")]
    policy: Annotated[bool, Out("Whether a new or missing policy.yaml can only narrow")]
    programs: Annotated[tuple[str, ...], Out("Those of the procedures that run programs")] = ()
    values: Annotated[int, Out("Number of files with values")] = 0
    settings: Annotated[tuple[str, ...], Out("The project's settings that wait")] = ()
    yours: Annotated[
        int, Out("Files last committed under your own address, which anyone can write")
    ] = 0
    digest: Annotated[str, Out("Digest of all these texts, for `mind trust --digest`")] = ""
    paths: Annotated[
        Omitted[tuple[str, ...]], Out("The files of memories and values, if they are listed")
    ] = None


def look_of(call: Call, *, listed: bool = False) -> FirstLook | None:
    """Returns a summary of everything that is not approved here, or None.

    With `listed`, it names all files: a person is about to approve them.
    """
    texts = refresh.up_to_date(call).ask(survey.unapproved)
    stored = [
        path for name, path in values.approvals(call).items() if not call.mind.trust.approved(name)
    ]
    runnable = tuple(
        stem for stem, name in _procedures(call).items() if not call.mind.trust.approved(name)
    )
    has_policy = not all(map(call.mind.trust.checker(), call.mind.store.approvals(FILE)))
    has_policy = has_policy or call.mind.guard.policies().waiting() is not None
    settings = tuple(change.key for change in call.mind.config.waiting)
    if not (texts or runnable or has_policy or stored or settings):
        return None
    paths = {text.path for text in texts}
    # An ingested file is one memory, as in a list.
    text_of = {text.path if text.is_part else text.key: text for text in texts[::-1]}
    memories = list(text_of.values())[::-1]
    newest = [text.key for text in memories[:_LIMIT]]
    records = call.index.ask(survey.records, newest)
    paths_of_user = set[str]()
    with suppress(Invalid):
        path_of, trusted = _memories(call), call.mind.trust.checker()
        texts_of_user = call.mind.trust.by_own_address().intersection(path_of)
        paths_of_user = {path_of[text] for text in texts_of_user if not trusted(text)}
    return FirstLook(
        memories=len(memories),
        files=len(paths),
        by_type=dict(Counter(text.type.value for text in memories).most_common()),
        authors=_authors(call, paths),
        newest=rows(call, [records[key] for key in newest if key in records], Arrived),
        procedures=runnable,
        policy=has_policy,
        programs=tuple(name for name in runnable if _runs_programs(call, name)),
        values=len(stored),
        settings=settings,
        yours=len(paths_of_user),
        digest=_unapproved(call, approvals(call)),
        paths=(*dict.fromkeys(text.path for text in texts), *stored) if listed else None,
    )


def _unapproved(call: Call, names: Iterable[str]) -> str:
    """Returns the digest of those of the texts that are not approved."""
    left = {name for name in names if not call.mind.trust.approved(name)}
    return files.digest("\n".join(sorted(left)).encode())


def _runs_programs(call: Call, name: str) -> bool:
    """Returns whether a procedure is valid and runs programs."""
    from mimo.features.procedures import reading

    try:
        data = disk.read(files.safe_path(call.mind.project.root, _procedure(name)))
    except (MindError, OSError):
        return False
    procedure = reading.read(data).procedure
    return procedure is not None and procedure.runs_programs


def _procedures(call: Call) -> dict[str, str]:
    """Returns the name that approves each file of a procedure, by the stem of the file."""
    stems = sorted(path.stem for path in (call.mind.folder / "procedures").glob("[!.]*.md"))
    named = {stem: call.mind.store.approvals(_procedure(stem)) for stem in stems}
    return {stem: names[0] for stem, names in named.items() if names}


def _procedure(name: str) -> str:
    """Returns the path of a procedure's file."""
    return f"{STORE}/procedures/{name}.md"


def _authors(call: Call, paths: Iterable[str]) -> dict[str, int]:
    """Returns the number of files by the author of their last commit, the most first."""
    root = call.mind.project.root
    try:
        commits = revisions.commits_by_path(root) if git.has_repository(root) else {}
        boundary = git.boundary(root) if commits else ()
    except MindError:
        return {}
    newest = [commits[path][0] for path in paths if path in commits]
    authors = Counter(commit.author for commit in newest if commit.id not in boundary)
    return dict(sorted(authors.items(), key=lambda pair: (-pair[1], pair[0])))


def show_look(look: FirstLook, screen: Screen) -> None:
    """Writes a summary of everything that is not approved."""
    memories = f"{count(look.memories, 'memory', 'memories')} " if look.memories else ""
    screen.line(warn(f"{memories}not approved on this machine"))
    screen.pairs(_parts(look), indent=2)
    if look.programs:
        screen.line(dim("a procedure that runs programs also asks when it first runs"), indent=2)
    if len(look.procedures) > len(look.programs):
        screen.line(dim("a procedure without programs runs without another question"), indent=2)
    for memory in look.newest:
        start = lead(memory.id, memory.created_at, type_mark(memory.type), screen)
        screen.line(*start, titled(short(memory.title)), indent=2)
    if (more := look.memories - len(look.newest)) > 0:
        screen.line(dim(f"and {more:,} more"), indent=2)
    for path in look.paths or ():
        screen.line(dim(short(path)), indent=2)
    if look.yours:
        many = count(look.yours, "file was", "files were")
        screen.line(f"{many} last committed under your own address, which anyone can write;")
        screen.line("approve just those with ", accent("`mind trust --mine`"))


def _parts(look: FirstLook) -> list[tuple[str, Part]]:
    rows: list[tuple[str, Part]] = [("types", _listed(look.by_type))] if look.memories else []
    if look.authors:
        rows.append(("last committed by", _listed(look.authors)))
    if look.procedures:
        runs = dict.fromkeys(look.programs, " runs programs")
        named = ", ".join(f"{short(name)}{runs.get(name, '')}" for name in look.procedures)
        rows.append(("procedures", warn(named)))
    if look.policy:
        rows.append(("policy", "policy.yaml, which can only narrow permissions"))
    if look.settings:
        rows.append(("settings", ", ".join(look.settings)))
    if look.values:
        rows.append(("values", count(look.values, "file")))
    return rows


def short(text: str) -> str:
    """Returns a title or a name that another author chose, cut if it is long."""
    return cut(text, _LONGEST)


def _listed(numbers: dict[str, int]) -> str:
    head = [f"{short(name)} {number:,}" for name, number in list(numbers.items())[:_LIMIT]]
    remainder = len(numbers) - _LIMIT
    return ", ".join([*head, *([f"and {remainder:,} more"] if remainder > 0 else [])])
