"""Measures how costs grow with a store, from 100 memories on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from bench.stores import MIND, QUERIES, Server, run, store, times
from scripts import marked

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)

COMMANDS = {
    "`mind search`": ["search", QUERIES[0]],
    "`mind list`": ["list"],
    "`mind show`": ["show", "fact_note_7"],
    "`mind status`": ["status"],
    "`mind add`": ["add", "--again", "--type", "decision", "Use JWT"],
}
SERVED = {
    "`mind search`, a server runs": COMMANDS["`mind search`"],
    "`mind list`, a server runs": COMMANDS["`mind list`"],
}
PROMPT = "`mind hook` at a prompt"
SEARCH, SLOW = "MCP search, p50", "MCP search, p95"
INDEX, MEMORY, SIZE = "first index", "first index, memory", "index / text"
UNITS = {SEARCH: "ms", SLOW: "ms", INDEX: "s", MEMORY: "MB", SIZE: "×"}
"""The units of the measures that are not multiples of `python -c pass`."""

Curves = dict[str, dict[int, float]]
"""For each measure its value at each size."""


def measured(sizes: tuple[int, ...]) -> Curves:
    """Returns the costs at each size."""
    curves: Curves = {}
    for size in sizes:
        for name, value in at(size):
            print(f"{size:,}: {name}: {value:.2f} {unit(name)}", flush=True)
            curves.setdefault(name, {})[size] = value
    return curves


def unit(name: str) -> str:
    """Returns the unit of a measure."""
    return UNITS.get(name, "×")


def at(size: int) -> Iterator[tuple[str, float]]:
    """Yields each measure of a store of that many memories, and its value."""
    runs = 9 if size < 100_000 else 3
    with store(size) as (root, environ):
        seconds, memory = run([*MIND, "index"], root, environ)
        yield INDEX, seconds
        yield MEMORY, memory / 1024
        yield SIZE, _bytes(root / ".mind" / ".index") / _bytes(root / ".mind" / "facts")
        alone = environ | {"MIND_BACKGROUND": "off"}
        for name, words in COMMANDS.items():
            yield name, times([*MIND, *words], root, alone, runs)[0]
        prompt = {"hook_event_name": "UserPromptSubmit", "prompt": QUERIES[0]}
        event = json.dumps(prompt | {"session_id": "bench", "cwd": str(root)}).encode()
        yield PROMPT, times([*MIND, "hook"], root, alone, runs, event)[0]
        server = Server(root, environ)
        took = server.searches(100)
        yield SEARCH, took[49]
        yield SLOW, took[94]
        for name, words in SERVED.items():
            yield name, times([*MIND, *words], root, environ, runs)[0]
        server.close()


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def table(curves: Curves) -> str:
    """Returns a Markdown table of the curves."""
    sizes = sorted({size for points in curves.values() for size in points})
    rows = (
        [name, *(f"{points[n]:,.1f} {unit(name)}" if n in points else "" for n in sizes)]
        for name, points in curves.items()
    )
    return marked.table(["memories", *(f"{size:,}" for size in sizes)], rows)


def draw(curves: Curves, path: Path) -> bool:
    """Draws the curves as an SVG picture; returns whether matplotlib is installed."""
    try:
        import matplotlib as mpl
    except ImportError:
        return False
    mpl.use("svg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "mind", "font.size": 9})
    from matplotlib import pyplot

    figure, (commands, searches) = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    for name, points in curves.items():
        sizes = sorted(points)
        values = [points[size] for size in sizes]
        if unit(name) == "×" and name != SIZE:
            commands.plot(sizes, values, marker="o", label=name.replace("`", ""))
        elif unit(name) == "ms":
            searches.plot(sizes, values, marker="o", label=name)
    commands.set(title="Commands", ylabel="processor time, × `python -c pass`")
    searches.set(title="A search in a running server", ylabel="milliseconds")
    for axes in (commands, searches):
        axes.set(xscale="log", yscale="log", xlabel="memories")
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.legend()
    figure.savefig(path, metadata={"Date": None})
    return True
