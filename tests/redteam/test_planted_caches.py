"""A `.mind/.index/` that came with a clone or an archive: no database in it is opened.

SQLite obeys a database and the files beside it: a journal may name a file for it to delete, and a
view in the place of a table may never end.
"""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.index.schema import SCHEMA
from mimo.index.vectors import SCHEMA as VECTORS
from mimo.operations.refresh import refresh
from tests.kit import run, write
from tests.redteam.hostile import plant_journal

PLANTED = "planted database obeyed"

COMMANDS = ("search tea", "list", "add coffee", "index --rebuild", "doctor", "status")


@pytest.fixture
def clone(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with an index that its author's mind has made, in which another user works."""
    write(call, "facts/tea.md", "Tea is served at four\n")
    refresh(call)
    call.mind.close()
    root = Path(shutil.copytree(call.mind.project.root, tmp_path / "clone"))
    monkeypatch.chdir(root)
    monkeypatch.setenv("MIND_HOME", str(tmp_path / "user"))
    return root


def planted_names(folder: Path) -> list[Path]:
    """Returns the author's own files, and the names that have no key."""
    unkeyed = [folder / f"{schema.stem}-v{schema.number}.db" for schema in (SCHEMA, VECTORS)]
    return [*folder.glob("*.db"), *unkeyed]


@pytest.mark.attack(PLANTED)
def test_journals_of_a_clone_delete_nothing(clone: Path, tmp_path: Path) -> None:
    folder, precious = clone / ".mind" / ".index", tmp_path / "precious"
    for path in planted_names(folder):
        with closing(sqlite3.connect(path)) as sql, sql:
            sql.execute("PRAGMA journal_mode = DELETE")
            sql.execute("CREATE TABLE IF NOT EXISTS cache (owner, identity)")
        plant_journal(path, deletes=precious)
    for command in COMMANDS:
        ran = run(None, *command.split(), status=None)
        assert ran.status in (0, 1), ran
        assert "unexpected error" not in ran.err

    assert precious.read_text() == "precious"
    assert "four" in run(None, "search", "tea").out


@pytest.mark.attack(PLANTED)
def test_endless_view_of_a_clone_is_not_read(clone: Path, tmp_path: Path) -> None:
    for path in planted_names(clone / ".mind" / ".index"):
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as sql, sql:
            sql.execute(
                "CREATE VIEW cache AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1"
                " FROM n) SELECT max(x) AS owner, max(x) AS identity FROM n"
            )
    prompt = '{"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "tea at four?"}'

    assert "four" in run(None, "search", "tea").out
    assert run(None, "hook", "claude-code", input=prompt).err == ""
