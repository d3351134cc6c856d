"""`mind token`: the users of a team's server, and their tokens."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Unpack

from mimo.api import (
    Arg,
    Call,
    Command,
    Conflict,
    Denied,
    Effect,
    Hint,
    Invalid,
    Needs,
    NotFound,
    Omitted,
    Operation,
    Out,
    Part,
    Screen,
    SearchFailed,
    SearchResults,
    StorageFailed,
    Surface,
    accent,
    command,
    count,
    dim,
    disk,
    finding,
    for_people,
    frozen,
    good,
    lock,
    projects,
    render,
    replace,
    rows,
    second,
    strong,
    warn,
)
from mimo.extensions.team import tokens
from mimo.extensions.team.tokens import Member, Scope

TokensFile = Annotated[
    str | None, Arg("File with the tokens (default $MIND_HOME/tokens.toml)", complete="path")
]


@frozen
class TokenAdded:
    """A token, which is shown only once."""

    name: str
    token: Annotated[Omitted[str], Out("The token of a user; only its digest is stored")]
    file: str
    unregistered: Annotated[tuple[str, ...], Out("Projects that are not registered here yet")]


@frozen
class TokenRow:
    """A user with a token, or a group whose users an OpenID provider signs in."""

    name: str
    email: Annotated[Omitted[str], Out("E-mail address of a user")]
    group: Annotated[Omitted[str], Out("Name of a group at the provider")]
    scope: Scope
    projects: Annotated[tuple[str, ...], Out("Names or paths of projects; empty for all")]
    role: Annotated[Omitted[str], Out("The PostgreSQL role")]
    expires: Annotated[Omitted[datetime], Out("Time of expiry")]
    expired: Annotated[bool, Out("Whether the token has expired")]


@frozen
class TokenRows:
    """The users with a token."""

    tokens: Annotated[tuple[TokenRow, ...], Out("By name")]
    file: str


@frozen
class TokenRemoved:
    """A user without a token."""

    name: str
    file: str


@for_people(
    "mind_token_add",
    cli="token add",
    effect=Effect.WRITE,
    any_format=True,
    errors=(Conflict, Denied, Invalid, StorageFailed),
    examples=(
        "mind token add ana --email ana@example.org",
        "mind token add bot --email bot@example.org --scope read --project shop --days 90",
        "mind token add developers --group engineering",
    ),
)
def add(
    call: Call,
    name: Annotated[str, Arg("Name of the user, or of the rights of a group")],
    *,
    email: Annotated[str | None, Arg("E-mail address, for the author of commits")] = None,
    group: Annotated[
        str | None, Arg("Group at the provider of --oidc, instead of a token; * for all users")
    ] = None,
    scope: Annotated[Scope, Arg("Rights: read, write, or admin for /metrics too")] = Scope.WRITE,
    project: Annotated[
        tuple[str, ...],
        Arg("Name or path of a permitted project (default: all)", complete="project"),
    ] = (),
    days: Annotated[
        int | None, Arg("Days until it expires (default: never)", ge=1, le=36_500)
    ] = None,
    role: Annotated[str | None, Arg("PostgreSQL role of the user in the shared index")] = None,
    file: TokensFile = None,
) -> TokenAdded:
    """Create a token for a user of the server, and print it once

    `mind mcp --http --tokens FILE` accepts it at once, also if it runs already. An agent can't
    create one. With --group, the users of a group at an OpenID provider get the rights instead,
    and no token is made.
    """
    _check_person(call)
    if (email is None) == (group is None):
        raise Invalid("a user needs an e-mail address, and a group its name", hint="give one")
    from mimo.api import loopback

    path = _file(call, file)
    token = loopback.new_token() if group is None else None
    member = tokens.checked(
        Member(
            name=name,
            email=email or "",
            scope=scope,
            digest=tokens.digest_of(token) if token else "",
            group=group,
            projects=tuple(dict.fromkeys(project)),
            role=role,
            expires=call.mind.now().replace(microsecond=0) + timedelta(days=days) if days else None,
        )
    )
    with lock(path.with_suffix(".lock")):
        members = tokens.read(path)
        if name in members:
            way = "token rm" if members[name].group else "token rotate"
            raise Conflict(
                f"`{name}` has {'the rights of a group' if members[name].group else 'a token'}",
                hint=Hint(
                    Command(way, name), " removes it" if members[name].group else " replaces it"
                ),
            )
        tokens.write(path, [*members.values(), member])
    return TokenAdded(
        name=name, token=token, file=str(path), unregistered=_unregistered(call, member.projects)
    )


def _unregistered(call: Call, names: Sequence[str]) -> tuple[str, ...]:
    registered = projects.registered(call.mind.home).projects
    texts = {text for item in registered for text in (item.name, str(item.path))}
    return tuple(name for name in names if name not in texts)


@for_people(
    "mind_token_list",
    cli="token list",
    effect=Effect.READ,
    needs=Needs(Operation.READ, person=True),
    errors=(Invalid, StorageFailed),
    examples=("mind token list",),
)
def list_(call: Call, *, file: TokensFile = None) -> TokenRows:
    """List the users of the server

    The tokens themselves are not stored.
    """
    path = _file(call, file)
    rows = tuple(
        TokenRow(
            name=member.name,
            email=member.email or None,
            group=member.group,
            scope=member.scope,
            projects=member.projects,
            role=member.role,
            expires=member.expires,
            expired=not member.is_valid(call.mind.now()),
        )
        for member in sorted(tokens.read(path).values(), key=lambda member: member.name)
    )
    return TokenRows(tokens=rows, file=str(path))


@for_people(
    "mind_token_rotate",
    cli="token rotate",
    effect=Effect.WRITE,
    any_format=True,
    errors=(Denied, NotFound, Invalid, StorageFailed),
    examples=("mind token rotate ana", "mind token rotate bot --days 90"),
)
def rotate(
    call: Call,
    name: Annotated[str, Arg("Name of the user")],
    *,
    days: Annotated[
        int | None, Arg("Days until it expires (default: as before)", ge=1, le=36_500)
    ] = None,
    file: TokensFile = None,
) -> TokenAdded:
    """Replace the token of a user, and print the new one once

    Rights and projects stay. The earlier token is refused at once, also in open sessions.
    """
    _check_person(call)
    from mimo.api import loopback

    path, token, now = _file(call, file), loopback.new_token(), call.mind.now()
    with lock(path.with_suffix(".lock")):
        members = tokens.read(path)
        if _existing(members, name).group:
            raise Invalid(f"`{name}` is a group, whose users have tokens of their provider")
        member = replace(members[name], digest=tokens.digest_of(token))
        if days:
            member = replace(member, expires=now.replace(microsecond=0) + timedelta(days=days))
        if not member.is_valid(now):
            raise Invalid(
                f"the token of `{name}` has expired",
                hint=Hint(Command("token rotate", name, days="90"), " gives it more time"),
            )
        tokens.write(path, {**members, name: member}.values())
    return TokenAdded(name=name, token=token, file=str(path), unregistered=())


@for_people(
    "mind_token_rm",
    cli="token rm",
    effect=Effect.WRITE,
    any_format=True,
    errors=(Denied, NotFound, Invalid, StorageFailed),
    examples=("mind token rm ana",),
)
def remove(
    call: Call, name: Annotated[str, Arg("Name of the user")], *, file: TokensFile = None
) -> TokenRemoved:
    """Revoke the token of a user, also in open sessions"""
    _check_person(call)
    path = _file(call, file)
    with lock(path.with_suffix(".lock")):
        members = tokens.read(path)
        del members[_existing(members, name).name]
        tokens.write(path, members.values())
    return TokenRemoved(name=name, file=str(path))


@command(
    "mind_search_org",
    effect=Effect.READ,
    has_budget=True,
    toolset="extra",
    needs_project=False,
    needs=Needs(Operation.READ, like="mind_search"),
    surfaces=Surface.MCP,
    errors=(Denied, Invalid, SearchFailed),
)
def search_org(
    call: Call,
    query: rows.Query,
    *,
    limit: rows.Limit = 10,
    **filters: Unpack[rows.Filters],
) -> SearchResults:
    """Search this project and all others in the organisation's shared index

    Only projects that the user may read, as their own policies permit.
    """
    from mimo.extensions.team.organisation import search_organisation

    options = finding.Options(filter=rows.narrowed(call, **filters), limit=limit)
    call.mind.prepare()
    matches, notice = search_organisation(call, query, options, filters.get("types", ()))
    results = tuple(matches)
    return SearchResults(query=query, total=len(results), results=results, notice=notice)


def _existing(members: Mapping[str, Member], name: str) -> Member:
    """Returns a user. Raises `NotFound`."""
    if name not in members:
        raise NotFound(
            f"`{name}` has no token", hint=Hint(Command("token list"), " lists the users")
        )
    return members[name]


def _check_person(call: Call) -> None:
    """Raises `Denied` for an agent, which could give itself rights on the server."""
    if call.agent is not None:
        raise Denied("only a person may change tokens", hint="run the command in a terminal")


def _file(call: Call, text: str | None) -> Path:
    return disk.expanded(text).absolute() if text else call.mind.home / tokens.FILE


@render.register
def _(result: TokenAdded, screen: Screen) -> None:
    if result.token is None:
        screen.line(good("✓ "), f"the users of {result.name} may sign in; {result.file} has it")
    else:
        screen.line(result.token)
        note = f"the token of {result.name}, which is not shown again; {result.file} has a digest"
        screen.note(note)
    for name in result.unregistered:
        screen.note(f"no project `{name}` is registered here yet")


@render.register
def _(result: TokenRows, screen: Screen) -> None:
    if not result.tokens:
        screen.line("no tokens")
        screen.note("`mind token add NAME --email ADDRESS` creates one")
        return
    screen.table(("name", "e-mail", "scope", "projects", "expires"), map(_cells, result.tokens))
    screen.line(dim(count(len(result.tokens), "token")))


def _cells(row: TokenRow) -> tuple[Part, ...]:
    until = second(row.expires) if row.expires else "never"
    return (
        strong(row.name),
        row.email or f"group {row.group}",
        accent(row.scope.value),
        ", ".join(row.projects) or "all",
        warn("expired") if row.expired else until,
    )


@render.register
def _(result: TokenRemoved, screen: Screen) -> None:
    screen.line(good("✓ "), f"{result.name} has no rights here any more")
