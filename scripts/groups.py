"""Print the packages of one dependency group of pyproject.toml, a line each.

pip learnt `--group` only recently; this keeps the list in one place for older ones too.
"""

import sys
import tomllib
from pathlib import Path


def main() -> None:
    data = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    print("\n".join(data["dependency-groups"][sys.argv[1]]))


if __name__ == "__main__":
    main()
