"""The encoder: texts of all languages as vectors of one space, compared by meaning in context.

A static model adds up the vectors of words; a network reads them together, so that it finds an
answer that shares no word with the question. all-MiniLM-L6-v2 reads English. multilingual-e5-small
reads the rest, and a matrix that was fitted on English texts puts its vectors into the space of the
former. A query takes some milliseconds and imports numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from mimo.index.embedding.language import is_english, prepared, readable, script
from mimo.index.embedding.transformer import Weights, quantised, unit
from mimo.index.embedding.unigram import Pieces, Unigram
from mimo.index.embedding.wordpiece import FOLDER, UNKNOWN, packaged_pieces

if TYPE_CHECKING:
    from mimo.index.embedding.transformer import Array

_OFFSET = 997
"""The distance of our ids of word pieces from BERT's: we dropped its unused ones."""

_BERT_UNKNOWN = 100

GLOSSARY_SHA256 = "9548ecc00b982fa3ce83e331379420dc72a5886e53a559d2163f354dc42c8848"
"""The hash of `korean.txt`, `korean.names.txt` and `korean.learned.txt`, one after the other."""

_DOUBTFUL = 0.25
"""The weight of the English vector of a text that may be English, beside 1 for that of e5.

With 0, short English questions about code find less; from 0.5 on, short German ones do.
"""

_READING = 3
"""The number of the rule by which a text is read; vectors of another rule are stale."""

_PREFIXES = {"queries": "query:", "passages": "passage:"}

_MOST_UNKNOWN = 0.5
"""The share of unknown pieces from which a text is in a script that the network does not know."""


class Encoder:
    """An `Embedder` of the packaged networks; the first text opens their files.

    A vector has 384 signed bytes. Texts longer than 254 pieces are cut. `encode` reads a query, and
    `encode_many` reads stored texts.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        """Takes the folder of the models."""
        self._english = Weights(folder / "encoder.bin")
        self._others = Others(Weights(folder / "languages.bin"))

    @cached_property
    def model(self) -> str:
        """The names of the networks, with the beginnings of the hashes of their sources."""
        hashes = self._english.header["source"], self._others.source, GLOSSARY_SHA256
        sources = "+".join(hash[:12] for hash in hashes)
        return f"all-MiniLM-L6-v2+multilingual-e5-small:{sources}:{_READING}"

    def encode(self, text: str) -> bytes:
        """Returns the vector of a query; empty if the networks can't read it."""
        return self._encoded([text], "queries")[0]

    def encode_many(self, texts: Sequence[str]) -> list[bytes]:
        """Returns the vector of each stored text. Raises `Invalid` if a file can't be read."""
        return self._encoded(texts, "passages")

    def _encoded(self, texts: Sequence[str], side: str) -> list[bytes]:
        texts = list(map(prepared, texts))
        vectors = self.english([readable(text) for text in texts])
        shares: dict[int, float] = {}
        for place, text in enumerate(texts):
            if script(text) == "hangul":
                # The gloss of a Korean text has its terms, and e5 reads its sentences.
                shares[place] = 1.0
            elif is_english(text) is None:
                shares[place] = _DOUBTFUL
            elif not vectors[place].any() and any(map(str.isalnum, text)):
                shares[place] = 0.0
        if shares:
            additions = self._others.vectors([texts[place] for place in shares], side)
            for (place, share), addition in zip(shares.items(), additions, strict=True):
                vectors[place] = share * unit(vectors[place : place + 1])[0] + addition
        return quantised(vectors)

    def english(self, texts: Sequence[str]) -> Array:
        """Returns the vectors of English texts, of any length; zeros for one without a piece."""
        return self._english.sums(list(map(self._ids, texts)))

    def _ids(self, text: str) -> list[int]:
        """Returns the network's ids of an English text, between those of both ends."""
        header = self._english.header
        ids = packaged_pieces().ids(text, header["limit"] - 2)
        pieces = [_BERT_UNKNOWN if id == UNKNOWN else id + _OFFSET for id in ids]
        return [header["cls"], *pieces, header["sep"]] if ids else []


class Others:
    """multilingual-e5-small, with its vectors in the space of the English network."""

    def __init__(self, weights: Weights) -> None:
        """Takes the file that scripts/build_languages.py writes."""
        self._weights = weights

    @property
    def source(self) -> str:
        """The hash of the source of the weights."""
        return str(self._weights.header["source"])

    def vectors(self, texts: Sequence[str], side: str) -> Array:
        """Returns the vectors of texts, of length 1; zeros for a text in an unknown script.

        The vectors of a script have much in common, so the mean of its texts is subtracted.
        """
        header, arrays = self._weights.header, self._weights.arrays
        scripts = [header["scripts"].index(script(text)) for text in texts]
        states = self.states(texts, side)
        states -= arrays[f"means.{side}"][scripts] * states.any(axis=1, keepdims=True)
        return unit(unit(states) @ arrays["matrix"].astype("f4"))

    def states(self, texts: Sequence[str], side: str) -> Array:
        """Returns the network's own vectors of texts, of length 1.

        `side` is `queries` or `passages`: the network was trained with a prefix for each.
        """
        header = self._weights.header
        prefix = [header["cls"], *self.tokenizer.ids(_PREFIXES[side], header["limit"])]
        rows = [self.tokenizer.ids(text, header["limit"] - len(prefix) - 1) for text in texts]
        unknown = [row.count(header["unknown"]) / max(1, len(row)) for row in rows]
        ids = [
            [*prefix, *row, header["sep"]] if row and share < _MOST_UNKNOWN else []
            for row, share in zip(rows, unknown, strict=True)
        ]
        return unit(self._weights.sums(ids))

    @cached_property
    def tokenizer(self) -> Unigram:
        """The tokenizer, with the pieces that were kept."""
        header, arrays = self._weights.header, self._weights.arrays
        # Views make a number when it is asked for, a query's few of 65,000.
        scores, ends = (memoryview(arrays[name]) for name in ("scores", "pieces.ends"))
        text, first_id = arrays["pieces"].tobytes(), len(scores) - len(ends)
        exceptions = {int(code): text for code, text in header["exceptions"].items()}
        return Unigram(
            Pieces(text, ends, first_id, header["longest"]),
            scores,
            exceptions,
            header["normalised"],
            (header["unknown"], header["penalty"]),
        )


@lru_cache(maxsize=1)
def packaged_encoder() -> Encoder:
    """Returns the packaged encoder, one for the whole process: its matrices take 11 MB, and 41."""
    return Encoder()
