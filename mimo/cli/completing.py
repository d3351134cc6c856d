"""The completion of command lines: fast, read-only, and without errors, which would garble them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mimo.call.extensions import scopes
from mimo.call.spec import Param
from mimo.call.table import CommandTable
from mimo.cli.options import (
    COMMON,
    HELP,
    PROGRAMS,
    VERSION,
    Option,
    led,
    named,
    options_of,
    params_of,
    summary_of,
    takes_rest,
)
from mimo.data import disk
from mimo.frozen import frozen
from mimo.text.clean import clean, one_line

if TYPE_CHECKING:
    from mimo.mind import Mind

Item = tuple[str, str]
"""A word that may follow, and a short help."""

FILES: Item = (":files", "")
"""Leaves the completion of file names to the shell."""


def completions(commands: CommandTable, words: Sequence[str]) -> list[str]:
    """Returns the completions of the last word, each as `word<TAB>help`."""
    *head, start = words or [""]
    try:
        items = _items(commands, head, start)
    except Exception:  # noqa: BLE001 - see above
        return []
    return [f"{word}\t{' '.join(help.split())}".rstrip() for word, help in items]


def _items(commands: CommandTable, head: Sequence[str], start: str) -> list[Item]:
    path, tail, project = "", head, None
    while path not in commands:
        typed = _typed(COMMON, tail, is_start=True)
        project = typed.project or project
        if typed.open:
            return [FILES]
        if not typed.places and start.startswith("-"):
            return _names([*COMMON, *([] if path else [VERSION]), HELP], typed, start)
        if not typed.places:
            return _commands(commands, path, start)
        path, tail = led(commands, path, typed.places, is_complete=False)
        if path == "help" and not start.startswith("-"):
            return _commands(commands, " ".join(tail), start)
        if not path.partition(" ")[2] and path in PROGRAMS:
            return _after(PROGRAMS[path], (), tail, start, project)
        if path not in commands and not commands.below(path):
            return []
    spec = commands.at(path)
    positional = [param for param in params_of(spec) if param.positional]
    items = _after(options_of(spec), positional, tail, start, project, of_user=spec.of_user)
    typed = _typed(options_of(spec), tail)
    if typed.places or typed.has_values or typed.open:
        return items
    return _commands(commands, path, start) + items


def _commands(commands: CommandTable, path: str, start: str) -> list[Item]:
    """Returns the words that may follow a path, each with the summary of its command.

    A word that is not listed completes once it was begun.
    """
    words = commands.below(path) if start else commands.listed(path)
    words = (*words, *(() if path else PROGRAMS))
    items = [(w, summary_of(commands, f"{path} {w}".strip())) for w in words if w.startswith(start)]
    if path:
        return items
    aliases = commands.aliases.items() if start else ()
    return items + [(word, f"the same as `{to}`") for word, to in aliases if word.startswith(start)]


def _after(
    options: Sequence[Option],
    positional: Sequence[Param],
    words: Sequence[str],
    start: str,
    project: str | None,
    *,
    of_user: bool = False,
) -> list[Item]:
    """Returns the options and values that may follow the words after those of a command.

    With `of_user`, the command works on ids of the user's memory for all projects, too.
    """
    typed = _typed(options, words)
    project = typed.project or project
    if typed.open:
        return _values(typed.open, start, project)
    if start.startswith("-") and not typed.is_ended:
        name, has_value, value = start.partition("=")
        option, _ = named(options).get(name, (HELP, False))
        if has_value and not option.is_flag:
            values = _values(option, value, project)
            return [item if item == FILES else (f"{name}={item[0]}", item[1]) for item in values]
        choices = [option for option in options if option not in COMMON or option.key == "json"]
        return _names([*choices, HELP], typed, start)
    left = positional[len(typed.places) :] or [p for p in positional[-1:] if takes_rest(p)]
    return _words(left[0], start, project, of_user=of_user) if left else []


@frozen
class _Typed:
    """The words before the one that is completed."""

    given: frozenset[str]
    """The keys of options."""
    has_values: bool
    """True if an option has a value."""
    project: str | None
    places: tuple[str, ...]
    """The words that are not options."""
    open: Option | None
    """The option whose value is completed."""
    is_ended: bool
    """True if no option may follow."""


def _typed(options: Sequence[Option], words: Sequence[str], *, is_start: bool = False) -> _Typed:
    """Reads words; those from the first that is not an option stay together with `is_start`."""
    names = named(options)
    values: dict[str, str | None] = {}
    places: list[str] = []
    tail = list(words)
    open: Option | None = None
    is_ended = False
    while tail and not is_ended:
        word = tail.pop(0)
        name, is_assigned, value = word.partition("=")
        if word == "--":
            is_ended = True
        elif is_start and not word.startswith("-"):
            places.append(word)
            break
        elif name not in names:
            places += [] if word.startswith("-") and word != "-" else [word]
        elif names[name][0].is_flag:
            values[names[name][0].key] = None
        else:
            open = None if is_assigned or tail else names[name][0]
            values[names[name][0].key] = tail.pop(0) if tail and not is_assigned else value
    return _Typed(
        given=frozenset(values),
        has_values=any(values.values()),
        project=values.get("project"),
        places=(*places, *tail),
        open=open,
        is_ended=is_ended,
    )


def _names(options: Sequence[Option], typed: _Typed, start: str) -> list[Item]:
    """Returns the names of options that can still be given."""
    return [
        (name, option.help)
        for option in options
        if option.key not in typed.given or option.is_repeated
        for name in (*option.names, *option.negated)
        if name.startswith(start)
    ]


def _values(option: Option, start: str, project: str | None) -> list[Item]:
    if option.param:
        return _words(option.param, start, project)
    if option.key == "project":
        return [*candidates("project", start, None), FILES]
    return [(word, "") for word in option.choices if word.startswith(start)]


def _words(param: Param, start: str, project: str | None, *, of_user: bool = False) -> list[Item]:
    """Returns choices, paths, or words of the project such as ids and tags."""
    kind = param.arg.complete
    if param.arg.file or kind == "path":
        return [FILES]
    if choices := (param.shape.items or param.shape).choices:
        if param.arg.scopes:
            choices = (*choices, *scopes())
        return [(word, "") for word in choices if word.startswith(start)]
    return candidates(kind, start, project, of_user=of_user) if kind else []


# Words of the project.


MOST = 50
"""The maximum number of candidates."""

COMMITS = 10
"""The number of commits that are offered as revisions, beside branches and tags."""

_SECONDS = 1.0
"""The time that git may take to list them."""


def candidates(
    kind: str, start: str, project: str | None, *, of_user: bool = False
) -> list[tuple[str, str]]:
    """Returns words that begin with `start`, each with a short help.

    `kind` is `id` (the handle if one begins so), `memory` (an id or a topic), `tag`, `topic`,
    `type`, `setting`, `procedure`, `execution`, `project`, `session`, `revision` or `revisions`
    (two of them, `A..B`). If the project can't be read, there are none. With `of_user`, ids of the
    user's memory for all projects follow.
    """
    from mimo.index.schema import WORDS

    try:
        if kind == "id":
            handles = _ids(WORDS["handle"], start, project, of_user=of_user)
            return handles or _ids(WORDS["id"], start, project, of_user=of_user)
        if kind == "memory":
            ids = candidates("id", start, project, of_user=of_user)
            topics = candidates("topic", start, project)
            # zsh lists words with the same help in one line.
            return ids + [(word, f"topic: {help}") for word, help in topics]
        if kind in WORDS:
            mind = _permitted(project)
            return _indexed(mind.index_folder, mind.home, WORDS[kind], start)
        if kind == "revisions":
            return _two_revisions(start, project)
        if kind == "session":
            return _mask_items(_sessions(start, project))
        items = [item for item in SOURCES[kind](project) if item[0].startswith(start)]
    except Exception:  # noqa: BLE001 - see above
        return []
    return _mask_items(items)


def _types(_project: str | None) -> Iterator[Item]:
    from mimo.memory.model import KIND_ALIASES, Kind

    yield from ((str(kind), "") for kind in Kind)
    yield from ((alias, f"the same as {kind}") for alias, kind in KIND_ALIASES.items())


def _settings(_project: str | None) -> Iterator[Item]:
    from mimo.config import SETTINGS as DECLARED

    return ((entry.key, entry.help) for entry in DECLARED)


def _procedures(project: str | None) -> Iterator[Item]:
    root = _permitted(project).project.root
    names = sorted(path.name for path in (root / ".mind/procedures").glob("[!.]*.md"))
    return ((name, "") for name in dict.fromkeys(name.partition("@")[0] for name in names))


def _executions(project: str | None) -> Iterator[Item]:
    from mimo.features.procedures.storage import Executions

    root = _permitted(project).project.root
    return ((id, "") for id in Executions(root, "").ids()[::-1][:MOST])


def _projects(_project: str | None) -> Iterator[Item]:
    from mimo.project.projects import registered

    listed = registered(_opened(None).home).projects
    return ((str(project.path), project.name) for project in listed if project.path.is_dir())


def _revisions(project: str | None) -> Iterator[Item]:
    """Yields branches and tags, newest first, and the last commits that changed the memory."""
    from mimo.project import git

    root = _permitted(project).project.root
    names = ("refs/heads", "refs/tags", "refs/remotes")
    format_arg = "--format=%(refname:short)%09%(contents:subject)"
    refs = ("for-each-ref", "--sort=-creatordate", f"--count={MOST}", format_arg, *names)
    changes = ("log", f"--max-count={COMMITS}", "--format=%h%x09%s", "--", ".mind")
    yield "HEAD", "the last commit"
    for words in (refs, changes):
        output = git.ask(root, *words, seconds=_SECONDS).decode("utf-8", "replace")
        for line in output.splitlines():
            name, _, subject = line.partition("\t")
            yield name, subject


def _two_revisions(start: str, project: str | None) -> list[Item]:
    """Returns completions of `A..B`: of `A`, or of `B` if there are dots."""
    left, dots, after = start.rpartition("..")
    items = candidates("revision", after, project)
    return [(f"{left}{dots}{word}", help) for word, help in items]


def _sessions(start: str, project: str | None) -> list[Item]:
    from mimo.operations.earlier import sessions_of

    mind = _permitted(project)
    sessions = sessions_of(mind)
    return list(sessions.with_prefix(mind, start, MOST)) if sessions else []


SOURCES: dict[str, Callable[[str | None], Iterator[Item]]] = {
    "type": _types,
    "setting": _settings,
    "procedure": _procedures,
    "execution": _executions,
    "project": _projects,
    "revision": _revisions,
}
"""The words of each kind that the index does not have."""


def _opened(project: str | None) -> Mind:
    from mimo.mind import Mind

    named = disk.expanded(project) if project else None
    return Mind.open(Path.cwd(), project=named)


def _permitted(project: str | None) -> Mind:
    """Returns the opened memory. Raises `Denied` if the policy does not permit to list it."""
    mind = _opened(project)
    if mind.has_project:  # Also without the file: its approved text may be active.
        from mimo.guard.policy import Operation, Request
        from mimo.operations.asking import agent_of

        read, agent = Operation.READ, agent_of(mind.environ)
        mind.guard.authorise(
            Request(
                tool="completion/complete",
                like="mind_list",
                operation=read,
                agent=agent,
                at=mind.now(),
            )
        )
    return mind


def _ids(query: str, start: str, project: str | None, *, of_user: bool) -> list[Item]:
    """Returns ids of the project and, with `of_user`, of the user's memory.

    An index that is missing or damaged has none.
    """
    from mimo.project.projects import index_folder, user_root

    mind = _permitted(project)
    items: dict[str, str] = {}
    for is_users in (False, True) if of_user else (False,):
        with suppress(Exception):
            root = user_root(mind.home) if is_users else mind.project.root
            folder = index_folder(root, mind.home)
            for word, help in _indexed(folder, mind.home, query, start):
                items.setdefault(word, help)
    return list(items.items())[:MOST]


def _indexed(folder: Path, home: Path, query: str, start: str) -> list[Item]:
    from contextlib import closing

    from mimo.data import sqlite
    from mimo.index.schema import SCHEMA
    from mimo.project.projects import known_owner

    owner = known_owner(home)
    if owner is None:
        return []
    with closing(sqlite.connect(SCHEMA.path(folder, owner), mode="ro", wait=0.2)) as connection:
        rows = connection.execute(query, (len(start), start, MOST)).fetchall()
    return _mask_items([(word, _heading(title, content)) for word, title, content, *_ in rows])


def _heading(title: str | None, content: str | bytes) -> str:
    """Returns the title of a memory, or its first words."""
    from mimo.index.schema import unpacked
    from mimo.text.phrases import heading

    return title if title is not None else heading(None, unpacked(content), "")


def _mask_items(items: Sequence[Item]) -> list[Item]:
    """Returns the words that a shell may offer, with harmless helps, and secrets masked."""
    from mimo.guard.privacy import redacted

    safe_items = redacted(items).value
    return [
        (word, " ".join(clean(help).split())[:60]) for word, help in safe_items if _is_word(word)
    ]


def _is_word(text: str) -> bool:
    """Returns whether a shell may offer a text: one visible line, not like an option."""
    return bool(text) and one_line(text) == text and "\t" not in text and text[0] != "-"
