"""Learn the rows of other languages in `mimo/model`, and the English words near Korean ones.

    python scripts/build_languages.py FOLDER [--new-pieces]

A sentence and its translation should have the same vector. The English side has one already, the
mean of its rows in the packaged model, so the rows of the other language are the solution of a
ridge regression: the mean of the sentence's unknown rows, with its known ones, is that vector.

FOLDER keeps what is downloaded (about 3 GB), at the commits, versions and hashes below. Needed are
git, npm and apt-get of Debian 12, 3 GB of memory and some minutes for each group of
languages. By default the pieces are those in the package; `--new-pieces` learns them again, and
the trainer resolves ties at random.

The packaged files were made by an earlier form of these steps, one by one. This script was tested
on small inputs only (tests/index/test_build_languages.py): expect rows that are as good, but not
the same bytes. Measure them before you replace the packaged ones.
"""

import argparse
import hashlib
import html
import json
import random
import re
import struct
import subprocess
import tarfile
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mimo.index.embedding.korean import Glossary
from mimo.index.embedding.packaged import (
    DIMS,
    FOLDER,
    MAX_CHARACTERS,
    MAX_TOKENS,
    UNKNOWN,
    Languages,
    Vocabulary,
    WordPiece,
)
from mimo.text.tokens import HANGUL, KANA_HAN

GIT = {
    "cpp-en": ("MicrosoftDocs/cpp-docs", "eebed43bd6ee45c3b47372d0d6c77385fbf8afec"),
    "cpp-ko": ("MicrosoftDocs/cpp-docs.ko-kr", "4dfcde210723455f6f9e401f4f05d2264662ea72"),
    "ps-en": ("MicrosoftDocs/PowerShell-Docs", "925819a5ad5799650c14944bd3e50fb309a7e6c4"),
    "ps-ko": ("MicrosoftDocs/powerShell-Docs.ko-kr", "8fe5407331c3d9e162f1d21b0fd621c9b1927284"),
    "ps-fr": ("MicrosoftDocs/powerShell-Docs.fr-fr", "7c34d6edb67cff703e507d5f482c05c1b3d53c9e"),
    "py-ko": ("python/python-docs-ko", "d0c58403de225366b23d0cafd8b86508186c8c8a"),
    "py-ko-3.9": ("python/python-docs-ko", "dada54826f66869e7c0f58193da81c99cd6fc3c6"),
    "py-ja": ("python/python-docs-ja", "7eb90aaa6d3395bcfe01801ceb5e620eedf2356a"),
    "py-zh": ("python/python-docs-zh-cn", "bfdf9589c4feb59f6f87ab669d7b1d2e75d93ae9"),
    "py-es": ("python/python-docs-es", "91f4ccc0baa8c7cbeb739e696c641388264caa30"),
    "py-fr": ("python/python-docs-fr", "b279d876e2a3381605d38ea62b863f60abadc92c"),
    "tensorflow": ("tensorflow/docs-l10n", "7cb584af651df3863a3bebc93674163f8dc6db7b"),
    "electron": ("electron/i18n", "b5831481c16a6e46c903c3dae849440f030171ef"),
    "tatoeba-ko": (
        "r0cd7b/nlp_with_rnns_and_attention",
        "875d03899a2c217633fa28e8917a8b26382c5269",
    ),
    "tatoeba-zh": ("mc6666/Keras_tutorial", "a20ffc616cfc93415358eec9df479b0cc2d6d953"),
}
"""Repositories of GitHub and their commits; mimo/model/NOTICE names the licences."""

PACKAGES = Path(__file__).with_name("languages.sha256")
"""The packages of npm and of Debian 12, by their file names, with their hashes."""

RESULT_SHA256 = {
    "multilingual.int8": "cc9785f41baf276a91ff33e6ba4e36e8cfb1caab3d439fc53747bbf4f2c2154b",
    "multilingual.vocab.txt": "425c4085cc4d45d491be77322f6f17f5321db630509396b2b73f6000ef3453c8",
    "korean.learned.txt": "fca27ec3e95ab131887cc02f9b2bf05e6320a37ebbf412e8d89992f870fa3572",
}
"""The hashes of the packaged files."""

SCRIPTS = {"ko": HANGUL, "cj": KANA_HAN, "latin": "a-zß"}
LANGUAGES = {"ko": ("ko",), "cj": ("ja", "zh"), "latin": ("de", "fr", "es")}
PIECES = {"ko": 16_000, "cj": 12_000}
WORDS = 4_000
"""The most words of each Latin language."""

RIDGE = {"ko": 0.02, "cj": 0.02, "latin": 0.05}

MOST = {"cpp": 90_000, "ps": 60_000, "py": 60_000, "tensorflow": 30_000}
"""The most sentences of a source, drawn by chance."""

MASS = {"py": 1.5, "tatoeba": 1.5, "cpp": 1.0, "ps": 1.0, "tensorflow": 1.0, "electron": 1.0}
"""The share of a source in the choice of pieces; 0.7 for all others."""

WEIGHT = {"cpp": 0.6, "ps": 0.8, "tatoeba": 1.3}
"""The weight of a source's sentences in the regression; 1 for all others."""


UNKNOWN_PIECE = "[UNK]"


class Pair(NamedTuple):
    """A sentence and its translation."""

    source: str
    english: str
    foreign: str


# The sources.


def fetch(folder: Path) -> None:
    """Downloads every source that is missing, and checks the packages' hashes."""
    for name, (repository, commit) in GIT.items():
        target = folder / name
        if not target.is_dir():
            url = f"https://github.com/{repository}.git"
            run("git", "init", "--quiet", str(target))
            run("git", "fetch", "--quiet", "--depth", "1", url, commit, cwd=target)
            run("git", "checkout", "--quiet", "FETCH_HEAD", cwd=target)
    for line in PACKAGES.read_text(encoding="utf-8").splitlines():
        digest, _, place = line.partition("  ")
        path = folder / place
        if not path.is_file():
            path.parent.mkdir(exist_ok=True)
            download(path)
        if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise SystemExit(f"{path} is not the file that is expected")
        if path.suffix == ".deb" and not path.with_suffix("").is_dir():
            run("dpkg", "-x", str(path), str(path.with_suffix("")))


def download(path: Path) -> None:
    """Downloads a package of npm or of Debian into the folder of `path`."""
    name, _, version = path.name.removesuffix(".tgz").rpartition("-")
    if path.suffix == ".tgz":
        run("npm", "pack", f"{name}@{version}", cwd=path.parent)
    else:
        name, version, _ = path.name.split("_")
        run("apt-get", "download", f"{name}={version.replace('%3a', ':')}", cwd=path.parent)


def run(*words: str, cwd: Path | None = None) -> None:
    subprocess.run(words, check=True, cwd=cwd)


def pairs(folder: Path, language: str) -> Iterator[Pair]:
    """Yields the pairs of all sources for a language, cleaned, each once for a source."""
    for source, read in READERS.items():
        chosen = list(cleaned(read(folder, language), language))
        most = MOST.get(source, len(chosen))
        if len(chosen) > most:
            chosen = random.Random(1).sample(chosen, most)  # noqa: S311 - no secret
        print(f"{language} {source}: {len(chosen)}", flush=True)
        yield from (Pair(source, english, foreign) for english, foreign in chosen)


Texts = Iterator[tuple[str, str]]


def cleaned(texts: Iterable[tuple[str, str]], language: str) -> Texts:
    """Yields the distinct pairs whose two sides are sentences of their languages."""
    script = {"ko": "[가-힣]", "ja": "[ぁ-ヿ一-鿿]", "zh": "[一-鿿]"}.get(language)
    seen = set()
    for texts_of in texts:
        english, foreign = map(plain, texts_of)
        if english == foreign or not 2 <= len(english) <= 1200 or not foreign:
            continue
        if not re.search("[A-Za-z]{2}", english) or (english, foreign) in seen:
            continue
        alike = re.search(script, foreign) if script else 0.4 <= len(foreign) / len(english) <= 3
        if alike:
            seen.add((english, foreign))
            yield english, foreign


def plain(text: str) -> str:
    """Returns a sentence without markup, placeholders and addresses."""
    text = html.unescape(text)
    text = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", text)
    text = re.sub(r":[a-z:]+:`~?!?([^`<]*?)\s*(?:<[^`>]*>)?`", r"\1", text)
    text = re.sub(r"`+([^`<]*?)\s*(?:<[^`>]*>)?`+_*", r"\1", text)
    text = re.sub(r"<[^>]{1,200}>|https?://\S+|xref:\S+", " ", text)
    text = re.sub(r"%\([a-z_]+\)[sd]|%[sdr]|\{[^}]*\}|\$\{?\w+\}?|%[A-Z_]+\b", " ", text)
    text = re.sub(r"^[\s>#*\-+|\d.]+|[*|#~]+", " ", text)
    text = re.sub(r"\\(.)", r"\1", text)
    return " ".join(text.split())


def of_catalogs(folder: Path, language: str) -> Texts:
    """Yields the messages of the catalogs (.po) of Python's documentation."""
    for name in sorted(GIT):
        if name == f"py-{language}" or name.startswith(f"py-{language}-"):
            for path in sorted((folder / name).rglob("*.po")):
                yield from catalog(path.read_text(encoding="utf-8"))


def catalog(lines: str) -> Texts:
    """Yields the messages of a catalog in text form (.po) but the fuzzy ones."""
    for block in re.split(r"\n\s*\n", lines):
        if re.search("^#,.*fuzzy", block, re.MULTILINE):
            continue
        parts = {"msgid": "", "msgstr": ""}
        current = ""
        for line in block.split("\n"):
            keyword, _, rest = line.partition(" ")
            if keyword in parts:
                current = keyword
            elif keyword.startswith("msg"):
                current = ""
            text = rest if keyword == current else line
            if current and text.startswith('"'):
                parts[current] += json.loads(text, strict=False)
        if all(parts.values()):
            yield parts["msgid"], parts["msgstr"]


def of_binary_catalogs(folder: Path, language: str) -> Texts:
    """Yields the messages of the catalogs (.mo) of LibreOffice, and paragraphs of its help."""
    package = f"libreoffice-l10n-{ {'zh': 'zh-cn'}.get(language, language) }"
    for path in sorted(unpacked(folder, package).rglob("*.mo")):
        yield from binary_catalog(path.read_bytes())
    if language == "ko":
        english, foreign = (
            unpacked(folder, f"libreoffice-help-{name}") for name in ("en-us", "ko")
        )
        for path in sorted(foreign.rglob("*.html")):
            place = str(path.relative_to(foreign)).replace("/ko/", "/en-US/")
            if (english / place).is_file():
                yield from same_keys(paragraphs(english / place), paragraphs(path))


def binary_catalog(data: bytes) -> Texts:
    """Yields the messages of a catalog in binary form (.mo), without contexts and access keys."""
    count, first, second = struct.unpack("<III", data[8:20])
    for number in range(count):
        texts = []
        for table in (first, second):
            length, place = struct.unpack_from("<II", data, table + 8 * number)
            text = data[place : place + length].decode("utf-8", "replace").split("\0")[0]
            texts.append(text.rpartition("\x04")[2].rpartition("|")[2])
        english, foreign = (text.replace("~", "").replace("_", "") for text in texts)
        if english:
            yield english, foreign


def paragraphs(path: Path) -> dict[str, str]:
    """Returns the paragraphs of a page of LibreOffice's help by their ids."""
    text = path.read_text(encoding="utf-8", errors="replace")
    matches = re.finditer(r'<(p|h\d)[^>]*\sid="([^"]+)"[^>]*>(.*?)</\1>', text, re.DOTALL)
    return {match[2]: match[3] for match in matches}


def of_firefox(folder: Path, language: str) -> Texts:
    """Yields the messages of Firefox."""
    english: dict[str, str] = {}
    for path in sorted(unpacked(folder, "firefox-esr").rglob("omni.ja")):
        english |= archived(path)
    package = f"firefox-esr-l10n-{ {'zh': 'zh-cn', 'es': 'es-es'}.get(language, language) }"
    for path in sorted(unpacked(folder, package).rglob("*.xpi")):
        yield from same_keys(english, archived(path))


def archived(path: Path) -> dict[str, str]:
    """Returns the messages of all files of an archive of Firefox by file and name."""
    messages: dict[str, str] = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith((".ftl", ".properties")):
                text = archive.read(name).decode("utf-8", "replace")
                place = re.sub(r"^.*?(?:localization|locale)/[^/]+/", "", name)
                messages |= {f"{place}:{key}": value for key, value in fluent(text).items()}
    return messages


def fluent(text: str) -> dict[str, str]:
    """Returns the messages and attributes of a file in Fluent or of properties by their names."""
    messages: dict[str, str] = {}
    message = key = ""
    for line in text.split("\n"):
        if match := re.match(r"(-?[\w.-]+)\s*=\s*(.*)$", line):
            message = key = match[1]
            messages[key] = match[2]
        elif match := re.match(r"\s+(\.[\w-]+)\s*=\s*(.*)$", line):
            key = f"{message}{match[1]}"
            messages[key] = match[2]
        elif line.startswith(" ") and key and line.strip() != "}":
            messages[key] += " " + re.sub(r"^\*?\[\w+\]", "", line.strip())
        elif not line.startswith("#"):
            key = ""
    return messages


def of_markdown(english: str, foreign: str, languages: Mapping[str, str]) -> Callable[..., Texts]:
    """Returns a reader of pages in Markdown that have the same name in two folders.

    `languages` has the values of `{}` in the two folders' names.
    """

    def read(folder: Path, language: str) -> Texts:
        if language not in languages:
            return
        first, second = (folder / name.format(languages[language]) for name in (english, foreign))
        for path in sorted(second.rglob("*.md")):
            other = first / path.relative_to(second)
            if other.is_file():
                texts = (p.read_text(encoding="utf-8", errors="replace") for p in (other, path))
                yield from aligned(*map(prose, texts))

    return read


def prose(page: str) -> list[str]:
    """Returns the lines of a page without its header, code and empty lines."""
    page = re.sub(r"\A---\n.*?\n---\n", "", page.replace("\r", ""), flags=re.DOTALL)
    page = re.sub(r"^\s*(```|~~~).*?^\s*\1", "", page, flags=re.DOTALL | re.MULTILINE)
    return [line for line in page.split("\n") if line.strip() and not line.startswith("    ")]


def aligned(english: Sequence[str], foreign: Sequence[str]) -> Texts:
    """Yields the lines of two pages, and the cells of tables, if their forms are the same."""

    def form(line: str) -> str:
        marks = re.match(r"\s*(?:[>#*\-+|]+|\d+\.)?", line)
        return marks[0].strip() if marks else ""

    same = sum(form(a) == form(b) for a, b in zip(english, foreign, strict=False))
    if len(english) != len(foreign) or same <= 0.95 * len(english):
        return
    for a, b in zip(english, foreign, strict=True):
        cells = a.split("|"), b.split("|")
        if len(cells[0]) == len(cells[1]):
            yield from zip(*cells, strict=True)


def of_typescript(folder: Path, language: str) -> Texts:
    """Yields the messages of TypeScript."""
    names = {"ko": "ko", "ja": "ja", "zh": "zh-cn", "de": "de", "fr": "fr", "es": "es"}
    place = f"package/lib/{names[language]}/diagnosticMessages.generated.json"
    with tarfile.open(folder / "npm/typescript-5.9.3.tgz") as archive:
        program = member(archive, "package/lib/typescript.js")
        foreign = json.loads(member(archive, place))
    pattern = r'diag\(\d+, \d+ /\* \w+ \*/, "([^"]+)", ("(?:[^"\\]|\\.)*")'
    english = {match[1]: json.loads(match[2]) for match in re.finditer(pattern, program)}
    yield from same_keys(english, foreign)


def of_cldr(folder: Path, language: str) -> Texts:
    """Yields names of territories and languages, and words for emoji."""
    with tarfile.open(folder / "npm/cldr-annotations-full-48.2.0.tgz") as archive:
        place = "package/annotations/{}/annotations.json"
        english, foreign = (
            json.loads(member(archive, place.format(name)))["annotations"]["annotations"]
            for name in ("en", language)
        )
    for emoji in english.keys() & foreign.keys():
        for kind in ("default", "tts"):
            yield " ".join(english[emoji].get(kind, ())), " ".join(foreign[emoji].get(kind, ()))
    with tarfile.open(folder / "npm/cldr-localenames-full-48.2.0.tgz") as archive:
        for kind in ("territories", "languages"):
            english, foreign = (
                json.loads(member(archive, f"package/main/{name}/{kind}.json"))["main"][name]
                for name in ("en", language)
            )
            names = "localeDisplayNames"
            yield from same_keys(english[names][kind], foreign[names][kind])


def of_tatoeba(folder: Path, language: str) -> Texts:
    """Yields sentences of everyday speech in Korean and Chinese."""
    files = {"ko": "tatoeba-ko/kor-eng/kor.txt", "zh": "tatoeba-zh/cmn-eng/cmn.txt"}
    if language in files:
        for line in (folder / files[language]).read_text(encoding="utf-8").splitlines():
            english, foreign, *_ = line.split("\t")
            yield english, foreign


def unpacked(folder: Path, package: str) -> Path:
    """Returns the folder of an unpacked package of Debian."""
    return next((folder / "deb").glob(f"{package}_*.deb")).with_suffix("")


def member(archive: tarfile.TarFile, name: str) -> str:
    """Returns the text of a file in an archive."""
    file = archive.extractfile(name)
    if file is None:
        raise SystemExit(f"an archive holds no `{name}`")
    return file.read().decode("utf-8")


def same_keys(english: Mapping[str, str], foreign: Mapping[str, str]) -> Texts:
    """Yields the values of the keys that both have."""
    for key in sorted(english.keys() & foreign.keys()):
        yield english[key], foreign[key]


TENSORFLOW = {"ko": "ko", "ja": "ja", "zh": "zh-cn", "es": "es-419"}
ELECTRON = {"ja": "ja-JP", "zh": "zh-CN", "es": "es-ES", "fr": "fr-FR", "de": "de-DE"}
READERS: Mapping[str, Callable[[Path, str], Texts]] = {
    "cpp": of_markdown("cpp-en/docs", "cpp-{}/docs", {"ko": "ko"}),
    "ps": of_markdown("ps-en/reference", "ps-{}/reference", {"ko": "ko", "fr": "fr"}),
    "tensorflow": of_markdown("tensorflow/site/en-snapshot", "tensorflow/site/{}", TENSORFLOW),
    "electron": of_markdown("electron/content/en-US", "electron/content/{}", ELECTRON),
    "py": of_catalogs,
    "libreoffice": of_binary_catalogs,
    "firefox": of_firefox,
    "typescript": of_typescript,
    "cldr": of_cldr,
    "tatoeba": of_tatoeba,
}


# The pieces.


def packaged_pieces(script: str) -> list[str]:
    """Returns the pieces of a script in the package, in the order of their rows."""
    lines = (FOLDER / "multilingual.vocab.txt").read_text(encoding="utf-8").split("\n")
    rows = sorted((int(line.split("\t")[1]), line.split("\t")[0]) for line in lines)
    letters = re.compile(f"[{SCRIPTS[script]}]+")
    return [piece for _, piece in rows if letters.fullmatch(piece.removeprefix("##"))]


def new_pieces(script: str, sentences: Sequence[Pair]) -> list[str]:
    """Returns the pieces that cut the words of a script best, each source with its mass."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    letters = re.compile(f"[{SCRIPTS[script]}]+")
    counts: dict[str, Counter[str]] = {}
    for pair in sentences:
        words = letters.findall(unicodedata.normalize("NFC", pair.foreign))
        counts.setdefault(pair.source, Counter()).update(words)
    mass: Counter[str] = Counter()
    for source, words_of in counts.items():
        share = MASS.get(source, 0.7) / max(1, words_of.total())
        for word, count in words_of.items():
            mass[word] += share * count  # type: ignore[assignment]  # A Counter of shares.
    whole = mass.total()
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNKNOWN_PIECE))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=PIECES[script],
        limit_alphabet=PIECES[script] // 2,
        show_progress=False,
        special_tokens=[UNKNOWN_PIECE],
    )
    times = ((word, round(share / whole * 1_500_000)) for word, share in sorted(mass.items()))
    tokenizer.train_from_iterator((" ".join([word] * count) for word, count in times), trainer)
    return sorted(tokenizer.get_vocab().keys() - {UNKNOWN_PIECE})


def new_words(sentences: Mapping[str, Sequence[Pair]]) -> list[str]:
    """Returns the words of each Latin language that English texts hardly use, frequent first."""
    english = Counter(
        word for rows in sentences.values() for pair in rows for word in folded(pair.english)
    )
    chosen: dict[str, None] = {}
    for rows in sentences.values():
        words = Counter(word for pair in rows for word in folded(pair.foreign))
        good = [
            word
            for word, count in words.most_common()
            if re.fullmatch("[a-zß]{3,}", word)
            and count >= 3
            and count * english.total() > 20 * english[word] * words.total()
        ]
        chosen.update(dict.fromkeys(good[:WORDS]))
    return list(chosen)


def folded(text: str) -> list[str]:
    """Returns the words of a text in lower case, without accents."""
    parts = unicodedata.normalize("NFD", text.lower())
    bare = "".join(part for part in parts if unicodedata.category(part) != "Mn")
    return re.findall(r"[^\W_]+", bare)


# The regression.


def learn(pieces: Sequence[str], sentences: Sequence[Pair], ridge: float) -> Any:
    """Returns a row of 256 numbers for each piece.

    Sentences count inversely to the length of their English vector, so that short and long ones
    count alike.
    """
    import numpy as np

    separate = Languages({piece: row for row, piece in enumerate(pieces)}.get).separate
    english, fixed, rows, weights = [], [], [], []
    for pair in sentences:
        left, numbers = separate(pair.foreign[:MAX_CHARACTERS])
        target, rest = english_ids(pair.english), english_ids(left)
        length = len(numbers) + len(rest)
        if numbers and target and 0.25 < length / len(target) < 5:
            english.append(mean(target, len(target)))
            fixed.append(mean(rest, length))
            rows.append((numbers, length))
            weights.append(WEIGHT.get(pair.source, 1.0))
    targets = np.array(english)
    shares = np.array(weights) / np.maximum(np.linalg.norm(targets, axis=1), 5)
    shares /= shares.mean()
    gram = np.zeros((len(pieces), len(pieces)), np.float32)
    right = np.zeros((len(pieces), targets.shape[1]), np.float32)
    for (numbers, length), share, rest in zip(rows, shares, targets - np.array(fixed), strict=True):
        places, counts = np.unique(numbers, return_counts=True)
        values = counts / length
        gram[np.ix_(places, places)] += share * np.outer(values, values)
        right[places] += share * np.outer(values, rest)
    gram[np.diag_indices_from(gram)] += ridge
    return np.linalg.solve(gram, right)


def english_ids(text: str) -> list[int]:
    """Returns the ids of the rows of an English text in the packaged model."""
    return [id for id in WORD_PIECE.ids(text[:MAX_CHARACTERS], MAX_TOKENS) if id != UNKNOWN]


def mean(ids: Sequence[int], count: int) -> Any:
    """Returns the sum of rows of the packaged model divided by `count`."""
    import numpy as np

    data = np.memmap(FOLDER / "model.safetensors", dtype=np.int8, mode="r")
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    return data[start:].reshape(-1, DIMS)[list(ids)].sum(axis=0, dtype=np.float32) / count


WORD_PIECE = WordPiece(Vocabulary((FOLDER / "vocab.txt").read_bytes()).find)


def write(target: Path, pieces: Sequence[str], rows: Any) -> None:
    """Writes the rows in the units of the English ones, and the pieces sorted by their bytes."""
    import numpy as np

    if len(set(pieces)) != len(pieces):
        raise SystemExit("two rows have the same piece")
    data = np.clip(np.rint(rows), -127, 127).astype(np.int8).tobytes()
    (target / "multilingual.int8").write_bytes(data)
    lines = sorted(f"{piece}\t{row}".encode() for row, piece in enumerate(pieces))
    (target / "multilingual.vocab.txt").write_bytes(b"\n".join(lines))


LEAST_NEAR = 0.7
"""The cosine of a Korean word with an English one from which it is a gloss."""


def write_glosses(target: Path, pieces: Sequence[str], rows: Any) -> None:
    """Writes the English words nearest to Korean words that `korean.txt` does not explain.

    Shorter words come first, so that their inflected forms need no line.
    """
    import numpy as np

    english = (FOLDER / "vocab.txt").read_text(encoding="utf-8").split("\n")
    ids = [id for id, word in enumerate(english) if re.fullmatch("[a-z]{3,}", word)]
    matrix = unit(np.array([mean([id], 1) for id in ids]))
    written = (FOLDER / "korean.txt").read_text(encoding="utf-8")
    learned: dict[str, list[str]] = {}
    glossary = Glossary(written)
    words = [row for row, piece in enumerate(pieces) if re.fullmatch("[가-힣]{2,}", piece)]
    for row in sorted(words, key=lambda row: (len(pieces[row]), pieces[row])):
        cosines = matrix @ unit(rows[row : row + 1])[0]
        if cosines.max() >= LEAST_NEAR and glossary.path(pieces[row]).unknown:
            meaning = english[ids[int(cosines.argmax())]]
            learned.setdefault(meaning, []).append(pieces[row])
            glossary.learn(pieces[row], meaning)
    lines = [
        f"{meaning}: {' '.join(sorted(words))}\n" for meaning, words in sorted(learned.items())
    ]
    (target / "korean.learned.txt").write_text("".join(lines), encoding="utf-8")


def unit(rows: Any) -> Any:
    """Returns rows at length 1; a row of zeros stays."""
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths, lengths, 1)


def main() -> int:
    """Builds the files in the folder, and reports whether they equal the packaged ones."""
    import numpy as np

    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder for sources and results")
    parser.add_argument("--new-pieces", action="store_true", help="learn the pieces again")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    fetch(arguments.folder)
    every: list[str] = []
    rows = []
    for script, languages in LANGUAGES.items():
        of = {language: list(pairs(arguments.folder, language)) for language in languages}
        sentences = [pair for language in languages for pair in of[language]]
        if not arguments.new_pieces:
            pieces = packaged_pieces(script)
        else:
            pieces = new_words(of) if script == "latin" else new_pieces(script, sentences)
        rows.append(learn(pieces, sentences, RIDGE[script]))
        every += pieces
    write(arguments.folder, every, np.vstack(rows))
    write_glosses(arguments.folder, every, np.vstack(rows))
    digests = {
        name: hashlib.sha256((arguments.folder / name).read_bytes()).hexdigest()
        for name in RESULT_SHA256
    }
    for name, digest in digests.items():
        print(f"{'same' if digest == RESULT_SHA256[name] else 'DIFFERS'}  {digest}  {name}")
    return int(digests != RESULT_SHA256)


if __name__ == "__main__":
    raise SystemExit(main())
