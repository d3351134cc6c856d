"""The inputs that reach all code that fuzzing has reached: one small archive for each target.

Fuzzing begins with them, and the tests try them again. The same inputs make the same archive.
"""

from __future__ import annotations

import io
import lzma
import tarfile
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
MOST = 14_000
"""The bytes of an archive, at most."""

LONGEST = 1_000
"""The bytes of an input that is kept, at most: most longer ones are a shorter one with filling."""


def _path(target: str) -> Path:
    return FOLDER / f"{target}.tar.xz"


def read(target: str) -> Iterator[bytes]:
    """Yields the inputs of a target, the smallest first."""
    if _path(target).exists():
        with tarfile.open(_path(target), "r:xz") as archive:
            for member in archive:
                if (file := archive.extractfile(member)) is not None:
                    yield file.read()


def _packed(inputs: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in sorted(inputs.items(), key=lambda item: (len(item[1]), item[0])):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return lzma.compress(out.getvalue(), preset=9)


def write(target: str, folder: Path) -> int:
    """Writes the archive of a target from a folder of inputs; returns the number of those kept.

    If it would be larger than `MOST`, the longest inputs are left out.
    """
    data = [path.read_bytes() for path in folder.iterdir()]
    kept = sorted(
        (each for each in data if len(each) <= LONGEST), key=lambda each: (len(each), each)
    )
    while kept:
        packed = _packed({sha256(each).hexdigest()[:8]: each for each in kept})
        if len(packed) <= MOST:
            FOLDER.mkdir(exist_ok=True)
            _path(target).write_bytes(packed)
            break
        kept = kept[: len(kept) * 9 // 10]
    return len(kept)
