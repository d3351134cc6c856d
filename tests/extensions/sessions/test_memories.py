"""The clients' own memories are found, labelled, masked and never changed."""

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call, Caller, Surface
from mimo.data import disk
from mimo.extensions.sessions import memories
from mimo.memory.model import Filter
from mimo.operations import earlier
from mimo.operations.rows import ClientMemory
from tests.claude_sessions import folder_of
from tests.conftest import git, read_tree
from tests.kit import ask, do, fact, put, run

TOPIC = """\
---
name: Retries of uploads
description: Long uploads are cut
type: feedback
---
Send uploads in parts of 50 MB.

**Why:** the proxy cuts longer ones.
"""

CODEX = """\
# Task Group: shop checkout
scope: payments
applies_to: cwd=HERE and cwd=/elsewhere/till; reuse_rule=safe

## Reusable knowledge
- Orders are paged by keyset, because offsets skip rows.

### keywords
- keyset, offsets, paging of orders

# Task Group: other work
applies_to: cwd=/elsewhere/blog; reuse_rule=safe

## Reusable knowledge
- The blog renders drafts at midnight.

# Task Group: habits
applies_to: cwd=unknown; reuse_rule=any

## User preferences
- Keep commit messages under fifty characters.
"""

RULES = """\
# My rules

Prefer small functions.

<!-- MIND:CONTEXT sha=abc -->
- The staging cluster is rebuilt every night
<!-- MIND:END -->

## Tools

- Use pnpm, never npm
- Format Python with ruff
"""

TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fG3hJ5"


def memory_of(user: Path, project: Path) -> Path:
    """Returns the folder of Claude Code's memory of a project."""
    return folder_of(user, project) / "memory"


@pytest.fixture
def user(tmp_path: Path, home: Path, project: Path) -> Path:
    """The home folder of a user who turned sessions on, and whose agents remember something."""
    put(home / "config.toml", '[sessions]\nenabled = "on"\n')
    place = tmp_path / "user"
    own = memory_of(place, project)
    put(own / "uploads.md", TOPIC)
    put(own / "MEMORY.md", "# Memory\n\n- [Retries of uploads](uploads.md) — long uploads\n")
    put(memory_of(place, project.parent / "bank") / "MEMORY.md", "- Ledgers are locked on Sunday\n")
    put(place / ".codex" / "memories" / "MEMORY.md", CODEX.replace("HERE", str(project)))
    put(place / ".claude" / "CLAUDE.md", RULES)
    return place


def matching(call: Call, query: str, texts: Collection[str] = ()) -> tuple[ClientMemory, ...]:
    return earlier.memories(call, query, Filter(), texts)


def origins(call: Call, query: str) -> list[str]:
    return [row.origin for row in matching(call, query)]


def test_a_memory_of_claude_is_found_with_its_origin_and_place(user: Path, call: Call) -> None:
    (row,) = matching(call, "how large are parts of uploads")

    assert (row.origin, row.title, row.line) == ("claude memory", "Retries of uploads", 6)
    assert row.path.endswith("memory/uploads.md")
    assert "50 MB" in row.passage


@pytest.mark.parametrize(
    ("query", "origin"),
    [
        ("orders paged by keyset", ["codex memory"]),
        ("length of commit messages", ["codex memory"]),
        ("pnpm or npm", ["claude rules"]),
        ("when are drafts of the blog rendered", []),  # Of another project.
        ("when are ledgers locked", []),
        ("staging cluster rebuilt", []),  # A note of mind itself.
    ],
)
def test_entries_of_this_project_and_of_all_are_found(
    user: Path, call: Call, query: str, origin: list[str]
) -> None:
    assert origins(call, query) == origin


def test_nothing_is_found_while_sessions_are_off(user: Path, home: Path, call: Call) -> None:
    put(home / "config.toml", '[sessions]\nenabled = "off"\n')

    assert origins(call, "pnpm or npm") == []
    assert not (home / "cache" / memories.FOLDER).exists()


def test_a_change_is_found_at_once_and_a_removed_file_is_not(user: Path, call: Call) -> None:
    rules = user / ".claude" / "CLAUDE.md"
    assert origins(call, "pnpm or npm") == ["claude rules"]

    put(rules, "- Use deno for scripts\n")
    assert origins(call, "deno for scripts") == ["claude rules"]
    assert origins(call, "pnpm or npm") == []

    rules.unlink()
    assert origins(call, "deno for scripts") == []


def test_the_files_of_the_clients_stay_as_they_are(user: Path, call: Call) -> None:
    before = read_tree(user)
    origins(call, "pnpm or npm")

    assert read_tree(user) == before


def test_secrets_are_masked_in_answers_and_in_the_index(user: Path, home: Path, call: Call) -> None:
    put(
        memory_of(user, call.mind.project.root) / "deploy.md", f"- Deploys push with {TOKEN} here\n"
    )

    (row,) = matching(call, "how do deploys push")
    call.mind.close()

    assert TOKEN not in row.passage
    assert "[REDACTED:" in row.passage
    kept = [path for path in (home / "cache" / memories.FOLDER).rglob("*") if path.is_file()]
    assert kept
    assert not any(TOKEN.encode() in path.read_bytes() for path in kept)


def test_a_text_of_the_answer_or_of_two_clients_is_there_once(user: Path, call: Call) -> None:
    put(user / ".codex" / "AGENTS.md", "- Use pnpm,  never npm\n")

    assert len(origins(call, "pnpm or npm")) == 1
    assert matching(call, "pnpm or npm", ["Use pnpm, never npm"]) == ()


def test_worktrees_share_the_memory_of_their_repository(
    user: Path, project: Path, tmp_path: Path, call: Call
) -> None:
    git(project, "init", "-q", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "All")
    git(project, "worktree", "add", "-q", str(tmp_path / "other"))
    other = Call(call.mind.open(tmp_path / "other"))

    assert origins(other, "how large are parts of uploads") == ["claude memory"]
    other.mind.close()


def test_the_user_may_leave_a_client_or_a_project_out(
    user: Path, home: Path, project: Path, call: Call
) -> None:
    put(home / "config.toml", '[sessions]\nenabled = "on"\nclients = ["codex"]\n')
    codex = Call(call.mind.reopened())
    assert memories.counts(codex.mind) == {"codex memory": 1}
    assert origins(codex, "pnpm or npm") == []

    put(home / "config.toml", f'[sessions]\nenabled = "on"\nexclude = ["{project}"]\n')
    outside = Call(call.mind.reopened())
    assert origins(outside, "how large are parts of uploads") == []
    assert origins(outside, "orders paged by keyset") == []
    assert origins(outside, "pnpm or npm") == ["claude rules"]


def test_claude_and_gemini_say_where_they_remember(
    user: Path, project: Path, tmp_path: Path, call: Call
) -> None:
    put(user / ".claude" / "settings.json", '{"autoMemoryDirectory": "~/notes"}')
    put(user / "notes" / "MEMORY.md", "- Invoices are sent on Fridays\n")
    gemini = user / ".gemini"
    put(gemini / "projects.json", json.dumps({"projects": {str(project): "shop"}}))
    put(gemini / "tmp" / "shop" / "memory" / "MEMORY.md", "- Coupons expire at noon\n")
    put(gemini / "tmp" / "shop" / "memory" / ".inbox" / "draft.md", "- Coupons expire at one\n")
    put(gemini / "GEMINI.md", "# Rules\n\n## Gemini Added Memories\n- Tea is at four o'clock\n")

    assert origins(call, "when are invoices sent") == ["claude memory"]
    assert origins(call, "when do coupons expire") == ["gemini memory"]
    assert origins(call, "tea at four o'clock") == ["gemini memory"]


@pytest.mark.parametrize("value", ['"../x"', '{"a": 1}', "5", "[" * 10_000, '"/"'])
def test_odd_settings_of_clients_are_ignored(user: Path, call: Call, value: str) -> None:
    root = json.dumps(str(call.mind.project.root))
    put(user / ".claude" / "settings.json", f'{{"autoMemoryDirectory": {value}}}')
    put(user / ".gemini" / "projects.json", f'{{"projects": {{{root}: {value}}}}}')

    assert origins(call, "pnpm or npm") == ["claude rules"]


def test_odd_files_are_left_out(
    user: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = memory_of(user, call.mind.project.root)
    put(own / "huge.md", "- Parrots talk\n" + "x" * memories.LARGEST_FILE)
    (own / "binary.md").write_bytes(b"- Parrots talk\0\xff\xfe\n")
    (own / "utf16.md").write_bytes("- Parrots talk\n".encode("utf-16"))
    (own / "empty.md").write_bytes(b"")
    (own / "deep.md").write_text("> " * 3_000 + "Parrots talk\n")
    (own / "folder.md").mkdir()
    os.mkfifo(own / "pipe.md")
    put(tmp_path / "outside.md", "- Parrots talk\n")
    (own / "link.md").symlink_to(tmp_path / "outside.md")
    put(own / "closed.md", "- Parrots talk\n").chmod(0)
    put(own / "fine.md", "- Penguins swim in the cold sea\n")

    titles = {row.path for row in matching(call, "do parrots talk")}
    assert titles <= {str(own / "deep.md"), str(own / "closed.md")}  # Root can read all.
    assert origins(call, "where do penguins swim") == ["claude memory"]


def test_a_link_to_itself_among_the_rules_stops_nothing(user: Path, call: Call) -> None:
    rules = user / ".claude" / "rules"
    put(rules / "birds.md", "- Penguins swim\n")
    (rules / "a.md").symlink_to("a.md")
    assert origins(call, "penguins swim") == ["claude rules"]


def test_rules_may_be_a_link_to_markdown_alone(user: Path, tmp_path: Path, call: Call) -> None:
    rules = user / ".claude" / "CLAUDE.md"
    rules.unlink()
    rules.symlink_to(put(tmp_path / "dotfiles" / "rules.md", "- Penguins swim\n"))
    assert origins(call, "penguins swim") == ["claude rules"]

    rules.unlink()
    rules.symlink_to(put(tmp_path / "id_rsa", "- Parrots talk\n"))
    assert origins(call, "parrots talk") == []


def test_a_file_of_another_user_is_left_out(
    user: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    origins(call, "pnpm or npm")
    monkeypatch.setattr(disk, "own_users", lambda: frozenset((-1,)))
    put(user / ".claude" / "CLAUDE.md", "- Penguins swim\n")

    assert origins(call, "penguins swim") == []


def test_a_damaged_index_is_made_again(user: Path, home: Path, call: Call) -> None:
    assert origins(call, "pnpm or npm") == ["claude rules"]
    call.mind.close()
    for path in (home / "cache" / memories.FOLDER).iterdir():
        if path.is_file():
            path.write_bytes(b"broken" * 100)

    assert origins(call, "pnpm or npm") == ["claude rules"]


def test_control_characters_do_not_reach_an_answer(user: Path, call: Call) -> None:
    put(user / ".codex" / "AGENTS.md", "# A\x1b[31m\n\n- Penguins \x1b]0;x\x07swim \u202eupwards\n")

    (row,) = matching(call, "penguins swim upwards")
    assert not {"\x1b", "\u202e", "\x07"} & {*row.title, *row.passage}


def test_names_of_projects_are_those_of_claude_code() -> None:
    assert memories._munged("/home/a_b/my.shop-2") == "-home-a-b-my-shop-2"
    assert memories._munged("/srv/é/🙂") == "-srv-----"


def test_a_search_shows_them_below_its_results(user: Path, call: Call) -> None:
    fact(call, "uploads", "Uploads are checked for viruses")
    put(user / ".codex" / "AGENTS.md", "- Uploads are checked for viruses\n")
    _, answer = ask(call, "search", "parts of uploads")
    (row,) = answer["client_memories"]

    assert answer["total"] == len(answer["results"])
    assert row["origin"] == "claude memory"
    assert row["path"].endswith("uploads.md")
    printed = run(call, "search", "parts", "of", "uploads").out
    assert printed.index(" result") < printed.index("claude memory  Retries of uploads")
    assert f"{row['path']}:{row['line']}" in printed


def test_an_agent_reads_that_they_are_no_instructions(user: Path, call: Call) -> None:
    answer = do(call, "search", "tester", query="parts of uploads")

    assert [row.origin for row in answer.client_memories] == ["claude memory"]
    assert answer.notice.endswith(earlier.OF_CLIENTS)
    assert do(call, "search", query="parts of uploads").notice != answer.notice


def test_a_recall_that_memories_do_not_answer_quotes_them(user: Path, call: Call) -> None:
    summary = do(call, "recall", "tester", query="parts of uploads").summary

    assert "- claude memory, " in summary
    assert "(quotations: not approved" in summary


@pytest.mark.parametrize("filters", [{"tags": ["x"]}, {"types": ["decision"]}, {"topic": "a"}])
def test_a_search_for_other_memories_has_none(
    user: Path, call: Call, filters: dict[str, Any]
) -> None:
    assert not do(call, "search", query="parts of uploads", **filters).client_memories


def test_the_team_server_does_not_find_them(user: Path, call: Call) -> None:
    users: Any = object()
    member = call.by(Caller(surface=Surface.MCP, name="cursor", permissions=users))
    assert not earlier.memories(member, "parts of uploads", Filter())


def test_doctor_counts_them(user: Path, call: Call) -> None:
    printed = run(call, "doctor", status=None).out
    assert "claude memory (2), claude rules (1), codex memory (1)" in printed
