"""Kills real runs of a procedure at random moments and resumes them: nothing lost, nothing twice.

    python -m bench.killed_runs [TIMES]

Each state's action leaves a line in a file. After each kill the transitions that were acknowledged
(they are in the journal) must still be there, and their actions must not be done again; only the
action during which the process died may be.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
STATES = 12
MIND = [sys.executable, "-m", "mimo"]


def text() -> str:
    """Returns a procedure whose every state leaves a line in `done`."""
    lines = ["---", "name: count", "version: 1.0", "---", "```yaml", "initial_state: s0", "states:"]
    for number in range(STATES):
        words = f'[sh, -c, "echo $0 >> done", s{number}]'
        lines.append(f"  s{number}:")
        lines.append(f"    action: {{module: shell, function: run, args: {words}}}")
        lines.append(f"    transitions: [{{event: success, target: s{number + 1}}}]")
    return "\n".join([*lines, f"  s{STATES}: {{}}", "```", ""])


def prepare(folder: Path) -> None:
    """Makes a project with the procedure, and agrees to its programs as a person would."""
    from mimo.call import Call
    from mimo.features.procedures import library
    from mimo.mind import Mind
    from tests.kit import with_console

    subprocess.run([*MIND, "init"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    call = Call(Mind.open(folder))
    file, result = library.added(call, text().encode())
    call = with_console(call, ask=lambda question, seconds: "yes")
    library.require_approved(call, file, library.valid(file, result))


def moved(journal: Path) -> list[str]:
    """Returns the states that were left, by the whole records of a journal."""
    records = [json.loads(line) for line in journal.read_bytes().split(b"\n")[:-1]]
    return [record["from"] for record in records if record["kind"] == "transition"]


def newest(folder: Path, known: set[Path]) -> Path:
    """Returns the journal of the run that is not yet known, as soon as it is there."""
    while True:
        found = {*folder.glob(".mind/.local/executions/*/journal.jsonl")} - known
        if found:
            return found.pop()
        time.sleep(0.001)


def once(folder: Path, known: set[Path], longest: float) -> tuple[int, int]:
    """Kills one run and resumes it; returns how far it was, and how many actions were repeated."""
    (folder / "done").unlink(missing_ok=True)
    run = subprocess.Popen([*MIND, "procedure", "run", "count"], cwd=folder, stdout=subprocess.PIPE)
    journal = newest(folder, known)
    time.sleep(random.uniform(0, longest))
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    known.add(journal)
    acknowledged = moved(journal)
    time.sleep(0.02)  # a program that was being run may still leave its line
    before = done(folder)
    assert before[: len(acknowledged)] == acknowledged, (before, acknowledged)
    id_ = journal.parent.name
    status = [*MIND, "procedure", "status", id_, "--json"]
    told = json.loads(subprocess.check_output(status, cwd=folder))
    if told["status"] != "completed":
        assert told["status"] == "interrupted", told
        subprocess.run(
            [*MIND, "procedure", "resume", id_], cwd=folder, check=True, capture_output=True
        )
    every = [f"s{number}" for number in range(STATES)]
    assert moved(journal) == every, moved(journal)
    after = done(folder)[len(before) :]
    assert not {*acknowledged} & {*after}, (acknowledged, after)
    assert {*before, *after} == {*every}
    return len(acknowledged), len(before) + len(after) - STATES


def done(folder: Path) -> list[str]:
    """Returns what the actions left, in order."""
    path = folder / "done"
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def main() -> None:
    """Kill and resume, and tell how that went."""
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "project"
        folder.mkdir()
        os.environ |= {"MIND_HOME": str(Path(name) / "home"), "PYTHONPATH": str(ROOT)}
        prepare(folder)
        begun = time.monotonic()
        known: set[Path] = set()
        subprocess.run([*MIND, "procedure", "run", "count"], cwd=folder, check=True, stdout=-3)
        known.add(newest(folder, known))
        longest = json.loads(next(iter(known)).read_bytes().split(b"\n")[-2])["at"] / 1000
        found = [once(folder, known, longest) for _ in range(times)]
        repeated = sum(more for _, more in found)
        print(f"{times} runs killed within {longest:.2f} s and resumed: none lost, none twice")
        print(f"killed after {sorted({far for far, _ in found})} transitions")
        print(f"actions under way when killed that were done again: {repeated}")
        print(f"{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
