"""A `.mind/.index/` that came with a clone or an archive: no database in it is opened.

SQLite obeys a database and the files beside it: a journal may name a file for it to delete, and a
view in the place of a table may never end.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.index.schema import SCHEMA
from mimo.index.vectors import SCHEMA as VECTORS
from tests.redteam.hostile import plant_journal

PLANTED = "planted database obeyed"

COMMANDS = ("search tea", "list", "add coffee", "index --rebuild", "doctor", "status")


def mind(home: Path, root: Path, *words: str, data: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mimo", *words],
        cwd=root,
        env=os.environ | {"MIND_HOME": str(home)},
        input=data,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    assert "unexpected error" not in done.stderr
    return done.stdout


@pytest.fixture
def clone(call: Call, tmp_path: Path) -> Path:
    """A project with an index that its author's mind has made."""
    (call.mind.folder / "facts").mkdir(exist_ok=True)
    (call.mind.folder / "facts" / "tea.md").write_text("Tea is served at four\n")
    from mimo.operations.refresh import refresh

    refresh(call)
    call.mind.close()
    shutil.copytree(call.mind.project.root, tmp_path / "clone")
    return tmp_path / "clone"


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
        mind(tmp_path / "user", clone, *command.split())

    assert precious.read_text() == "precious"
    assert "four" in mind(tmp_path / "user", clone, "search", "tea")


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

    assert "four" in mind(tmp_path / "user", clone, "search", "tea")
    mind(tmp_path / "user", clone, "hook", "claude-code", data=prompt)
