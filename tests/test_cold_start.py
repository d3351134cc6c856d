"""The imports of everyday commands, as sets of names and never as times."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mimo.call.table import all_commands, summaries

ROOT = Path(__file__).parent.parent

HEAVY = {
    "asyncio",
    "email",
    "frontmatter",
    "http",
    "importlib.metadata",
    "jsonschema",
    "markdown_it",
    "mcp",
    "mcp_types",
    "model2vec",
    "multiprocessing",
    "numpy",
    "parsedatetime",
    "psycopg",
    "pydantic",
    "rich",
    "textual",
    "tomlkit",
    "usearch",
    "yaml",
    "zoneinfo",
}
"""Packages that no everyday command needs before it has something to do for them."""

META = "io.modelcontextprotocol/"

TELL = """
import sys
sys.argv = ["mind", *sys.argv[1:]]
from mimo.__main__ import main
status, modules = main(), sorted(sys.modules)
import json
print(json.dumps([status, modules]), file=sys.stderr)
"""


def imported(folder: Path, *argv: str, messages: str = "", **env: str) -> set[str]:
    """Returns the modules that a command line has imported when it is done."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run(
        [sys.executable, "-c", TELL, *argv],
        capture_output=True,
        encoding="utf-8",
        cwd=folder,
        env={**own, "PYTHONPATH": str(ROOT), **env},
        input=messages,
        check=True,
    )
    status, modules = json.loads(done.stderr.splitlines()[-1])
    assert status == 0
    return set(modules)


def heavy(modules: set[str]) -> set[str]:
    return HEAVY & modules


def commands_in(modules: set[str]) -> set[str]:
    """Returns the modules of features that declare commands."""
    declaring = set(all_commands().modules.values())
    files = {name if "." in name else f"{name}.commands" for name in declaring}
    return {name for name in files if f"mimo.features.{name}" in modules}


def test_the_version_needs_nothing_of_ours_but_itself(tmp_path: Path) -> None:
    modules = imported(tmp_path, "--version")

    assert {name for name in modules if name.startswith("mimo")} == {"mimo", "mimo.__main__"}
    assert not (HEAVY | {"click", "dataclasses", "typing"}) & modules


def test_help_loads_no_command(tmp_path: Path) -> None:
    modules = imported(tmp_path, "--help")

    assert not heavy(modules)
    assert commands_in(modules) == set()


def test_the_summaries_are_those_of_the_commands() -> None:
    commands = all_commands()

    expected = {path: commands.at(path).summary for path in commands.modules}
    assert expected.items() <= summaries().items()


@pytest.mark.parametrize(
    ("argv", "module"),
    [
        (["search", "tea"], "search.commands"),
        (["search", "tea", "--json"], "search.commands"),
        (["recall", "tea"], "search.recall"),
        (["list"], "notes.reading"),
        (["list", "--when", "3 days ago"], "notes.reading"),
        (["status"], "upkeep.status"),
        (["config"], "upkeep.commands"),
        (["completion", "bash"], "upkeep.completion"),
        (["memory", "list"], "notes.memory_tool"),
    ],
)
def test_a_command_loads_its_own_module_and_nothing_heavy(
    project: Path, argv: list[str], module: str
) -> None:
    modules = imported(project, *argv)

    assert not heavy(modules)
    assert commands_in(modules) == {module}


READING = {"frontmatter", "mimo.memory.codec", "mimo.index.documents", "tomllib", "yaml"}
WRITING = {"mimo.index.writing"}
SEARCHING = {"Stemmer", "mimo.ranking", "mimo.index.search"}


@pytest.fixture
def settled(project: Path) -> Path:
    """A project with a memory that was last looked at well after it was written."""
    imported(project, "add", "Green tea is drunk without milk", "--tag", "tea")
    imported(project, "list")
    return project


def test_a_search_of_unchanged_files_does_not_load_readers_and_writers(settled: Path) -> None:
    modules = imported(settled, "search", "tea")

    assert not (READING | WRITING) & modules
    assert modules >= SEARCHING


@pytest.mark.parametrize("argv", [["list"], ["show", "fact_green"]])
def test_list_and_show_do_not_load_the_search(settled: Path, argv: list[str]) -> None:
    unneeded = READING | WRITING | SEARCHING | {"mimo.text.tokens"}
    assert not unneeded & imported(settled, *argv)


def test_add_loads_the_header_reader_and_nothing_else_heavy(project: Path) -> None:
    modules = imported(project, "add", "Tea is served at four")

    assert heavy(modules) <= {"frontmatter", "yaml"}
    assert commands_in(modules) == {"notes.commands"}


@pytest.mark.parametrize("argv", [["show", ""], ["search", "--tag", ""], ["add", "--type", ""]])
def test_completing_loads_nothing_heavy(project: Path, argv: list[str]) -> None:
    imported(project, "add", "Green tea is drunk without milk", "--tag", "tea")
    modules = imported(project, *argv, _MIND_COMPLETE="1")

    assert not heavy(modules)
    assert not (READING | WRITING | SEARCHING | {"click", "mimo.index.index", "hashlib"}) & modules
    module = {"add": "notes.commands", "show": "notes.reading", "search": "search.commands"}
    assert commands_in(modules) == {module[argv[0]]}


def test_a_procedure_needs_only_yaml_and_for_its_schema_jsonschema(project: Path) -> None:
    imported(project, "procedure", "new", "hello")

    for argv, needed in (
        (["list"], {"yaml"}),
        (["run", "hello"], {"yaml", "jsonschema"}),
        (["status", "latest"], {"yaml"}),
    ):
        modules = imported(project, "procedure", *argv)
        assert heavy(modules) <= needed
        assert not (SEARCHING | {"mimo.index.index", "subprocess"}) & modules


def test_the_log_of_events_needs_nothing_heavy(project: Path) -> None:
    modules = imported(project, "events")

    assert not heavy(modules)
    assert commands_in(modules) == {"audit.commands"}


def test_commands_that_read_do_not_load_the_enumerations_of_signals(settled: Path) -> None:
    for argv in (["list"], ["search", "tea"], ["show", "fact_green"]):
        assert "signal" not in imported(settled, *argv)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_first_answers_load_no_sdk_and_the_next_ones_no_http(project: Path, era: str) -> None:
    version, capabilities = f"{META}protocolVersion", f"{META}clientCapabilities"
    params: dict[str, object] = {}
    info = {"name": "a client", "version": "1"}
    offer = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
    opening: tuple[str, object] = ("initialize", offer)
    if era == "modern":
        params = {"_meta": {version: "2026-07-28", capabilities: {}}}
        opening = ("server/discover", params)
    methods = ("tools/list", "prompts/list", "resources/templates/list")
    requests = [opening, *((method, params) for method in methods)]

    def modules(*requests: tuple[str, object]) -> set[str]:
        lines = [
            json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            for id, (method, params) in enumerate(requests)
        ]
        return imported(project, "mcp", messages="\n".join(lines))

    assert not heavy(modules(opening))
    assert heavy(modules(*requests)) <= {"email", "importlib.metadata"}
    loaded = modules(*requests, ("resources/list", params))
    assert "mcp.server.lowlevel.server" in loaded
    assert not {"starlette", "httpx", "httpx2", "cryptography", "uvicorn", "mcp.client"} & loaded


def test_completing_an_option_loads_neither_sqlite_nor_json(project: Path) -> None:
    modules = imported(project, "search", "--", _MIND_COMPLETE="1")

    assert not {"sqlite3", "json", "mimo.guard.policy"} & modules


DOWNLOADERS = {"httpx2", "huggingface_hub", "hf_xet", "requests", "urllib3", "fsspec"}
"""Packages that other packages bring, and that could fetch models."""


def test_no_command_and_no_import_loads_a_downloader(project: Path, tmp_path: Path) -> None:
    long = tmp_path / "long.md"
    long.write_text("\n\n".join(f"# Part {n}\n\nTea is green, {n}. " * 40 for n in range(99)))
    for argv in (["add", "Green tea"], ["ingest", str(long)], ["search", "tea"], ["doctor"]):
        assert not DOWNLOADERS & imported(project, *argv)
    code = "import sys, mimo, mimo.api; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", cwd=ROOT, check=True
    )
    assert not DOWNLOADERS & set(done.stdout.split())
