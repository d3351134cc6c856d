"""An export has the memories that may leave the project, and replaces only its own files."""

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import mimo
from mimo.call import Call
from mimo.call.spec import declared
from mimo.cli.main import main
from mimo.errors import Conflict
from mimo.extensions.exchange import selection, writing
from mimo.extensions.exchange.commands import ExportPart, ExportWritten, export
from mimo.extensions.exchange.lines import Exported
from mimo.memory.model import Filter, Kind, Link, Memory
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
    links=(Link(to="decision_auth_x2d4rt", type="supersedes"),),
)
SESSIONS = Memory(
    id="decision_auth_x2d4rt",
    type=Kind.DECISION,
    content="Keep sessions in Redis",
    created=NOW - timedelta(days=9),
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


def test_the_same_memories_give_the_same_bytes(shop: Call, project: Path) -> None:
    run(shop, output="a.jsonl")
    run(shop, output="a.zip", format="markdown")
    before = [(project / name).read_bytes() for name in ("a.jsonl", "a.zip")]
    run(Call(shop.mind.reopened()), output="b.jsonl")
    run(Call(shop.mind.reopened()), output="b.zip", format="markdown")
    assert [(project / name).read_bytes() for name in ("b.jsonl", "b.zip")] == before


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
