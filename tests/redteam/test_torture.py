"""A sample of `make torture`: writing calls that fail, and what is left after them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mimo.commands import all_commands
from mimo.commands.spec import Effect
from tests.bench.torture import shim
from tests.bench.torture.commands import COMMANDS, UNTRIED

POINTS = 14


def unmeasured(command: Sequence[str], *, check: bool) -> subprocess.CompletedProcess[str]:
    """Runs a command without a measurement of coverage, which its forks would not keep anyway."""
    environ = {name: value for name, value in os.environ.items() if "COVERAGE" not in name}
    top = Path(__file__).parents[2]
    return subprocess.run(
        command, check=check, capture_output=True, text=True, cwd=top, env=environ
    )


@pytest.mark.attack("fault at a writing call")
def test_faults_at_writing_calls_lose_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    if shim.built(tmp_path) is None:
        pytest.skip("this needs Linux and a C compiler")
    words = ["--points", str(POINTS), "--seed", "3", "--only", "add", "--only", "value put"]
    words += ["--only", "untrust", "--only", "edit", "--only", "config"]
    command = [sys.executable, "-X", "utf8", "-m", "tests.bench.torture", *words]
    run = unmeasured(command, check=False)
    tried = re.search(r"^(\d+) of [\d,]+ points tried, 0 failed", run.stdout, re.M)
    assert run.returncode == 0, run.stdout + run.stderr
    assert tried is not None
    assert int(tried[1]) > POINTS // 2
    record_property("tried", int(tried[1]))


def test_each_writing_command_is_tried_or_has_a_reason_not_to_be() -> None:
    writing = {spec.path for spec in all_commands().all() if spec.effect is not Effect.READ}
    tried = {" ".join(command.words[:n]) for command in COMMANDS for n in (1, 2)}

    assert writing - tried == set(UNTRIED)


@pytest.mark.attack("loss of power")
def test_losses_of_power_lose_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    if shim.built(tmp_path) is None:
        pytest.skip("this needs Linux and a C compiler")
    words = ["--power", "--points", "60", "--only", "edges add", "--only", "token add"]
    words += ["--only", "value rm", "--only", "untrust"]
    command = [sys.executable, "-X", "utf8", "-m", "tests.bench.torture", *words]
    run = unmeasured(command, check=False)
    tried = re.search(r"^(\d+) of [\d,]+ different states tried, 0 failed", run.stdout, re.M)
    assert run.returncode == 0, run.stdout + run.stderr
    assert tried is not None
    assert int(tried[1]) == 60
    record_property("tried", int(tried[1]))


DAMAGES = """
import json, sqlite3, sys, time
from pathlib import Path
from tests.bench.torture.commands import COMMANDS, prepared
from tests.bench.torture.examination import examined, lost, warm
from tests.bench.torture.scratch import Scratch

scratch = Scratch(Path(sys.argv[1]))
prepared(scratch)
warm(scratch)
scratch.mind("list")
scratch.save("whole")
whole = scratch.contents(0)
(log,) = (path for path in (scratch.project / ".mind").rglob("*.jsonl") if "audit" in str(path))
(note,) = (scratch.project / ".mind").rglob(f"*{scratch.ids['fact']}*.md")
database = scratch.project / ".mind/.index/index.db"

def untouched(): pass
def record(): log.write_text("".join(log.read_text().splitlines(True)[1:]))
def memory(): note.write_text(note.read_text()[:-8])
def index():
    with sqlite3.connect(database) as sql:
        sql.execute("UPDATE memories SET shadowed = 1 WHERE id = ?", [scratch.ids["fact"]])

before = examined(scratch, COMMANDS[0]).facts
noticed = {}
for damage in (untouched, record, memory, index):
    scratch.load("whole")
    same = scratch.contents(0) == whole
    time.sleep(0.1)  # A file is read again if it was read within 20 ms of its last change.
    scratch.mind("list")
    damage()
    found = examined(scratch, COMMANDS[0])
    problems = [*lost(False, before, before, found.facts, ""), *found.problems]
    noticed[damage.__name__] = (same, [problem.split(":")[0] for problem in problems])
print(json.dumps(noticed))
"""


def test_an_examination_notices_damage(tmp_path: Path) -> None:
    run = unmeasured([sys.executable, "-X", "utf8", "-c", DAMAGES, str(tmp_path)], check=True)
    noticed = json.loads(run.stdout)

    assert all(same for same, _ in noticed.values())
    assert noticed["untouched"][1] == []
    assert "audit verify" in noticed["record"][1]
    assert any("neither as before" in problem for problem in noticed["memory"][1])
    assert any("index differs" in problem for problem in noticed["index"][1])
