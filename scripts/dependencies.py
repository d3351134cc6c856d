"""Writes the table of docs/lab/dependencies.md: each package, its reason, licence and size.

    python -m scripts.dependencies

The licences and sizes are those of the installed versions. A test compares the names with
pyproject.toml.
"""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from scripts.marked import write_part

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "lab" / "dependencies.md"

REASONS = {
    "click": ("Command lines", "read arguments"),
    "google-re2": ("Patterns of edges by others, in linear time", "compute"),
    "jsonschema": ("Schemas of procedures; mcp brings it", "compute"),
    "markdown-it-py": ("Headings and blocks of Markdown, for chunks", "compute"),
    "mcp": ("The MCP server", "use standard input and output; with `--http` listen on a port"),
    "model2vec": ("Static vectors of many texts, or with a model of your own", "read the model"),
    "numkong": ("Products of signed bytes, ten times as fast as numpy's", "compute"),
    "numpy": ("Vectors", "compute"),
    "parsedatetime": ("Days counted from another day: `3 days before yesterday`", "compute"),
    "PyStemmer": ("Stems of words", "compute"),
    "python-frontmatter": ("Reads the headers of memories", "compute"),
    "PyYAML": ("The grammar below our restricted YAML; never its object tags", "compute"),
    "rich": ("Tables and colours on a terminal", "write to the terminal"),
    "starlette": ("Routes of `mind mcp --http` and `mind web`", "answer requests"),
    "tomlkit": ("Edits of TOML that keep comments", "compute"),
    "tzdata": ("Time zones on Windows", "be read"),
    "usearch": ("The nearest of many vectors", "read the index"),
    "uvicorn": ("The HTTP server of `mind mcp --http` and `mind web`", "listen on a port"),
    "watchfiles": ("Changes of files, for servers and the daemon", "watch folders"),
    "anthropic": ("The adapter for its memory tool", "nothing by itself: your program uses it"),
    "langgraph": ("The adapter for its store", "nothing by itself: your program uses it"),
    "openai-agents": ("The adapter for its sessions", "nothing by itself: your program uses it"),
    "phonenumbers": ("Telephone numbers among personal data, by country", "compute"),
    "psycopg": ("The shared index (`index.url`)", "connect to your PostgreSQL"),
    "psycopg-pool": ("Its connections", "connect to your PostgreSQL"),
    "textual": ("`mind browse`", "use the terminal"),
    "zstandard": ("Sessions that Codex compressed, before Python 3.14", "decompress"),
}
"""The reason for each package, and what it may do while mind runs."""


def declared() -> dict[str, str]:
    """Returns the packages of pyproject.toml, each with its extra; empty for those of everyone."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = dict.fromkeys(map(_name, project["dependencies"]), "")
    for extra, wanted in project["optional-dependencies"].items():
        names |= dict.fromkeys(map(_name, wanted), extra)
    return names


def _name(requirement: str) -> str:
    return re.split(r"[\s;\[<>=!~]", requirement, maxsplit=1)[0]


def _licence_and_size(name: str) -> tuple[str, str]:
    """Returns a package's licence and megabytes; dashes if it is not installed."""
    try:
        package = distribution(name)
    except PackageNotFoundError:
        return "-", "-"
    metadata = package.metadata
    classifiers = metadata.get_all("Classifier") or []
    of_classifier = [
        each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License :: OSI")
    ]
    expressions = metadata.get_all("License-Expression") or []
    licence = ", ".join(expressions or of_classifier) or "-"
    paths = [Path(str(file.locate())) for file in package.files or ()]
    size = sum(path.stat().st_size for path in paths if path.is_file())
    return licence, f"{size / 1e6:.1f}"


def table() -> str:
    """Returns the packages as Markdown."""
    lines = [
        "| package | installed with | reason | may | licence | MB |",
        "|---|---|---|---|---|---:|",
    ]
    for name, extra in declared().items():
        reason, may = REASONS[name]
        licence, size = _licence_and_size(name)
        where = f"`mimo[{extra}]`" if extra else "mind"
        lines.append(f"| {name} | {where} | {reason} | {may} | {licence} | {size} |")
    return "\n".join(lines)


if __name__ == "__main__":
    write_part(PAGE, "dependencies", table())
