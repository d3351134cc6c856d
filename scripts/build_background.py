"""Count how common words are in general: `background.txt` and `frequent.txt` in `mimo/model/`.

    python scripts/build_background.py OUT FOLDER…

Each FOLDER holds Markdown files. The tokens of each file, without front matter, are cut into
stretches of 50; a stem that occurs in five stretches or more gets a line: the stem, a tab, and
ten times its rarity, -ln(share of the stretches that contain it), rounded. Lines are sorted, so
that `mimo.text.background` finds one by bisection. `mimo/model/NOTICE` names the texts that were
counted. The list holds stems, so it is built again whenever those of words as written change.

`frequent.txt`, beside it, has the most frequent stems: the index compresses texts by it, so that
other words need another `FORMAT` in `mimo/index/schema.py`.
"""

import argparse
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path

from mimo.text.tokens import tokenize

STRETCH = 50
FEWEST = 5
"""The fewest stretches with a stem, below which its share is chance."""

LONGEST = 20
"""Characters of a stem; longer ones are keys and hashes."""

FREQUENT = 7_900
"""Characters of the most frequent stems: those to which a window of 8,192 bytes can refer."""


def main() -> None:
    """Write the list, and print how many stems it has."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    paths = sorted(path for folder in arguments.folders for path in folder.rglob("*.md"))
    lines = listed(path.read_text(encoding="utf-8", errors="replace") for path in paths)
    arguments.out.write_text("".join(lines), encoding="ascii")
    arguments.out.with_name("frequent.txt").write_text(frequent(lines), encoding="ascii")
    print(f"{len(lines)} stems of {len(paths)} files")


def listed(texts: Iterable[str]) -> list[str]:
    """Returns the lines of the list."""
    holding: Counter[str] = Counter()
    total = 0
    for text in texts:
        for stretch in stretches(text):
            total += 1
            holding.update(stretch)
    rarities = {stem: -math.log(n / total) for stem, n in holding.items() if n >= FEWEST}
    return [f"{stem}\t{round(10 * rarity)}\n" for stem, rarity in sorted(rarities.items())]


def frequent(lines: Iterable[str]) -> str:
    """Returns the most frequent stems of the list, with a space after each, the best one last."""
    split = (line.split() for line in lines)
    by_rarity = sorted((int(tenths), stem) for stem, tenths in split if len(stem) > 2)
    ends = accumulate(len(stem) + 1 for _, stem in by_rarity)
    stems = [stem for (_, stem), end in zip(by_rarity, ends, strict=True) if end <= FREQUENT]
    return "".join(f"{stem} " for stem in reversed(stems))


def stretches(text: str) -> Iterator[set[str]]:
    """Yields the stems of each stretch of a text that the list may hold."""
    tokens = tokenize(re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL), as_written=True)
    for start in range(0, len(tokens), STRETCH):
        yield {token for token in tokens[start : start + STRETCH] if _is_word(token)}


def _is_word(token: str) -> bool:
    return token.isascii() and not token.isdigit() and 1 < len(token) <= LONGEST


if __name__ == "__main__":
    main()
