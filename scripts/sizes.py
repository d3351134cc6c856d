"""Check that files and functions stay small; exit 1 with a line for each that does not."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

MOST_FILE_LINES = 700
MOST_FUNCTION_LINES = 60


def _too_long(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    if lines > MOST_FILE_LINES:
        yield f"{path}: {lines} lines, at most {MOST_FILE_LINES}: which two ideas does it hold?"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MOST_FUNCTION_LINES:
                yield f"{path}:{node.lineno}: {node.name} has {length} lines"


def main() -> int:
    found = [row for path in sorted(Path("mimo").rglob("*.py")) for row in _too_long(path)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
