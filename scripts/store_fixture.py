"""Writes tests/stores/VERSION.tar.xz: a project and a home as this version of mind leaves them.

    python -m scripts.store_fixture 1.1.0

Made once for each release. The tests open every one of them with the current code, and compare its
answers with those of the version that wrote it, which are in `answers.json` of the archive.
"""

import io
import json
import os
import sys
import tarfile
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mimo.cli.main import main as run
from mimo.data.disk import working_directory
from mimo.mind import Mind
from tests.sample_procedures import GREET, text

START = datetime(2026, 11, 24, 12, tzinfo=UTC)
LATER = START + timedelta(days=1)
STORES = Path(__file__).parent.parent / "tests" / "stores"

WRITES = (
    ("init",),
    ("add", "Tea is served at four o'clock", "--tag", "tea", "--title", "Tea time"),
    ("add", "The kettle holds two litres", "--private"),
    ("add", "--user", "Always use pnpm"),
    ("save", "decision", "auth", "Use JWT", "--because", "No session store"),
    ("evolve", "outcome", "auth", "failed", "--reason", "Tokens could not be revoked"),
    ("evolve", "supersede", "auth", "Use sessions", "--because", "Revocable"),
    ("save", "checkpoint", "Login works", "--next", "Write the test"),
    ("save", "insight", "Safari drops cookies", "--tag", "safari"),
    ("ingest", "docs/guide.md"),
    ("value", "put", "agent.build", "last", '{"ok": true, "runs": [1, null, 2.5]}'),
    (
        "edges",
        "add",
        "--title",
        "Cold cup",
        "--description",
        "Tea cools",
        "--workaround",
        "Warm it",
    ),
    ("procedure", "add", "greet.md"),
    ("procedure", "run", "greet", "--context", '{"who": "you"}'),
    ("context", "write"),
    ("config", "decay.rate", "0.05"),
    ("token", "add", "ana", "--email", "ana@example.org"),
)

READS = (
    ("list", "--limit", "100"),
    ("list", "--chunks", "--limit", "100"),
    ("search", "when is tea served"),
    ("search", "why no JWT"),
    ("search", "cookies"),
    ("load", "checkpoint"),
    ("show", "auth"),
    ("graph",),
    ("value", "get", "agent.build", "last"),
    ("value", "list", "agent.build"),
    ("pitfalls", "list"),
    ("edges", "--", "pour tea into a cold cup"),
    ("procedure", "list"),
    ("procedure", "status", "latest"),
    ("context", "show"),
    ("config", "decay.rate"),
    ("token", "list"),
    ("undo", "--list"),
    ("audit", "verify"),
)
"""Commands whose answers every later version gives, too."""


def mind(top: Path, at: datetime, *words: str) -> Any:
    """Returns the answer of a command in the project below a folder, at a time."""
    home = {"HOME": f"{top}/home", "MIND_HOME": f"{top}/home/.mind", "TZ": "UTC"}
    output, errors = io.StringIO(), io.StringIO()
    with (
        chdir(top / "shop"),
        patch.dict(os.environ, home),
        redirect_stdout(output),
        redirect_stderr(errors),
    ):
        status = run(
            [words[0], "--json", *words[1:]],
            open=lambda project: Mind.open(working_directory(), project=project, clock=lambda: at),
        )
    if status:
        raise RuntimeError(f"mind {' '.join(words)}: {errors.getvalue()}{output.getvalue()}")
    return json.loads(output.getvalue().replace(os.fspath(top), "TOP"))


def main() -> None:
    version = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        (top / "home").mkdir()
        (top / "shop" / "docs").mkdir(parents=True)
        guide = "".join(f"# Part {number}\n\n{'Water boils. ' * 9}\n\n" for number in range(3))
        (top / "shop" / "docs" / "guide.md").write_text(guide, encoding="utf-8")
        (top / "shop" / "greet.md").write_text(text("greet", GREET), encoding="utf-8")
        for number, words in enumerate(WRITES):
            mind(top, START + timedelta(minutes=number), *words)
        answers = [[words, mind(top, LATER, *words)] for words in READS]
        (top / "answers.json").write_text(json.dumps(answers, indent=1), encoding="utf-8")
        STORES.mkdir(exist_ok=True)
        with tarfile.open(STORES / f"{version}.tar.xz", "w:xz") as archive:
            for name in ("answers.json", "home", "shop"):
                archive.add(top / name, name)


if __name__ == "__main__":
    main()
