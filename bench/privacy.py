"""Measure how well secrets and personal data are found, and how often other text is mistaken.

The data to find are drawn from a seed, as format-valid fakes among texts that only look like
them; what should be clean is a folder of real notes, given by its path. Each find in it is printed
with the line around it, masked, to be looked at by hand.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from mimo.privacy.model import Finding, excerpts
from mimo.privacy.personal import personal_in
from mimo.privacy.secrets import secrets_in
from scripts.marked import table
from tests import personal_fakes, privacy_fakes
from tests.privacy_fakes import Fake

Look = Callable[[str], tuple[Finding, ...]]


class Score(NamedTuple):
    """The result of one kind among the fakes."""

    kind: str
    fakes: int
    found: int
    """Under their right kind, and whole."""
    wrong: int
    """Finds of this kind where there is none."""

    @property
    def recall(self) -> float:
        return self.found / self.fakes if self.fakes else 1.0

    @property
    def precision(self) -> float:
        return self.found / (self.found + self.wrong) if self.found + self.wrong else 1.0


def labelled(seed: int, each: int) -> list[Fake]:
    """Returns fakes and decoys, each between two sentences of others, in random order."""
    draw = random.Random(seed)
    fakes = [*privacy_fakes.secrets(seed, each), *personal_fakes.personal(seed, each)]
    decoys = personal_fakes.decoys(seed, each * 2)
    made = []
    for fake in (*fakes, *decoys):
        before, after = draw.choice(decoys).text, draw.choice(decoys).text
        made.append(fake._replace(text=f"{before}\n{fake.text}\n{after}"))
    draw.shuffle(made)
    return made


def scores(fakes: Iterable[Fake]) -> list[Score]:
    """Returns how each kind fares."""
    there, found, wrong = Counter[str](), Counter[str](), Counter[str]()
    for fake in fakes:
        if fake.secret:
            there[fake.kind] += 1
        for one in (*secrets_in(fake.text), *personal_in(fake.text)):
            right = one.kind == fake.kind and fake.secret in fake.text[one.start : one.end]
            (found if right and fake.secret else wrong)[one.kind] += 1
    kinds = sorted({*there, *wrong})
    return [Score(kind, there[kind], found[kind], wrong[kind]) for kind in kinds]


def texts(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yields the files of a folder that are text."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            try:
                yield path, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def real(folder: Path, look: Look, *, listed: bool) -> Iterator[str]:
    """Yields what is found in real notes, and how long it took."""
    kinds, files, size, spent = Counter[str](), 0, 0, 0.0
    for path, text in texts(folder):
        start = time.perf_counter()
        found = look(text)
        spent += time.perf_counter() - start
        files, size = files + 1, size + len(text.encode())
        kinds.update(one.kind for one in found)
        for one, near in zip(found, excerpts(text, found), strict=True) if listed else ():
            yield f"{path.relative_to(folder)}:{one.line}: {one.kind}: {near}"
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) or "nothing"
    speed = size / spent / 1e6
    yield f"{told}; in {files:,} files of {size / 1e6:.1f} MB, {speed:.1f} MB a second"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("markdown", type=Path, nargs="?", help="a folder of real notes")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--each", type=int, default=100, help="fakes of each kind")
    args = parser.parse_args()
    rows = scores(labelled(args.seed, args.each))
    cells = ((row.kind, row.fakes, f"{row.recall:.3f}", f"{row.precision:.3f}") for row in rows)
    print(table(("kind", "fakes", "recall", "precision"), cells))
    fakes, found, wrong = (sum(one) for one in zip(*(row[1:] for row in rows), strict=True))
    print(f"\nof {fakes:,} fakes {found:,} found; {wrong:,} wrong finds")
    if args.markdown:
        print("\nSecrets in real notes:")
        print("\n".join(real(args.markdown, secrets_in, listed=True)))
        print("\nPersonal data in real notes:")
        print("\n".join(real(args.markdown, personal_in, listed=True)))


if __name__ == "__main__":
    main()
