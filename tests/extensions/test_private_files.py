"""Commands of extensions leave no private file open to other users."""

import os
from datetime import timedelta
from pathlib import Path

from mimo.call import Surface
from mimo.call.spec import Effect
from mimo.call.table import all_commands
from tests.claude_sessions import claude_code
from tests.conftest import NOW
from tests.extensions.sessions.talks import KEYSET, OTHER_RULE, RULE, id_of
from tests.kit import is_of_core
from tests.redteam.test_private_files import Run, exposed, private_folders, run

__all__ = ["run"]

LINES = (
    "import ../CLAUDE.md --private",
    "export --private --output ../memories.jsonl",
    "config sessions.enabled on",
    "sessions index",
    f"sessions accept {id_of(RULE)}",
    f"sessions reject {id_of(OTHER_RULE)}",
    f"sessions forget {KEYSET} --yes",
    "report --force ../report.html",
    "token add ada --email ada@example.com",
    "token add bob --email bob@example.com",
    "token rotate bob",
    "token rm bob",
)


def test_no_command_leaves_a_private_file_open_to_others(
    run: Run, project: Path, home: Path
) -> None:
    talk = [("user", RULE), ("user", OTHER_RULE), ("agent", "Hello")]
    claude_code(project.parent / "user", KEYSET, project, talk, NOW - timedelta(days=40))
    (project.parent / "CLAUDE.md").write_text("# Notes\n\n- Deploy on Tuesdays\n", "utf-8")
    writing = {
        spec.path
        for spec in all_commands().all()
        if not is_of_core(spec) and Surface.CLI in spec.surfaces and spec.effect is not Effect.READ
    }
    before = os.umask(0)
    try:
        for line in LINES:
            run(*line.split())
    finally:
        os.umask(before)

    assert [path for path in writing if not any(line.startswith(path) for line in LINES)] == []
    assert exposed(*private_folders(project, home)) == {}
