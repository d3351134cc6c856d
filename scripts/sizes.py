"""Check the sizes of modules and functions, and how much of the program a command enters and reads.

Prints the figures. Exits with 1, and a line for each finding, if a module or a function is too
long, if a small module has a single importer, or if a command enters more than its limit.
"""

import ast
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

MOST_FILE_LINES = 700
MOST_FUNCTION_LINES = 60
FEWEST_FILE_LINES = 60
"""A smaller module that a single other module imports belongs into that one."""

ENTERED = {
    "search": (73, 577, 18, 3, 6),
    "add": (74, 655, 20, 5, 9),
    "hook": (39, 294, 17, 2, 6),
}
"""The most files and functions of ours that a command enters, its deepest stack of them, and the
read transactions that it opens: of the index with its vectors, and of the approvals. Bodies of
classes, comprehensions and lambdas are not functions here.

A read transaction is a `BEGIN`, or a statement outside of one that reads the database: also those
that only open or close it. The hook answers a prompt with a memory, and records that; for most
prompts it enters fewer.
"""

FIGURES = ("files", "functions", "frames deep", "reads of the index", "reads of the approvals")

ROWS, VIEWS = 9, 20
"""The most classes of answers that declare facts of a memory themselves, and views of these."""
ROW_FIELDS = 5
"""Fields with the name of a fact from which a class is one of them, if they are half of its own."""

SMALL: dict[str, str] = {}
"""Small modules with a single importer that stay, each with the reason."""

BY_NAME = ("commands", "render", "__init__", "__main__")
"""Modules that are loaded by their names, or are the packages themselves."""

MEASURE = """
import inspect, json, os, sqlite3, sys
sys.argv = ["mind", *sys.argv[1:]]
connect, reads = sqlite3.connect, {"cache": 0, "trust": 0}

def traced(name, **options):
    connection = connect(name, **options)
    of = "trust" if "/trust.db" in name else "cache"

    def count(statement):
        words = statement.upper().split()
        begins = words == ["BEGIN"]
        sets = words[0] == "PRAGMA" and "=" in statement
        reads_alone = words[0] in ("SELECT", "WITH", "PRAGMA") and not sets
        reads[of] += begins or (reads_alone and not connection.in_transaction)

    connection.set_trace_callback(count)
    return connection

sqlite3.connect = traced
import mimo.__main__
root = os.path.dirname(mimo.__file__)
functions, depth, deepest = set(), 0, 0

def follow(frame, event, _):
    global depth, deepest
    code = frame.f_code
    if event not in ("call", "return") or not code.co_filename.startswith(root):
        return
    if code.co_name.startswith("<") or not code.co_flags & inspect.CO_OPTIMIZED:
        return
    depth += 1 if event == "call" else -1
    deepest = max(deepest, depth)
    functions.add((code.co_filename, code.co_name, code.co_firstlineno))

sys.setprofile(follow)
status = mimo.__main__.main()
sys.setprofile(None)
files = {name for name, _, _ in functions}
figures = [status, len(files), len(functions), deepest, reads["cache"], reads["trust"]]
print(json.dumps(figures), file=sys.stderr)
"""


def modules() -> dict[str, Path]:
    """Returns every module of the package by its dotted name."""
    paths = sorted(Path("mimo").rglob("*.py"))
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def too_long(path: Path) -> Iterator[str]:
    """Yields a finding for a module that is too long, and for each such function."""
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    if lines > MOST_FILE_LINES:
        yield f"{path}: {lines} lines, at most {MOST_FILE_LINES}: which two ideas does it hold?"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MOST_FUNCTION_LINES:
                yield f"{path}:{node.lineno}: {node.name} has {length} lines"


def importers(paths: Mapping[str, Path]) -> dict[str, set[str]]:
    """Returns, for each module, the modules that import it or a name of it."""
    by: dict[str, set[str]] = defaultdict(set)
    for importer, path in paths.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                targets = [name if name in paths else node.module for name in names]
            elif isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            else:
                continue
            for target in targets:
                by[target].add(importer)
    return by


def too_small(paths: Mapping[str, Path]) -> Iterator[str]:
    """Yields a finding for each small module that a single other module imports."""
    by = importers(paths)
    for name, path in paths.items():
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines >= FEWEST_FILE_LINES or path.stem in BY_NAME or name in SMALL:
            continue
        if len(by[name]) == 1:
            yield f"{path}: {lines} lines, imported only by {by[name].pop()}: merge them"


def measured() -> dict[str, tuple[int, ...]]:
    """Returns the figures of each measured command in a scratch project."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "project")
        root.mkdir()
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MIND_", "COVERAGE"))}
        environ = kept | {"MIND_HOME": f"{folder}/home", "PYTHONPATH": str(Path.cwd())}

        def run(*words: str, given: str = "") -> tuple[int, ...]:
            done = subprocess.run(
                [sys.executable, "-c", MEASURE, *words],
                cwd=root,
                env=environ,
                input=given,
                capture_output=True,
                encoding="utf-8",
                check=True,
            )
            status, *figures = json.loads(done.stderr.splitlines()[-1])
            if status:
                raise SystemExit(f"`mind {' '.join(words)}` failed: {done.stderr}")
            return tuple(figures)

        run("init")
        run("add", "Green tea is drunk without milk")
        run("search", "tea")
        prompt = {
            "hook_event_name": "UserPromptSubmit",
            "prompt": "Which tea do we serve?",
            "session_id": "one",
            "cwd": str(root),
        }
        return {
            "search": run("search", "tea"),
            "add": run("add", "Coffee is served at noon"),
            "hook": run("hook", "claude-code", given=json.dumps(prompt)),
        }


def too_much(figures: Mapping[str, tuple[int, ...]]) -> Iterator[str]:
    """Yields a finding for each figure of a command that is above its limit."""
    for command, figure in figures.items():
        for word, number, most in zip(FIGURES, figure, ENTERED[command], strict=True):
            if number > most:
                yield f"`mind {command}`: {number} {word}, at most {most}"


def rows_and_views() -> tuple[list[str], int]:
    """Returns the names of the classes that declare facts of a memory, and the number of views."""
    classes: list[tuple[ast.ClassDef, str]] = []
    for floor in ("operations", "features", "extensions", "server"):
        for path in sorted(Path("mimo", floor).rglob("*.py")):
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            for node in nodes:
                if isinstance(node, ast.ClassDef):
                    kinds = (ast.unparse(each).partition("(")[0] for each in node.decorator_list)
                    classes.append((node, next(kinds, "")))
    facts = next(fields_of(node) for node, _ in classes if node.name == "Facts")
    rows = [
        node.name
        for node, kind in classes
        if kind == "frozen"
        and ROW_FIELDS <= len(fields_of(node) & facts) >= len(fields_of(node)) / 2
    ]
    return rows, sum(kind == "view" for _, kind in classes)


def fields_of(node: ast.ClassDef) -> set[str]:
    """Returns the names of the fields that a class declares."""
    targets = (each.target for each in node.body if isinstance(each, ast.AnnAssign))
    return {target.id for target in targets if isinstance(target, ast.Name)}


def main() -> int:
    """Prints the figures and the findings; returns 1 if there are any findings."""
    paths = modules()
    lines = [path.read_text(encoding="utf-8").count("\n") for path in paths.values()]
    print(
        f"{len(paths)} modules, {sum(lines):,} lines, "
        f"a module has {statistics.median(lines):.0f} lines in the median"
    )
    figures = measured()
    for command, figure in figures.items():
        counts = ", ".join(f"{number} {word}" for word, number in zip(FIGURES, figure, strict=True))
        print(f"`mind {command}`: {counts}")
    rows, views = rows_and_views()
    print(f"{len(rows)} classes declare facts of a memory, and {views} are views of them")
    findings = [row for path in paths.values() for row in too_long(path)]
    if len(rows) > ROWS or views > VIEWS:
        findings.append(f"at most {ROWS} such classes and {VIEWS} views: {', '.join(rows)}")
    findings += too_small(paths)
    findings += too_much(figures)
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
