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
from mimo.features.scan.commands import scan
from tests import privacy_fakes
from tests.conftest import git as run_git
from tests.kit import put
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
    return put(call.mind.project.root / name, text)


def found(call: Call, **arguments: Any) -> list[tuple[str, int, str]]:
    done = scan(call, **arguments)
    assert TOKEN not in repr(done)
    assert done.clean == (not done.found)
    assert done.exit_status == (1 if done.found else 0)
    return [(row.file, row.line, row.kind) for row in done.found]


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
