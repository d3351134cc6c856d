"""Build the bundle for Claude Desktop from the wheel in a folder: `mcpb.py FOLDER`.

The bundle has the wheel, and a project for uv that installs it with the locked versions of its
dependencies. With `--try`, the bundle in the folder is unpacked and started as a client would, and
a memory is stored and found.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "plugins" / "claude-desktop"
EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the bundle, so that the same files make the same bytes."""


def pins(lock: str) -> list[str]:
    """Returns the requirements of a lock file, without hashes."""
    return [line.removesuffix("\\").strip() for line in re.findall(r"^[A-Za-z0-9].*", lock, re.M)]


def project(version: str, wheel: str, lock: str) -> str:
    """Returns the pyproject.toml that installs a wheel beside it."""
    rows = "".join(f"  {json.dumps(pin)},\n" for pin in pins(lock))
    return (
        f'[project]\nname = "mind-bundle"\nversion = "{version}"\n'
        'requires-python = ">=3.11"\ndependencies = ["mimo"]\n\n'
        f"[tool.uv]\npackage = false\nconstraint-dependencies = [\n{rows}]\n\n"
        f"[tool.uv.sources]\nmimo = {{ path = {json.dumps(wheel)} }}\n"
    )


def build(folder: Path) -> Path:
    """Builds the bundle of the wheel in a folder; its parts stay in `mcpb/` beside it."""
    (wheel,) = folder.glob("mimo-*.whl")
    parts = folder / "mcpb"
    shutil.rmtree(parts, ignore_errors=True)
    parts.mkdir()
    for name in ("manifest.json", "server.py"):
        shutil.copyfile(SOURCE / name, parts / name)
    shutil.copyfile(ROOT / "LICENSE", parts / "LICENSE")
    shutil.copyfile(wheel, parts / wheel.name)
    version = json.loads((parts / "manifest.json").read_text(encoding="utf-8"))["version"]
    lock = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
    text = project(version, wheel.name, lock)
    (parts / "pyproject.toml").write_text(text, encoding="utf-8")
    bundle = folder / f"mind-{version}.mcpb"
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(parts.iterdir()):
            entry = zipfile.ZipInfo(path.name, EARLIEST)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())
    return bundle


def command(manifest: dict[str, Any], folder: Path, given: dict[str, str]) -> list[str]:
    """Returns the command line of a manifest with its variables replaced, as a client does it."""
    values = {"__dirname": str(folder)} | {f"user_config.{key}": v for key, v in given.items()}
    config = manifest["server"]["mcp_config"]
    return [
        re.sub(r"\$\{([\w.]+)\}", lambda match: values[match[1]], word)
        for word in [config["command"], *config["args"]]
    ]


async def talk(line: list[str], folder: Path, environ: dict[str, str]) -> list[str]:
    """Returns the names of the tools, after a memory was stored and found through the server."""
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters

    server = StdioServerParameters(command=line[0], args=line[1:], env=environ, cwd=folder)
    async with Client(server) as client:
        tools = await client.list_tools()
        await client.call_tool("save_insight", {"insight": "Green tea is served at noon"})
        matches = await client.call_tool("mind_search", {"query": "tea at noon"})
        if "Green tea" not in str(matches.content):
            raise SystemExit(f"the memory was not found: {matches.content}")
        return [tool.name for tool in tools.tools]


def attempt(bundle: Path, environ: dict[str, str]) -> list[str]:
    """Unpacks a bundle, and returns the names of the tools that its server lists."""
    with tempfile.TemporaryDirectory() as name:
        folder, shop = Path(name, "bundle"), Path(name, "shop")
        shop.mkdir()
        with zipfile.ZipFile(bundle) as archive:
            archive.extractall(folder)
        environ = {**environ, "MIND_HOME": f"{name}/home"}
        init = [sys.executable, "-m", "mimo", "init"]
        run = {**environ, "PYTHONPATH": str(ROOT)}
        subprocess.run(init, cwd=shop, env=run, check=True, capture_output=True)
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        line = command(manifest, folder, {"project_dir": str(shop)})
        return asyncio.run(talk(line, folder, environ))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--try", action="store_true", dest="tries")
    args = parser.parse_args()
    if not args.tries:
        print(build(args.folder))
        return
    (bundle,) = args.folder.glob("*.mcpb")
    # A client has uv on its PATH; here it is beside Python.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
    names = attempt(bundle, {**kept, "PATH": path})
    print(f"{bundle}: started from the unpacked bundle, {len(names)} tools, a memory was found")


if __name__ == "__main__":
    main()
