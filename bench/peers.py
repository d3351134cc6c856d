"""mind and other tools, each with the same notes: how they are installed, asked and searched.

`python -m bench.peers all` installs them, in the versions below; one that can't be installed is
left out of the measurements.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.notes import HANDLE, Note, longest
from mimo.memory.model import kind_of

_NODE = ("node_modules/.bin/node",)
_MIND = ("-m", "mimo")
_NO_MODELS = "its models are not downloaded: words only"


def _files(known: Iterable[Note]) -> Iterator[tuple[str, str]]:
    return ((f"{note.name}.md", note.file()) for note in known)


@dataclass(frozen=True)
class Tool:
    """A tool with the notes in a folder of its own, whose path stands for FOLDER in words."""

    name: str
    installs: Sequence[str]
    """What npm or pip installs."""
    program: Sequence[str]
    """The first words of its commands: paths in the folder that it is installed in."""
    says: str = ""
    """What a reader must know of its figures."""
    files: Callable[[Iterable[Note]], Iterable[tuple[str, str]]] = _files
    """Makes the files that hold the notes."""
    variables: Mapping[str, str] = field(default_factory=dict)
    index: Sequence[str] | None = None
    indexed: str = ""
    """The folder of the index."""
    search: Callable[[str], Sequence[str]] | None = None
    add: Sequence[str] | None = None
    server: Sequence[str] | None = None
    """The words of its MCP server."""
    question: Callable[[str], tuple[str, dict[str, Any]]] | None = None
    """The tool of the server that searches, and its arguments."""
    most: int = 10_000
    """The largest store that it is measured with."""
    rounds: int = 3
    questions: int = 5
    """How often a command is timed, and with how many questions."""
    most_status: int = 0
    """The largest exit status of a search that succeeds."""
    folder: Path = Path()

    def __hash__(self) -> int:
        """Tells tools apart by their names."""
        return hash(self.name)

    @property
    def place(self) -> Path:
        """The folder that it is installed in."""
        return Path(sys.prefix) / ".peers" / self.name

    @property
    def notes(self) -> Path:
        return self.folder / "notes"

    @property
    def environ(self) -> dict[str, str]:
        own = {"MIND_HOME": "FOLDER/home", "HOME": "FOLDER/home", **self.variables}
        # Without compiled files every start would measure the compiler.
        left = {"MIND_PROJECT", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV"}
        given = {name: value for name, value in os.environ.items() if name not in left}
        return given | {name: self._filled(value) for name, value in own.items()}

    def _filled(self, word: str) -> str:
        return word.replace("FOLDER", str(self.folder))

    def command(self, words: Sequence[str]) -> list[str]:
        """Returns a command of the tool."""
        paths = (next(self.place.glob(path)) if "*" in path else path for path in self.program)
        return [*(f"{self.place / path}" for path in paths), *map(self._filled, words)]

    def run(self, *words: str) -> None:
        """Runs a command of the tool."""
        command = self.command(words)
        subprocess.run(command, cwd=self.notes, env=self.environ, check=True, capture_output=True)

    def write(self, known: Iterable[Note]) -> None:
        """Writes the notes."""
        self.notes.mkdir(parents=True)
        (self.folder / "home").mkdir()
        if self.name == "mind":
            self.run(*_MIND, "init")
        for name, text in self.files(known):
            path = self.notes / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def found(self, result: Any) -> list[str]:
        """Returns the handles of the notes in the result of a search, best first."""
        if self.name == "mind":
            return [row["id"] for row in result["structuredContent"]["results"]]
        return list(dict.fromkeys(HANDLE.findall(json.dumps(result))))


def _of_mind(known: Iterable[Note]) -> Iterator[tuple[str, str]]:
    for note in known:
        yield f".mind/{kind_of(note.type).folder}/{note.name}.md", note.file()


def _of_server_memory(known: Iterable[Note]) -> Iterator[tuple[str, str]]:
    rows = (
        {"type": "entity", "name": note.name, "entityType": note.type}
        | {"observations": [f"{note.title}\n{note.text}"]}
        for note in known
    )
    yield "memory.jsonl", "\n".join(map(json.dumps, rows))


def _of_jrnl(known: Iterable[Note]) -> Iterator[tuple[str, str]]:
    parts = (f"[2026-03-01 09:00] {note.title}\n{note.text}\n" for note in known)
    yield "journal.txt", "\n".join(parts)
    colors = "{body: none, date: none, tags: none, title: none}"
    yield "jrnl.yaml", f"version: '4.6'\njournals: {{default: journal.txt}}\ncolors: {colors}\n"


MIND = Tool(
    "mind",
    ["."],
    [sys.executable],
    files=_of_mind,
    index=[*_MIND, "index"],
    indexed="notes/.mind/.index",
    search=lambda text: [*_MIND, "search", text],
    add=[*_MIND, "add", "--again", "--type", "decision", "Use JWT"],
    server=[*_MIND, "mcp"],
    question=lambda text: ("mind_search", {"query": text}),
    most=10_000_000,
)
OTHERS = (
    Tool(
        "qmd",
        ["@tobilu/qmd@2.8.3", "node@22.23.3"],
        [*_NODE, "node_modules/@tobilu/qmd/bin/qmd"],
        _NO_MODELS,
        variables={"XDG_CACHE_HOME": "FOLDER/cache", "XDG_CONFIG_HOME": "FOLDER/config"},
        index=["collection", "add", "FOLDER/notes", "--name", "notes"],
        indexed="cache",
        search=lambda text: ["search", text, "--json"],
        server=["mcp"],
        # Asked otherwise, it would download models.
        question=lambda text: (
            "query",
            {"searches": [{"type": "lex", "query": text}], "rerank": False},
        ),
    ),
    Tool(
        "server-memory",
        ["@modelcontextprotocol/server-memory@2026.8.31", "node@22.23.3"],
        [*_NODE, "node_modules/@modelcontextprotocol/server-memory/dist/index.js"],
        "a file of JSON lines; finds a question as a part of a text",
        files=_of_server_memory,
        variables={"MEMORY_FILE_PATH": "FOLDER/notes/memory.jsonl"},
        server=[],
        question=lambda text: ("search_nodes", {"query": text}),
    ),
    Tool(
        "basic-memory",
        ["basic-memory==0.23.2"],
        ["bin/basic-memory"],
        _NO_MODELS,
        variables={
            "BASIC_MEMORY_HOME": "FOLDER/notes",
            "BASIC_MEMORY_CONFIG_DIR": "FOLDER/config",
            "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false",
        },
        index=["reindex"],
        indexed="config",
        search=lambda text: ["tool", "search-notes", text],
        add=["tool", "write-note", "--title", "JWT", "--folder", "new", "--content", "Use JWT"],
        server=["mcp"],
        question=lambda text: (
            "search_notes",
            {"query": text, "project": "main", "output_format": "json"},
        ),
        most=1_000,
        rounds=1,
        questions=2,
    ),
    Tool(
        "jrnl",
        ["jrnl==4.6"],
        ["bin/jrnl"],
        "a journal in one file; asked for the longest word of a question",
        files=_of_jrnl,
        search=lambda text: ["--config-file", "jrnl.yaml", "-contains", longest(text)[0]],
        add=["--config-file", "jrnl.yaml", "Use JWT."],
    ),
    Tool(
        "ripgrep",
        ["@vscode/ripgrep@1.18.0"],
        ["node_modules/@vscode/ripgrep-*/bin/rg"],
        "searches the files; asked for the three longest words of a question",
        search=lambda text: ["--ignore-case", "|".join(longest(text)), "FOLDER/notes"],
        most=10_000_000,
        most_status=1,
    ),
)


def installed(folder: Path, names: Sequence[str] | None) -> Iterator[Tool]:
    """Yields mind, and the others of those names that are installed; all without names."""
    for tool in (MIND, *OTHERS):
        is_chosen = names is None or tool.name in names
        if tool is MIND or (is_chosen and (tool.place / ".made").exists()):
            yield replace(tool, folder=folder / tool.name)


def install(tool: Tool) -> None:
    """Installs a tool in a folder of its own, if that is not done. Raises where it can't be."""
    made, wanted = tool.place / ".made", " ".join(tool.installs)
    if tool is not MIND and made.exists() and made.read_text(encoding="utf-8") == wanted:
        return
    shutil.rmtree(tool.place, ignore_errors=True)
    tool.place.mkdir(parents=True)
    # The versions of Python that pyenv has are seldom on the path.
    path = [os.environ["PATH"], *map(str, Path.home().glob(".pyenv/versions/3*/bin"))]
    environ = os.environ | {"PATH": os.pathsep.join(path)}
    if tool.program[0].startswith("node_modules"):
        words = ["npm", "install", "--prefix", f"{tool.place}", "--no-audit", "--no-fund"]
        commands = [[*words, *tool.installs]]
    else:
        uv, python = f"{sys.prefix}/bin/uv", "3.12" if "basic" in tool.name else sys.executable
        into = ["--python", f"{tool.place}/bin/python", *tool.installs]
        made_new = [uv, "venv", "--python", python, f"{tool.place}"]
        commands = [made_new, [uv, "pip", "install", *into]]
    for command in commands:
        subprocess.run(command, check=True, capture_output=True, timeout=600, env=environ)
    made.write_text(wanted, encoding="utf-8")


def main() -> None:
    for tool in (MIND, *OTHERS):
        if tool is MIND or {tool.name, "all"} & set(sys.argv[1:]):
            try:
                install(tool)
                print(f"{tool.name}: installed", flush=True)
            except (OSError, subprocess.SubprocessError) as error:
                shutil.rmtree(tool.place, ignore_errors=True)
                print(f"{tool.name}: not installed ({error})", flush=True)


if __name__ == "__main__":
    main()
