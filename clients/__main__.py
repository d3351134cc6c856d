"""Runs real clients with mind and a model of this machine, and prints what they did.

    python -m clients [CLIENT …] [--scope user] [--keep FOLDER] [--write docs/clients.md]
    python -m clients [CLIENT …] --sessions

The clients come from npm into `.clients/`. None of them needs an account, and none reaches its
service. Exits with 1 if a client did less than mind's table of clients promises. With `--sessions`,
what mind reads of the clients' transcripts is compared with what was said in them.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from clients.recipes import RECIPES, Recipe
from clients.sessions import Evidence, observe
from clients.transcripts import Reading, read_back
from mimo.data.disk import system_clock
from mimo.features.clients.table import client
from scripts.marked import part_of, table, write_part

PACKAGES = Path(".clients").absolute()


def main() -> int:
    """Runs the clients and prints a table; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", nargs="*", metavar="CLIENT")
    parser.add_argument("--scope", choices=("project", "user"))
    parser.add_argument("--sessions", action="store_true", help="check what mind reads of sessions")
    parser.add_argument("--keep", type=Path, help="folder for the requests, outputs and files")
    parser.add_argument("--write", type=Path, help="page to write the table into")
    options = parser.parse_args()
    if shutil.which("npm") is None or shutil.which("node") is None:
        print("skipped: npm is missing; install Node.js 20 or later")
        return 0
    rows: dict[str, list[str]] = {}
    complaints: list[str] = []
    for recipe in RECIPES:
        if options.clients and recipe.client not in options.clients:
            continue
        program = installed(recipe)
        if program is None:
            continue
        scopes = (options.scope,) if options.scope else recipe.scopes
        for scope in scopes[:1] if options.sessions else scopes:
            with tempfile.TemporaryDirectory(prefix="mind-") as temporary:
                base = Path(options.keep or temporary).absolute() / f"{recipe.client}-{scope}"
                shutil.rmtree(base, ignore_errors=True)
                if options.sessions:
                    complaints += show(recipe, read_back(recipe, program.parent, base, scope))
                    continue
                evidence = observe(recipe, program.parent, base, scope)
            rows[f"{recipe.client} {scope}"] = cells(recipe, scope, evidence)
            print("  ".join(rows[f"{recipe.client} {scope}"]), flush=True)
            problems = [*evidence.problems, *missing(recipe, rows[f"{recipe.client} {scope}"])]
            complaints += [f"{recipe.client} {scope}: {text}" for text in problems]
    print("\n".join(complaints))
    if options.write:
        write(options.write, rows)
    return 1 if complaints else 0


def show(recipe: Recipe, reading: Reading) -> list[str]:
    """Prints what was read of the sessions of a client, and returns its differences."""
    facts = f"{len(reading.prompts)} prompts, {reading.records} records, {reading.unknown} unknown"
    print(f"{recipe.client} {reading.version}  {facts}", flush=True)
    return [f"{recipe.client}: {text}" for text in reading.problems]


def installed(recipe: Recipe) -> Path | None:
    """Returns the program of a client, installed if it is missing; None if that is impossible."""
    prefix = PACKAGES / recipe.client
    program = prefix / "node_modules" / ".bin" / recipe.program
    if not program.exists():
        prefix.mkdir(parents=True, exist_ok=True)
        words = ["npm", "install", "--silent", "--prefix", str(prefix), f"{recipe.package}@latest"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode or not program.exists():
            last = (done.stderr or done.stdout).strip()[-300:]
            print(f"{recipe.client}: skipped, {recipe.package} can't be installed: {last}")
            return None
    return program


COLUMNS = [
    *("client", "scope", "version", "run on", "tools listed", "tool called"),
    *("notes at the start", "notes with a prompt", "edit at a known pitfall stopped once"),
    "asked once, and recorded",
    *("hooks that mind logged", "quiet without mind", "restored"),
]


def cells(recipe: Recipe, scope: str, evidence: Evidence) -> list[str]:
    """Returns the row of a run."""
    return [
        recipe.client,
        scope,
        evidence.version,
        str(system_clock().date()),
        str(len(evidence.listed)),
        *map(_word, (evidence.called, evidence.start, evidence.prompt, evidence.stopped)),
        _word(evidence.asked == 1 and evidence.recorded),
        ", ".join(evidence.hooks) or "none",
        _word(evidence.quiet),
        _word(evidence.restored),
    ]


def missing(recipe: Recipe, row: list[str]) -> list[str]:
    """Returns the columns that have no, although the client has hooks or does not need them."""
    entry = client(recipe.client)
    hooked = bool(entry.hooks or entry.plugin)
    needed = COLUMNS if hooked else ("tools listed", "tool called", "restored")
    cells = zip(COLUMNS, row, strict=True)
    return [f"{name}: {cell}" for name, cell in cells if name in needed and cell in ("no", "0")]


def _word(value: bool) -> str:
    return "yes" if value else "no"


def write(page: Path, rows: dict[str, list[str]]) -> None:
    """Writes the rows into the table of a page, in place of earlier rows for the same client."""
    earlier = part_of(page, "table").strip().splitlines()[2:]
    before = [line.strip("| ").split(" | ") for line in earlier]
    merged = {f"{row[0]} {row[1]}": row for row in before if len(row) == len(COLUMNS)} | rows
    write_part(page, "table", table(COLUMNS, merged.values(), len(COLUMNS)))


if __name__ == "__main__":
    sys.exit(main())
