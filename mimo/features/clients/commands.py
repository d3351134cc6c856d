"""`mind install` and `mind uninstall`, for programs that speak MCP."""

import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from mimo.call import Call
from mimo.call.extensions import extensions
from mimo.call.schema import listed_input
from mimo.call.spec import Arg, Effect, Omitted, Out, for_people
from mimo.call.table import all_commands, listed
from mimo.config import DEFAULT, SEVERAL, setting
from mimo.data import disk
from mimo.errors import Conflict, Invalid, StorageFailed, join_texts
from mimo.features import clients
from mimo.features.clients import Action, ClientRow, FileRow, Machine, machine, scope_of
from mimo.features.clients.table import Client, ClientName, Scope
from mimo.features.clients.table import client as client_of
from mimo.frozen import frozen, replace
from mimo.operations import settings
from mimo.operations.earlier import SWITCH
from mimo.project import servers
from mimo.project.projects import check_reach
from mimo.rendering import Part, Screen, accent, dim, good, warn
from mimo.rendering.results import render
from mimo.surroundings import Question


class Switch(StrEnum):
    """The values of a setting that is on or off."""

    ON = "on"
    OFF = "off"


KeepSessions = Annotated[
    Switch | None, Arg("Keep earlier sessions with agents, on this machine, and find them")
]
Toolsets = Annotated[
    str | None,
    Arg("Groups of tools to list in all of your clients, by commas; core, default or all"),
]
ServerUrl = Annotated[
    str | None, Arg("Address of a team's server, whose memory you have without a clone")
]
TokenFile = Annotated[
    str | None, Arg("File with the server's token, which hooks read without MIND_TOKEN")
]
For = Annotated[
    Scope | None,
    Arg("For all users of the project or for you everywhere (default project, if any)"),
]
DryRun = Annotated[bool, Arg("Show the changes without making them")]


@frozen
class Installation:
    """The result of an installation, or the state of all clients if none was named."""

    client: Annotated[Omitted[ClientName], Out("The client that was named")] = None
    scope: Annotated[Omitted[Scope], Out("The scope of the installation")] = None
    dry_run: bool = False
    files: tuple[FileRow, ...] = ()
    then: Annotated[Omitted[str], Out("The next step in the client")] = None
    capture: Annotated[
        Omitted[bool], Out("Whether its hooks ask what a session leaves, unless chosen off")
    ] = None
    toolsets: Annotated[
        tuple[str, ...], Out("Groups of tools that the server lists; none for the documented ones")
    ] = ()
    tools: Annotated[Omitted[int], Out("Number of tools that the server lists")] = None
    clients: tuple[ClientRow, ...] = ()
    notice: Annotated[Omitted[str], Out("A problem that remains")] = None


@for_people(
    "mind_install",
    cli="install",
    effect=Effect.WRITE,
    any_format=True,
    errors=(Invalid, Conflict, StorageFailed),
    examples=(
        "mind install",
        "mind install claude-code",
        "mind install codex --scope user --dry-run",
        "mind install cursor --toolsets core",
        "mind install codex --url https://mind.example.org/mcp/shop",
        "mind install gemini --skill",
    ),
)
def install(
    call: Call,
    client: Annotated[ClientName | None, Arg("Name of the client (default: list all)")] = None,
    *,
    scope: For = None,
    dry_run: DryRun = False,
    force: Annotated[bool, Arg("Replace an entry or a hook of mind that differs")] = False,
    skill: Annotated[
        bool, Arg("Also install the skill `mind-memory`, instructions for agents")
    ] = False,
    toolsets: Toolsets = None,
    sessions: KeepSessions = None,
    url: ServerUrl = None,
    token_file: TokenFile = None,
) -> Installation:
    """Add mind to an MCP client, such as Claude Code

    Adds the server's entry, and the hooks of clients that have them, to the client's own
    configuration. Everything else in it stays byte for byte, and a copy is kept in
    $MIND_HOME/clients. The tools that the server lists are your setting `mcp.toolsets`, for all
    clients; on a terminal, the first installation asks for it, whether to keep earlier sessions
    and whether agents record what a session leaves. With --url, the entry is that of a
    team's server, and the hooks ask it in folders without a memory of their own.
    """
    here = machine(call)
    if client is None:
        if toolsets is not None or url is not None:
            hint = "name one" if toolsets is None else "or run `mind config mcp.toolsets` for all"
            raise Invalid("no client is named", hint=hint)
        return Installation(clients=tuple(clients.states(here)))
    chosen = client_of(client)
    if url is not None or token_file is not None:
        here = _for_server(call, here, url, token_file)
    for_scope = scope_of(chosen, scope or (Scope.USER if url else None), here)
    if for_scope is Scope.PROJECT and not url:
        check_reach(call.mind.project)
    if skill and for_scope not in chosen.skills:
        raise Invalid(f"{chosen.title} has no known folder of skills", hint="leave out `--skill`")
    groups = None if toolsets is None else _toolsets_of(toolsets)
    if not dry_run:
        call = _with_choices(call, sessions, asks_capture=chosen.can_ask and not url)
    rows = tuple(
        clients.install(call, chosen, for_scope, here, force=force, dry_run=dry_run, skill=skill)
    )
    if url and not dry_run:
        servers.assign(call.mind.home, _folder(here, for_scope), url, here.token_file)
    changed = not dry_run and any(row.action is not Action.UNCHANGED for row in rows)
    # A server lists the tools that its operator chose.
    listed_groups = () if url else _chosen(call, groups, dry_run=dry_run)
    return Installation(
        client=client,
        scope=for_scope,
        dry_run=dry_run,
        files=rows,
        then=chosen.after if changed else None,
        capture=_capture(call) if chosen.can_ask and not url else None,
        toolsets=listed_groups,
        tools=None if url else _count(listed_groups),
        notice=join_texts(*_problems(here, chosen, for_scope)),
    )


def _capture(call: Call) -> bool | None:
    """Returns whether hooks ask the agent what a session leaves; None if the user declined."""
    config = call.mind.config
    is_on = config["hook.capture"] == "on"
    return is_on if is_on or config.origins["hook.capture"] == "default" else None


_TOOLSETS = "mcp.toolsets"
_ANSWER_SECONDS = 300.0


def _count(toolsets: Sequence[str]) -> int:
    """Returns the number of tools that a server lists. Raises `Invalid` for an unknown group."""
    return len(listed(all_commands().tools(), toolsets))


def _cost(toolsets: Sequence[str]) -> str:
    """Returns the number of tools that a server lists, and of tokens that they cost an agent.

    A token of their names, descriptions and inputs has four characters.
    """
    tools = all_commands().tools()  # Those that each user has.
    names = listed(tools, toolsets)
    size = sum(
        len(json.dumps([name, tools[name][0].description, listed_input(tools[name])]))
        for name in names
    )
    return f"{len(names)} tools, about {size // 400 * 100:,} tokens a session"


def _toolsets_of(text: str) -> tuple[str, ...]:
    """Returns the groups that a user names, by commas. Raises `Invalid` for an unknown one."""
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    names = () if names == (DEFAULT,) else names
    _count(names)
    return names


def _chosen(call: Call, groups: tuple[str, ...] | None, *, dry_run: bool) -> tuple[str, ...]:
    """Returns the groups that the server lists, after the user's choice was stored.

    Without a choice, the user is asked on a terminal, unless the setting has a value.
    """
    current = tuple(call.mind.config[_TOOLSETS])
    if dry_run:
        return current if groups is None else groups
    if groups is None:
        if call.ask is None or call.mind.config.origins[_TOOLSETS] != "default":
            return current
        sizes = "".join(f"\n  {name}: {_cost(_groups(name))}" for name in SEVERAL)
        text = f"Tools that agents may be shown:{sizes}\nWhich?"
        question = Question(text, SEVERAL, default=DEFAULT)
        answer = call.ask(question, _ANSWER_SECONDS)
        if answer is None:
            return current
        groups = _groups(answer)
    if groups != current or call.mind.config.origins[_TOOLSETS] == "default":
        settings.change(call, setting(_TOOLSETS), ",".join(groups), user=True)
    return groups


_SESSIONS = (
    "Keep earlier sessions with agents, and find them? mind then reads the transcripts that clients"
    " write on this machine, and keeps the conversations, without secrets, in $MIND_HOME, for you"
    " alone, also after a client deletes its own."
)
_CAPTURE = (
    "Let the agent record what a session leaves? Once in a session that worked on something, at the"
    " end of a turn, it is asked for decisions, failures and next steps."
)
_YES_OR_NO = ("no", "yes")


def _with_choices(call: Call, sessions: Switch | None, *, asks_capture: bool) -> Call:
    """Returns the call with the user's settings of earlier sessions and of the agent's request.

    Without a choice, the user is asked on a terminal, unless the setting has a value.
    """
    if sessions is not None:
        call = settings.change(call, setting(SWITCH), sessions, user=True)
    questions = {}
    if any(extension.sessions for extension in extensions().values()):
        questions[SWITCH] = _SESSIONS
    if asks_capture:
        questions["hook.capture"] = _CAPTURE
    for name, text in questions.items():
        if call.ask is None or call.mind.config.origins[name] != "default":
            continue
        answer = call.ask(Question(text, _YES_OR_NO, default="no"), _ANSWER_SECONDS)
        if answer is not None:
            switch = Switch.ON if answer == "yes" else Switch.OFF
            call = settings.change(call, setting(name), switch, user=True)
    return call


def _groups(name: str) -> tuple[str, ...]:
    return () if name == DEFAULT else (name,)


@for_people(
    "mind_uninstall",
    cli="uninstall",
    effect=Effect.DESTROY,
    any_format=True,
    errors=(Invalid, Conflict, StorageFailed),
    examples=("mind uninstall claude-code", "mind uninstall zed --scope user --dry-run"),
)
def uninstall(
    call: Call,
    client: Annotated[ClientName, Arg("Name of the client")],
    *,
    scope: For = None,
    dry_run: DryRun = False,
) -> Installation:
    """Remove mind from an MCP client

    Removes only what `mind install` added. Memories are not changed.
    """
    here = machine(call)
    chosen = client_of(client)
    for_scope = scope_of(chosen, scope, here)
    if for_scope is Scope.PROJECT and servers.of_folder(call.mind.home, Path.cwd()):
        here = replace(here, project=here.project or Path.cwd())
    elif for_scope is Scope.PROJECT:
        check_reach(call.mind.project)
    rows = tuple(clients.uninstall(call, chosen, for_scope, here, dry_run=dry_run))
    if not dry_run and not any(for_scope in row.installed for row in clients.states(here)):
        servers.assign(call.mind.home, _folder(here, for_scope), None)
    return Installation(client=client, scope=for_scope, dry_run=dry_run, files=rows)


def _for_server(call: Call, here: Machine, url: str | None, token_file: str | None) -> Machine:
    """Returns this machine for the entry of a server; a project needs no memory of its own."""
    if url is None:
        raise Invalid("`--token-file` is for a team's server", hint="give `--url`, too")
    file = disk.expanded(token_file).absolute() if token_file else None
    token = servers.token_of(call.mind.home, servers.checked(url), here.environ, file)
    project = here.project or Path.cwd()
    return replace(here, url=url, has_token=bool(token), token_file=file, project=project)


def _problems(here: Machine, client: Client, scope: Scope) -> Iterator[str]:
    """Yields the problems that remain after an installation."""
    if client.workspace is None and scope is Scope.USER and not here.url:
        yield (
            f"{client.title} may start mind outside of your project; mind then asks it for its"
            ' roots, and if it has none, `"--project", "DIR"` in its `args` names the project'
        )
    if here.url and not here.environ.get(servers.TOKEN):
        effect = "so the client has to sign in, and hooks give nothing"
        if here.has_token:
            effect = "which the client's entry needs; hooks read the token from its file"
        yield f"`{servers.TOKEN}` is not set, {effect}"
    if here.which("mind") is None:
        yield "`mind` is not on your PATH, where clients look for it: pipx install CHECKOUT"
    if here.home and scope is Scope.PROJECT:
        yield (
            "the project's files name this machine's MIND_HOME; "
            "if they are shared, use --scope user"
        )


def _folder(here: Machine, scope: Scope) -> str:
    """Returns the folder of a scope, as servers are named for it."""
    return str(here.project) if scope is Scope.PROJECT else ""


# The output.


_MARKS: dict[Action, Part] = {
    Action.CREATED: good("✓ "),
    Action.CHANGED: good("✓ "),
    Action.REMOVED: good("✓ "),
    Action.UNCHANGED: dim("= "),
}


@render.register
def _(result: Installation, screen: Screen) -> None:
    if result.client is None:
        screen.table(("client", "here", "installed for"), map(_cells, result.clients))
        for row in (row for row in result.clients if row.problem):
            screen.note(str(row.problem))
        screen.line("install it with ", accent("`mind install CLIENT`"))
        return
    for file in result.files:
        _show_file(file, screen, dry_run=result.dry_run)
    if result.tools is not None:
        _show_tools(result, screen)
    if result.then:
        screen.line("next: ", result.then)
        _show_option(result, screen)


def _show_file(file: FileRow, screen: Screen, *, dry_run: bool) -> None:
    if file.action is not Action.YOURS:
        would = "would be " if dry_run and file.diff else ""
        screen.line(_MARKS[file.action], f"{would}{file.action}  ", accent(file.file))
    if file.note:
        screen.line(warn(file.note), indent=2)
    if file.backup:
        screen.line(dim(f"copy of the earlier content: {file.backup}"), indent=2)
    if text := file.diff or file.lines:
        screen.verbatim(text)


def _show_tools(result: Installation, screen: Screen) -> None:
    """Writes which tools agents see, what they cost, and how to change that."""
    screen.line(f"tools: {','.join(result.toolsets) or DEFAULT}, {_cost(result.toolsets)}")
    for name in SEVERAL:
        if result.toolsets not in ((name,), _groups(name)):
            command = accent(f"mind config mcp.toolsets {name} --user")
            screen.line(command, dim(f"  {_cost(_groups(name))}"), indent=2)


def _show_option(result: Installation, screen: Screen) -> None:
    """Writes how to let the agent record what a session leaves, if that is off."""
    if result.capture is False:
        screen.line(dim("optional: let the agent record what a session leaves, once at its end:"))
        again = f"mind install {result.client} --scope {result.scope}"
        screen.line(accent(f"mind config hook.capture on && {again}"), indent=2)


def _cells(row: ClientRow) -> tuple[Part, ...]:
    here = good("yes") if row.found else dim("no")
    installed = good(" ".join(row.installed)) if row.installed else dim("–")
    return accent(row.client), here, warn("can't be read") if row.problem else installed
