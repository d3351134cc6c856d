"""The examination of `make torture` notices damage; see tests/redteam/test_samples.py, too."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.preload import built
from bench.torture.commands import COMMANDS, UNTRIED
from bench.torture.examination import lost
from bench.torture.faults import report
from bench.torture.figures import Figures, Point
from bench.torture.shim import SOURCE
from mimo.call.spec import Effect
from mimo.call.table import all_commands


def unmeasured(command: Sequence[str], *, check: bool) -> subprocess.CompletedProcess[str]:
    """Runs a command without a measurement of coverage, which its forks would not keep anyway."""
    environ = {name: value for name, value in os.environ.items() if "COVERAGE" not in name}
    top = Path(__file__).parents[2]
    return subprocess.run(
        command, check=check, capture_output=True, text=True, cwd=top, env=environ
    )


def test_calls_that_no_run_made_again_are_counted_apart() -> None:
    figures = Figures()
    points = [Point("add", "short write", at, "write", is_index=False) for at in range(4)]
    figures.points = dict.fromkeys(points)
    figures.tried = dict.fromkeys(points[:2])
    figures.absent = dict.fromkeys(points[1:3])

    lines = report(figures).splitlines()

    assert lines[0] == "2 of 3 points tried, 0 failed."
    assert "Points left out, as no run made their call again: 1." in lines
    assert "| `add` | 2 / 3 | 0 / 0 | 0 |" in lines


def test_each_writing_command_is_tried_or_has_a_reason_not_to_be() -> None:
    writing = {spec.path for spec in all_commands().all() if spec.effect is not Effect.READ}
    tried = {" ".join(command.words[:n]) for command in COMMANDS for n in (1, 2)}

    assert writing - tried == set(UNTRIED)


DAMAGES = """
import json, sqlite3, sys, time
from contextlib import closing
from pathlib import Path
from mimo.guard.chain import link_of
from mimo.index.schema import SCHEMA, Approvals, open_cache
from mimo.project.projects import known_owner
from bench.torture.commands import COMMANDS, prepared
from bench.torture.examination import examined, lost, warm
from bench.torture.scratch import Scratch

scratch = Scratch(Path(sys.argv[1]))
prepared(scratch)
warm(scratch)
(kind,) = (command for command in COMMANDS if command.name == "procedure send")
kind.before(scratch)
scratch.mind(*kind.words)
scratch.mind("edit", scratch.ids["fact"], "--content", "Tea is served at six")
scratch.mind("list")
scratch.save("whole")
whole = scratch.contents().without_index
(log,) = (path for path in (scratch.project / ".mind").rglob("*.jsonl") if "audit" in str(path))
(note,) = (scratch.project / ".mind").rglob(f"*{scratch.ids['fact']}*.md")
owner = known_owner(scratch.home / ".mind")
database = SCHEMA.path(scratch.project / ".mind/.index", owner)
kept = database.read_bytes()
(journal,) = scratch.project.rglob("journal.jsonl")
inbox = journal.with_name("inbox.jsonl")
entry = sorted((scratch.project / ".mind/.local/trash").iterdir())[-1]
(procedure,) = (scratch.project / ".mind/procedures").iterdir()

def opened(): return open_cache(database.parent, owner, Approvals())
def untouched(): pass
def record(): log.write_text("".join(log.read_text().splitlines(True)[1:]))
def memory(): note.write_text(note.read_text()[:-8])
def index():
    with closing(opened()) as tables, tables.writing() as sql:
        sql.execute("UPDATE memories SET shadowed = 1 WHERE id = ?", [scratch.ids["fact"]])
def meaning():
    with closing(opened()) as tables, tables.writing() as sql:
        of = "(SELECT key FROM memories WHERE id = ?)"
        sql.execute(f"UPDATE units SET vector = (SELECT vector FROM units WHERE memory = {of})"
            f" WHERE memory = {of}", [scratch.ids["other"], scratch.ids["fact"]])
def newest():
    lines = log.read_text().splitlines(True)
    writes = [n for n, line in enumerate(lines)
              if link_of(line.encode()).event.get("operation") == "write"]
    log.write_text("".join(lines[:writes[-1]]))
def steps(): journal.write_text("".join(journal.read_text().splitlines(True)[:-1]))
def event(): inbox.unlink()
def undo(): entry.unlink()
def undone(): entry.write_text(entry.read_text().splitlines(True)[0])
def approval(): procedure.write_text(procedure.read_text() + "Prose.")

before = examined(scratch, COMMANDS[0]).facts
noticed = {}
damages = untouched, record, memory, index, meaning
damages += newest, steps, event, undo, undone, approval
for damage in damages:
    scratch.load("whole")
    same = scratch.contents().without_index == whole and database.read_bytes() == kept
    time.sleep(0.1)  # A file is read again if it was read within 20 ms of its last change.
    scratch.mind("list")
    healthy = scratch.contents()
    damage()
    shared = scratch.contents() == healthy
    found = examined(scratch, COMMANDS[0])
    problems = [*lost(False, before, before, found.facts, ""), *found.problems]
    noticed[damage.__name__] = (same, shared, [problem.split(":")[0] for problem in problems])
print(json.dumps(noticed))
"""


def test_an_examination_notices_damage(tmp_path: Path) -> None:
    run = unmeasured([sys.executable, "-X", "utf8", "-c", DAMAGES, str(tmp_path)], check=True)
    results = json.loads(run.stdout)
    noticed = {name: problems for name, (_, _, problems) in results.items()}

    assert all(same for same, _, _ in results.values())
    # Only of equal states, an examination counts for all.
    assert [name for name, (_, shared, _) in results.items() if shared] == ["untouched"]
    assert noticed["untouched"] == []
    assert "audit verify" in noticed["record"]
    assert any("neither as before" in problem for problem in noticed["memory"])
    assert any("index differs" in problem for problem in noticed["index"])
    assert any("index differs" in problem for problem in noticed["meaning"])
    assert "record of another call is lost" in noticed["newest"]
    assert any("journal.jsonl is neither" in problem for problem in noticed["steps"])
    assert any("inbox.jsonl is neither" in problem for problem in noticed["event"])
    assert any(re.match("undo of .* is lost", problem) for problem in noticed["undo"])
    assert any(re.match("undo of .* is lost", problem) for problem in noticed["undone"])
    assert any("wait@1.0.md is neither" in problem for problem in noticed["approval"])
    assert any("trust of shop/.mind/procedures" in problem for problem in noticed["approval"])


def test_a_failed_approval_excuses_only_texts_that_the_command_writes() -> None:
    before = {"a.md": ("A",), "trust of a.md": ("trusted",)}
    after = {**before, "b.md": ("B",), "trust of b.md": ("trusted",)}
    errors = "note: it could not be approved and counts as untrusted"

    assert not [*lost(True, before, after, {**after, "trust of b.md": ("untrusted",)}, errors)]
    assert [*lost(True, before, after, {**after, "trust of a.md": ("untrusted",)}, errors)]
    assert [*lost(False, before, after, {**before, "trust of a.md": ("untrusted",)}, errors)]


@pytest.mark.parametrize("module", ["torture", "histories"])
def test_a_run_that_tries_nothing_fails(module: str, tmp_path: Path) -> None:
    words = {"torture": ["--only", "no such command"], "histories": ["--histories", "0"]}[module]
    if module == "torture" and built(SOURCE, tmp_path) is None:
        pytest.skip("this needs Linux and a C compiler")
    command = [sys.executable, "-X", "utf8", "-m", f"bench.{module}", *words]
    run = unmeasured(command, check=False)

    assert run.returncode == 2, run.stdout + run.stderr
    assert "nothing was tried: no point was chosen" in run.stderr


def test_a_torture_without_a_compiler_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    run = unmeasured([sys.executable, "-X", "utf8", "-m", "bench.torture"], check=False)

    assert run.returncode == 2
    assert "this needs Linux and a C compiler" in run.stderr
