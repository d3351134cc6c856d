"""The same notes in other tools that people use for this, in the same run.

A tool that is not installed is left out with a note. `make bench-peers` installs those that the
package registries have: in `.peers/`, beside the project's own environment.
"""

from __future__ import annotations

import json
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from bench.stores import MIND, QUERIES, Server, note, question, run, store, times

FOLDER = Path(".peers")
"""The folder in which `make bench-peers` installs npm packages and a Python environment."""

Figure = tuple[str, str]
"""The name of a measure, and the result."""


def rows(size: int) -> Iterator[Figure]:
    """Yields the rows of a store of that many notes, for mind and each tool that is installed."""
    with store(size) as (root, environ):
        folders = (FOLDER / "node_modules" / ".bin", FOLDER / "venv" / "bin")
        programs = [str(folder.resolve()) for folder in folders if folder.is_dir()]
        environ["PATH"] = ":".join([*programs, environ["PATH"]])
        environ["HOME"] = str(root.parent)
        yield from _mind(root, environ, size)
        for program, measure in PEERS.items():
            if shutil.which(program, path=environ["PATH"]):
                yield from measure(root, environ, size)
            else:
                yield f"{program}, {size:,} notes", "not installed"


def _mind(root: Path, environ: dict[str, str], size: int) -> Iterator[Figure]:
    seconds, _ = run([*MIND, "index"], root, environ)
    yield f"mind: first index, {size:,} notes", f"{seconds:.2f} s"
    ratio, _ = times([*MIND, "search", QUERIES[0]], root, environ)
    yield f"mind: search, {size:,} notes", f"{ratio:.1f} ×"
    yield f"mind: MCP search, {size:,} notes", _asked([*MIND, "mcp"], root, environ, "mind_search")


def _ripgrep(root: Path, environ: dict[str, str], size: int) -> Iterator[Figure]:
    words = "|".join(QUERIES[0].split())
    ratio, _ = times(["rg", "-i", "-c", words, ".mind/facts"], root, environ)
    yield f"ripgrep: any of the words, {size:,} notes", f"{ratio:.1f} ×"


def _qmd(root: Path, environ: dict[str, str], size: int) -> Iterator[Figure]:
    facts = str(root / ".mind" / "facts")
    # The name `.mind` is hidden from it.
    shutil.copytree(facts, root / "notes")
    seconds, _ = run(["qmd", "collection", "add", str(root / "notes")], root, environ)
    yield f"qmd: first index, {size:,} notes", f"{seconds:.2f} s"
    ratio, _ = times(["qmd", "search", QUERIES[0]], root, environ)
    yield f"qmd: search by words, {size:,} notes", f"{ratio:.1f} ×"


def _server_memory(root: Path, environ: dict[str, str], size: int) -> Iterator[Figure]:
    texts = (note(number) for number in range(size))
    entities = [
        {"type": "entity", "name": f"note {n}", "entityType": "fact", "observations": [text]}
        for n, text in enumerate(texts)
    ]
    path = root / "memory.jsonl"
    path.write_text("\n".join(map(json.dumps, entities)) + "\n", encoding="utf-8")
    environ = environ | {"MEMORY_FILE_PATH": str(path)}
    figure = _asked(["mcp-server-memory"], root, environ, "search_nodes", "token")
    yield f"server-memory: MCP search for one word, {size:,} notes", figure


def _basic_memory(root: Path, environ: dict[str, str], size: int) -> Iterator[Figure]:
    command = ["basic-memory", "project", "add", "bench", str(root / ".mind" / "facts")]
    run([*command, "--default"], root, environ)
    seconds, _ = run(["basic-memory", "reindex"], root, environ)
    yield f"basic-memory: first index, {size:,} notes", f"{seconds:.2f} s"
    search = ["basic-memory", "tool", "search-notes", QUERIES[0]]
    ratio, _ = times(search, root, environ, 3)
    yield f"basic-memory: search, {size:,} notes", f"{ratio:.1f} ×"


PEERS = {
    "rg": _ripgrep,
    "qmd": _qmd,
    "mcp-server-memory": _server_memory,
    "basic-memory": _basic_memory,
}
"""The functions that measure a tool, by the program to look for."""


def _asked(
    command: list[str], root: Path, environ: dict[str, str], tool: str, query: str = ""
) -> str:
    """Returns how long a tool of an MCP server takes, and its start to the first answer."""
    start = time.perf_counter()
    server = Server(root, environ, command)
    try:
        server.call(tool, query=query or QUERIES[0])
        first = time.perf_counter() - start
        took = sorted(server.call(tool, query=query or question(i)) for i in range(50))
    finally:
        server.close()
    middle = statistics.median(took)
    return f"p50 {middle:.1f} ms, p95 {took[47]:.1f} ms, first answer after {first:.2f} s"
