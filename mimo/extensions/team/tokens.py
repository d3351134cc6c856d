"""The users of a team's server: their tokens, and what each token permits.

The file holds digests only. A token has 192 random bits, so a fast digest can't be guessed back.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from functools import cache
from hmac import compare_digest
from pathlib import Path
from typing import Any, TypeGuard

from mimo.api import (
    Call,
    Denied,
    Effect,
    Invalid,
    Operation,
    Registered,
    Spec,
    StateFile,
    disk,
    failure,
    files,
    frozen,
    replace,
)

FILE = "tokens.toml"
"""The name of the file in $MIND_HOME."""

_MOST_BYTES = 1_000_000

_NAME = re.compile(r"[\w][\w.@ -]{0,63}")
_EMAIL = re.compile(r"[^\s<>\"\\,;:()\[\]\x00-\x20\x7f]{1,64}@[A-Za-z0-9.-]{1,190}")
_ROLE = re.compile(r"[A-Za-z_][\w$]{0,62}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_KEYS = {"email", "scope", "sha256", "projects", "role", "expires"}
_KEYS_OF_GROUP = {"group", "scope", "projects", "role", "expires"}

EVERYONE = "*"
"""The group of all users whom the provider signs in."""


_OF_SERVER = {
    "mind_sync": "this server commits and pushes by itself",
    "mind_add_global_edge": "a team's server has no memory for all projects: add a gotcha instead",
}
"""Tools that no token permits, each with the reason."""


class Scope(StrEnum):
    """The rights of a token; each includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@frozen
class Member:
    """A user of the server, as the token names them."""

    name: str
    email: str
    scope: Scope
    digest: str
    """The SHA-256 of the token, in hexadecimal."""
    projects: tuple[str, ...] = ()
    """The names or paths of the projects that the token is for; all if empty."""
    role: str | None = None
    """The PostgreSQL role whose rights on the shared index apply."""
    expires: datetime | None = None
    file: Path | None = None
    """The file that holds the token, for a process that has to check it again."""
    group: str | None = None
    """The group at the OpenID provider that has these rights; its entry has no user."""
    full_name: str = ""

    @property
    def author(self) -> str:
        """The author of the user's commits."""
        return f"{self.full_name or self.name} <{self.email}>"

    @property
    def reference(self) -> str | None:
        """The path of the file with the token; None for a user whom a provider signed in."""
        return None if self.file is None or self.group else str(self.file)

    def refusal(self, spec: Spec) -> Denied | None:
        """Returns the error for a command that the token does not permit; None for any other."""
        reads = spec.effect is Effect.READ and spec.needs.operation is Operation.READ
        if spec.name not in _OF_SERVER and (reads or self.scope is not Scope.READ):
            return None
        error = Denied(
            f"Access denied to tool '{spec.listed_name}'",
            hint=_OF_SERVER.get(
                spec.name, f"your token has the scope `{self.scope.value}`; writing needs `write`"
            ),
            details={"scope": self.scope.value},
        )
        error.reason = "scope"
        return error

    def is_valid(self, now: datetime) -> bool:
        """Returns whether the token has not expired."""
        return self.expires is None or now < self.expires

    def is_current(self, now: datetime) -> bool:
        """Returns whether the user still has exactly these rights. Raises as `Tokens` does."""
        return self.file is None or _tokens(self.file).is_current(self, now)

    def may_open(self, root: Path, registered: Iterable[Registered]) -> bool:
        """Returns whether the token is for a project.

        A name that several registered projects have permits none of them: a path does.
        """
        if not self.projects or str(root) in self.projects:
            return True
        names = [item.name for item in registered]
        own_names = [item.name for item in registered if item.path == root]
        return any(name in self.projects and names.count(name) == 1 for name in own_names)


@frozen
class Identity:
    """The user that a token of an OpenID provider names."""

    name: str
    """The subject at the provider, which is unique and stays."""
    full_name: str
    email: str
    digest: str
    """The digest of the provider and the subject."""
    groups: frozenset[str]
    expires: datetime


def digest_of(token: str) -> str:
    """Returns the digest under which a token is stored."""
    return disk.sha256(token.encode("utf-8", "surrogateescape")).hex()


def is_name(text: object) -> TypeGuard[str]:
    """Returns whether a text can be the name of a user."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def is_email(text: object) -> TypeGuard[str]:
    """Returns whether a text can be the address of an author."""
    return isinstance(text, str) and bool(_EMAIL.fullmatch(text)) and text.isprintable()


def checked(member: Member) -> Member:
    """Returns a user whose fields are valid. Raises `Invalid`."""
    if not is_name(member.name):
        raise Invalid(
            f"`{member.name}` is not a name of a user",
            hint="use up to 64 letters, digits, spaces or any of . _ @ -",
        )
    if member.group is None and not is_email(member.email):
        raise Invalid(
            f"`{member.email}` is not an e-mail address", hint="it becomes the author of commits"
        )
    if member.group is not None and not (member.group.strip() and member.group.isprintable()):
        raise Invalid(f"`{member.group}` is not the name of a group")
    for project in member.projects:
        if not project.isprintable() or not project.strip():
            raise Invalid(f"`{project}` is not the name of a project")
    if member.role is not None and not _ROLE.fullmatch(member.role):
        raise Invalid(f"`{member.role}` is not the name of a PostgreSQL role")
    if member.expires is not None and member.expires.tzinfo is None:
        raise Invalid(f"the expiry of `{member.name}` has no time zone", hint="end it with Z")
    return member


def read(path: Path) -> dict[str, Member]:
    """Returns the users in a file by name; none if the file is missing.

    Raises `Invalid` for a file that other users can read or change, or that has another form, and
    `StorageFailed` if it can't be read or a later version of mind wrote it.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise failure("read", path, error) from error
    if disk.is_foreign(status) or stat.S_IMODE(status.st_mode) & 0o077:
        raise Invalid(f"other users can read or change `{path}`", hint=f"chmod 600 {path}")

    def members_in(users: Any) -> list[Member]:
        return [_member(path, name, fields) for name, fields in users.items()]

    kind = StateFile(members_in, hint="correct it", limit=_MOST_BYTES, syntax="toml", error=Invalid)
    members = kind.read(path.parent, path.name) or []
    digests = [member.digest for member in members if member.group is None]
    if len({*digests}) < len(digests):
        raise Invalid(f"two users in `{path}` have the same token", hint="add another for one")
    return {checked(member).name: member for member in members}


def _member(path: Path, name: str, fields: Mapping[str, Any]) -> Member:
    if not isinstance(fields, dict):
        raise TypeError(f"`{name}` must be a table, which begins with `[{name}]`")
    is_group = "group" in fields
    for key in () if is_group else ("email", "sha256"):
        if key not in fields:
            raise ValueError(f"`{name}` has no `{key}`")
    unknown = fields.keys() - (_KEYS_OF_GROUP if is_group else _KEYS)
    if unknown:
        # A mistyped key, such as `project`, would leave out a restriction.
        raise ValueError(f"`{name}` has the unknown key `{min(unknown)}`")
    projects, expires, role = fields.get("projects", []), fields.get("expires"), fields.get("role")
    if not isinstance(projects, list) or not all(isinstance(item, str) for item in projects):
        raise TypeError(f"`projects` of `{name}` must be a list of names")
    if "projects" in fields and not projects:
        raise ValueError(f"`projects` of `{name}` is empty: leave it out to permit every project")
    if expires is not None and not isinstance(expires, datetime):
        raise TypeError(f"`expires` of `{name}` must be a time, such as 2027-01-31T00:00:00Z")
    if not is_group and not _DIGEST.fullmatch(str(fields["sha256"])):
        raise ValueError(f"`sha256` of `{name}` is not a digest")
    return Member(
        name=name,
        email=str(fields.get("email", "")),
        scope=Scope(fields.get("scope", Scope.WRITE)),
        digest=str(fields.get("sha256", "")),
        projects=tuple(projects),
        role=None if role is None else str(role),
        expires=expires,
        file=path,
        group=str(fields["group"]) if is_group else None,
    )


def write(path: Path, members: Iterable[Member]) -> None:
    """Replaces the file, which only its owner can read. Raises `StorageFailed`."""
    lines = ["# Users of the server. `mind token` changes this file; it holds no token.\n"]
    for member in sorted(members, key=lambda member: member.name):
        is_group = member.group is not None
        who = f"group = {_quoted(member.group)}" if is_group else f"email = {_quoted(member.email)}"
        lines += [f"[{_quoted(member.name)}]", who, f"scope = {_quoted(member.scope.value)}"]
        if not is_group:
            lines.append(f"sha256 = {_quoted(member.digest)}")
        if member.projects:
            lines.append(f"projects = [{', '.join(map(_quoted, member.projects))}]")
        if member.role is not None:
            lines.append(f"role = {_quoted(member.role)}")
        if member.expires is not None:
            lines.append(f"expires = {member.expires.isoformat()}")
        lines.append("")
    files.replace(path, "\n".join(lines).encode(), mode=0o600)


def _quoted(text: str | None) -> str:
    """Returns a text as a string of TOML, which has the escapes of JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


class Tokens:
    """The tokens of a file, which is read again after each change."""

    def __init__(self, path: Path) -> None:
        """Reads the file, which may not exist yet. Raises as `read` does."""
        self._file = files.reread(path, read, follow=True)
        self.members()

    def members(self) -> tuple[Member, ...]:
        """Returns the users of the file. Raises `Invalid` and `StorageFailed`, as `read` does."""
        return tuple((self._file() or {}).values())

    def holder(self, token: str, now: datetime) -> Member | None:
        """Returns the user of a valid token; None for any other.

        The time does not depend on how much of a token is right. Raises as `members` does.
        """
        digest = digest_of(token)
        holder = None
        for member in self.members():
            if member.group is None and compare_digest(digest, member.digest):
                holder = member
        return holder if holder and holder.is_valid(now) else None

    def is_current(self, member: Member, now: datetime) -> bool:
        """Returns whether a user still has exactly these rights. Raises as `members` does."""
        if member.group is None:
            return member in self.members() and member.is_valid(now)
        rights = replace(member, name="", email="", digest="", full_name="", expires=None)
        entries = (each for each in self.members() if each.group and each.is_valid(now))
        has_rights = rights in (replace(each, name="", expires=None) for each in entries)
        return has_rights and member.is_valid(now)

    def granted(self, identity: Identity, now: datetime) -> tuple[Member, ...]:
        """Returns the rights of a user whom the provider signed in, by group, the widest first.

        Raises as `members` does.
        """
        members = self.members()
        is_taken = any(identity.name == each.name for each in members if each.group is None)
        rights = [
            replace(
                each,
                name=identity.digest[:16] if is_taken else identity.name,
                email=identity.email,
                full_name=identity.full_name,
                digest=identity.digest,
                expires=min(filter(None, (identity.expires, each.expires))),
            )
            for each in members
            if each.group in (EVERYONE, *identity.groups) and each.is_valid(now)
        ]
        widest = [*Scope]
        return tuple(sorted(rights, key=lambda each: -widest.index(each.scope)))


@cache
def _tokens(file: Path) -> Tokens:
    return Tokens(file)


def stated(file: str, name: str) -> Member | None:
    """Returns the user of a name in a file; None if there is none. Raises as `Tokens` does."""
    users = _tokens(Path(file)).members()
    return next((member for member in users if member.name == name), None)


def user_of(call: Call) -> Member | None:
    """Returns the user of this server who makes a call; None for anyone else."""
    return call.permissions if isinstance(call.permissions, Member) else None
