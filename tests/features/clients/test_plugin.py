"""The plugins in this repository have the documented shapes and correct contents."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from mimo import __version__
from mimo.call.table import all_commands, listed
from mimo.features.clients import table
from mimo.features.clients.table import CLAUDE_CODE_EVENTS, Scope, client
from mimo.text.tool_names import spelled

ROOT = Path(__file__).parents[3]
PLUGINS = ROOT / "plugins"
PLUGIN = PLUGINS / "mind"
SKILL = Path(table.__file__).with_name("skill.md").read_text("utf-8")
KEBAB = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def test_the_marketplace_lists_the_plugin() -> None:
    marketplace = read(ROOT / ".claude-plugin" / "marketplace.json")
    (entry,) = marketplace["plugins"]

    assert set(marketplace) == {"name", "owner", "plugins"}
    assert KEBAB.fullmatch(marketplace["name"])
    assert not marketplace["name"].startswith(("anthropic", "claude", "agent-skills"))
    assert marketplace["owner"]["name"]
    assert (ROOT / entry["source"]).resolve() == PLUGIN
    assert f"{entry['name']}@{marketplace['name']}" == table.PLUGIN
    assert entry["name"] == read(PLUGIN / ".claude-plugin" / "plugin.json")["name"]


def test_the_manifest_has_documented_keys_and_our_version() -> None:
    manifest = read(PLUGIN / ".claude-plugin" / "plugin.json")

    assert set(manifest) <= {"name", "version", "description", "author", "license", "keywords"}
    assert KEBAB.fullmatch(manifest["name"])
    assert manifest["version"] == __version__


def test_the_folder_of_the_manifest_has_no_other_file() -> None:
    files = {path.relative_to(PLUGIN).as_posix() for path in PLUGIN.rglob("*") if path.is_file()}
    assert files == {
        ".claude-plugin/plugin.json",
        ".mcp.json",
        "hooks/hooks.json",
        "skills/mind-memory/SKILL.md",
    }


def test_the_plugin_has_the_hooks_and_server_of_an_installation() -> None:
    hooks = read(PLUGIN / "hooks" / "hooks.json")
    entry = client("claude-code").server(Scope.PROJECT, "mind", project=None)

    assert hooks["hooks"] == {event: [group] for event, group in CLAUDE_CODE_EVENTS.items()}
    assert read(PLUGIN / ".mcp.json") == {"mcpServers": {"mind": entry.value}}


def test_every_plugin_has_the_skill_that_is_installed() -> None:
    for name in ("mind", "agent-plugin", "gemini"):
        (path,) = (PLUGINS / name / "skills").rglob("*.*")
        assert path.relative_to(PLUGINS / name).as_posix() == "skills/mind-memory/SKILL.md"
        assert path.read_text("utf-8") == SKILL


def test_the_portable_plugin_has_the_form_of_agent_plugins_1_0() -> None:
    """It is a folder of its own: Codex starts the server of a portable plugin in its cache."""
    manifest, servers = (read(PLUGINS / "agent-plugin" / f"{n}.json") for n in ("plugin", "mcp"))
    schema = "https://agent-plugins.org/schemas/1.0.0"

    assert manifest.pop("$schema") == f"{schema}/plugin.schema.json"
    assert manifest == read(PLUGIN / ".claude-plugin" / "plugin.json")
    assert servers == {"$schema": f"{schema}/mcp.schema.json", **read(PLUGIN / ".mcp.json")}


def test_the_gemini_extension_has_the_hooks_and_server_of_an_installation() -> None:
    gemini, folder = client("gemini"), PLUGINS / "gemini"
    extension, hooks = read(folder / "gemini-extension.json"), read(folder / "hooks" / "hooks.json")
    entry = gemini.server(Scope.PROJECT, "mind", project=None)

    assert set(extension) == {"name", "version", "description", "mcpServers"}
    assert extension["version"] == __version__
    assert extension["mcpServers"] == {"mind": entry.value}
    assert hooks["hooks"] == {event: [group] for event, group in gemini.hooks[0].events.items()}


def test_the_skill_names_existing_tools_and_commands() -> None:
    _, header, body = SKILL.split("---\n", 2)
    about = yaml.safe_load(header)
    commands = all_commands()
    names = {spelled(name, "underscore") for name in listed(commands.tools(), ["core"])}
    rows = re.findall(
        r"^\| [^|]+ \| `(\w+)` \| `mind ([a-z -]+?)(?: [A-Z-]{2}.*)?` \|$", body, re.M
    )

    assert about["name"] == "mind-memory"
    assert 0 < len(about["description"]) <= 1024
    assert len(about["compatibility"]) <= 500
    assert len(rows) == 7
    assert {tool for tool, _ in rows} <= names
    assert {path for _, path in rows} <= {spec.path for spec in commands.all()}


def test_every_tool_s_full_name_fits_where_the_plugin_puts_it() -> None:
    for name in all_commands().tools():
        assert len(f"mcp__plugin_mind_mind__{spelled(name, 'underscore')}") <= 64
