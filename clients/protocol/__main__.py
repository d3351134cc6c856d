"""Runs the conformance suite of MCP and the Inspector against mind, and writes a report.

    python -m clients.protocol [--write docs/lab/conformance.md]

Both programs and a Node.js that they accept come from npm into `.clients/protocol/`. Exits with 1
if a scenario that concerns mind fails.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from mimo.data.disk import system_clock
from scripts.marked import write_part

FOLDER = Path(".clients/protocol").absolute()
PACKAGES = {
    "node": "22",
    "@modelcontextprotocol/conformance": "0.2.0-alpha.12",
    "@modelcontextprotocol/inspector": "2.12.0",
}
REVISIONS = ("2025-11-25", "2026-07-28")
SECONDS = 280

ASKS = "mind asks no model, and its user only what a procedure asks"
LEFT_OUT = {
    r"tools-call-(sampling|elicitation)|elicitation-.*": ASKS,
    r"input-required-result-.*": ASKS,
    r"tasks-.*": "an optional extension: calls of mind are answered when they are done",
    r"server-sse-polling": "optional: a broken stream is not resumed; the client asks again",
    r"sep-2640-.*": "an optional extension: mind serves no skills",
}
"""The scenarios that do not concern mind, each with the reason."""

OF_ANY_SERVER = frozenset(
    (
        *("server-initialize", "server-session-lifecycle", "server-stateless", "ping"),
        *("tools-list", "resources-list", "prompts-list", "sep-2164-resource-not-found"),
        *("server-sse-multiple-streams", "dns-rebinding-protection", "caching"),
        "http-header-validation",
    )
)
"""The scenarios that need no tool, resource or prompt of the suite's own."""


class Outcome(NamedTuple):
    """The checks of a scenario."""

    passed: int
    failures: tuple[str, ...]


def main() -> int:
    """Runs everything and prints a report; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="page to write the report into")
    options = parser.parse_args()
    if problem := installed():
        print(f"skipped: {problem}")
        return 0
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mind-") as temporary:
        base = Path(temporary)
        results = {kind: _suite(base / kind, kind) for kind in ("real", "fixture")}
        inspected = _inspected(base / "inspector")
    lines = list(_table(results, failures))
    lines += ["", *_left_out(results), "", *_inspector_table(inspected, failures)]
    print("\n".join((*lines, *failures)))
    if options.write:
        _write(options.write, lines)
    return 1 if failures else 0


def installed() -> str | None:
    """Installs what is missing; returns the reason if that is impossible."""
    wanted = json.dumps(PACKAGES)
    mark = FOLDER / "installed.json"
    if mark.exists() and mark.read_text() == wanted:
        return None
    if shutil.which("npm") is None:
        return "npm is missing; install Node.js 20 or later"
    FOLDER.mkdir(parents=True, exist_ok=True)
    names = [f"{name}@{version}" for name, version in PACKAGES.items()]
    words = ["npm", "install", "--silent", "--prefix", str(FOLDER), *names]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"the packages can't be installed: {(done.stderr or done.stdout).strip()[-300:]}"
    mark.write_text(wanted)
    return None


def _node(
    program: str, *words: str, env: dict[str, str], cwd: Path
) -> subprocess.CompletedProcess[str]:
    """Runs a program of npm."""
    modules = FOLDER / "node_modules"
    command = [str(modules / "node/bin/node"), str(modules / ".bin" / program), *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=SECONDS, env=env, cwd=cwd
    )


def environment(base: Path) -> dict[str, str]:
    """Returns the environment of a home of mind in a folder, with a project `shop`."""
    shop = base / "shop"
    shop.mkdir(parents=True)
    env = {
        "HOME": str(base),
        "MIND_HOME": str(base / "home"),
        "MIND_BACKGROUND": "off",
        "PATH": f"{FOLDER}/node_modules/node/bin{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path.cwd()),
    }
    for words in (["init"], ["add", "Deploys need a tag", "--tag", "deploy"]):
        command = [sys.executable, "-m", "mimo", *words]
        subprocess.run(command, cwd=shop, env=env, check=True, capture_output=True)
    return env


@contextmanager
def _served(base: Path, kind: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the URL of a server and its environment."""
    env = environment(base)
    words = [sys.executable, "-m", "clients.protocol.serving", kind, str(base / "shop")]
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield server.stdout.readline().split()[2], env
        finally:
            server.terminate()


# The suite.


def _suite(base: Path, kind: str) -> dict[str, dict[str, Outcome]]:
    """Returns the outcome of each scenario of each revision."""
    with _served(base, kind) as (url, env):
        return {revision: _revision(base, url, revision, env) for revision in REVISIONS}


def _revision(base: Path, url: str, revision: str, env: dict[str, str]) -> dict[str, Outcome]:
    output = base / revision
    words = ("--url", url, "--requirements", revision, "--output-dir", str(output))
    _node("conformance", "server", *words, env=env, cwd=base)
    outcomes = {}
    for file in sorted(output.glob("server-*/checks.json")):
        name = re.sub(r"-\d{4}-\d\d-\d\dT.*", "", file.parent.name.removeprefix("server-"))
        outcomes[name] = _outcome(json.loads(file.read_text()))
    return outcomes


def _outcome(checks: Sequence[Any]) -> Outcome:
    """Returns the outcome of checks; one that only the fixture could pass is left out."""
    failed = [check for check in checks if check["status"] == "FAILURE"]
    return Outcome(
        passed=sum(check["status"] == "SUCCESS" for check in checks),
        failures=tuple(
            f"{check['id']}: {check.get('errorMessage', '')}"
            for check in failed
            if not check.get("details", {}).get("untestable")
        ),
    )


def _reason(name: str) -> str | None:
    return next((why for form, why in LEFT_OUT.items() if re.fullmatch(form, name)), None)


def _table(results: dict[str, dict[str, dict[str, Outcome]]], failures: list[str]) -> Iterator[str]:
    """Yields the table of scenarios, and adds to the failures."""
    columns = [(kind, revision) for revision in REVISIONS for kind in ("real", "fixture")]
    titles = [
        f"{revision}, {'mind' if kind == 'real' else 'fixture'}" for kind, revision in columns
    ]
    names = sorted({name for _, outcomes in _all(results) for name in outcomes})
    yield f"| scenario | {' | '.join(titles)} |"
    yield "|---|" + "---|" * len(columns)
    counts = dict.fromkeys(columns, 0)
    for name in names:
        if _reason(name):
            continue
        cells = []
        for kind, revision in columns:
            outcome = results[kind][revision].get(name)
            if outcome is None or (kind == "real" and name not in OF_ANY_SERVER):
                cells.append("")
                continue
            failures += [f"{kind} {revision} {name}: {text}" for text in outcome.failures]
            word = f"{len(outcome.failures)} failed" if outcome.failures else "passed"
            cells.append(f"{word} ({outcome.passed})")
            counts[kind, revision] += not outcome.failures
        yield f"| {name} | {' | '.join(cells)} |"
    for column, number in counts.items():
        if number == 0:
            failures.append(f"no scenario ran: {column}")
    yield f"| **passed** | {' | '.join(map(str, counts.values()))} |"


def _all(results: dict[str, dict[str, dict[str, Outcome]]]) -> Iterator[tuple[str, Any]]:
    for revisions in results.values():
        yield from revisions.items()


def _left_out(results: dict[str, dict[str, dict[str, Outcome]]]) -> Iterator[str]:
    names = sorted({name for _, outcomes in _all(results) for name in outcomes if _reason(name)})
    yield "| not of mind | reason |"
    yield "|---|---|"
    for why in dict.fromkeys(LEFT_OUT.values()):
        own = [name for name in names if _reason(name) == why]
        if own:
            yield f"| {', '.join(own)} | {why} |"


# The Inspector.

METHODS = {
    "tools/list": ([], "save_decision"),
    "tools/call": (["--tool-name", "search_recent", "--tool-arg", "limit=1"], "Deploys need a tag"),
    "resources/list": ([], "mind://context"),
    "resources/templates/list": ([], "mind://memory/{id}"),
    "resources/read": (["--uri", "mind://context"], "Deploys need a tag"),
    "prompts/list": ([], "resume_work"),
    "prompts/get": (["--prompt-name", "record_decision"], "save_decision"),
}
"""Calls of the Inspector's command line, each with a text that its answer has."""


def _inspected(base: Path) -> dict[str, dict[str, bool]]:
    """Returns whether each method was answered, over each transport."""
    with _served(base, "real") as (url, env):
        targets = {
            # Clients pass few variables on.
            "standard input and output": [
                *(sys.executable, "-m", "mimo", "mcp"),
                *("-e", f"MIND_HOME={env['MIND_HOME']}"),
            ],
            "HTTP": [url, "--transport", "http"],
        }
        return {
            method: {
                name: _answered(words, method, env, base / "shop")
                for name, words in targets.items()
            }
            for method in METHODS
        }


def _answered(target: Sequence[str], method: str, env: dict[str, str], cwd: Path) -> bool:
    words, text = METHODS[method]
    done = _node("inspector", "--cli", *target, "--method", method, *words, env=env, cwd=cwd)
    return done.returncode == 0 and text in done.stdout


def _inspector_table(inspected: dict[str, dict[str, bool]], failures: list[str]) -> Iterator[str]:
    names = list(next(iter(inspected.values())))
    yield f"| Inspector | {' | '.join(names)} |"
    yield "|---|" + "---|" * len(names)
    for method, answers in inspected.items():
        failures += [f"Inspector {method}: {name}" for name, fine in answers.items() if not fine]
        cells = " | ".join("answered" if fine else "failed" for fine in answers.values())
        yield f"| {method} | {cells} |"


def _write(page: Path, lines: Sequence[str]) -> None:
    """Writes the report and its date into a page."""
    versions = ", ".join(f"`{name}` {version}" for name, version in PACKAGES.items())
    head = f"Run on {system_clock().date()} with {versions}."
    write_part(page, "report", "\n".join((head, "", *lines)))


if __name__ == "__main__":
    sys.exit(main())
