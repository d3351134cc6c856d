"""The tables, examples and links of the documentation agree with the code."""

import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mimo.call.table import all_commands
from mimo.cli.main import main
from mimo.config import SETTINGS, Scope, Unapproved
from mimo.features.clients.table import CLIENTS
from mimo.features.hooks.exposure import classify
from mimo.guard.policy import DEFAULT
from mimo.guard.policy import parse as parse_policy
from mimo.memory.codec.file import Parsed, parse
from mimo.memory.log import statement
from mimo.memory.model import Version
from mimo.server.exposure import described
from mimo.server.exposure import log as exposure_log
from tests.kit import is_of_core, repository

ROOT = Path(__file__).parents[2]
PAGES = {path.stem: path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")}
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
LAB = sorted((ROOT / "docs" / "lab").glob("*.md"))
RULES = sorted((ROOT / "docs" / "reference" / "rules").glob("*.md"))
LARGEST = 9_000
"""Bytes of a page for users: two screens."""
WITH_LINKS = [
    *sorted((ROOT / "docs").glob("*.md")),
    *GUIDES,
    *LAB,
    *RULES,
    *DECISIONS,
    *(ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING", "SECURITY")),
]
LOG = (ROOT / "docs" / "reference" / "rules" / "log.md").read_text("utf-8")
FORMS = re.findall(r"^\| `\*\*(\w+):\*\*.* \| an? (\w+) \| ([\d.]+) \|$", LOG, re.MULTILINE)


def test_the_rules_of_trust_list_the_effect_of_each_setting_that_is_not_approved() -> None:
    text = (ROOT / "docs" / "reference" / "rules" / "trust.md").read_text("utf-8")
    section = text.partition("## Settings of the project\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\w+): .* \| (.*) \|$", section, re.MULTILINE)

    listed = {effect: re.findall(r"`(.+?)`", names) for effect, names in rows}
    assert listed == {
        effect: [s.key for s in SETTINGS if s.unapproved is effect and s.scope is not Scope.USER]
        for effect in Unapproved
    }


def test_the_commands_of_the_readme_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = re.search(r"```console\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert example
    repository(tmp_path)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ann@example.com")
    monkeypatch.chdir(tmp_path)

    printed = {}
    for line in example[1].splitlines():
        program, *words = shlex.split(line.removeprefix("$ "))
        assert program == "mind"
        assert main(words) == 0
        printed[words[0]] = capsys.readouterr().out

    assert "Use JWT with refresh tokens" in printed["search"].splitlines()[0]
    assert not list(tmp_path.glob(".mind/decisions/*"))  # The example is true of no project.
    assert "JWT" not in printed["sync"]


def headings(page: Path) -> set[str]:
    """Returns the anchors of a page's headings, as forges make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", WITH_LINKS, ids=lambda page: page.stem)
def test_links_and_code_paths_of_a_page_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    links = re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text)
    code = re.findall(r"`((?:mimo|tests|scripts|bench|fuzz|clients)/[\w/.-]+)`", text)

    assert [link for link, _ in links if not (page.parent / link).exists()] == []
    places = [(page.parent / link if link else page, anchor) for link, anchor in links if anchor]
    assert [anchor for place, anchor in places if anchor not in headings(place)] == []
    assert [path for path in code if not (ROOT / path).exists()] == []


def test_the_index_lists_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    links = {(index.parent / link).resolve() for link in linked(PAGES["README"])}
    pages = {*(ROOT / "docs").glob("*.md"), *GUIDES, *LAB}

    assert {page.name for page in pages - links - {index}} == set()


def linked(text: str) -> list[str]:
    return re.findall(r"\]\(([^)#:]+\.md)\)", text)


def test_the_index_begins_with_fifteen_pages() -> None:
    first = PAGES["README"].partition("\n## ")[0]

    assert len(linked(first)) == 15


@pytest.mark.parametrize("page", [*PAGES, *(f"guides/{guide.stem}" for guide in GUIDES)])
def test_a_page_fits_on_two_screens(page: str) -> None:
    assert (ROOT / "docs" / f"{page}.md").stat().st_size <= LARGEST


def test_each_guide_is_in_the_readme_and_short() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")

    assert len(readme.splitlines()) < 100
    for guide in GUIDES:
        assert f"docs/guides/{guide.name})" in readme
        prose = re.sub(r"```.*?```", "", guide.read_text("utf-8"), flags=re.DOTALL)
        assert len(prose.splitlines()) < 60


def test_the_newcomers_table_names_existing_files() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Where do I change")[2]
    rows = re.findall(r"^\| (.+) \| (.+) \|$", text.partition("\n## ")[0], re.MULTILINE)[1:]
    files = [re.findall(r"`(mimo/[\w/.]+)`", cell) for _, cell in rows]

    assert len(rows) >= 12
    assert all(1 <= len(row) <= 3 for row in files)
    assert [name for row in files for name in row if not (ROOT / name).is_file()] == []


def test_the_architecture_has_every_feature() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    folders = {path.name for path in (ROOT / "mimo" / "features").iterdir() if path.is_dir()}
    rows = re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE)

    assert sorted(rows) == sorted(folders - {"__pycache__"})


def test_the_architecture_names_every_part_of_the_package() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    parts = {path.stem for path in (ROOT / "mimo").iterdir() if not path.name.startswith("__")}

    assert [name for name in sorted(parts) if not re.search(rf"\b{name}\b", text)] == []


def test_the_architecture_has_every_command_of_a_feature() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)/` \| [^|]* \| ([^|]*) \|", text, re.MULTILINE))
    registry = all_commands()
    homes = {
        (registry.at(path).function.__module__.split(".")[2], path.split()[0])
        for path in registry.modules
        if is_of_core(registry.at(path))
    }

    missing = {(home, word) for home, word in homes if f"`{word}`" not in rows[home]}
    assert missing == {("fading", "memory")}  # Of a command that `notes` has.


def test_the_table_of_decisions_has_every_page_by_number_and_title() -> None:
    titles = [page.read_text("utf-8").splitlines()[0] for page in DECISIONS]
    rows = re.findall(
        r"^\| \[(\d+)\]\((\d{4}-[a-z-]+\.md)\) \| (.*) \|$",
        (ROOT / "docs" / "decisions" / "README.md").read_text("utf-8"),
        re.MULTILINE,
    )

    assert [f"# {number}. {title}" for number, _, title in rows] == titles
    assert [name for _, name, _ in rows] == [page.name for page in DECISIONS]
    numbers = [int(page.name[:4]) for page in DECISIONS]
    assert numbers == list(range(1, len(numbers) + 1))


def test_our_own_memory_cites_existing_pages() -> None:
    texts = [path.read_text("utf-8") for path in (ROOT / ".mind").rglob("*.md")]
    named = [page for text in texts for page in re.findall(r"docs/decisions/[\w-]+(?:\.md)?", text)]

    assert named
    assert [page for page in named if not (ROOT / page).is_file()] == []


@pytest.mark.parametrize(("word", "kind", "confidence"), FORMS)
def test_the_table_of_statements_matches_the_grammar(word: str, kind: str, confidence: str) -> None:
    read = statement(f"__{word}:__ something else")

    assert read is not None
    assert read.kind.value == {"learning": "insight"}.get(kind, kind)
    assert read.confidence == float(confidence)


def test_the_merged_file_on_the_page_has_a_competing_version() -> None:
    shown = re.search(r"```\n(confidence: 0.4\n.*?)```", PAGES["git"], re.DOTALL)
    assert shown
    data = f"---\nid: x\ntype: decision\n{shown[1]}".encode()
    parsed = parse(data, path=".mind/decisions/x.md", modified=datetime(2026, 1, 1, tzinfo=UTC))

    assert isinstance(parsed, Parsed)
    assert parsed.memory.competing == (Version(field="confidence", text="0.9"),)


def test_the_table_of_clients_is_complete() -> None:
    rows = re.findall(r"^\| `(\S+)` \|.*\| (yes)? ?\|$", PAGES["install"], re.MULTILINE)

    hooked = {client.name: bool(client.hooks or client.plugin) for client in CLIENTS}
    assert rows == [(name, "yes" if has else "") for name, has in hooked.items()]


@pytest.mark.req("004-33", "004-34", "004-35")
def test_the_table_of_prompts_matches_the_classifier() -> None:
    rows = re.findall(r"^\| (.+, .+) \| (\w+) \| (`.+`) \|$", PAGES["exposure"], re.MULTILINE)

    assert len(rows) == 3
    for phrases, intent, tools in rows:
        for phrase in phrases.split(", "):
            result = classify(phrase, has_sessions=True)
            listed = tuple(tool.strip("`") for tool in tools.split(", "))
            assert (result.intent.value, result.tools) == (intent, listed)


@pytest.mark.req("004-45")
def test_the_log_lines_on_the_page_are_those_of_the_server() -> None:
    lines = []
    for prompt in ("continue", "it failed"):
        result = classify(prompt)
        lines.append(f"mind: {described(result, result.tools)}")

    assert exposure_log.name.startswith("mind")
    assert "\n".join(lines) in PAGES["exposure"]


@pytest.mark.req("003-48")
def test_agents_are_asked_to_call_tools_only_if_the_block_does_not_suffice() -> None:
    rows = re.findall(r"^\| .+ \| `(\w+)` \| 0–(\d) \|$", PAGES["context"], re.MULTILINE)
    tools = all_commands().tools()

    assert {name: int(most) for name, most in rows} == {
        "mind_search": 3,
        "mind_edges": 2,
        "mind_add_global_edge": 1,
        "mind_status": 1,
    }
    assert all(name in tools for name, _ in rows)
    assert "Use when CLAUDE.md context isn't enough" in tools["mind_search"][0].description
    assert "before implementing risky code" in tools["mind_edges"][0].description


@pytest.mark.req("004-49")
def test_the_table_of_exposure_has_the_documented_clients_with_their_hooks() -> None:
    rows = re.findall(r"^\| (.+) \| (.+) \| .+ \| .+ \|$", PAGES["exposure"], re.MULTILINE)
    clients = {client.name: client.hooks for client in CLIENTS}

    assert dict(rows[1:]) == {
        "Claude Code": "yes" if clients["claude-code"] else "no",
        "Claude Desktop": "yes" if clients["claude-desktop"] else "no",
        "Codex": "yes" if clients["codex"] else "no",
        "Antigravity": "those of Gemini CLI" if clients["gemini"] else "no",
    }


@pytest.mark.req("002-29")
def test_the_policy_on_the_page_is_the_default() -> None:
    yaml = re.search(r"^```yaml\n(.*?)^```$", PAGES["policy"], re.DOTALL | re.MULTILINE)
    assert yaml
    shown = parse_policy(yaml[1].encode(), "default")

    for name, rule in shown.rules.items():
        for part in ("operations", "namespaces", "contexts", "max_ttl_seconds"):
            assert getattr(rule, part) == getattr(DEFAULT.rules[name], part)
    assert shown.tool_limits == DEFAULT.tool_limits
    assert shown.namespace_limits == DEFAULT.namespace_limits
    assert shown.on_write is DEFAULT.on_write


def test_the_examples_of_an_extension_work(tmp_path: Path) -> None:
    """The blocks of the page, installed as a package, run in a process of their own."""
    toml, _, commands, manifest, notes = re.findall(
        r"^```(?:toml|python)\n(.*?)^```$", PAGES["extensions"], re.DOTALL | re.MULTILINE
    )
    (tmp_path / "standup").mkdir()
    (tmp_path / "standup" / "__init__.py").write_text(manifest)
    (tmp_path / "standup" / "commands.py").write_text(commands)
    (tmp_path / "standup" / "notes.py").write_text(notes)
    (tmp_path / "friday.standup").write_text("Ann: away until Monday\nBen: reviews\n")
    (tmp_path / "standup-1.0.dist-info").mkdir()
    entry = toml.replace('[project.entry-points."mimo.extensions"]', "[mimo.extensions]")
    (tmp_path / "standup-1.0.dist-info" / "entry_points.txt").write_text(entry.replace('"', ""))
    (tmp_path / "standup-1.0.dist-info" / "METADATA").write_text("Name: standup\nVersion: 1.0\n")

    def mind(*words: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "mimo", *words],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}", "MIND_HOME": f"{tmp_path}/home"},
        ).stdout

    mind("init", ".")
    mind("add", "Use JWT for the API")
    assert mind("standup", "JWT") == "Use JWT for the API\n"
    assert "2 memories imported" in mind("import", "friday.standup")
    mind("add", "Who is away is in the calendar")
    answer = mind("search", "--scope", "standup", "who is away")
    assert ("away until Monday" in answer, "calendar" in answer) == (True, False)
