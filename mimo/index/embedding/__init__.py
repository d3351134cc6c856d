"""Embedding: text to vectors, by the packaged model or the user's own model2vec model.

A vector has 256 numbers (the user's model may have another size) of one signed byte each, and is
of length 127. The dot product of two vectors is 127² times their cosine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from mimo.errors import MindError
from mimo.frozen import NamedTuple

ENCODED_LENGTH = 381
"""The length of an encoder's vector: its largest numbers then just fit into a byte."""

FAILURES = (MindError, OSError, ValueError, RuntimeError, LookupError, ImportError, TypeError)
"""The exceptions of an embedder or of reading its model; search then uses words alone."""


class Embedder(Protocol):
    """A model that turns text into vectors."""

    @property
    def model(self) -> str:
        """The name and content hash of the model; vectors of two models are not comparable."""

    @property
    def dims(self) -> int:
        """The length of a vector, in numbers and in bytes."""

    def encode(self, text: str) -> bytes:
        """Returns the vector of `text`; empty if it has no token of the model."""

    def encode_many(self, texts: Sequence[str]) -> list[bytes]:
        """Returns the vector of each text, as `encode` does; faster for many texts."""


class Text(NamedTuple):
    """A text, and parts of it that together have all its words."""

    whole: str
    parts: tuple[str, ...]


@runtime_checkable
class Joining(Embedder, Protocol):
    """An embedder that reads a part once, although several texts consist of it."""

    def encode_joined(self, texts: Sequence[Text]) -> list[bytes]:
        """Returns the vector of each whole text, as `encode` does."""


@runtime_checkable
class Aligning(Embedder, Protocol):
    """An embedder that also compares texts word by word."""

    def correspondence(self, query: str, texts: Sequence[str]) -> list[float]:
        """Returns the share of the query's words that correspond to a word of each text, 0..1."""


def open_embedder(setting: str | None = None) -> Embedder:
    """Returns the embedder for the setting `embedding.model`: a folder, or None for the packaged.

    Raises `Invalid` if the folder has no model2vec model. Nothing is loaded yet.
    """
    if setting is None:
        from mimo.index.embedding.packaged import packaged_model

        return packaged_model()
    from mimo.index.embedding.static import OwnModel

    return OwnModel(setting)
