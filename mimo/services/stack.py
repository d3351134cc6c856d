"""Which technologies a project uses, told from the files at its root."""

from pathlib import Path

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
    "next.config.js": "next",
    "vercel.json": "vercel",
}


def detect(root: Path) -> tuple[str, ...]:
    """Returns the names of the technologies whose usual files stand at the project's root."""
    return tuple(dict.fromkeys(t for name, t in _MARKERS.items() if (root / name).is_file()))
