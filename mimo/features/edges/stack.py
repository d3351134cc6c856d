"""The technologies of a project, detected by the files at its root."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from mimo import disk

_MARKERS = {
    "pyproject.toml": "python",
    "setup.py": "python",
    "requirements.txt": "python",
    "package.json": "node",
    "tsconfig.json": "typescript",
    "Cargo.toml": "rust",
    "go.mod": "go",
    "Gemfile": "ruby",
    "pom.xml": "java",
    "build.gradle": "java",
    "mix.exs": "elixir",
    "composer.json": "php",
    "Dockerfile": "docker",
    "docker-compose.yml": "docker",
    "docker-compose.yaml": "docker",
    "next.config.js": "nextjs",
    "vercel.json": "vercel",
    "supabase": "supabase",
}
_PACKAGES = {
    "@sveltejs/kit": "sveltekit",
    "svelte": "svelte",
    "next": "nextjs",
    "react": "react",
    "vue": "vue",
    "typescript": "typescript",
    "tailwindcss": "tailwind",
    "@supabase/supabase-js": "supabase",
}
_FRAMEWORKS = ("fastapi", "django", "flask")
_MOST_BYTES = 1_000_000


def detect(root: Path) -> tuple[str, ...]:
    """Returns the technologies that the usual files at the project's root name."""
    return tuple(dict.fromkeys((*_by_files(root), *_of_node(root), *_of_python(root))))


def _by_files(root: Path) -> Iterator[str]:
    for name, tech in _MARKERS.items():
        path = root / name
        if path.is_dir() if name == "supabase" else path.is_file():
            yield tech


def _of_node(root: Path) -> Iterator[str]:
    """Yields technologies in the dependencies of `package.json`; Next.js includes React."""
    try:
        package = json.loads(_start_of(root / "package.json") or "{}")
    except (ValueError, RecursionError):
        return
    if not isinstance(package, dict):
        return
    parts = [package.get(key) for key in ("dependencies", "devDependencies")]
    names = {name for part in parts if isinstance(part, dict) for name in part}
    for name, tech in _PACKAGES.items():
        if name in names and not (name == "react" and "next" in names):
            yield tech


def _of_python(root: Path) -> Iterator[str]:
    text = _start_of(root / "pyproject.toml") + _start_of(root / "requirements.txt")
    for name in _FRAMEWORKS:
        if re.search(rf"\b{name}\b", text, re.IGNORECASE):
            yield name


def _start_of(path: Path) -> str:
    """Returns the start of a file's text; empty if there is none."""
    try:
        return disk.start(path, _MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
