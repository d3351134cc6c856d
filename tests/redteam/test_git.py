"""Repositories that try to run a program, and variables that name another repository."""

import ast
import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.call.table import all_commands
from mimo.cli.main import main
from mimo.features.context import files
from mimo.features.hooks.command import react
from mimo.features.hooks.events import recognised
from mimo.memory.model import Kind
from mimo.operations import saving
from mimo.project import git as runner
from tests.conftest import git
from tests.kit import environment, put, repository, run, script

PACKAGE = Path(__file__).parent.parent.parent / "mimo"

pytestmark = pytest.mark.usefixtures("ann")


HOSTILE = """\
[core]
    repositoryformatversion = 1
    fsmonitor = {0}
    hooksPath = {hooks}
    pager = {0}
    editor = {0}
    askPass = {0}
    sshCommand = {0}
    gitProxy = {0}
    alternateRefsCommand = {0}
    attributesFile = {attributes}
[extensions]
    partialClone = origin
[remote "origin"]
    url = ext::{0}
    uploadpack = {0}
    receivepack = {0}
    promisor = true
    partialclonefilter = blob:none
[remote "other"]
    url = {0}
    vcs = evil
    promisor = true
[remote "local"]
    url = {root}/elsewhere
    uploadpack = {0}
    promisor = true
[protocol]
    allow = always
[protocol "ext"]
    allow = always
[protocol "file"]
    allow = always
[diff]
    external = {0}
    submodule = log
    ignoreSubmodules = none
[diff "evil"]
    command = {0}
    textconv = {0}
    cachetextconv = true
[filter "evil"]
    clean = {0}
    smudge = {0}
    process = {0}
    required = true
[filter "dotted.name"]
    clean = {0}
[merge "evil"]
    driver = {0}
[merge "mind"]
    driver = {0}
[gpg]
    program = {0}
[gpg "openpgp"]
    program = {0}
[gpg "x509"]
    program = {0}
[gpg "ssh"]
    program = {0}
    defaultKeyCommand = {0}
[log]
    showSignature = true
[commit]
    gpgSign = true
[credential]
    helper = "!{0}"
[pager]
    log = {0}
    diff = {0}
    status = {0}
    config = {0}
[alias]
    log = "!{0}"
    status = "!{0}"
[interactive]
    diffFilter = {0}
[sequence]
    editor = {0}
[trailer "x"]
    cmd = {0}
    command = {0}
[uploadpack]
    packObjectsHook = {0}
[status]
    submoduleSummary = true
[submodule]
    recurse = true
[include]
    path = more
"""
MORE = '[filter "included"]\n    clean = {0}\n    process = {0}\n'
ATTRIBUTES = (
    "* filter=evil diff=evil merge=evil\n*.mdc filter=included\n*.markdown filter=dotted.name\n"
)
HOOKS = (
    "pre-commit prepare-commit-msg commit-msg post-commit post-checkout post-index-change"
    " reference-transaction fsmonitor-watchman post-rewrite pre-auto-gc query-watchman"
).split()


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """The file that holds a line for each start of the planted program."""
    return tmp_path / "canary"


@pytest.fixture
def program(tmp_path: Path, canary: Path) -> Path:
    return script(tmp_path / "planted", f'#!/bin/sh\necho "$0 $@" >> {canary}\nexit 1\n')


@pytest.fixture
def hostile(call: Call, tmp_path: Path, program: Path) -> tuple[Path, str]:
    """A project with history whose settings name the program at every key, and a memory's id."""
    root = repository(call.mind.project.root)
    put(root / ".gitattributes", "* diff=evil\n")
    record = saving.store(call, saving.draft(Kind.DECISION, "Use JWT, see `app.py`"))
    filtered = [root / ".mind" / "facts" / name for name in ("a.mdc", "b.markdown")]
    for path in (root / "app.py", *filtered):
        put(path, "x = 1\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    for tag in ("v1.1", "v1.2", "origin/main"):
        git(root, "tag", tag)
    _submodule(root, program)
    put(root / "app.py", "x = 22\n")
    git(root, "commit", "-qam", "two\n\ndecided: use queues")
    _signed(root)
    lost = git(root, "rev-parse", "HEAD:.mind/MEMORY.md")
    for path in (root / "app.py", *filtered):
        put(path, "x = 333\n")
    saving.store(call, saving.draft(Kind.FACT, "Not committed"))
    put(root / ".mind" / "MEMORY.md", "## Gotchas\n- old -> one\n")
    hooks = tmp_path / "hooks"
    for folder in (hooks, root / ".git" / "hooks"):
        folder.mkdir(exist_ok=True)
        for hook in HOOKS:
            (folder / hook).unlink(missing_ok=True)
            (folder / hook).symlink_to(program)
    attributes = put(root / ".git" / "info" / "attributes", ATTRIBUTES)
    places = {"hooks": hooks, "attributes": attributes, "root": root}
    put(root / ".git" / "config", HOSTILE.format(program, **places))
    put(root / ".git" / "more", MORE.format(program))
    # A blob that only the remote of a partial clone has.
    (root / ".git" / "objects" / lost[:2] / lost[2:]).unlink()
    return root, record.memory.id


def _submodule(root: Path, program: Path) -> None:
    """Adds a repository inside the memory as a submodule, with settings of its own."""
    inner = root / ".mind" / "library"
    inner.mkdir()
    repository(inner)
    (inner / "x.md").write_text("one\n", encoding="utf-8")
    (inner / ".gitattributes").write_text("* filter=inner\n", encoding="utf-8")
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "inner")
    git(root, "-c", "advice.addEmbeddedRepo=false", "add", ".mind/library")
    git(inner, "config", "filter.inner.clean", str(program))
    git(inner, "config", "core.fsmonitor", str(program))
    (inner / "x.md").write_text("two\n", encoding="utf-8")


def _signed(root: Path) -> None:
    """Replaces the last commit by one that carries a signature."""
    text = git(root, "cat-file", "commit", "HEAD")
    header, _, message = text.partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    made = f"{header}\n{signature}\n\n{message}\n"
    git(root, "reset", "-q", git(root, "hash-object", "-t", "commit", "-w", "--stdin", input=made))


def _hooks(call: Call) -> None:
    """Answers a client's hooks at the start of a session and beside a prompt."""
    common = {"session_id": "s", "cwd": str(call.mind.project.root)}
    for fields in (
        {"hook_event_name": "SessionStart", "source": "startup"},
        {"hook_event_name": "UserPromptSubmit", "prompt": "why did we choose JWT?"},
    ):
        event = recognised(common | fields)
        assert event is not None
        react(
            event,
            home=call.mind.home,
            now=call.mind.now(),
            environ={"MIND_HOME": str(call.mind.home)},
        )


NOT_RUN = (
    *("mcp", "install", "uninstall", "demo", "daemon", "module", "init ~", "metrics --format"),
    *("edit k3v7mq", "events --follow", "import", "sync", "web", "browse"),
)
"""Commands that start servers and editors, leave the project, or act as the person."""
MORE_LINES = (
    *("sync --dry-run", "doctor --fix", "init", "edit k3v7mq --tag api", "list --at v1.2"),
    *("search tea --at HEAD~1", "pitfalls check", "edges check --diff HEAD~1", "review", "status"),
    *("scan --staged --all", "scan --history --all", "diff HEAD~1", "trust --follow"),
    *("blame k3v7mq", "log k3v7mq", "restore k3v7mq --at v1.1", "show k3v7mq --at 2027-01-01"),
)


@pytest.mark.attack("git")
@pytest.mark.parametrize("path", [".:PATH", ":PATH", "bin:PATH", "PATH:"])
def test_no_program_of_a_clone_runs_by_a_relative_folder_on_the_path(
    call: Call, program: Path, canary: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(call.mind.project.root)
    record = saving.store(call, saving.draft(Kind.FACT, "Tea is hot"))
    (root / "bin").mkdir()
    for name in ("git", "gpg", "ssh-keygen", "claude", "mind", "sh", "ed-of-clone"):
        (root / name).symlink_to(program)
        (root / "bin" / name).symlink_to(program)
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", path.replace("PATH", os.environ["PATH"]))
    call.mind.environ = dict(os.environ)

    for line in ("status", "doctor", "sync", "log", "ingest .", "install claude --dry-run"):
        run(call, *line.split(), status=None)
    ours, theirs = pty.openpty()
    edited = subprocess.run(
        [sys.executable, "-P", "-m", "mimo", "edit", record.memory.id],
        env=environment(EDITOR="ed-of-clone", PATH=os.environ["PATH"]),
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        check=False,
    )
    os.close(ours)
    os.close(theirs)

    assert "the editor failed" in edited.stderr
    assert "ed-of-clone: Editing failed: [Errno 2]" in edited.stderr
    assert not canary.exists()


def _lines() -> list[str]:
    examples = [example for spec in all_commands().all() for example in spec.examples]
    plain = [line.removeprefix("mind ") for line in examples if not set(line) & set("|<>")]
    return [*(line for line in plain if not line.startswith(NOT_RUN)), *MORE_LINES]


@pytest.mark.attack("program named by a repository's settings")
def test_no_command_runs_a_program_that_the_repositorys_settings_name(
    hostile: tuple[Path, str],
    call: Call,
    canary: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    root, id_ = hostile
    monkeypatch.chdir(root)
    for words in ("status", "diff HEAD", "log -1", "cat-file -p HEAD:.mind/MEMORY.md"):
        git(root, *words.split(), check=False)
        canary.unlink()

    lines = _lines()
    for line in lines:
        main(shlex.split(line.replace("k3v7mq", id_)), open=lambda _: call.mind.reopened())
        assert not canary.exists(), (line, canary.read_text("utf-8"))
    files.write_untracked(Call(call.mind.reopened()))
    _hooks(call)

    assert not canary.exists(), canary.read_text("utf-8")
    record_property("tried", len(lines) + 2)


def _bare(root: Path, program: Path, tmp_path: Path) -> Path:
    """Makes the files of a bare partial clone, whose work tree is its parent, in a folder."""
    source = repository(tmp_path / "source")
    put(source / "x", "x\n")
    git(source, "add", ".")
    git(source, "commit", "-qm", "x")
    place = root / "vendor"
    settings = (
        "core.repositoryformatversion=1", "core.bare=false", f"core.worktree={place}",
        f"core.fsmonitor={program}", "extensions.partialClone=origin",
        "remote.origin.promisor=true", f"remote.origin.uploadpack={program}",
    )  # fmt: skip
    git(tmp_path, "clone", "-q", "--bare", str(source), str(place))
    for setting in settings:
        git(place, "config", *setting.split("="))
    blob = git(source, "rev-parse", "HEAD:x")
    (place / "objects" / blob[:2] / blob[2:]).unlink()
    return place


@pytest.mark.attack("committed bare repository")
@pytest.mark.parametrize("old", [False, True])
def test_a_committed_bare_repository_runs_nothing(
    project: Path,
    home: Path,
    program: Path,
    canary: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    old: bool,
) -> None:
    repository(project)
    place = _bare(project, program, tmp_path)
    git(place, "cat-file", "-p", "HEAD:x", check=False)
    assert canary.exists()
    canary.unlink()
    if old:  # Before 2.38 git has no such setting, and neither had its repositories a guard.
        monkeypatch.setattr(runner, "_NO_BARE", "x.y=z")
        monkeypatch.setattr(runner, "_READING", tuple(runner._READING[1:]))
    monkeypatch.chdir(place)
    (place / ".mind").mkdir()
    (place / ".mind" / "config.toml").write_text("format = 1\n", encoding="utf-8")
    for line in ("add Tea", *MORE_LINES):
        main(shlex.split(line))
        assert not canary.exists(), (line, canary.read_text("utf-8"))
    assert main(["sync"]) != 0
    assert main(["sync", "--pull"]) != 0
    assert not canary.exists()
    record_property("tried", len(MORE_LINES) + 3)


@pytest.mark.attack("repository named by the environment")
def test_a_tracked_file_is_not_rewritten_because_the_environment_names_another_repository(
    call: Call, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saving.store(call, saving.draft(Kind.DECISION, "Use JWT"))
    put(project / "CLAUDE.md", "# Ours\n")
    repository(project)
    git(project, "add", "CLAUDE.md")
    git(project, "commit", "-qm", "ours")
    repository(other := tmp_path / "other")
    settings = 'format = 1\n[context]\ndaemon = "on"\nfiles = ["CLAUDE.md"]\n'
    put(project / ".mind" / "config.toml", settings)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(project))

    assert "CLAUDE.md" not in files.write_untracked(Call(call.mind.reopened()))
    assert (project / "CLAUDE.md").read_text("utf-8") == "# Ours\n"


VARIABLES = {
    "GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/", "GIT_INDEX_FILE": "/nowhere/index",
    "GIT_OBJECT_DIRECTORY": "/nowhere", "GIT_COMMON_DIR": "/nowhere", "GIT_NAMESPACE": "x",
    "GIT_CONFIG_PARAMETERS": "'core.bare'='true'", "GIT_CONFIG": "/nowhere",
    "GIT_EXTERNAL_DIFF": "/bin/false", "GIT_ICASE_PATHSPECS": "1", "GIT_PREFIX": "x/",
    "GIT_NEW_AND_UNKNOWN": "1",
}  # fmt: skip


@pytest.mark.attack("repository named by the environment")
@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable_of_another_repository_changes_no_answer(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    repository(project)
    git(project, "add", ".")
    before = runner.ask(project, "status", "--porcelain")
    monkeypatch.setenv(name, VARIABLES[name])

    assert runner.ask(project, "status", "--porcelain") == before
    assert runner.run_as_person(project, "status", "--porcelain").stdout == before
    alias = f"alias.e=!printenv {name}"
    inherited = runner.run_as_person(project, "-c", alias, "e").stdout.decode()
    assert inherited.strip() != VARIABLES[name]


@pytest.mark.attack("work tree named by a repository's settings")
@pytest.mark.parametrize("named", ["/", "..", "../../elsewhere"])
def test_the_work_tree_is_the_one_that_the_project_is_in(
    project: Path, tmp_path: Path, named: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    put(project / "CLAUDE.md", "# Ours\n")
    repository(project)
    git(project, "add", ".")
    before = runner.ask(project, "status", "--porcelain")
    git(project, "config", "core.worktree", named)

    assert runner.ask(project, "status", "--porcelain") == before
    assert runner.is_tracked(project, "CLAUDE.md")
    assert runner.has_repository(project)


def test_the_user_is_still_the_user(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(project)
    kept = {"GIT_AUTHOR_NAME": "Bob", "GIT_SSH_COMMAND": "ssh -i key", "SSH_AUTH_SOCK": "/s"}
    for name, value in kept.items():
        monkeypatch.setenv(name, value)
    alias = f"alias.e=!printenv {' '.join(kept)}"
    inherited = runner.run_as_person(project, "-c", alias, "e").stdout.decode()
    assert inherited.splitlines() == list(kept.values())


STARTS_PROGRAMS = {
    "extensions/sessions/resuming.py",
    "features/clients/__init__.py",
    "features/daemon/process.py",
    "features/procedures/actions.py",
    "features/procedures/executing.py",
    "features/upkeep/demo.py",
    "operations/syncing.py",
    "project/git.py",
}
STARTING = {"fork", "popen", "posix_spawn", "posix_spawnp", "startfile", "system"}


def _starts(path: Path) -> bool:
    """Returns whether a module can start a program."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            of_os = node.attr in STARTING or node.attr.startswith(("exec", "spawn"))
            if (node.value.id == "subprocess" and node.attr in ("run", "Popen")) or (
                node.value.id == "os" and of_os
            ):
                return True
        if isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names} - {"Popen", "CompletedProcess"}
            if node.module == "subprocess" and names:
                return True
    return False


def test_one_module_alone_starts_git() -> None:
    starting = {
        path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if _starts(path)
    }
    assert starting == STARTS_PROGRAMS
    named = {
        name
        for name in starting
        for node in ast.walk(ast.parse((PACKAGE / name).read_text("utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and os.path.basename(node.value) == "git"  # noqa: PTH119 - a string of a program
    }
    assert named == {"project/git.py"}


def test_one_module_alone_searches_the_path() -> None:
    searching = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"\bshutil\b.*\bwhich\b|get_exec_path", path.read_text("utf-8"))
    }
    assert searching == {"data/disk.py"}
