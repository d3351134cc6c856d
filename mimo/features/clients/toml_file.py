"""Putting one table into a TOML file and taking it out again, with everything else as it is."""

import json
import re
import tomllib
from typing import Any

from mimo.errors import Invalid

Path = tuple[str, ...]


def load(text: str) -> Any:
    """Returns the data in a text. Raises `Invalid` with line and column."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(str(error), hint="mend the file first; nothing was changed") from None


def put(text: str, path: Path, value: dict[str, Any]) -> str:
    """Returns the text with a table at its end, in the place of one of that name."""
    text = drop(text, path)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{'.'.join(path)}]"]
    lines += [f"{key} = {_written(one)}" for key, one in value.items()]
    block = "".join(line + newline for line in lines)
    if not text.strip():
        return text + block
    return text + ("" if text.endswith("\n") else newline) + newline + block


def _written(value: Any) -> str:
    """Returns a value in TOML, which has JSON's strings and lists, and tables of its own."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_written(one)}" for key, one in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def drop(text: str, path: Path) -> str:
    """Returns the text without a table, the tables within it, and the blank line before it."""
    lines = text.splitlines(keepends=True)
    kept: list[str] = []
    ours = False
    for line in lines:
        if line.lstrip().startswith("["):
            was, ours = ours, _is_header(line, path)
            if ours and not was and kept and not kept[-1].strip():
                kept.pop()
            elif was and not ours and kept:
                kept += ["\r\n" if line.endswith("\r\n") else "\n"]
            if ours:
                continue
        if not ours or line.lstrip().startswith("#"):
            kept.append(line)
    return "".join(kept)


def _is_header(line: str, path: Path) -> bool:
    """Returns whether a line begins the table, or one within it."""
    keys = r"\s*\.\s*".join(
        f"(?:{re.escape(key)}|\"{re.escape(key)}\"|'{re.escape(key)}')" for key in path
    )
    return re.match(rf"\s*\[\s*{keys}\s*[.\]]", line) is not None
