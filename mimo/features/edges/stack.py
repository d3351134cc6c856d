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
    return tuple(dict.fromkeys(_detected(root)))


def _detected(root: Path) -> Iterator[str]:
    yield from (tech for name, tech in _MARKERS.items() if (root / name).is_file())
    if (root / "supabase").is_dir():
        yield "supabase"
    packages = _packages(_start_of(root / "package.json"))
    for name, tech in _PACKAGES.items():
        # Next.js includes React.
        if name in packages and not (name == "react" and "next" in packages):
            yield tech
    text = _start_of(root / "pyproject.toml") + _start_of(root / "requirements.txt")
    for name in _FRAMEWORKS:
        if re.search(rf"\b{name}\b", text, re.IGNORECASE):
            yield name


def _packages(text: str) -> set[str]:
    """Returns the dependencies in a `package.json`; none if it can't be read."""
    try:
        package = json.loads(text)
    except (ValueError, RecursionError):
        return set()
    fields = package if isinstance(package, dict) else {}
    parts = (fields.get(key) for key in ("dependencies", "devDependencies"))
    return {name for part in parts if isinstance(part, dict) for name in part}


def _start_of(path: Path) -> str:
    """Returns the start of a file's text; empty if there is none."""
    try:
        return disk.start(path, _MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
