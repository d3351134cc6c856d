"""`mind scan`: secrets in files, in staged changes and in the history."""

import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.cli.main import main
from mimo.errors import Invalid, NotFound
from mimo.features.scan.commands import scan
from mimo.features.upkeep.commands import config
from tests import privacy_fakes
from tests.conftest import git as run_git
from tests.conftest import make_store
from tests.privacy_fakes import Draw

TOKEN = privacy_fakes.TOKENS["github_token"][0](Draw(9))
OTHER = privacy_fakes.TOKENS["stripe_key"][0](Draw(9))
MASK = "[REDACTED:github_token]"

Git = Callable[..., str]


@pytest.fixture
def git(call: Call, monkeypatch: pytest.MonkeyPatch, ann: None) -> Git:
    """Runs git in the project, which is a repository and the working directory."""
    root = call.mind.project.root
    monkeypatch.chdir(root)
    run_git(root, "init", "-q")
    return partial(run_git, root)


def write(call: Call, name: str, text: str) -> Path:
    path = call.mind.project.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def found(call: Call, **arguments: Any) -> list[tuple[str, int, str]]:
    done = scan(call, **arguments)
    assert TOKEN not in repr(done)
    assert done.clean == (not done.found)
    assert done.exit_status == (1 if done.found else 0)
    return [(row.file, row.line, row.kind) for row in done.found]


def test_every_file_under_the_folder_is_scanned_and_none_beside_it(call: Call) -> None:
    write(call, ".mind/facts/a.md", f"one\ntwo {TOKEN} three\n")
    write(call, ".mind/private/facts/b.md", OTHER)
    write(call, ".mind/procedures/p@1.0.md", f"fine\n{TOKEN}")
    write(call, ".mind/.local/c.json", TOKEN)
    write(call, "beside.md", TOKEN)

    assert found(call) == [
        (".mind/facts/a.md", 2, "github_token"),
        (".mind/private/facts/b.md", 1, "stripe_key"),
        (".mind/procedures/p@1.0.md", 2, "github_token"),
    ]
    assert scan(call).found[0].excerpt == f"two {MASK} three"


@pytest.mark.attack("values under a telling key")
def test_a_value_is_scanned_together_with_its_key(call: Call) -> None:
    folder = ".mind/values/agent.a"
    write(call, f"{folder}/password.md", "---\nnamespace: agent.a\nvalue: hunter2xyz\n---\n")
    write(call, f"{folder}/db.md", "---\nvalue:\n  host: a\n  api_keys: [k9, y2]\n  pwd: z3\n---\n")
    write(call, f"{folder}/token.md", '---\n---\n```json\n{"a": "x\\ny"}\n```\n')
    write(call, f"{folder}/pwd.md", "---\nvalue: hunter2xyz # mind:allow-secret\n---\n")
    write(call, f"{folder}/password_policy.md", "---\nvalue: hunter2xyz\n---\n")
    write(call, f"{folder}/ssn.md", '---\nvalue: "x\\ty"\n---\n')
    same = "---\nvalue:\n  user: admin # mind:allow-secret\n  password: admin\n---\n"
    write(call, f"{folder}/same.md", same)

    assert found(call) == [
        (f"{folder}/db.md", 4, "api_keys"),
        (f"{folder}/db.md", 5, "pwd"),
        (f"{folder}/password.md", 3, "password"),
        (f"{folder}/same.md", 4, "password"),
        (f"{folder}/ssn.md", 1, "ssn"),
        (f"{folder}/token.md", 4, "token"),
    ]
    assert "hunter2" not in repr(scan(call))


@pytest.mark.attack("values under a telling key")
@pytest.mark.parametrize(
    ("before", "added", "kind"),
    [
        ("value:\n  user: admin\n", "  password: admin\n", "password"),
        ("value:\n  retries: 1234\n", "  pin: 1234\n", "pin"),
        ("value:\n  users:\n  - admin\n", "  passwords:\n  - admin\n", "passwords"),
        ("value:\n  note: the password admin\n", "  password: admin\n", "password"),
    ],
)
def test_a_staged_secret_with_the_text_of_another_field_is_found(
    call: Call, git: Git, before: str, added: str, kind: str
) -> None:
    path = ".mind/values/agent.a/a.md"
    write(call, path, f"---\n{before}---\n")
    git("add", ".")
    assert found(call, staged=True) == []
    git("commit", "-qm", "a")

    text = f"---\n{before}{added}---\n"
    write(call, path, text)
    git("add", ".")

    assert found(call, staged=True) == [(path, text.count("\n") - 1, kind)]


def test_named_files_folders_and_globs_are_scanned(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(call.mind.project.root)
    write(call, "docs/a.md", TOKEN)
    write(call, "docs/b.txt", f"{TOKEN} mind:allow-secret\n{OTHER}\n")
    (call.mind.project.root / "docs" / "c.bin").write_bytes(b"\0" + TOKEN.encode())

    assert found(call, paths=("docs",)) == [
        ("docs/a.md", 1, "github_token"),
        ("docs/b.txt", 2, "stripe_key"),
    ]
    assert found(call, paths=("docs/*.md",)) == [("docs/a.md", 1, "github_token")]
    with pytest.raises(NotFound):
        scan(call, paths=("nowhere",))


def test_included_documents_are_scanned_in_a_git_project(call: Call, git: Git) -> None:
    write(call, "docs/a.md", f"# T\n\n{TOKEN}\n")
    git("commit", "-q", "--allow-empty", "-m", "Start")
    config(call, "include", "docs/*.md")
    assert found(call) == [("docs/a.md", 3, "github_token")]


def test_a_folder_with_unreadable_ignore_rules_is_reported(call: Call, git: Git) -> None:
    write(call, "docs/a.md", "words\n")
    write(call, ".git/HEAD", "nonsense\n")

    assert "docs" in (scan(call, paths=("docs",)).unread or ())


def test_an_unreadable_file_is_reported(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    write(call, ".mind/facts/a.md", "x" * 100)
    monkeypatch.setattr("mimo.features.scan.commands._LONGEST", 50)

    done = scan(call)

    assert done.clean
    assert ".mind/facts/a.md" in (done.unread or ())
    assert done.exit_status == 6


def test_only_additions_of_staged_changes_count(call: Call, git: Git) -> None:
    write(call, ".mind/facts/a.md", f"old {OTHER}\n")
    git("add", "-A")
    git("commit", "-qm", "one")
    write(call, ".mind/facts/a.md", f"one\nold {OTHER}\n")
    write(call, ".mind/facts/ü b.md", f"x\n\n{TOKEN}\n")
    write(call, "code.py", f"KEY = '{TOKEN}'")
    assert found(call, staged=True) == []

    git("add", "-A")
    write(call, ".mind/facts/ü b.md", "gone from the working tree")

    assert found(call, staged=True) == [(".mind/facts/ü b.md", 3, "github_token")]
    assert found(call, staged=True, all=True) == [
        (".mind/facts/ü b.md", 3, "github_token"),
        ("code.py", 1, "github_token"),
    ]


def test_a_secret_that_a_binary_file_had_is_reported_if_it_becomes_text(
    call: Call, git: Git
) -> None:
    write(call, "a.txt", f"\0 {TOKEN}")
    git("add", "-A")
    git("commit", "-qm", "one")
    write(call, "a.txt", TOKEN)
    git("add", "-A")
    assert found(call, staged=True, all=True) == [("a.txt", 1, "github_token")]


def test_a_secret_in_history_is_reported_with_its_first_commit(call: Call, git: Git) -> None:
    write(call, ".mind/facts/a.md", f"first\n{TOKEN}\n")
    git("add", "-A")
    git("commit", "-qm", "one")
    first = git("rev-parse", "HEAD")
    write(call, ".mind/facts/a.md", f"second\n{TOKEN}\n")
    git("commit", "-qam", "two")
    write(call, ".mind/facts/a.md", "gone\n")
    git("commit", "-qam", "three")
    git("checkout", "-qb", "side", first)
    write(call, ".mind/facts/b.md", OTHER)
    git("add", "-A")
    git("commit", "-qm", "four")
    git("checkout", "-q", "-")

    assert found(call) == []
    assert found(call, history=True) == [
        (".mind/facts/a.md", 2, "github_token"),
        (".mind/facts/b.md", 1, "stripe_key"),
    ]
    assert scan(call, history=True).found[0].commit == first


@pytest.mark.attack("settings of the repository hide a secret in its history")
@pytest.mark.parametrize(
    ("key", "value"), [("log.showRoot", "false"), ("log.diffMerges", "off"), ("log.follow", "true")]
)
def test_no_setting_of_git_hides_a_secret(call: Call, git: Git, key: str, value: str) -> None:
    write(call, "root.md", TOKEN)
    git("add", "-A")
    git("commit", "-qm", "one")
    git("checkout", "-qb", "side")
    git("commit", "-qm", "two", "--allow-empty")
    git("checkout", "-q", "-")
    git("merge", "-q", "--no-ff", "--no-commit", "side")
    write(call, "merge.md", OTHER)
    git("add", "-A")
    git("commit", "-qm", "merge")
    git("config", key, value)

    assert len(found(call, history=True, all=True)) == 2


def test_a_hook_sees_the_index_of_the_commit_under_way(call: Call, git: Git) -> None:
    """`git commit -a` gives its hooks an index of its own."""
    write(call, ".mind/facts/a.md", "fine\n")
    git("add", "-A")
    git("commit", "-qm", "one")
    hook = write(
        call,
        ".git/hooks/pre-commit",
        "#!/bin/sh\n" + 'echo "$GIT_INDEX_FILE" > seen\n' + f'"{os.sys.executable}" '  # type: ignore[attr-defined]
        "-m mimo scan --staged\n",
    )
    hook.chmod(0o755)
    write(call, ".mind/facts/a.md", TOKEN)

    refused = subprocess.run(
        ["git", "commit", "-qam", "two"],
        cwd=call.mind.project.root,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )

    assert refused.returncode == 1
    assert MASK in refused.stdout.decode() + refused.stderr.decode()
    assert git("log", "--format=%s") == "one"


def test_projects_in_folders_below_are_scanned_too(call: Call, git: Git) -> None:
    write(call, "pk/api/.mind/facts/a.md", TOKEN)
    write(call, "pk/api/code.py", TOKEN)
    git("add", "-A")
    inside = [("pk/api/.mind/facts/a.md", 1, "github_token")]
    assert found(call, staged=True) == inside

    git("commit", "-qm", "one")
    git("rm", "-rq", "pk")

    assert found(call, history=True) == inside
    assert found(call) == []


def test_staged_changes_are_scanned_from_a_top_that_is_not_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "src").mkdir()
    run_git(tmp_path, "init", "-q")
    monkeypatch.chdir(tmp_path / "src")
    assert main(["scan", "--staged"]) == 3
    assert "there is no project here" in capsys.readouterr().err

    (make_store(tmp_path / "pk") / "a.md").write_text(TOKEN)
    run_git(tmp_path, "add", "pk")

    assert main(["scan", "--staged"]) == 1
    assert "pk/.mind/a.md:1  github_token" in capsys.readouterr().out
    assert main(["scan"]) == 3


def test_staged_and_history_are_refused_without_a_repository(call: Call) -> None:
    for arguments in ({"staged": True}, {"history": True}):
        with pytest.raises(Invalid, match="not in a git repository"):
            scan(call, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [{"staged": True, "history": True}, {"paths": ("a",), "staged": True}, {"all": True}],
)
def test_options_that_exclude_each_other_are_refused(wrong: dict[str, Any], call: Call) -> None:
    with pytest.raises(Invalid):
        scan(call, **wrong)


def test_the_command_line_shows_finds_masked_and_exits_with_1(
    call: Call, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(call.mind.project.root)
    write(call, ".mind/facts/a.md", f"one\ntwo {TOKEN} three\n")

    assert main(["scan"], open=lambda _: call.mind) == 1

    assert capsys.readouterr().out.splitlines()[:2] == [
        ".mind/facts/a.md:2  github_token",
        f"  two {MASK} three",
    ]


def test_an_excerpt_shows_where_its_line_was_cut(call: Call) -> None:
    write(call, ".mind/facts/a.md", f"{'a' * 30} {TOKEN} {'b' * 30}\n{TOKEN} short\n")

    first, second = scan(call).found

    assert first.excerpt == f"…{'a' * 23} {MASK} {'b' * 23}…"
    assert second.excerpt == f"{MASK} short"


def test_a_flag_lets_a_person_store_what_looks_like_a_secret(
    call: Call, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(call.mind.project.root)

    assert main(["add", f"The key {TOKEN}"]) == 1
    out, err = capsys.readouterr()
    assert (out, TOKEN in err) == ("", False)
    assert err.startswith("error: `content` holds a secret on line 1: github_token")
    assert main(["add", "--allow-secret", f"The key {TOKEN}"]) == 0
    assert f"The key {MASK}" in capsys.readouterr().out
    assert main(["search", "--allow-secret", "key"]) == 2
