"""An export has the memories that may leave the project, and replaces only its own files."""

import json
import os
import re
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import mimo
from mimo.call import Call
from mimo.call.spec import declared
from mimo.cli.main import main
from mimo.errors import Conflict, Invalid, MindError, NoProject, StorageFailed
from mimo.extensions.exchange import selection, writing
from mimo.extensions.exchange.commands import ExportPart, ExportWritten, export
from mimo.extensions.exchange.lines import Exported, from_data
from mimo.features.importing import sources
from mimo.features.importing.formats import reader, recognised
from mimo.features.importing.surroundings import LISTED
from mimo.features.ingest.commands import ingest
from mimo.memory.codec import normal
from mimo.memory.model import Filter, Kind, Link, Memory, Outcome, Section
from mimo.operations import refresh
from mimo.operations.invoke import invoke
from tests.conftest import NOW
from tests.kit import with_console

GITHUB = "ghp_" + "a8Xk2mQ9" * 4 + "ZtR5"
"""A token that no forge has given out."""

JWT = Memory(
    id="decision_auth_k3v7mq",
    type=Kind.DECISION,
    content="Use JWT with refresh tokens",
    created=NOW - timedelta(days=3),
    topic="auth",
    tags=("api", "jwt"),
    importance=0.9,
    confidence=0.8,
    outcome=Outcome.SUCCESS,
    links=(Link(to="decision_auth_x2d4rt", type="supersedes", given="replaces", by="ann"),),
    sections={Section.REASONING: "No session store is needed."},
    extra={"ticket": 5},
)
SESSIONS = Memory(
    id="decision_auth_x2d4rt",
    type=Kind.DECISION,
    content="Keep sessions in Redis",
    created=NOW - timedelta(days=9),
    topic="auth",
    by="claude-code",
)
STAGING = Memory(
    id="fact_staging_w8h3rb",
    type=Kind.FACT,
    content="Staging is reset every night",
    created=NOW,
)


EXPORTED = selection.exported


@pytest.fixture
def shop(call: Call, project: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    for memory in (JWT, STAGING, SESSIONS):
        call.mind.store.create(memory)
    monkeypatch.chdir(project)
    return call


def run(call: Call, **options: object) -> tuple[ExportWritten, str]:
    """Returns the result of an export, and what it printed."""
    printed: list[str] = []

    def keep(part: object) -> None:
        assert isinstance(part, ExportPart)
        printed.append(part.document)

    call = with_console(call, partial=keep)
    result = invoke(declared(export), call, options)
    assert isinstance(result, ExportWritten)
    return result, "".join(printed)


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def ids(text: str) -> list[str]:
    return [line["id"] for line in lines(text) if line["kind"] == "memory"]


def test_jsonl_has_every_field_oldest_first(shop: Call) -> None:
    result, text = run(shop)
    first, *memories, last = lines(text)
    assert first == {"kind": "mind", "format": 1, "project": "shop"}
    assert last == {"kind": "end", "memories": 3}
    assert [from_data(memory) for memory in memories] == [
        normal(memory) for memory in (SESSIONS, JWT, STAGING)
    ]
    assert (result.memories, result.bytes, result.output) == (3, len(text), "-")


def test_the_same_memories_give_the_same_bytes(shop: Call, project: Path) -> None:
    run(shop, output="a.jsonl")
    run(shop, output="a.zip", format="markdown")
    before = [(project / name).read_bytes() for name in ("a.jsonl", "a.zip")]
    run(Call(shop.mind.reopened()), output="b.jsonl")
    run(Call(shop.mind.reopened()), output="b.zip", format="markdown")
    assert [(project / name).read_bytes() for name in ("b.jsonl", "b.zip")] == before


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"types": ["decision"]}, [SESSIONS.id, JWT.id]),
        ({"tags": ["jwt"]}, [JWT.id]),
        ({"topic": "Auth"}, [SESSIONS.id, JWT.id]),
        ({"when": "today"}, [STAGING.id]),
        ({"from": "2026-11-15"}, [JWT.id, STAGING.id]),
    ],
)
def test_filters(shop: Call, options: Mapping[str, object], expected: list[str]) -> None:
    assert ids(run(shop, **options)[1]) == expected


def test_private_memories_are_exported_on_request_only(shop: Call, project: Path) -> None:
    shop.mind.store.create(
        Memory(id="fact_affair", type=Kind.FACT, content="mine", created=NOW), private=True
    )
    result, text = run(shop)
    assert "affair" not in text
    assert (result.private, result.left_out.private) == (0, 1)
    result, text = run(shop, private=True)
    (affair,) = (line for line in lines(text) if line.get("id") == "fact_affair")
    assert affair["private"] is True
    assert (result.private, result.left_out.private) == (1, 0)
    for output, format in (("p.jsonl", "jsonl"), ("p.zip", "okf"), ("p", "markdown")):
        run(shop, private=True, output=output, format=format)
        assert (project / output).stat().st_mode & 0o077 == 0
    assert (project / "p/private/facts/fact_affair.md").exists()


@pytest.mark.parametrize("format", ["jsonl", "markdown", "madr", "okf", "claude"])
def test_an_exported_private_memory_stays_private_when_imported(
    shop: Call, project: Path, format: str
) -> None:
    affair = Memory(id="decision_affair", type=Kind.DECISION, content="mine", created=NOW)
    shop.mind.store.create(affair, private=True)
    run(shop, private=True, output="x", format=format)

    with sources.opened(project / "x") as source:
        drafts = list(reader(recognised(source))(source))

    private = {
        draft.private for draft in drafts if "affair" in draft.key or "mine" in draft.content
    }
    assert private == {True}
    assert not all(draft.private for draft in drafts)


@pytest.mark.parametrize("format", ["jsonl", "mcp", "llms"])
def test_no_link_names_a_memory_that_is_left_out(shop: Call, format: str) -> None:
    shop.mind.store.create(
        Memory(id="fact_affair", type=Kind.FACT, content="mine", created=NOW), private=True
    )
    links = (Link(to="fact_affair"), Link(to="fact_nowhere"), Link(to=JWT.id))
    shop.mind.store.create(
        Memory(id="fact_open", type=Kind.FACT, content="x", created=NOW, links=links)
    )
    text = run(shop, format=format)[1]
    assert "affair" not in text
    if format == "jsonl":
        (open_,) = (line for line in lines(text) if line.get("id") == "fact_open")
        assert [link["to"] for link in open_["links"]] == ["fact_nowhere", JWT.id]


def test_unapproved_memories_are_exported_on_request_only_with_a_mark(shop: Call) -> None:
    shop.mind.trust.follow(False)
    result, text = run(shop)
    assert (ids(text), result.left_out.untrusted) == ([], 3)
    shop.mind.trust.approve([shop.mind.store.digest(f".mind/facts/{STAGING.id}.md")])
    result, text = run(Call(shop.mind.reopened()), untrusted=True)
    marks = {line["id"]: line.get("trust") for line in lines(text)[1:-1]}
    assert marks == {SESSIONS.id: "untrusted", JWT.id: "untrusted", STAGING.id: None}
    assert result.untrusted == 2


def test_files_that_the_project_has_anyway_are_left_out(shop: Call, project: Path) -> None:
    (project / "notes.md").write_text("# Notes\n\nAn included document\n", "utf-8")
    (project / "api.md").write_text("# One\n\nText\n\n# Two\n\nText\n", "utf-8")
    config = project / ".mind/config.toml"
    config.write_text(config.read_text("utf-8") + 'include = ["notes.md"]\n', "utf-8")
    call = Call(shop.mind.reopened())
    invoke(declared(ingest), call, {"path": "api.md"})
    result, text = run(call)
    assert len(ids(text)) == 3
    assert (result.left_out.ingested, result.left_out.elsewhere) == (1, 1)


def test_secrets_are_masked(shop: Call, project: Path) -> None:
    path = project / ".mind/facts/fact_token.md"
    path.write_text(f"---\nid: fact_token\ntype: fact\n---\nThe token is {GITHUB}\n", "utf-8")
    (project / f".mind/facts/{GITHUB}.md").write_text("A name with a token\n", "utf-8")
    for format in ("jsonl", "mcp", "llms"):
        text = run(shop, format=format)[1]
        assert GITHUB not in text
        assert "REDACTED" in text
    run(shop, format="markdown", output="v")
    assert "REDACTED" in (project / "v/facts/fact_token.md").read_text("utf-8")


def test_the_users_memory_is_exported_on_request_only(shop: Call, project: Path) -> None:
    user = shop.user(make=True)
    assert user
    user.mind.store.create(Memory(id="fact_pnpm", type=Kind.FACT, content="Use pnpm", created=NOW))
    assert "fact_pnpm" not in run(shop)[1]
    result, text = run(shop, user=True, untrusted=True, output="u.jsonl")
    text = (project / "u.jsonl").read_text("utf-8")
    assert (ids(text), lines(text)[0]["user"], result.user) == (["fact_pnpm"], True, True)
    run(shop, user=True, format="markdown", output="u")
    run(shop, user=True, format="okf", output="u.zip")
    for output in ("u.jsonl", "u.zip", "u"):
        assert (project / output).stat().st_mode & 0o077 == 0
    with pytest.raises(NoProject):
        run(Call(shop.mind.outside()))


def test_an_empty_project(call: Call, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    assert lines(run(call)[1])[-1] == {"kind": "end", "memories": 0}
    assert run(call, format="mcp")[1] == ""
    assert run(call, format="llms")[1].startswith("# shop\n")
    for format in ("markdown", "madr", "okf", "claude"):
        assert run(call, format=format, output=format)[0].memories == 0
        assert (project / format / ("MEMORY.md" if format == "claude" else "index.md")).exists()


# Where it is written.


@pytest.mark.parametrize("format", ["jsonl", "markdown"])
def test_a_pipe_or_a_device_is_not_replaced(shop: Call, project: Path, format: str) -> None:
    os.mkfifo(project / "pipe")
    with pytest.raises(Invalid, match="not a regular file"):
        run(shop, format=format, output="pipe", force=True)
    assert stat.S_ISFIFO((project / "pipe").stat().st_mode)


def test_an_existing_file_is_replaced_with_force_only(shop: Call, project: Path) -> None:
    (project / "m.jsonl").write_text("mine", "utf-8")
    for options in ({"output": "m.jsonl"}, {"output": "m.jsonl", "format": "llms"}):
        with pytest.raises(Conflict):
            run(shop, **options)
    assert (project / "m.jsonl").read_text("utf-8") == "mine"
    run(shop, output="m.jsonl", force=True)
    assert len(ids((project / "m.jsonl").read_text("utf-8"))) == 3


def test_a_later_export_replaces_its_own_files_and_no_others(shop: Call, project: Path) -> None:
    vault = project / "vault"
    run(shop, format="markdown", output="vault")
    (vault / "mine.md").write_text("mine", "utf-8")
    (vault / ".obsidian").mkdir()
    (vault / f"decisions/{JWT.id}.md").write_text("edited", "utf-8")
    with pytest.raises(Conflict):
        run(shop, format="markdown", output="vault")
    (project / f".mind/facts/{STAGING.id}.md").unlink()
    run(shop, format="markdown", output="vault", force=True)
    assert not (vault / f"facts/{STAGING.id}.md").exists()
    assert "Use JWT" in (vault / f"decisions/{JWT.id}.md").read_text("utf-8")
    assert (vault / "mine.md").read_text("utf-8") == "mine"
    assert (vault / ".obsidian").is_dir()
    # A file of the user in the place of a new one stops the export before it is changed.
    (vault / "facts").mkdir(exist_ok=True)
    (vault / "facts/fact_new.md").write_text("mine", "utf-8")
    shop.mind.store.create(Memory(id="fact_new", type=Kind.FACT, content="new", created=NOW))
    with pytest.raises(Conflict):
        run(shop, format="markdown", output="vault", force=True)
    assert (vault / "facts/fact_new.md").read_text("utf-8") == "mine"


def test_the_folder_of_an_unknown_user_is_an_error(shop: Call) -> None:
    with pytest.raises(Invalid, match="unknown user"):
        run(shop, format="jsonl", output="~no-such-user/x")


def test_a_folder_of_other_files_is_never_written_to(shop: Call, project: Path) -> None:
    (project / "docs").mkdir()
    (project / "docs/adr.md").write_text("mine", "utf-8")
    for force in (False, True):
        for output in ("docs", "."):
            with pytest.raises(Conflict):
                run(shop, format="madr", output=output, force=force)
    assert [path.name for path in (project / "docs").iterdir()] == ["adr.md"]


@pytest.mark.parametrize(
    "listed", ['{"files": ["../../x.md"]}', '{"files": 5}', "{", '{"files": ["a"]}']
)
def test_a_hostile_list_of_files_removes_nothing(shop: Call, project: Path, listed: str) -> None:
    (project / "x.md").write_text("mine", "utf-8")
    (project / "a/v").mkdir(parents=True)
    (project / "a/v" / LISTED).write_text(listed, "utf-8")
    with pytest.raises(MindError):
        run(shop, format="markdown", output="a/v", force=True)
    assert (project / "x.md").exists()


def test_no_link_is_followed(shop: Call, project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (project / "link").symlink_to(other)
    (project / "file").symlink_to(other / "x")
    with pytest.raises(Conflict):
        run(shop, format="markdown", output="link", force=True)
    run(shop, output="file", force=True)
    run(shop, format="markdown", output="vault")
    (project / f"vault/decisions/{JWT.id}.md").unlink()
    (project / f"vault/decisions/{SESSIONS.id}.md").unlink()
    (project / "vault/decisions").rmdir()
    (project / "vault/decisions").symlink_to(other)
    with pytest.raises(StorageFailed):
        run(shop, format="markdown", output="vault", force=True)
    assert list(other.iterdir()) == []


@pytest.mark.parametrize("output", [".mind/x.jsonl", "nowhere/x.jsonl", "folder"])
def test_places_that_are_refused(shop: Call, project: Path, output: str) -> None:
    (project / "folder").mkdir()
    with pytest.raises(Invalid):
        run(shop, output=output)


@pytest.mark.parametrize("format", ["markdown", "madr", "okf", "claude"])
def test_several_files_need_a_folder(shop: Call, format: str) -> None:
    with pytest.raises(Invalid, match="several files"):
        run(shop, format=format)


def interrupted(call: Call, selected: selection.Selection) -> Iterator[Exported]:
    """Yields one memory, then the user presses Ctrl-C."""
    yield next(EXPORTED(call, selected))
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("output", "format"), [("m.jsonl", "jsonl"), ("v", "markdown"), ("v.zip", "okf")]
)
def test_an_export_that_fails_leaves_nothing(
    shop: Call, project: Path, monkeypatch: pytest.MonkeyPatch, output: str, format: str
) -> None:
    run(shop)
    before = sorted(project.iterdir())
    monkeypatch.setattr(selection, "exported", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(shop, output=output, format=format)
    assert sorted(project.iterdir()) == before


def test_an_existing_empty_folder_is_written_into(
    shop: Call, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "v").mkdir()
    inode = (project / "v").stat().st_ino
    monkeypatch.setattr(selection, "exported", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(shop, output="v", format="markdown")
    assert list((project / "v").iterdir()) == []

    monkeypatch.setattr(selection, "exported", EXPORTED)
    run(shop, output="v", format="markdown")
    assert (project / "v/index.md").exists()
    assert (project / "v").stat().st_ino == inode


def test_a_killed_export_is_completed_by_the_next(
    shop: Call, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_AT_ONCE", 1)
    monkeypatch.setattr(selection, "exported", interrupted)
    monkeypatch.setattr(writing, "_empty", lambda path: None)
    with pytest.raises(KeyboardInterrupt):
        run(shop, output="v", format="markdown")
    monkeypatch.setattr(selection, "exported", EXPORTED)
    assert (project / f"v/decisions/{SESSIONS.id}.md").exists()
    assert not (project / "v/index.md").exists()

    with pytest.raises(Conflict, match="earlier export"):
        run(shop, output="v", format="markdown")
    result, _ = run(shop, output="v", format="markdown", force=True)
    assert len(list((project / "v").rglob("*.md"))) == result.files == 4


def test_a_zip_has_the_files_of_the_folder(shop: Call, project: Path) -> None:
    run(shop, format="markdown", output="v")
    result, _ = run(shop, format="markdown", output="v.zip")
    with zipfile.ZipFile(project / "v.zip") as archive:
        names = archive.namelist()
        assert result.files == len(names) == 4
        for name in names:
            assert archive.read(name) == (project / "v" / name).read_bytes()


def test_a_memory_that_is_removed_meanwhile_is_left_out(
    shop: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "BATCH", 1)
    selected = selection.select(shop, Filter(), private=False, untrusted=False)
    reading = selection.exported(shop, selected)
    assert next(reading).memory.id == SESSIONS.id
    shop.mind.store.delete(shop.mind.index.get(JWT.id) or pytest.fail("it is there"))
    refresh.refresh(shop)
    assert [exported.memory.id for exported in reading] == [STAGING.id]


# The command line.


def test_standard_output_has_the_document_alone(
    shop: Call, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["export", "--type", "fact"]) == 0
    shown = capsys.readouterr()
    assert ids(shown.out) == [STAGING.id]
    assert shown.err == ""
    assert main(["export", "-f", "claude", "-o", "c"]) == 0
    shown = capsys.readouterr()
    assert re.fullmatch(r"✓ c  2 memories in 3 files, \d+ kB\n", shown.out)
    assert shown.err == "note: left out: 1 superseded\n"


def test_the_json_of_an_export_is_its_parts_and_its_summary(
    shop: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "--json"]) == 0
    out = capsys.readouterr().out
    part, end = json.JSONDecoder().raw_decode(out)
    assert len(ids(part["document"])) == 3
    assert json.loads(out[end:])["memories"] == 3


def test_a_closed_pipe_ends_an_export_without_a_message(shop: Call) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "mimo", "export"],
            env={**os.environ, "PYTHONPATH": str(Path(mimo.__file__).parent.parent)},
            check=False,
            stdout=closed,
            stderr=subprocess.PIPE,
        )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.attack("written outside of its folder")
def test_an_export_is_not_written_into_a_memory_through_a_link(call: Call, tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(call.mind.folder, target_is_directory=True)

    with pytest.raises(Invalid, match="in a folder of mind"):
        export(call, output=str(tmp_path / "docs" / "all.jsonl"))

    assert not (call.mind.folder / "all.jsonl").exists()
