"""Installing into clients: the files of each one, and the treatment of existing files."""

import errno
import json
import os
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from mimo.call import Call
from mimo.cli.main import main
from mimo.data import disk, files
from mimo.errors import Conflict, Invalid, StorageFailed
from mimo.features import clients
from mimo.features.clients import FileRow, Machine, machine, place_of, scope_of, storage, table
from mimo.features.clients.table import CLIENTS, Scope, client, places
from mimo.features.upkeep.commands import config
from mimo.mind import Mind
from mimo.project import projects
from tests.kit import put, script

ARGS = ["mcp"]
MIND = "{bin}/mind"
STDIO = {"type": "stdio", "command": "mind", "args": ARGS}
ABSOLUTE = {"type": "stdio", "command": MIND, "args": ARGS}


def silent(name: str, program: str = "mind") -> str:
    """The command line of a hook, which must stay as it is: clients ask again if it changes."""
    return f"{program} hook {name} 2>/dev/null || true"


def grouped(command: str, **more: Any) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command, **more}]}


def event(command: str, timeout: int) -> dict[str, Any]:
    return {"type": "command", "command": command, "timeout": timeout}


CLAUDE_HOOKS = {
    "SessionStart": [grouped(silent("claude-code"), timeout=10)],
    "UserPromptSubmit": [grouped(silent("claude-code"), timeout=5)],
    "PreToolUse": [
        {
            "matcher": "Write|Edit|MultiEdit|NotebookEdit",
            **grouped(silent("claude-code"), timeout=5),
        }
    ],
    "PostCompact": [grouped(silent("claude-code"), timeout=10)],
    "Stop": [grouped(silent("claude-code"), **{"async": True})],
    "SessionEnd": [grouped(silent("claude-code"), timeout=5)],
}
CODEX_HOOKS = {
    "SessionStart": [
        {"matcher": "startup|resume|clear|compact", **grouped(silent("codex"), timeout=10)}
    ],
    "UserPromptSubmit": [grouped(silent("codex"), timeout=5)],
    "PreToolUse": [{"matcher": "apply_patch|Edit|Write", **grouped(silent("codex"), timeout=5)}],
    "PostCompact": [grouped(silent("codex"), timeout=10)],
    "Stop": [grouped(silent("codex"), timeout=10)],
}


def gemini(timeout: int, **more: str) -> list[Any]:
    return [{**more, **grouped(silent("gemini"), name="mind", timeout=timeout)}]


GEMINI = {
    "mcpServers": {"mind": {"command": "mind", "args": ARGS}},
    "hooks": {
        "SessionStart": gemini(10_000),
        "BeforeAgent": gemini(5_000),
        "BeforeTool": gemini(5_000, matcher="write_file|replace"),
        "AfterAgent": gemini(10_000),
        "PreCompress": gemini(10_000, matcher="manual"),
        "SessionEnd": gemini(10_000),
    },
}


def cursor_hooks(program: str) -> dict[str, Any]:
    hook = {"command": silent("cursor", program)}
    return {"version": 1, "hooks": {"sessionStart": [hook], "beforeSubmitPrompt": [hook]}}


def vscode_hooks(program: str) -> dict[str, Any]:
    line = silent("vscode", program)
    hooks = {"SessionStart": [event(line, 10)], "UserPromptSubmit": [event(line, 5)]}
    return {"version": 1, "hooks": hooks}


COPILOT_HOOKS = {
    "hooks": {"PreToolUse": [{"matcher": "Write|Edit", **event(silent("copilot"), 5)}]}
}
OPENCODE = {"mcp": {"mind": {"type": "local", "command": ["mind", *ARGS], "enabled": True}}}
PLUGIN_TEXT = Path(clients.__file__).with_name("opencode.js").read_text(encoding="utf-8")
GOOSE = {
    "name": "mind",
    "description": "Long-term memory of the project",
    "type": "stdio",
    "cmd": "mind",
    "args": ARGS,
    "envs": {},
    "enabled": True,
    "timeout": 300,
}
CLINE = ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
DESKTOP = {"command": MIND, "args": [*ARGS, "--project", "{project}"]}
ZED = {"source": "custom", "command": "mind", "args": ARGS, "env": {}}

GOLDEN: dict[tuple[str, str], dict[str, Any]] = {
    ("claude-code", "project"): {
        ".mcp.json": {"mcpServers": {"mind": STDIO}},
        ".claude/settings.json": {"hooks": CLAUDE_HOOKS},
    },
    ("claude-code", "user"): {".claude/settings.json": {"hooks": CLAUDE_HOOKS}},
    ("claude-desktop", "user"): {
        ".config/Claude/claude_desktop_config.json": {"mcpServers": {"mind": DESKTOP}}
    },
    ("codex", "project"): {
        ".codex/config.toml": {"mcp_servers": {"mind": {"command": "mind", "args": ARGS}}},
        ".codex/hooks.json": {"hooks": CODEX_HOOKS},
    },
    ("codex", "user"): {
        ".codex/config.toml": {"mcp_servers": {"mind": {"command": "mind", "args": ARGS}}},
        ".codex/hooks.json": {"hooks": CODEX_HOOKS},
    },
    ("gemini", "project"): {".gemini/settings.json": GEMINI},
    ("gemini", "user"): {".gemini/settings.json": GEMINI},
    ("cursor", "project"): {
        ".cursor/mcp.json": {"mcpServers": {"mind": STDIO}},
        ".cursor/hooks.json": cursor_hooks("mind"),
    },
    ("cursor", "user"): {
        ".cursor/mcp.json": {"mcpServers": {"mind": ABSOLUTE}},
        ".cursor/hooks.json": cursor_hooks(MIND),
    },
    ("vscode", "project"): {
        ".vscode/mcp.json": {"servers": {"mind": STDIO}},
        ".github/hooks/mind.json": vscode_hooks("mind"),
    },
    ("vscode", "user"): {
        ".config/Code/User/mcp.json": {"servers": {"mind": ABSOLUTE}},
        ".copilot/hooks/mind.json": vscode_hooks(MIND),
    },
    ("copilot", "project"): {
        ".mcp.json": {"mcpServers": {"mind": STDIO}},
        ".github/hooks/mind.json": vscode_hooks("mind"),
        ".github/copilot/settings.json": COPILOT_HOOKS,
    },
    ("copilot", "user"): {
        ".copilot/mcp-config.json": {"mcpServers": {"mind": {**STDIO, "tools": ["*"]}}},
        ".copilot/hooks/mind.json": vscode_hooks(MIND),
        ".copilot/settings.json": COPILOT_HOOKS,
    },
    ("opencode", "project"): {
        "opencode.json": OPENCODE,
        ".opencode/plugin/mind.js": PLUGIN_TEXT,
    },
    ("opencode", "user"): {
        ".config/opencode/opencode.json": OPENCODE,
        ".config/opencode/plugin/mind.js": PLUGIN_TEXT,
    },
    ("zed", "project"): {".zed/settings.json": {"context_servers": {"mind": ZED}}},
    ("zed", "user"): {
        ".config/zed/settings.json": {"context_servers": {"mind": {**ZED, "command": MIND}}}
    },
    ("windsurf", "user"): {
        ".codeium/windsurf/mcp_config.json": {
            "mcpServers": {"mind": {"command": MIND, "args": ARGS}}
        }
    },
    ("goose", "user"): {},  # the user adds the entry
    ("cline", "user"): {
        CLINE: {
            "mcpServers": {
                "mind": {"command": MIND, "args": ARGS, "disabled": False, "timeout": 60}
            }
        }
    },
}
"""The files of each client, in a project and for a user."""

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


@pytest.mark.parametrize(("name", "scope"), GOLDEN)
def test_every_client_gets_its_golden_files(
    call: Call, project: Path, user: Path, here: Machine, name: str, scope: str
) -> None:
    before = tree(project, user)
    install(call, name, scope, here)
    root = project if scope == "project" else user
    new = {path: data for path, data in tree(project, user).items() if data and path not in before}

    wanted = json.dumps(GOLDEN[name, scope])
    wanted = wanted.replace("{bin}", str(user / "bin")).replace("{project}", str(project))
    read = {
        path.relative_to(root).as_posix(): READ[path.suffix](data.decode())
        for path, data in new.items()
    }
    assert read == json.loads(wanted)
    assert {step.action for step in install(call, name, scope, here)} <= {"unchanged", "yours"}
    uninstall(call, name, scope, here)
    assert tree(project, user) == before


def test_folders_that_were_made_are_removed_with_the_last_file_in_them(
    call: Call, project: Path, here: Machine
) -> None:
    before = tree(project)
    install(call, "vscode", "project", here)
    install(call, "cursor", "project", here)
    other = project / ".github" / "workflow.yml"
    other.write_text("on: push\n")
    uninstall(call, "vscode", "project", here)
    assert not (project / ".vscode").exists()
    assert sorted(path.name for path in (project / ".github").iterdir()) == ["workflow.yml"]
    other.unlink()
    uninstall(call, "cursor", "project", here)
    # It is no longer a folder that only mind needed: the user had a file in it.
    assert tree(project) == {**before, project / ".github": None}


def test_an_empty_folder_of_the_user_stays(call: Call, project: Path, here: Machine) -> None:
    (project / ".claude").mkdir()
    install(call, "claude-code", "project", here)
    uninstall(call, "claude-code", "project", here)
    assert (project / ".claude").is_dir()


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


def test_a_client_that_has_run_decides_which_of_two_files_is_made(
    call: Call, user: Path, here: Machine
) -> None:
    (user / ".cline" / "data").mkdir(parents=True)
    (row,) = install(call, "cline", "user", here)
    assert row.file == str(user / ".cline/data/settings/cline_mcp_settings.json")


@pytest.mark.parametrize(("name", "scope"), GOLDEN)
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
        assert entry[installed.env] == {"MIND_HOME": "/srv/own mind"}
    elif lines := steps[0].lines:
        entry = yaml.safe_load(lines)[installed.section]["mind"]
        assert entry[installed.env] == {"MIND_HOME": "/srv/own mind"}
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


def test_a_project_installation_warns_about_a_custom_home(
    project: Path, user: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", str(user / "bin"))

    assert main(["install", "cursor", "--scope", "project"]) == 0
    assert "--scope user" in capsys.readouterr().err


def test_every_client_has_a_golden_file() -> None:
    assert set(GOLDEN) == {(each.name, scope.value) for each in CLIENTS for scope in each.files}


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


@pytest.mark.parametrize("other", [{}, {"mine": 1}])
def test_uninstall_removes_an_entry_and_hooks_that_a_file_had_before(
    call: Call, project: Path, here: Machine, other: dict[str, int]
) -> None:
    (project / ".claude").mkdir()
    entry = project / ".mcp.json"
    hooks = project / ".claude/settings.json"
    start = grouped("mind hook claude-code", timeout=10)
    entry.write_text(json.dumps(other | {"mcpServers": {"mind": {**STDIO, "env": {}}}}))
    hooks.write_text(json.dumps(other | {"hooks": {"SessionStart": [start]}}))

    install(call, "claude-code", "project", here, force=True)
    rows = uninstall(call, "claude-code", "project", here)

    assert [row.action for row in rows] == ["changed", "changed"]
    assert [json.loads(file.read_text()) for file in (entry, hooks)] == [other, other]


def test_an_entry_of_another_program_comes_back_after_force(
    call: Call, project: Path, here: Machine
) -> None:
    file = project / ".mcp.json"
    text = '{"mcpServers": {"mind": {"command": "other", "args": []}}}'
    file.write_text(text)
    install(call, "claude-code", "project", here, force=True)
    uninstall(call, "claude-code", "project", here)
    assert file.read_text() == text


def test_later_changes_of_the_user_stay(call: Call, project: Path, here: Machine) -> None:
    install(call, "cursor", "project", here)
    file = project / ".cursor/mcp.json"
    data = json.loads(file.read_text())
    data["mcpServers"]["other"] = {"command": "x"}
    file.write_text(json.dumps(data, indent=4))
    hooks = project / ".cursor/hooks.json"
    hooks.write_text(hooks.read_text().replace('"version": 1', '"version":  1'))

    uninstall(call, "cursor", "project", here)

    assert json.loads(file.read_text()) == {"mcpServers": {"other": {"command": "x"}}}
    assert not hooks.exists()


OTHER_EXTENSION = "extensions: # mine\n  other: &a {cmd: x}\nlast: *a\n"


@pytest.mark.parametrize(
    ("text", "task"),
    [
        (None, "add the entry to"),
        ("", "add the entry to"),
        ("extensions:\n", "add the entry to"),
        (OTHER_EXTENSION, "add the entry below its `extensions:` to"),
    ],
)
def test_the_user_changes_a_yaml_file(
    call: Call, user: Path, here: Machine, text: str | None, task: str
) -> None:
    file = user / ".config/goose/config.yaml"
    if text is not None:
        put(file, text)
    before = tree(user)

    (row,) = install(call, "goose", "user", here)

    assert (row.action, row.note) == ("yours", f"{task} `{file}`:")
    assert yaml.safe_load(row.lines or "") == {"extensions": {"mind": GOOSE}}
    assert install(call, "goose", "user", here, dry_run=True) == [row]
    (row,) = uninstall(call, "goose", "user", here)
    assert (row.action, row.note, row.lines) == ("unchanged", None, None)
    assert tree(user) == before


def test_an_entry_in_a_yaml_file_is_recognised(call: Call, user: Path, here: Machine) -> None:
    file = user / ".config/goose/config.yaml"
    (row,) = install(call, "goose", "user", here)
    put(file, row.lines or "")
    before = tree(user)

    assert [row.action for row in install(call, "goose", "user", here)] == ["unchanged"]
    (state,) = (each for each in clients.states(here) if each.client == "goose")
    assert state.installed == (Scope.USER,)
    moved = replace(here, home="/srv/mind")
    (row,) = install(call, "goose", "user", moved)
    assert (row.action, row.note) == (
        "unchanged",
        "it runs `mind mcp`; `--force` shows the entry that replaces it",
    )
    (row,) = install(call, "goose", "user", moved, force=True)
    assert (row.action, row.note) == ("yours", f"replace the entry in `{file}`:")
    (row,) = uninstall(call, "goose", "user", here)
    assert (row.action, row.note) == ("yours", f"remove the entry from `{file}`:")
    assert yaml.safe_load(row.lines or "") == {"extensions": {"mind": GOOSE}}
    assert tree(user) == before


def test_the_entry_of_another_program_in_a_yaml_file_is_reported(
    call: Call, user: Path, here: Machine
) -> None:
    file = put(user / ".config/goose/config.yaml", "extensions: {mind: {cmd: other}}\n")

    with pytest.raises(Conflict, match=r"extensions\.mind` that differs: other"):
        install(call, "goose", "user", here)
    (row,) = uninstall(call, "goose", "user", here)
    assert (row.action, row.note) == ("unchanged", clients.NOT_OURS)
    file.write_text("extensions: [\n")
    with pytest.raises(Invalid, match="line 2"):
        install(call, "goose", "user", here)


def test_a_shared_entry_is_removed_with_its_last_client(
    call: Call, project: Path, here: Machine
) -> None:
    install(call, "claude-code", "project", here)
    install(call, "copilot", "project", here)
    (step, *_) = uninstall(call, "claude-code", "project", here)

    assert (step.action, step.note) == ("unchanged", "copilot uses it too")
    assert (project / ".mcp.json").exists()
    uninstall(call, "copilot", "project", here)
    assert not (project / ".mcp.json").exists()


def test_a_shared_entry_that_the_file_had_before_is_removed_with_its_last_client(
    call: Call, project: Path, here: Machine
) -> None:
    file = project / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"mind": STDIO}}))
    install(call, "claude-code", "project", here)
    install(call, "copilot", "project", here)
    (step, *_) = uninstall(call, "copilot", "project", here)

    assert (step.action, step.note) == ("unchanged", "claude-code uses it too")
    uninstall(call, "claude-code", "project", here)
    assert json.loads(file.read_text()) == {}


def test_a_dry_run_shows_the_difference_and_writes_nothing(
    call: Call, project: Path, home: Path, here: Machine
) -> None:
    file = put(project / ".vscode/mcp.json", '{\n  // mine\n  "servers": {}\n}')
    before = tree(project, home)
    (step, _) = install(call, "vscode", "project", here, dry_run=True)

    assert tree(project, home) == before
    assert step.diff is not None
    assert '+    "mind": {\n' in step.diff
    assert '-  "servers": {}\n' in step.diff
    assert f"--- {file}\n+++ {file}\n" in step.diff


def test_a_malformed_file_stops_the_whole_installation(
    call: Call, project: Path, here: Machine
) -> None:
    (project / ".claude").mkdir()
    (project / ".claude/settings.json").write_text('{"hooks": {,}}')
    before = tree(project)

    with pytest.raises(Invalid, match=r"settings\.json`: line 1, column 12") as caught:
        install(call, "claude-code", "project", here)
    assert "nothing was changed" in caught.value.hint
    assert tree(project) == before


def test_a_refusal_names_the_hook_that_can_not_be_added(
    call: Call, user: Path, here: Machine
) -> None:
    put(
        user / ".codex/config.toml",
        '[hooks]\nSessionStart = [{hooks = [{type = "command", command = "x"}]}]\n',
    )
    with pytest.raises(
        Invalid, match=r"config\.toml`: a change of `hooks\.SessionStart`"
    ) as caught:
        install(call, "codex", "user", here)
    assert "the new item of hooks.SessionStart would be {" in caught.value.hint
    assert "mcp_servers" not in caught.value.hint


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


def test_an_entry_of_another_program_is_replaced_only_by_force(
    call: Call, project: Path, here: Machine
) -> None:
    file = project / ".mcp.json"
    file.write_text('{"mcpServers": {"mind": {"command": "brain"}}}')

    with pytest.raises(Conflict, match="brain") as caught:
        install(call, "copilot", "project", here)
    assert "--force" in caught.value.hint
    assert uninstall(call, "copilot", "project", here)[0].note == clients.NOT_OURS
    install(call, "copilot", "project", here, force=True)
    assert json.loads(file.read_text())["mcpServers"]["mind"] == STDIO


def test_a_changed_entry_is_reported_and_kept(call: Call, project: Path, here: Machine) -> None:
    install(call, "opencode", "project", here)
    file = project / "opencode.json"
    changed = file.read_text().replace('"mcp"]', '"mcp", "--toolsets", "all"]')
    file.write_text(changed)
    step, _ = install(call, "opencode", "project", here)

    assert step.action == "unchanged"
    assert step.note == "it runs `mind mcp --toolsets all`; `--force` replaces it"
    assert file.read_text() == changed


def test_a_link_of_the_user_is_followed_and_stays_a_link(
    call: Call, user: Path, here: Machine
) -> None:
    real = put(user / "dotfiles" / "cursor.json", "{}")
    (user / ".cursor").mkdir()
    (user / ".cursor/mcp.json").symlink_to(real)
    install(call, "cursor", "user", here)

    assert (user / ".cursor/mcp.json").is_symlink()
    assert "mind" in real.read_text()


@pytest.mark.parametrize("part", [".cursor", ".cursor/mcp.json"])
@pytest.mark.attack("symbolic link")
def test_a_link_that_leads_out_of_the_project_is_refused(
    call: Call, project: Path, tmp_path: Path, here: Machine, part: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mcp.json").write_text("{}")
    link = project / part
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside if part == ".cursor" else outside / "mcp.json")

    with pytest.raises(StorageFailed, match="leads out of the project"):
        install(call, "cursor", "project", here)
    assert (outside / "mcp.json").read_text() == "{}"


@pytest.mark.attack("symbolic link")
def test_a_link_to_nothing_is_refused(call: Call, user: Path, here: Machine) -> None:
    (user / ".cursor").mkdir()
    (user / ".cursor/mcp.json").symlink_to(user / "gone.json")
    with pytest.raises(StorageFailed, match="the missing"):
        install(call, "cursor", "user", here)


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
    call: Call, user: Path, here: Machine
) -> None:
    (step, _) = install(call, "claude-code", "user", here)
    assert (step.action, (user / ".claude.json").exists()) == ("yours", False)
    assert "`claude` is not on the PATH; run where it is: claude mcp add-json" in str(step.note)

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


def test_an_unsupported_scope_is_refused(call: Call, here: Machine) -> None:
    with pytest.raises(Invalid) as caught:
        scope_of(client("windsurf"), Scope.PROJECT, here)
    assert caught.value.hint == "mind install windsurf --scope user"


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


def test_the_list_shows_installed_and_unreadable_clients(
    call: Call, project: Path, user: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (user / ".gemini").mkdir()
    (project / ".zed").mkdir()
    (project / ".zed/settings.json").write_text("{")
    assert main(["install", "opencode"], open=lambda _: call.mind) == 0
    capsys.readouterr()
    assert main(["install"], open=lambda _: call.mind) == 0
    out, err = capsys.readouterr()
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()}

    assert rows["gemini"] == ["yes", "–"]
    assert rows["opencode"] == ["no", "project"]
    assert rows["zed"][:3] == ["no", "can't", "be"]
    assert "settings.json`: line 1, column 2" in err


def test_mind_missing_from_the_path_is_reported(
    call: Call, user: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["install", "zed"], open=lambda _: call.mind) == 0
    assert "not on your PATH" not in capsys.readouterr().err
    (user / "bin" / "mind").unlink()
    assert main(["install", "zed"], open=lambda _: call.mind) == 0
    assert "`mind` is not on your PATH" in capsys.readouterr().err


ASKING = {
    "claude-code": ("Stop", grouped(silent("claude-code"), timeout=5)),
    "cursor": ("stop", {"command": silent("cursor")}),
    "copilot": ("Stop", event(silent("vscode"), 5)),
    "vscode": ("Stop", event(silent("vscode"), 5)),
}
"""The hooks that wait for an answer at the end of a turn."""


@pytest.mark.parametrize("name", ASKING)
def test_a_hook_that_waits_is_installed_only_while_the_user_wants_requests(
    call: Call, project: Path, here: Machine, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hooks = client(name).hooks[0]
    file = place_of(hooks.files[Scope.PROJECT], here)
    event, waiting = ASKING[name]
    before = tree(project)

    def at_the_end() -> Any:
        return json.loads(file.read_text())["hooks"].get(event)

    install(call, name, "project", here)
    off = at_the_end()
    assert off in (None, [grouped(silent("claude-code"), **{"async": True})])
    call = set_to(call, "on")
    main(["doctor"], open=lambda _: call.mind)
    assert f"mind install {name} --scope project" in capsys.readouterr().out

    install(call, name, "project", here)
    assert at_the_end() == [waiting]
    assert {row.action for row in install(call, name, "project", here)} == {"unchanged"}
    main(["doctor"], open=lambda _: call.mind)
    assert "hook.capture" not in capsys.readouterr().out

    uninstall(call, name, "project", here)
    assert tree(project) == before


def test_turning_requests_off_makes_the_hook_of_claude_code_not_wait_again(
    call: Call, project: Path, here: Machine
) -> None:
    other = {"hooks": [{"type": "command", "command": "say done"}]}
    file = put(project / ".claude" / "settings.json", json.dumps({"hooks": {"Stop": [other]}}))
    for value in ("on", "off", "on", "off"):
        call = set_to(call, value)
        install(call, "claude-code", "project", here)
        more = {"timeout": 5} if value == "on" else {"async": True}
        items = json.loads(file.read_text())["hooks"]["Stop"]
        assert items == [other, grouped(silent("claude-code"), **more)]


def test_a_hook_that_the_user_changed_stays(call: Call, project: Path, here: Machine) -> None:
    install(call, "claude-code", "project", here)
    file = project / ".claude" / "settings.json"
    file.write_text(file.read_text().replace('"async": true', '"timeout": 9'))
    changed = file.read_text()
    for value in ("on", "off"):
        install(set_to(call, value), "claude-code", "project", here)
        assert file.read_text() == changed


@pytest.mark.parametrize("is_known", [True, False])
def test_the_version_that_hooks_need_is_removed_from_a_file_without_one(
    call: Call, project: Path, here: Machine, is_known: bool
) -> None:
    file = project / ".cursor" / "hooks.json"
    file.parent.mkdir()
    theirs = {"stop": [{"command": "mine"}]}
    if is_known:
        file.write_text(json.dumps({"hooks": theirs}))
    install(call, "cursor", "project", here)
    data = json.loads(file.read_text())
    data["hooks"]["stop"] = [{"command": "later"}]
    file.write_text(json.dumps(data))
    uninstall(call, "cursor", "project", here)
    left = {"hooks": {"stop": [{"command": "later"}]}}
    # Hooks in a file that mind made need the version still.
    assert json.loads(file.read_text()) == (left if is_known else {"version": 1, **left})


def loaded(folder: Path) -> dict[Path, Any]:
    """Returns the data of all JSON files."""
    return {
        path: json.loads(data)
        for path, data in tree(folder).items()
        if path.suffix == ".json" and data
    }


@pytest.mark.parametrize("name", ["claude-code", "gemini", "codex", "cursor", "vscode", "copilot"])
def test_hooks_of_an_earlier_version_are_renewed(
    call: Call, project: Path, here: Machine, name: str
) -> None:
    install(call, name, "project", here)
    before = loaded(project)
    for path, data in tree(project).items():
        if data is not None:
            path.write_bytes(data.replace(b" 2>/dev/null || true", b""))
    assert loaded(project) != before
    assert [doubt for doubt in clients.doubts(call) if "earlier version" in doubt.message]
    install(call, name, "project", here)
    assert loaded(project) == before
    assert list(clients.doubts(call)) == []


def test_a_hook_without_its_matcher_is_renewed(call: Call, project: Path, here: Machine) -> None:
    install(call, "gemini", "project", here)
    file = project / ".gemini" / "settings.json"
    whole = json.loads(file.read_text())
    old = json.loads(file.read_text().replace(" 2>/dev/null || true", ""))
    del old["hooks"]["PreCompress"][0]["matcher"]
    file.write_text(json.dumps(old))
    install(call, "gemini", "project", here)
    assert json.loads(file.read_text()) == whole


def test_a_changed_hook_is_reported_and_replaced_by_force(
    call: Call, project: Path, here: Machine
) -> None:
    install(call, "claude-code", "project", here)
    file = project / ".claude" / "settings.json"
    whole = json.loads(file.read_text())
    file.write_text(file.read_text().replace('"async": true', '"timeout": 9'))
    notes = [row.note for row in install(call, "claude-code", "project", here)]
    note = "its hooks are changed, or of an earlier version; `--force` replaces them"
    assert note in notes
    install(call, "claude-code", "project", here, force=True)
    assert json.loads(file.read_text()) == whole


def test_the_doctor_reports_a_plugin_that_can_not_ask(
    call: Call, user: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (user / ".claude").mkdir()
    (user / ".claude/settings.json").write_text('{"enabledPlugins": {"mind@mimo": true}}')
    call = set_to(call, "on")
    main(["doctor"], open=lambda _: call.mind)
    assert "the hooks of the plugin mind@mimo do not wait" in capsys.readouterr().out


def test_an_installation_mentions_requests_until_they_are_on(
    call: Call, here: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["install", "claude-code"], open=lambda _: call.mind) == 0
    line = "mind config hook.capture on && mind install claude-code --scope project"
    assert line in capsys.readouterr().out
    call = set_to(call, "on")
    assert main(["install", "claude-code"], open=lambda _: call.mind) == 0
    assert main(["install", "opencode"], open=lambda _: call.mind) == 0
    assert "hook.capture" not in capsys.readouterr().out


def set_to(call: Call, value: str) -> Call:
    """Turns requests to agents on or off, and returns the memory with that setting."""
    config(call, "hook.capture", value)
    return Call(call.mind.reopened())


THEIRS = """\
# of Codex
model = "gpt-5.5"

[[hooks.Stop]] # ours
hooks = [{type = "command", command = "say done"}]

[hooks.state."/x:stop:0:0"]
trusted_hash = "sha256:1"
"""


def codex_hooks(path: Path) -> Any:
    hooks = tomllib.loads(path.read_text()).get("hooks", {})
    return {event: items for event, items in hooks.items() if event != "state"}


@pytest.mark.parametrize("scope", ["project", "user"])
def test_codex_gets_its_hooks_where_it_has_others(
    call: Call, project: Path, user: Path, here: Machine, scope: str
) -> None:
    folder = (project if scope == "project" else user) / ".codex"
    folder.mkdir()
    file = folder / "config.toml"
    file.write_text(THEIRS)
    before = tree(project, user)
    install(call, "codex", scope, here)

    assert not (folder / "hooks.json").exists()
    others = [{"hooks": [{"type": "command", "command": "say done"}]}]
    assert codex_hooks(file) == CODEX_HOOKS | {"Stop": others + CODEX_HOOKS["Stop"]}
    assert {row.action for row in install(call, "codex", scope, here)} == {"unchanged"}
    uninstall(call, "codex", scope, here)
    assert tree(project, user) == before

    install(call, "codex", scope, here)
    file.write_text(file.read_text() + "\n# of mine\n[tui]\nanimations = false\n")
    uninstall(call, "codex", scope, here)
    assert file.read_text() == THEIRS + "\n# of mine\n[tui]\nanimations = false\n"


def test_a_plugin_is_replaced_by_a_newer_one_and_never_another_program_s(
    call: Call, project: Path, here: Machine
) -> None:
    file = put(project / ".opencode" / "plugin" / "mind.js", "export const Other = 1\n")
    with pytest.raises(Conflict, match="not mind's"):
        install(call, "opencode", "project", here)
    uninstall(call, "opencode", "project", here)
    assert file.read_text() == "export const Other = 1\n"

    first, _, rest = PLUGIN_TEXT.partition("\n")
    file.write_text(f"{first}\n// earlier\n{rest}")
    install(call, "opencode", "project", here)
    assert file.read_text() == PLUGIN_TEXT


def test_a_plugin_of_a_clone_is_removed_as_a_whole(
    call: Call, project: Path, here: Machine
) -> None:
    file = put(project / ".opencode" / "plugin" / "mind.js", PLUGIN_TEXT)
    uninstall(call, "opencode", "project", here)
    assert not file.exists()


def test_a_file_with_only_the_schema_that_opencode_adds_is_removed(
    call: Call, project: Path, here: Machine
) -> None:
    install(call, "opencode", "project", here)
    file = project / "opencode.json"
    file.write_text(file.read_text().replace("{", '{\n  "$schema": "https://x/y.json",', 1))
    uninstall(call, "opencode", "project", here)
    assert not file.exists()


def test_approvals_of_hooks_are_no_hooks(call: Call, user: Path, here: Machine) -> None:
    file = put(
        user / ".codex" / "config.toml", '[hooks.state."/x:stop:0:0"]\ntrusted_hash = "sha256:1"\n'
    )
    install(call, "codex", "user", here)
    assert json.loads(file.with_name("hooks.json").read_text()) == {"hooks": CODEX_HOOKS}
    assert codex_hooks(file) == {}


def test_the_doctor_reports_a_missing_program(
    call: Call, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / ".mcp.json").write_text(
        '{"mcpServers": {"mind": {"command": "/gone/mind", "args": ["mcp"]}}}'
    )
    main(["doctor"], open=lambda _: call.mind)
    out = capsys.readouterr().out

    assert f"{project / '.mcp.json'} starts the missing `/gone/mind`" in out
    assert "mind install claude-code --scope project --force" in out


def test_the_doctor_reports_hooks_that_run_twice(
    call: Call, user: Path, project: Path, here: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    install(call, "claude-code", "project", here)
    install(call, "codex", "user", here)
    main(["doctor"], open=lambda _: call.mind)
    assert "clients" not in capsys.readouterr().out
    (user / ".claude").mkdir(exist_ok=True)
    (user / ".claude/settings.json").write_text('{"enabledPlugins": {"mind@mimo": true}}')
    with (user / ".codex/config.toml").open("a") as config:
        config.write('[[hooks.Stop]]\nmatcher = ""\n')
    (user / "bin" / "mind").unlink()
    main(["doctor"], open=lambda _: call.mind)
    out = capsys.readouterr().out

    assert "the plugin mind@mimo and project settings both run mind's hooks" in out
    assert f"Codex has hooks in {user / '.codex/config.toml'} and in hooks.json" in out
    assert out.count(f"{project / '.mcp.json'} starts the missing `mind`") == 1
    assert "pipx install CHECKOUT" in out
