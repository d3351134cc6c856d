"""Fuzzes the targets for a time, and keeps what it finds.

    python -m fuzz [TARGET...] [--minutes N] [--seed N] [--jobs N] [--state FOLDER] [--keep]
                         [--write PAGE]

It begins with the inputs of fuzz/corpus and of earlier runs. An input that fails is copied to
fuzz/regressions, where the tests try it again. `--keep` writes the fewest inputs that reach
the same code into fuzz/corpus, and adds the figures of this run to the sums beside them.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.parts import NOTHING_TRIED
from fuzz import corpus
from fuzz.seeds import seeds
from fuzz.targets import TARGETS
from scripts import marked

REGRESSIONS = Path(__file__).parent / "regressions"
FIGURES = corpus.FOLDER / "figures.json"
"""The sums of the runs that were kept, over all versions of the code."""

SUMS = ("executions", "reached", "findings")

_LARGEST = 4096
_SECONDS = 20
"""The time after which an input counts as one that hangs."""


def _engine(name: str, state: Path, *options: str) -> tuple[int, str]:
    """Returns the exit status and the output: that of libFuzzer, then that of atheris.

    The latter has the traceback of an input that failed.
    """
    own = [sys.executable, "-X", "utf8", "-m", "fuzz.engine", name]
    again = state / name / "again"  # libFuzzer starts itself again to merge.
    words = shlex.join([*own, str(again.absolute())])
    again.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    again.chmod(0o700)
    run = subprocess.run([str(again.absolute()), *options], capture_output=True, check=False)
    return run.returncode, (run.stderr + run.stdout).decode("utf-8", "replace")


def fuzz(name: str, minutes: float, seed: int, state: Path) -> dict[str, Any]:
    """Returns the figures of one target: seconds, executions, branches reached, and findings."""
    inputs, failing = state / name / "corpus", state / name / "failing"
    inputs.mkdir(parents=True, exist_ok=True)
    failing.mkdir(exist_ok=True)
    for data in (*seeds(name), *corpus.read(name)):
        (inputs / sha256(data).hexdigest()[:16]).write_bytes(data)
    status, output = _engine(
        name, state, str(inputs), f"-max_total_time={round(minutes * 60)}", f"-seed={seed}",
        f"-timeout={_SECONDS}", f"-max_len={_LARGEST}", "-rss_limit_mb=2048",
        "-print_final_stats=1", f"-artifact_prefix={failing}/",
    )  # fmt: skip
    kept = sorted(failing.iterdir())
    for path in kept:
        (REGRESSIONS / name).mkdir(parents=True, exist_ok=True)
        shutil.move(path, REGRESSIONS / name / path.name[:24])
    if status:
        print(f"{output[-6000:]}\n{name} ended with status {status}")
    executed = re.findall(r"stat::number_of_executed_units:\s*(\d+)", output)
    executions = int((executed or re.findall(r"^#(\d+)", output, re.M) or ["0"])[-1])
    # Without the start of the process, which imports everything.
    done = re.findall(r"Done \d+ runs in (\d+) second", output)
    rate = re.findall(r"(?:average_exec_per_sec:|exec/s:)\s*(\d+)", output)
    reached = re.findall(r"cov: (\d+)", output)
    return {
        "seconds": int(done[-1]) if done else executions // max(1, int((rate or ["1"])[-1])),
        "executions": executions,
        "reached": max(map(int, reached), default=0),
        "findings": len(kept) or int(status != 0),
    }


def distil(name: str, state: Path) -> int:
    """Writes the fewest short inputs that reach the same code; returns their number."""
    with TemporaryDirectory() as folder:
        least, short = Path(folder, "least"), Path(folder, "short")
        least.mkdir()
        short.mkdir()
        for path in (state / name / "corpus").iterdir():
            if path.stat().st_size <= corpus.LONGEST:
                shutil.copy(path, short)
        _engine(name, state, "-merge=1", str(least), str(short))
        return corpus.write(name, least)


def table(figures: dict[str, dict[str, Any]]) -> str:
    """Returns the figures as Markdown."""
    cells = (
        (f"`{name}`", f"{row['seconds'] / 60:.0f}", *(f"{row[key]:,}" for key in SUMS))
        for name in TARGETS
        if (row := figures.get(name))
    )
    return marked.table(("target", "minutes", "executions", "edges reached", "findings"), cells)


def summed(before: dict[str, Any] | None, row: dict[str, Any]) -> dict[str, Any]:
    """Returns the sums of two runs; the edges are those of the last one, whose code they are in."""
    if before is None:
        return row
    return {**row, **{key: row[key] + before[key] for key in row if key != "reached"}}


def main() -> int:
    """Returns 1 if an input failed, 2 if a target was not run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []])
    parser.add_argument("--minutes", type=float, default=1, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--state", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--keep", action="store_true", help="write the inputs and the sums")
    parser.add_argument("--write", type=Path, help="the page to write the sums into")
    options = parser.parse_args()
    sums = json.loads(FIGURES.read_text("utf-8")) if FIGURES.exists() else {}
    failed, idle = 0, []

    def run(name: str) -> tuple[str, dict[str, Any], float]:
        started = time.monotonic()
        row = fuzz(name, options.minutes, options.seed, options.state)
        if options.keep:
            distil(name, options.state)
        return name, row, time.monotonic() - started

    pool = ThreadPoolExecutor(options.jobs)
    try:
        for done in as_completed([pool.submit(run, name) for name in options.targets or TARGETS]):
            name, row, took = done.result()
            failed += row["findings"]
            idle += [] if row["executions"] else [name]
            sums[name] = summed(sums.get(name), row)
            if options.keep:
                FIGURES.write_text(f"{json.dumps(sums, indent=1)}\n", encoding="utf-8")
            print(
                f"{name}: {row['executions']:,} executions in {row['seconds']} s "
                f"({took:.0f} s in all), {row['findings']} findings",
                flush=True,
            )
    finally:
        pool.shutdown(cancel_futures=True)
    if options.keep:
        print(table(sums))
    if options.write:
        marked.write_part(options.write, "fuzz", table(sums))
    for name in idle:
        print(f"nothing was tried: `{name}` was not run", file=sys.stderr)
    return 1 if failed else NOTHING_TRIED if idle else 0


if __name__ == "__main__":
    sys.exit(main())
