"""`mind init` and `mind config`: a project, and its settings."""

import os
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Annotated

from mimo.call import Call, Surface
from mimo.call.spec import Arg, Effect, Json, Needs, Omitted, Out, command, to_json
from mimo.config import SETTINGS, ZONE, Setting, setting
from mimo.data import disk
from mimo.data.disk import STORE
from mimo.errors import Command, Hint, Invalid, MindError, StorageFailed
from mimo.features.review.trusting import FirstLook, look_of, show_look
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.operations import disclosure, settings, syncing
from mimo.operations.rows import row_of
from mimo.project.init import init as make
from mimo.project.projects import Registered, find
from mimo.rendering import Screen, accent, dim, good, strong, warn
from mimo.rendering.results import render, shown
from mimo.surroundings import Question

_ANSWERS = ("yes", "no")
_ANSWER_SECONDS = 300.0


@frozen
class Initialised:
    """The result of `mind init`."""

    path: Annotated[str, Out("The project's root")]
    name: str
    created: Annotated[bool, Out("Whether there was no memory here before")]
    added: Annotated[tuple[str, ...], Out("Files that were written, relative to the project")]
    trusted: Annotated[bool, Out("Whether it is new, so that all in it is the user's own")]
    found: Annotated[tuple[str, ...], Out("Documents that are already here")]
    include: Annotated[
        tuple[str, ...], Out("Value of the setting `include` that makes them memories too")
    ]
    notices: tuple[str, ...]
    arrived: Annotated[
        Omitted[FirstLook], Out("A summary of unapproved files in an existing store")
    ] = None


@command(
    "mind_init",
    cli="init",
    effect=Effect.WRITE,
    any_format=True,
    toolset="extra",
    needs_project=False,
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE, person=True),
    errors=(Invalid, StorageFailed),
    examples=("mind init", "mind init ~/shop", "mind init --nested packages/api"),
)
def init(
    call: Call,
    directory: Annotated[str, Arg("The project's root", complete="path")] = ".",
    *,
    nested: Annotated[bool, Arg("Make it a project although it is inside another one")] = False,
) -> Initialised:
    """Create a memory for this project

    Writes `.mind/` with a settings file, a short MEMORY.md and the files that git needs, and
    overwrites nothing. In a git repository, git learns to merge memories. What is already here,
    such as decision records, is named, not copied.
    """
    root = disk.expanded(directory).absolute()
    if not nested and root.is_dir():
        _check_nesting(call, root, directory)
    zone = _asked_zone(call)
    report = make(root, call.mind.home, now=call.mind.now())
    project = report.project
    syncing.install(project.root)
    notices = report.notices
    if zone:
        try:
            settings.change(call, setting(ZONE), zone, user=True)
        except MindError as error:
            notices = (*notices, f"`{ZONE}` stays as it is: {error.message}")
    arrived = None
    with suppress(MindError):
        opened = call.at(Registered(path=project.root, name=project.name))
        arrived = look_of(opened) if opened else None
    return row_of(
        report,
        Initialised,
        path=str(project.root),
        name=project.name,
        trusted=report.created,
        notices=notices,
        arrived=arrived,
    )


def _asked_zone(call: Call) -> str | None:
    """Returns the value of `time.zone` that the user chooses, or None.

    Asks on a terminal only, and only if the setting is unset and the computer is not in UTC.
    """
    if call.ask is None or call.mind.config.origins[ZONE] != "default":
        return None
    from mimo.zones import LOCAL_NAME, system_name

    name = system_name(call.mind.environ)
    if name is None:
        return None
    question = Question(f"Times are shown in UTC. Show them in local time ({name})?", _ANSWERS)
    answer = call.ask(question, _ANSWER_SECONDS)
    return None if answer is None else LOCAL_NAME if answer == _ANSWERS[0] else "UTC"


def _check_nesting(call: Call, root: Path, directory: str) -> None:
    """Raises `Invalid` if a new project would be inside another one and the user does not agree."""
    around = None
    if not os.path.lexists(root / STORE):
        with suppress(MindError, OSError):
            around = find(root, call.mind.home)
    if around is None or around.inner:
        return
    question = Question(f"`{root}` is inside the project `{around.root}`. Separate it?", _ANSWERS)
    if call.ask is None or call.ask(question, _ANSWER_SECONDS) != _ANSWERS[0]:
        named = () if directory == "." else (directory,)
        raise Invalid(
            f"`{root}` is inside the project `{around.root}`, whose memory is used here",
            hint=Hint("for a memory of its own, run ", Command("init", *named, nested=True)),
        )


@frozen
class SettingRow:
    """A setting and its active value."""

    key: str
    value: Annotated[Json, Out("The active value")]
    origin: Annotated[str, Out("The owner of its file, or `default`")]
    help: str


@frozen
class Settings:
    """The active settings."""

    settings: tuple[SettingRow, ...]
    warnings: tuple[str, ...]
    omitted: Annotated[Omitted[int], Out("Number of settings that only `all` shows")] = None


COMMON = ("include", ZONE, "autocommit", "hook.capture", "mcp.toolsets")
"""Settings that are shown with those that were changed."""


@command(
    "mind_config",
    cli="config",
    effect=Effect.WRITE,
    any_format=True,
    toolset="extra",
    needs_project=False,
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE, person=True),
    errors=(Invalid, StorageFailed),
    examples=(
        "mind config",
        "mind config --all",
        "mind config decay.rate 0.05",
        "mind config include 'docs/decisions/*.md'",
        "mind config decay.rate --unset",
    ),
)
def config(
    call: Call,
    key: Annotated[str | None, Arg("Name of the setting", complete="setting")] = None,
    value: Annotated[str | None, Arg("New value; commas separate the items of a list")] = None,
    *,
    user: Annotated[bool, Arg("Change it for all projects of this user")] = False,
    unset: Annotated[bool, Arg("Restore the default")] = False,
    all_: Annotated[bool, Arg("List every setting", wire="all")] = False,
) -> Settings:
    """Show or change settings

    Without KEY it lists the settings that were changed and five common ones. A setting is written
    to the project's `.mind/config.toml`, or with `--user` to the user's own file, where comments
    and everything else stay as they are.
    """
    if unset and (key is None or value is not None):
        raise Invalid(
            "`--unset` takes the name of a setting and no value",
            hint=Hint(Command("config", "decay.rate", unset=True), " restores its default"),
        )
    if all_ and key is not None:
        raise Invalid(
            "`all` takes no setting", hint=Hint(Command("config", all=True), " lists them")
        )
    rows: tuple[Setting, ...] = SETTINGS if key is None else (setting(key),)
    if key is not None and (unset or value is not None):
        call = settings.change(call, rows[0], value, user=user)
    values = call.mind.config
    if key is None and not all_:
        rows = tuple(
            row for row in rows if row.key in COMMON or values.origins[row.key] != "default"
        )
    return Settings(
        settings=tuple(
            row_of(row, SettingRow, value=to_json(values[row.key]), origin=values.origins[row.key])
            for row in rows
        ),
        warnings=disclosure.of_settings(call),
        omitted=None if key else len(SETTINGS) - len(rows),
    )


# The output.


@render.register
def _(result: Initialised, screen: Screen) -> None:
    done = "has a memory now" if result.created else "had a memory already"
    screen.line(good("✓ "), strong(result.name), f" {done}  ", dim(result.path))
    for path in result.added:
        screen.line(dim(f"wrote {path}"), indent=2)
    if result.include:
        screen.blank()
        screen.line("found ", ", ".join(result.found), "; to search them as memories:")
        screen.line(accent(f"mind config include {quote(','.join(result.include))}"), indent=4)
    for notice in result.notices:
        screen.note(notice)
    screen.blank()
    if result.arrived:
        show_look(result.arrived, screen)
        screen.blank()
        either = ""
        if result.arrived.memories:
            screen.line("they came with the files: go through them with ", accent("`mind review`"))
            either = "or "
        screen.line(f"{either}approve all of them with ", accent(screen.trust_command))
    screen.line("next: ", accent('mind add "what should be remembered"'))


@render.register
def _(result: Settings, screen: Screen) -> None:
    for row in result.settings:
        value = shown(row.value) if row.value not in ("", []) else "-"
        screen.line(accent(row.key), " = ", value, dim(f"  ({row.origin})"))
        screen.line(dim(row.help), indent=4)
    if result.omitted:
        screen.line(
            f"{result.omitted} other settings have their default: ", accent("`mind config --all`")
        )
    for warning in result.warnings:
        screen.line(warn(warning))
