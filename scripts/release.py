"""Check that a release can be made: `release.py [--tag v1.2.3]`.

Prints what is missing and exits with 1, or prints the version. docs/releasing.md has the steps.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from mimo import __version__

ROOT = Path(__file__).parent.parent
PLACEHOLDER = "OWNER"
"""The place of the account that has the repository, until it is known."""

NAMING = ("server.json", "README.md", "Dockerfile")
"""The files with the name of the server in the MCP registry, which must be the same."""

ACCOUNT = (*NAMING, "docs/install.md", "docs/guides/pitfalls.md")
"""The files with the account."""

PLUGINS = (
    "plugins/agent-plugin/plugin.json",
    "plugins/claude-desktop/manifest.json",
    "plugins/gemini/gemini-extension.json",
    "plugins/mind/.claude-plugin/plugin.json",
)

_NAME = re.compile(r"io\.github\.[\w-]+/mind\b")


def names(root: Path = ROOT) -> dict[str, set[str]]:
    """Returns the names of the server in each file."""
    return {name: set(_NAME.findall((root / name).read_text(encoding="utf-8"))) for name in NAMING}


def versions(root: Path = ROOT) -> dict[str, str]:
    """Returns the version in each file that has a copy of it."""
    server = json.loads((root / "server.json").read_text(encoding="utf-8"))
    return {
        "server.json": server["version"],
        "server.json, packages": server["packages"][0]["version"],
        **{name: json.loads((root / name).read_text("utf-8"))["version"] for name in PLUGINS},
    }


def findings(version: str, tag: str | None, root: Path = ROOT) -> Iterator[str]:
    """Yields a line for each thing that is missing."""
    for name, other in versions(root).items():
        if other != version:
            yield f"{name}: version {other}, not {version}"
    for name in ACCOUNT:
        if PLACEHOLDER in (root / name).read_text(encoding="utf-8"):
            yield f"{name}: put the account in the place of {PLACEHOLDER}"
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)}\b", changes, re.MULTILINE):
        yield f"CHANGELOG.md: no section `## {version}`"
    if tag is not None and tag != f"v{version}":
        yield f"the tag is {tag}, not v{version}"
    if tag is None and git(root, "tag", "--list", f"v{version}"):
        yield f"the tag v{version} exists"
    if git(root, "status", "--porcelain"):
        yield "there are changes that are not committed"


def git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=root, capture_output=True, encoding="utf-8", check=True
    )
    return done.stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tag", help="the tag that is released")
    rows = list(findings(__version__, parser.parse_args().tag or None))
    print("\n".join(rows) if rows else f"{__version__} can be released")
    return 1 if rows else 0


if __name__ == "__main__":
    sys.exit(main())
