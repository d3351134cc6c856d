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
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from bench.notes import HANDLE, Note, longest
from bench.stores import MIND
from mimo.memory.model import kind_of

PEERS = Path(sys.prefix) / ".peers"
_NODE = "node@22.23.3"
_NO_MODELS = "its models are not downloaded: words only"


class Tool:
    """A tool with the notes in a folder of its own."""

    name = ""
    installs: Sequence[str] = ()
    """What npm or pip installs."""
    says = ""
    """What a reader must know of its figures."""
    most = 10_000
    """The largest store that it is measured with."""
    rounds, questions = 3, 5
    """How often a command is timed, and with how many questions."""
    most_status = 0
    """The largest exit status of a search that succeeds."""

    def __init__(self, folder: Path) -> None:
        """Uses a folder, which is made when the notes are written."""
        self.folder = folder
        self.notes = folder / "notes"
        self.environ = os.environ | {"MIND_HOME": f"{folder}/home", "HOME": f"{folder}/home"}
        # Without compiled files every start would measure the compiler.
        for name in ("MIND_PROJECT", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV"):
            self.environ.pop(name, None)

    @classmethod
    def place(cls) -> Path:
        """Returns the folder that it is installed in."""
        return PEERS / cls.name

    def write(self, known: Iterable[Note]) -> None:
        """Writes the notes, each to a file."""
        self.notes.mkdir(parents=True)
        (self.folder / "home").mkdir()
        for note in known:
            path = self.notes / f"{note.name}.md"
            path.write_text(note.file(), encoding="utf-8")

    def index(self) -> list[str]:
        """Returns the command that makes the index; empty if there is none."""
        return []

    def index_files(self) -> list[Path]:
        return []

    def search(self, question: str) -> list[str]:
        """Returns the command that searches; empty if there is none."""
        return []

    def add(self, number: int) -> list[str]:
        """Returns the command that adds a note; empty if there is none."""
        return []

    def server(self) -> list[str]:
        """Returns the command of its MCP server; empty if there is none."""
        return []

    def question(self, text: str) -> tuple[str, dict[str, Any]]:
        """Returns the tool of the server that searches, and its arguments."""
        raise NotImplementedError

    def found(self, result: Any) -> list[str]:
        """Returns the handles of the notes in the result of a search, best first."""
        return list(dict.fromkeys(HANDLE.findall(json.dumps(result))))


class Mind(Tool):
    name = "mind"
    installs: Sequence[str] = (".",)
    most = 10_000_000

    def write(self, known: Iterable[Note]) -> None:
        super().write([])
        self.run("init")
        for note in known:
            folder = self.notes / ".mind" / kind_of(note.type).folder
            folder.mkdir(exist_ok=True)
            (folder / f"{note.name}.md").write_text(note.file(), encoding="utf-8")

    def run(self, *words: str) -> None:
        subprocess.run(
            [*MIND, *words], cwd=self.notes, env=self.environ, check=True, capture_output=True
        )

    def index(self) -> list[str]:
        return [*MIND, "index"]

    def index_files(self) -> list[Path]:
        return [self.notes / ".mind" / ".index"]

    def search(self, question: str) -> list[str]:
        return [*MIND, "search", question]

    def add(self, number: int) -> list[str]:
        return [*MIND, "add", "--again", "--type", "decision", f"Use JWT {number}"]

    def server(self) -> list[str]:
        return [*MIND, "mcp"]

    def question(self, text: str) -> tuple[str, dict[str, Any]]:
        return "mind_search", {"query": text}

    def found(self, result: Any) -> list[str]:
        return [row["id"] for row in result["structuredContent"]["results"]]


class Qmd(Tool):
    name = "qmd"
    installs: Sequence[str] = ("@tobilu/qmd@2.8.3", _NODE)
    says = _NO_MODELS

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.environ |= {"XDG_CACHE_HOME": f"{folder}/cache", "XDG_CONFIG_HOME": f"{folder}/config"}

    def _run(self, *words: str) -> list[str]:
        modules = self.place() / "node_modules"
        return [f"{modules}/.bin/node", f"{modules}/@tobilu/qmd/bin/qmd", *words]

    def index(self) -> list[str]:
        return self._run("collection", "add", f"{self.notes}", "--name", "notes")

    def index_files(self) -> list[Path]:
        return [self.folder / "cache"]

    def search(self, question: str) -> list[str]:
        return self._run("search", question, "--json")

    def server(self) -> list[str]:
        return self._run("mcp")

    def question(self, text: str) -> tuple[str, dict[str, Any]]:
        # With `query`, it would download models.
        return "query", {"searches": [{"type": "lex", "query": text}], "rerank": False}


class ServerMemory(Tool):
    name = "server-memory"
    installs: Sequence[str] = ("@modelcontextprotocol/server-memory@2026.8.31", _NODE)
    says = "a file of JSON lines; finds a question as a part of the text"

    def write(self, known: Iterable[Note]) -> None:
        self.folder.mkdir()
        (self.folder / "home").mkdir()
        self.notes.mkdir()
        path = self.folder / "memory.jsonl"
        rows = (
            {"type": "entity", "name": note.name, "entityType": note.type}
            | {"observations": [f"{note.title}\n{note.text}"]}
            for note in known
        )
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        self.environ["MEMORY_FILE_PATH"] = f"{path}"

    def server(self) -> list[str]:
        modules = self.place() / "node_modules"
        script = "@modelcontextprotocol/server-memory/dist/index.js"
        return [f"{modules}/.bin/node", f"{modules}/{script}"]

    def question(self, text: str) -> tuple[str, dict[str, Any]]:
        return "search_nodes", {"query": text}


class BasicMemory(Tool):
    name = "basic-memory"
    installs: Sequence[str] = ("basic-memory==0.23.2",)
    says = _NO_MODELS
    most = 1_000
    rounds, questions = 1, 2

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.environ |= {
            "BASIC_MEMORY_HOME": f"{self.notes}",
            "BASIC_MEMORY_CONFIG_DIR": f"{folder}/config",
            "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false",
        }

    def _run(self, *words: str) -> list[str]:
        return [f"{self.place()}/bin/basic-memory", *words]

    def index(self) -> list[str]:
        return self._run("reindex")

    def index_files(self) -> list[Path]:
        return [self.folder / "config"]

    def search(self, question: str) -> list[str]:
        return self._run("tool", "search-notes", question)

    def add(self, number: int) -> list[str]:
        title = f"Use JWT {number}"
        words = ("--title", title, "--folder", "new", "--content", title)
        return self._run("tool", "write-note", *words)

    def server(self) -> list[str]:
        return self._run("mcp")

    def question(self, text: str) -> tuple[str, dict[str, Any]]:
        return "search_notes", {"query": text, "project": "main", "output_format": "json"}


class Jrnl(Tool):
    name = "jrnl"
    installs: Sequence[str] = ("jrnl==4.6",)
    says = "a journal in one file; asked for the longest word of a question"

    def write(self, known: Iterable[Note]) -> None:
        self.notes.mkdir(parents=True)
        (self.folder / "home").mkdir()
        parts = (f"[2026-03-01 09:00] {note.title}\n{note.text}\n" for note in known)
        (self.folder / "journal.txt").write_text("\n".join(parts), encoding="utf-8")
        config = {
            "journals": {"default": {"journal": f"{self.folder}/journal.txt"}},
            "version": "4.6",
            "editor": "",
            "default_hour": 9,
            "default_minute": 0,
            "colors": dict.fromkeys(("body", "date", "tags", "title"), "none"),
            "encrypt": False,
            "highlight": False,
            "indent_character": "|",
            "linewrap": 79,
            "tagsymbols": "#@",
            "template": False,
            "timeformat": "%F %H:%M",
        }
        (self.folder / "jrnl.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")

    def _run(self, *words: str) -> list[str]:
        return [f"{self.place()}/bin/jrnl", "--config-file", f"{self.folder}/jrnl.yaml", *words]

    def search(self, question: str) -> list[str]:
        return self._run("-contains", longest(question)[0])

    def add(self, number: int) -> list[str]:
        return self._run(f"Use JWT {number}.")


class Ripgrep(Tool):
    name = "ripgrep"
    installs: Sequence[str] = ("@vscode/ripgrep@1.18.0",)
    says = "searches the files; asked for the three longest words of a question"
    most = 10_000_000
    most_status = 1  # Nothing is found.

    def search(self, question: str) -> list[str]:
        (program,) = self.place().glob("node_modules/@vscode/ripgrep-*/bin/rg*")
        return [f"{program}", "--ignore-case", "|".join(longest(question)), f"{self.notes}"]


TOOLS: tuple[type[Tool], ...] = (Mind, Qmd, ServerMemory, BasicMemory, Jrnl, Ripgrep)


def installed(names: Sequence[str] | None) -> list[type[Tool]]:
    """Returns mind, and the others of those names that are installed; all without names."""
    others = [tool for tool in TOOLS[1:] if (tool.place() / ".made").exists()]
    return [Mind, *(tool for tool in others if names is None or tool.name in names)]


def install(tool: type[Tool]) -> None:
    """Installs a tool in a folder of its own, if that is not done. Raises where it can't be."""
    folder = tool.place()
    made = folder / ".made"
    wanted = " ".join(tool.installs)
    if tool is not Mind and made.exists() and made.read_text(encoding="utf-8") == wanted:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # The versions of Python that pyenv has are seldom on the path.
    path = [os.environ["PATH"], *map(str, Path.home().glob(".pyenv/versions/3*/bin"))]
    environ = os.environ | {"PATH": os.pathsep.join(path)}
    for command in _installing(tool, folder):
        subprocess.run(command, check=True, capture_output=True, timeout=600, env=environ)
    made.write_text(wanted, encoding="utf-8")


def _installing(tool: type[Tool], folder: Path) -> Sequence[list[str]]:
    if any(each.startswith(("@", "node@")) for each in tool.installs):
        words = ["--prefix", f"{folder}", "--no-audit", "--no-fund", "--silent"]
        return [["npm", "install", *words, *tool.installs]]
    python = "3.12" if tool is BasicMemory else sys.executable
    uv = f"{Path(sys.prefix)}/bin/uv"
    into = ["--quiet", "--python", f"{folder}/bin/python"]
    make = [uv, "venv", "--quiet", "--python", python, f"{folder}"]
    return [make, [uv, "pip", "install", *into, *tool.installs]]


def main() -> None:
    for tool in TOOLS:
        if tool is Mind or {tool.name, "all"} & set(sys.argv[1:]):
            try:
                install(tool)
                print(f"{tool.name}: installed")
            except (OSError, subprocess.SubprocessError) as error:
                shutil.rmtree(tool.place(), ignore_errors=True)
                print(f"{tool.name}: not installed ({error})", file=sys.stderr)


if __name__ == "__main__":
    main()
