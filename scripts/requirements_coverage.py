"""List the numbered requirements that no test carries, given the file that numbers them.

Tests carry numbers as `@pytest.mark.req("003-14")`, transcripts as `req 003-14`. Without a
file, the numbers that tests carry are listed instead.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_NUMBER = re.compile(r"^- \*\*(\d{3}-\d{2,3})\*\*", re.MULTILINE)
_MARKED = re.compile(r"^req (.+)", re.MULTILINE)


def _carried(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.req"):
            yield from (str(arg.value) for arg in node.args if isinstance(arg, ast.Constant))


def main() -> int:
    carried = {n for path in Path("tests").rglob("test_*.py") for n in _carried(path)}
    for path in Path("tests").rglob("*.transcript"):
        for numbers in _MARKED.findall(path.read_text(encoding="utf-8")):
            carried.update(numbers.split())
    if len(sys.argv) < 2:
        print("\n".join(sorted(carried)))
        return 0
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    numbers = dict.fromkeys(_NUMBER.findall(text))
    unknown = sorted(number for number in carried if number not in text)
    missing = [n for n in numbers if n not in carried]
    print("\n".join(missing))
    print(f"{len(numbers) - len(missing)} of {len(numbers)} requirements are carried by a test")
    if unknown:
        print(f"carried but not in the file: {', '.join(unknown)}", file=sys.stderr)
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
