"""Text to vectors: the packaged model, or a model2vec model of the user's own.

A vector is 256 numbers (or as many as the user's model has) of one signed byte each, and of
length 127, so that the dot product of two is 127² times their cosine.
"""

from collections.abc import Sequence
from typing import Protocol

from mimo.errors import MindError

FAILURES = (MindError, OSError, ValueError, RuntimeError, LookupError, ImportError, TypeError)
"""What an embedder or its model's files may fail with: words still find."""


class Embedder(Protocol):
    """What turns text into vectors."""

    @property
    def model(self) -> str:
        """Name and content hash of the model: vectors of another one are not comparable."""

    @property
    def dims(self) -> int:
        """Length of a vector, in numbers and in bytes."""

    def encode(self, text: str) -> bytes:
        """Returns the vector of `text`; empty where nothing of the text is known."""

    def encode_many(self, texts: Sequence[str]) -> list[bytes]:
        """Returns the vector of each text, as `encode` does; quicker for many texts at once."""


def open_embedder(setting: str | None = None) -> Embedder:
    """Returns the embedder that the setting `embedding.model` asks for: a folder, or None.

    Raises `Invalid` where the folder holds no model2vec model. Nothing is loaded yet.
    """
    if setting is None:
        from mimo.index.embedding.packaged import PackagedModel

        return PackagedModel()
    from mimo.index.embedding.own import OwnModel

    return OwnModel(setting)
