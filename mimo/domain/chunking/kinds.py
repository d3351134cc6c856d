"""What a file's name says about how to cut it."""

from mimo.domain.chunking.model import Strategy

_MARKDOWN = frozenset("md markdown mdown mkd mdc mdx".split())
_WHOLE = frozenset("json yaml yml toml xml html htm".split())
_LINES = frozenset("csv tsv log jsonl ndjson".split())
_TRIPLE_QUOTES = frozenset("py pyi ex exs".split())
_CODE = _TRIPLE_QUOTES | frozenset(
    "js mjs cjs jsx ts tsx rb go rs java kt kts scala swift c cc cpp cxx h hh hpp cs m mm php pl "
    "pm lua r jl dart groovy clj erl hrl hs ml fs elm nim zig v sh bash zsh fish ps1 sql proto "
    "graphql tf vue svelte".split()
)

REFUSED = {
    "pdf": "a PDF",
    "doc": "a Word document",
    "docx": "a Word document",
    "odt": "an OpenDocument text",
    "rtf": "a rich text",
    "xls": "a spreadsheet",
    "xlsx": "a spreadsheet",
    "ods": "a spreadsheet",
    "ppt": "a presentation",
    "pptx": "a presentation",
    "odp": "a presentation",
    "epub": "an e-book",
    "ipynb": "a notebook",
}
"""Endings of documents that are no plain text, and what they are."""


def suffix(name: str) -> str:
    """Returns the ending of a file's name in lower case, without the dot."""
    return name.rpartition(".")[2].lower() if "." in name else ""


def detected(name: str) -> Strategy:
    """Returns the strategy for a file of that name."""
    ending = suffix(name)
    if ending in _MARKDOWN:
        return Strategy.MARKDOWN
    if ending in _WHOLE:
        return Strategy.WHOLE
    return Strategy.LINES if ending in _LINES else Strategy.PARAGRAPHS


def is_code(name: str) -> bool:
    """Returns whether a file of that name holds source code."""
    return suffix(name) in _CODE


def has_triple_quotes(name: str) -> bool:
    """Returns whether three quotes may hold blank lines in a file of that name."""
    return suffix(name) in _TRIPLE_QUOTES
