"""Installing into clients; `install.transcript` has the files of each one."""

import errno
import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from mimo.call import Call
from mimo.data import disk, files
from mimo.errors import Conflict, Invalid, StorageFailed
from mimo.features import clients
from mimo.features.clients import FileRow, Machine, machine, place_of, scope_of, storage, table
from mimo.features.clients.edits import Script
from mimo.features.clients.table import CLIENTS, Scope, client, places
from mimo.mind import Mind
from mimo.project import projects
from tests.kit import script

STDIO = {"type": "stdio", "command": "mind", "args": ["mcp"]}
EACH = [(each.name, scope.value) for each in CLIENTS for scope in each.files]
READ: dict[str, Callable[[str], Any]] = {
    ".json": json.loads,
    ".toml": tomllib.loads,
    ".js": str,
}


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A user's home, with `mind` on the PATH."""
    script(tmp_path / "user" / "bin" / "mind", "#!/bin/sh\n")
    return tmp_path / "user"


@pytest.fixture
def call(project: Path, home: Path, user: Path) -> Call:
    environ = {"HOME": str(user), "PATH": str(user / "bin")}
    return Call(Mind(home=home, project=projects.explicit(project, home), environ=environ))


@pytest.fixture
def here(call: Call, user: Path) -> Machine:
    return replace(machine(call), places=places(str(user), {}, "linux"), home=None)


def install(call: Call, name: str, scope: str, here: Machine, **more: bool) -> list[FileRow]:
    options = {"force": False, "dry_run": False} | more
    return list(clients.install(call, client(name), Scope(scope), here, **options))


def uninstall(call: Call, name: str, scope: str, here: Machine) -> list[FileRow]:
    return list(clients.uninstall(call, client(name), Scope(scope), here, dry_run=False))


def tree(*folders: Path) -> dict[Path, bytes | None]:
    """Returns the content of all files, and None for each folder."""
    return {
        path: path.read_bytes() if path.is_file() else None
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if ".mind" not in path.parts
    }


@pytest.mark.parametrize(("name", "scope"), EACH)
def test_an_installation_is_complete_and_its_removal_leaves_nothing(
    call: Call, project: Path, user: Path, here: Machine, name: str, scope: str
) -> None:
    before = tree(project, user)
    install(call, name, scope, here)
    assert {step.action for step in install(call, name, scope, here)} <= {"unchanged", "yours"}
    uninstall(call, name, scope, here)
    assert tree(project, user) == before


SKILLED = [(name, scope) for name, scope in EACH if scope in client(name).skills]


@pytest.mark.parametrize(("name", "scope"), SKILLED)
def test_a_skill_is_installed_updated_and_removed_and_an_edited_one_is_kept(
    call: Call, project: Path, user: Path, here: Machine, name: str, scope: str
) -> None:
    before = tree(project, user)
    assert not any("SKILL" in row.file for row in install(call, name, scope, here))
    *_, row = install(call, name, scope, here, skill=True)
    path = Path(row.file)
    text = path.read_text("utf-8")
    assert row.action == "created"
    assert path.parent.name == yaml.safe_load(text.split("---")[1])["name"]

    path.write_text("my own", "utf-8")
    rows = (
        [*install(call, name, scope, here, skill=True)][-1:],
        [*uninstall(call, name, scope, here)],
    )
    for row in (rows[0][-1], rows[1][-1]):
        assert (row.action, path.read_text("utf-8")) == ("unchanged", "my own")
        assert str(row.note).startswith("it is changed, or of another version")
    assert install(call, name, scope, here, skill=True, force=True)[-1].action == "changed"
    assert path.read_text("utf-8") == text
    uninstall(call, name, scope, here)
    assert path.read_text("utf-8") == "my own"
    path.unlink()

    install(call, name, scope, here, skill=True)
    uninstall(call, name, scope, here)
    shutil.rmtree(path.parents[2], ignore_errors=True)
    assert tree(project, user) == before


def test_clients_that_share_a_skill_keep_it_until_the_last_is_removed(
    call: Call, project: Path, here: Machine
) -> None:
    for name in ("codex", "gemini"):
        install(call, name, "project", here, skill=True)
    path = project / ".agents" / "skills" / "mind-memory" / "SKILL.md"
    assert uninstall(call, "codex", "project", here)[-1].note == "gemini uses it too"
    assert path.exists()
    uninstall(call, "gemini", "project", here)
    assert not path.exists()


def test_a_skill_of_an_earlier_version_is_updated(
    call: Call, project: Path, here: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    *_, row = install(call, "codex", "project", here, skill=True)
    (skill,) = clients.skill_targets(client("codex"), Scope.PROJECT, here)
    newer = skill._replace(edits=(Script("newer", editable=True),))
    monkeypatch.setattr(clients, "skill_targets", lambda *_: [newer])
    assert install(call, "codex", "project", here, skill=True)[-1].action == "changed"
    assert Path(row.file).read_text("utf-8") == "newer"


@pytest.mark.parametrize("program", ["mind", "/opt/my tools/mind"])
@pytest.mark.parametrize("status", [0, 7])
def test_a_hook_prints_what_mind_prints_and_is_silent_without_it(
    tmp_path: Path, program: str, status: int
) -> None:
    command = table.line_of("codex", program.replace("/opt", str(tmp_path)))

    def run() -> tuple[int, str, str]:
        environ = {"PATH": f"{tmp_path / 'bin'}:{os.defpath}"}
        done = subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, env=environ, check=False
        )
        return done.returncode, done.stdout, done.stderr

    assert run() == (0, "", "")
    folder = tmp_path / "my tools" if "/" in program else tmp_path / "bin"
    folder.mkdir()
    script(folder / "mind", f'#!/bin/sh\necho "$@"; echo no >&2; exit {status}\n')
    assert run() == (0, "hook codex\n", "")


@pytest.mark.parametrize(("name", "scope"), EACH)
def test_a_custom_home_is_in_the_environment_of_the_server(
    call: Call, project: Path, user: Path, here: Machine, name: str, scope: str
) -> None:
    chosen = replace(here, home="/srv/own mind")
    before = tree(project, user)
    steps = install(call, name, scope, chosen)

    installed = client(name)
    file = place_of(installed.files[Scope(scope)], chosen)
    if file.exists():
        entry = READ[file.suffix](file.read_text(encoding="utf-8"))[installed.section]["mind"]
        assert entry[installed.env]["MIND_HOME"] == "/srv/own mind"
    elif lines := steps[0].lines:
        entry = yaml.safe_load(lines)[installed.section]["mind"]
        assert entry[installed.env]["MIND_HOME"] == "/srv/own mind"
    else:
        assert '"env":{"MIND_HOME":"/srv/own mind"}' in str(steps[0].note)
    for hooks in (hooks for hooks in installed.hooks if hooks.has_env):
        text = place_of(hooks.files[Scope(scope)], chosen).read_text(encoding="utf-8")
        for items in json.loads(text)["hooks"].values():
            assert items[0]["env"] == {"MIND_HOME": "/srv/own mind"}
    uninstall(call, name, scope, chosen)
    assert tree(project, user) == before


def test_a_relative_home_is_made_absolute(
    project: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(user)
    for given, expected in ((None, None), ("own", str(user / "own"))):
        environ = {"HOME": str(user), **({"MIND_HOME": given} if given else {})}
        assert machine(Call(Mind.open(project, environ=environ))).home == expected


def test_uninstall_restores_an_existing_file(call: Call, project: Path, here: Machine) -> None:
    file = project / ".mcp.json"
    for text in [
        "",
        "{}",
        '{"mcpServers": {}}\n',
        '\ufeff{\r\n\t"mcpServers": {}\r\n}',
        "{ // a\n}",
    ]:
        file.write_bytes(text.encode())
        file.chmod(0o640)
        (step, *_) = install(call, "claude-code", "project", here)

        assert step.action == "changed"
        assert step.backup is not None
        assert Path(step.backup).read_bytes() == text.encode()
        assert file.stat().st_mode & 0o777 == 0o640
        uninstall(call, "claude-code", "project", here)
        assert file.read_bytes() == text.encode()


def test_an_installation_that_fails_at_a_later_file_does_not_claim_that_nothing_changed(
    call: Call, project: Path, here: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = disk.make_folder

    def refuse(folder: Path) -> None:
        if folder.name == ".claude":
            raise PermissionError(errno.EPERM, "operation not permitted", str(folder))
        really(folder)

    monkeypatch.setattr(disk, "make_folder", refuse)
    with pytest.raises(StorageFailed, match=r"settings\.json`: operation not") as caught:
        install(call, "claude-code", "project", here)

    assert (project / ".mcp.json").exists()
    assert caught.value.hint == "check who owns it (`ls -l`); it was not changed"


@pytest.mark.parametrize("data", [b'{"a": "\xff"}', b"\x00", b"[]", b'{"mcpServers": []}'])
def test_a_file_that_is_not_regular_is_refused(
    call: Call, project: Path, here: Machine, data: bytes
) -> None:
    (project / ".mcp.json").write_bytes(data)

    with pytest.raises(Invalid, match=r"\.mcp\.json"):
        install(call, "claude-code", "project", here)
    assert (project / ".mcp.json").read_bytes() == data


def test_a_concurrent_change_by_the_client_is_a_conflict(
    call: Call, project: Path, here: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project / ".mcp.json"
    file.write_text("{}")
    keep = storage.keep

    def changed_meanwhile(*args: Any) -> Path:
        file.write_text('{"theirs": 1}')
        return keep(*args)

    monkeypatch.setattr(storage, "keep", changed_meanwhile)
    with pytest.raises(Conflict, match="changed since"):
        install(call, "copilot", "project", here)
    assert file.read_text() == '{"theirs": 1}'


def test_a_changed_copy_is_not_restored(call: Call, project: Path, here: Machine) -> None:
    file = project / ".mcp.json"
    file.write_text('{"a": 1}')
    (step, *_) = install(call, "claude-code", "project", here)
    assert step.backup is not None
    files.replace(Path(step.backup), b"{}")
    uninstall(call, "claude-code", "project", here)

    assert file.read_text() == '{"a": 1}'


CLAUDE = """#!/bin/sh
echo "$@" >> "$0.log"
[ "$2" = remove ] && exec rm "$(dirname "$0")/../.claude.json"
printf '{"mcpServers":{"%s":%s}}' "$5" "$6" > "$(dirname "$0")/../.claude.json"
"""


def test_the_configuration_of_claude_code_is_changed_by_its_program(
    call: Call, project: Path, user: Path, here: Machine
) -> None:
    install(call, "claude-code", "project", here)
    (step, _) = install(call, "claude-code", "user", here)
    assert (step.action, (user / ".claude.json").exists()) == ("yours", False)
    assert "`claude` is not on the PATH; run where it is: claude mcp add-json" in str(step.note)
    hooks = ".claude/settings.json"
    assert (user / hooks).read_bytes() == (project / hooks).read_bytes()

    script(user / "bin" / "claude", f"#!/bin/sh\nPATH=/usr/bin:/bin\n{CLAUDE}")
    (step, _) = install(call, "claude-code", "user", here, dry_run=True)
    assert (step.action, (user / ".claude.json").exists()) == ("yours", False)
    (step, _) = install(call, "claude-code", "user", here)
    assert step.action == "changed"
    assert json.loads((user / ".claude.json").read_text()) == {"mcpServers": {"mind": STDIO}}
    assert install(call, "claude-code", "user", here)[0].action == "unchanged"
    uninstall(call, "claude-code", "user", here)
    assert not (user / ".claude.json").exists()
    assert uninstall(call, "claude-code", "user", here)[0].action == "unchanged"


@pytest.mark.parametrize("accepted", ["*acme*", "none"])
def test_another_entry_is_not_lost_if_the_program_fails(
    call: Call, user: Path, here: Machine, accepted: str
) -> None:
    """The program refuses our entry, or every one."""
    theirs, file = {"command": "acme"}, user / ".claude.json"
    file.write_text(json.dumps({"mcpServers": {"mind": theirs}}), encoding="utf-8")
    program = user / "bin" / "claude"
    refuse = f'case "$2 $6" in (remove*|{accepted}) ;; (*) exit 3 ;; esac\n'
    script(program, f"#!/bin/sh\nPATH=/usr/bin:/bin\n{refuse}{CLAUDE}")

    with pytest.raises(StorageFailed) as caught:
        install(call, "claude-code", "user", here, force=True)

    if accepted == "none":
        copy = Path(caught.value.hint.split("`")[1])
        assert json.loads(copy.read_bytes()) == {"mcpServers": {"mind": theirs}}
    else:
        assert "unchanged" in caught.value.hint
        assert json.loads(file.read_bytes()) == {"mcpServers": {"mind": theirs}}


def test_a_failing_program_is_reported_with_its_output(
    call: Call, user: Path, here: Machine
) -> None:
    script(user / "bin" / "claude", "#!/bin/sh\necho not logged in >&2\nexit 3\n")
    with pytest.raises(StorageFailed, match="not logged in"):
        install(call, "claude-code", "user", here)


def test_the_default_scope_is_the_project(
    call: Call, home: Path, user: Path, here: Machine
) -> None:
    nowhere = machine(Call(Mind(home=home, project=None, environ=call.mind.environ)))

    assert scope_of(client("codex"), None, here) is Scope.PROJECT
    assert scope_of(client("codex"), None, nowhere) is Scope.USER
    assert scope_of(client("goose"), None, here) is Scope.USER
    with pytest.raises(Invalid, match="no project here"):
        install(call, "codex", "project", nowhere)


@pytest.mark.parametrize(
    ("platform", "name", "place"),
    [
        ("darwin", "config", "/u/Library/Application Support"),
        ("darwin", "zed", "/u/.config/zed"),
        ("darwin", "code", "/u/Library/Application Support/Code/User"),
        ("linux", "code", "/x/Code/User"),
        ("linux", "codex", "/c"),
    ],
)
def test_places_follow_the_system_and_the_environment(platform: str, name: str, place: str) -> None:
    environ = {"XDG_CONFIG_HOME": "/x", "CODEX_HOME": "/c"}
    assert places("/u", environ, platform)[name] == place


def loaded(folder: Path) -> dict[Path, Any]:
    """Returns the data of all JSON files."""
    return {
        path: json.loads(data)
        for path, data in tree(folder).items()
        if path.suffix == ".json" and data
    }


@pytest.mark.parametrize("name", ["claude-code", "gemini", "codex", "cursor", "vscode", "copilot"])
def test_hooks_of_an_earlier_version_are_reported_and_renewed_by_force(
    call: Call, project: Path, here: Machine, name: str
) -> None:
    install(call, name, "project", here)
    before = loaded(project)
    for path, data in tree(project).items():
        if data is not None:
            path.write_bytes(data.replace(b" 2>/dev/null || true", b""))
    assert loaded(project) != before
    assert [doubt for doubt in clients.doubts(call) if "earlier version" in doubt.message]
    install(call, name, "project", here, force=True)
    assert loaded(project) == before
    assert list(clients.doubts(call)) == []


def test_an_entry_for_all_projects_names_the_open_folder() -> None:
    code, cursor = table.client("vscode"), table.client("cursor")

    assert code.server(table.USER, "mind", project=None).value["cwd"] == "${workspaceFolder}"
    assert cursor.server(table.USER, "mind", project=None, home="/h").value["env"] == {
        "CLAUDE_PROJECT_DIR": "${workspaceFolder}",
        "MIND_HOME": "/h",
    }
    assert "cwd" not in code.server(table.PROJECT, "mind", project=None).value
    assert "cwd" not in code.distant(table.USER, "https://mind.example", has_token=False).value
