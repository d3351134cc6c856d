"""The file of a team's tokens."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.data.disk import Stamp
from mimo.errors import Invalid
from mimo.extensions.team import tokens
from mimo.extensions.team.tokens import Member, Scope, Tokens, digest_of
from mimo.frozen import replace
from mimo.project.projects import Registered
from tests.kit import ask

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def member(name: str = "ana", **fields: Any) -> Member:
    given: dict[str, Any] = {
        "name": name,
        "email": f"{name}@example.org",
        "scope": Scope.WRITE,
        "digest": digest_of(f"secret-of-{name}"),
    }
    return Member(**(given | fields))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.toml"


def test_every_field_survives_the_file(path: Path) -> None:
    expires = NOW + timedelta(days=1)
    whole = member(
        "J\xf6rg Q. \U00020000", projects=("shop", '/srv/a "b"'), role="joerg", expires=expires
    )
    whole = tokens.checked(Member(**{**_fields(whole), "email": "jq@example.org"}))

    tokens.write(path, [whole, member()])

    members = {name: replace(each, file=None) for name, each in tokens.read(path).items()}
    assert members == {whole.name: whole, "ana": member()}
    assert {each.file for each in tokens.read(path).values()} == {path}
    assert path.stat().st_mode & 0o777 == 0o600
    assert "secret" not in path.read_text(encoding="utf-8")


def _fields(value: Member) -> dict[str, Any]:
    return {name: getattr(value, name) for name in Member.__annotations__}


def test_the_file_has_the_digest_of_a_new_token(call: Call, home: Path) -> None:
    _, added = ask(call, "token", "add", "ana", "--email", "ana@example.org")

    assert tokens.read(home / "tokens.toml")["ana"].digest == digest_of(added["token"])
    assert added["token"] not in (home / "tokens.toml").read_text(encoding="utf-8")


def test_a_token_is_found_until_it_expires(path: Path) -> None:
    tokens.write(path, [member(expires=NOW), member("bob")])
    users = Tokens(path)

    before = users.holder("secret-of-ana", NOW - timedelta(seconds=1))
    assert before
    assert before.name == "ana"
    assert users.holder("secret-of-ana", NOW) is None
    assert not users.is_current(before, NOW)
    assert users.holder("secret-of-bob", NOW) == member("bob", file=path)


@pytest.mark.attack("http")
@pytest.mark.parametrize("token", ["", "x", digest_of("secret-of-ana"), "secret-of-ana\udcff"])
def test_no_other_text_is_a_token(path: Path, token: str) -> None:
    tokens.write(path, [member()])

    assert Tokens(path).holder(token, NOW) is None


def test_a_change_of_the_file_takes_effect_at_once(path: Path) -> None:
    tokens.write(path, [member()])
    users = Tokens(path)

    tokens.write(path, [member(scope=Scope.READ)])
    assert not users.is_current(member(), NOW)
    changed = users.holder("secret-of-ana", NOW)
    assert changed
    assert changed.scope is Scope.READ

    tokens.write(path, [])
    assert users.holder("secret-of-ana", NOW) is None
    path.unlink()
    assert users.holder("secret-of-ana", NOW) is None


@pytest.mark.attack("http")
def test_a_change_while_the_file_is_read_takes_effect(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens.write(path, [member()])
    stamp, read = Stamp.of(path.stat()), tokens.read
    now_ns = stamp.ctime_ns

    def slowly(path: Path) -> dict[str, Member]:
        nonlocal now_ns
        members = read(path)
        now_ns += 5_000_000_000
        return members

    monkeypatch.setattr(tokens, "read", slowly)
    monkeypatch.setattr("time.time_ns", lambda: now_ns)
    # Two changes within one step of the file system's clock.
    monkeypatch.setattr(Stamp, "of", lambda _: stamp)
    users = Tokens(path)
    tokens.write(path, [])

    assert users.holder("secret-of-ana", NOW) is None


@pytest.mark.attack("http")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_can_read_is_refused(path: Path, mode: int) -> None:
    tokens.write(path, [member()])
    path.chmod(mode)

    with pytest.raises(Invalid, match="other users"):
        Tokens(path)


def test_a_missing_file_admits_no_one(path: Path) -> None:
    assert Tokens(path).members() == ()


@pytest.mark.attack("http")
@pytest.mark.parametrize(
    "line",
    [
        'scope = "root"',
        'scope = "write"\nproject = ["shop"]',
        'scope = "write"\nprojects = []',
        'scope = "write"\nprojects = "shop"',
        'scope = "write"\nexpires = "never"',
        'scope = "write"\nexpires = 2027-01-01T00:00:00',
        'scope = "write"\nrole = "a; drop"',
    ],
)
def test_a_mistyped_restriction_is_an_error(path: Path, line: str) -> None:
    text = f'[ana]\nemail = "ana@example.org"\nsha256 = "{digest_of("x")}"\n{line}\n'
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")

    with pytest.raises(Invalid):
        tokens.read(path)


def written(path: Path, *lines: str) -> Path:
    path.touch(mode=0o600)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_user_without_a_scope_may_write(path: Path) -> None:
    digest = digest_of("secret-of-ana")
    written(path, "[ana]", 'email = "ana@example.org"', f'sha256 = "{digest}"')
    assert tokens.read(path) == {"ana": member(file=path)}


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (("[ana]", 'email = "ana@example.org"'), "`ana` has no `sha256`"),
        (("[ana]", f'sha256 = "{digest_of("x")}"'), "`ana` has no `email`"),
        (("[ana]", 'email = "a@b.org"', "sha256 = 1"), "`sha256` of `ana` is not a digest"),
        (("ana = 1",), "`ana` must be a table, which begins with `[ana]`"),
    ],
)
def test_a_damaged_entry_is_named_in_plain_words(
    path: Path, lines: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(Invalid, match="is damaged") as caught:
        tokens.read(written(path, *lines))
    assert caught.value.message.endswith(f"is damaged: {reason}")


def test_a_token_that_two_users_have_is_an_error(path: Path) -> None:
    tokens.write(path, [member(), member("bob", digest=member().digest, scope=Scope.ADMIN)])

    with pytest.raises(Invalid, match="the same token"):
        tokens.read(path)


@pytest.mark.attack("http")
@pytest.mark.parametrize(
    "fields",
    [
        {"name": "ana\n"},
        {"name": ""},
        {"name": "<ana>"},
        {"email": "ana"},
        {"email": "ana@x.org> <b@x.org"},
        {"email": "ana@x.org\n"},
        {"email": "a\x9bna@x.org"},
        {"email": "a\u202ena@x.org"},
        {"projects": ("a\nb",)},
    ],
)
def test_a_name_that_could_forge_a_commit_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        tokens.checked(member(**fields))


def test_a_name_permits_only_the_one_project_that_has_it() -> None:
    listed = [Registered(path=Path(path), name=Path(path).name) for path in ("/a/shop", "/b/bank")]
    twins = [*listed, Registered(path=Path("/c/shop"), name="shop")]
    shop, named = member(projects=("shop",)), member(projects=("/a/shop",))

    assert shop.may_open(Path("/a/shop"), listed)
    assert not shop.may_open(Path("/b/bank"), listed)
    assert not shop.may_open(Path("/elsewhere/shop"), listed)
    assert not shop.may_open(Path("/a/shop"), twins)
    assert named.may_open(Path("/a/shop"), twins)
    assert not named.may_open(Path("/c/shop"), twins)
    assert member().may_open(Path("/b/bank"), listed)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the owner")
def test_a_file_of_another_user_is_refused(path: Path) -> None:
    tokens.write(path, [member()])
    os.chown(path, 12345, -1)

    with pytest.raises(Invalid, match="other users"):
        Tokens(path)
