"""Make the table of simplified Chinese characters: `mimo/model/simplified.txt`.

    python scripts/build_simplified.py TSCharacters.txt OUT

TSCharacters.txt is a dictionary of OpenCC (https://github.com/BYVoid/OpenCC). The table has two
lines: traditional characters, and at the same places the simplified ones. `mimo/model/NOTICE` names
the version.
"""

import argparse
from pathlib import Path


def main() -> None:
    """Write the table, and print how many characters it has."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("dictionary", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    pairs = table(arguments.dictionary.read_text(encoding="utf-8"))
    lines = ("".join(characters) for characters in (pairs, pairs.values()))
    arguments.out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{len(pairs)} characters")


def table(dictionary: str) -> dict[str, str]:
    """Returns the first simplified character of each traditional one, if it is another one."""
    lines = (line.split() for line in dictionary.splitlines() if not line.startswith("#"))
    return {line[0]: line[1] for line in lines if line and line[0] != line[1] and len(line[1]) == 1}


if __name__ == "__main__":
    main()
