"""Fuzzes the targets for a time, and keeps what it finds.

    python -m tests.fuzz [TARGET...] [--minutes N] [--seed N] [--state FOLDER] [--write PAGE]

The inputs that reach new code are kept in a folder, from which the next run goes on. An input that
fails is copied to tests/fuzz/regressions, where the tests try it again.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

from scripts.marked import write_part
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS

REGRESSIONS = Path(__file__).parent / "regressions"
_LARGEST = 4096
_SECONDS = 20
"""The time after which an input counts as one that hangs."""


def fuzz(name: str, minutes: float, seed: int, state: Path) -> dict[str, Any]:
    """Returns the figures of one target: executions, branches reached, and findings."""
    corpus, failing = state / name / "corpus", state / name / "failing"
    corpus.mkdir(parents=True, exist_ok=True)
    failing.mkdir(exist_ok=True)
    for data in seeds(name):
        (corpus / sha256(data).hexdigest()[:16]).write_bytes(data)
    options = [
        str(corpus), f"-max_total_time={round(minutes * 60)}", f"-seed={seed}",
        f"-timeout={_SECONDS}", f"-max_len={_LARGEST}", "-rss_limit_mb=2048",
        "-print_final_stats=1", f"-artifact_prefix={failing}/",
    ]  # fmt: skip
    words = [sys.executable, "-X", "utf8", "-m", "tests.fuzz.engine", name, *options]
    started = time.monotonic()
    run = subprocess.run(words, capture_output=True, check=False)
    output = (run.stdout + run.stderr).decode("utf-8", "replace")
    kept = sorted(failing.iterdir())
    for path in kept:
        (REGRESSIONS / name).mkdir(parents=True, exist_ok=True)
        shutil.move(path, REGRESSIONS / name / path.name[:24])
    if run.returncode:
        print(output[-3000:])
    executed = re.findall(r"stat::number_of_executed_units:\s*(\d+)", output)
    executed = executed or re.findall(r"^#(\d+)", output, re.M)
    reached = re.findall(r"cov: (\d+)", output)
    return {
        "minutes": (time.monotonic() - started) / 60,
        "executions": int(executed[-1]) if executed else 0,
        "reached": max(map(int, reached), default=0),
        "findings": len(kept) or int(run.returncode != 0),
    }


def table(figures: dict[str, dict[str, Any]]) -> str:
    """Returns the figures of all runs as Markdown."""
    lines = [
        "| target | minutes | executions | edges reached | findings |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in TARGETS:
        if row := figures.get(name):
            lines.append(
                f"| `{name}` | {row['minutes']:.0f} | {row['executions']:,} | {row['reached']:,}"
                f" | {row['findings']} |"
            )
    return "\n".join(lines)


def main() -> int:
    """Returns 1 if an input failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []])
    parser.add_argument("--minutes", type=float, default=1, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--state", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--write", type=Path, help="the page to write the figures into")
    options = parser.parse_args()
    figures_file = options.state / "figures.json"
    figures = json.loads(figures_file.read_text()) if figures_file.exists() else {}
    failed = 0
    for name in options.targets or TARGETS:
        row = fuzz(name, options.minutes, options.seed, options.state)
        failed += row["findings"]
        print(f"{name}: {row['executions']:,} executions, {row['findings']} findings", flush=True)
        if before := figures.get(name):
            row["reached"] = max(row["reached"], before["reached"])
            for key in ("minutes", "executions", "findings"):
                row[key] += before[key]
        figures[name] = row
        figures_file.write_text(json.dumps(figures, indent=1))
    print(table(figures))
    if options.write:
        write_part(options.write, "fuzz", table(figures))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
