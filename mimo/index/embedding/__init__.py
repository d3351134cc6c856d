"""Embedding: text to vectors of signed bytes, by a static model and by an encoder.

A vector of the packaged static model has 256 numbers and is of length 127; one of the packaged
encoder has 384 and is of length `ENCODED_LENGTH`. Models of the user may have other sizes. The
product of two vectors of one model is the square of their length times their cosine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mimo.data import disk
from mimo.errors import Command, Hint, Invalid, MindError

if TYPE_CHECKING:
    from mimo.config import Config

ENCODED_LENGTH = 381
"""The length of an encoder's vector: its largest numbers then just fit into a byte."""

FAILURES = (MindError, OSError, ValueError, RuntimeError, LookupError, ImportError, TypeError)
"""The exceptions of an embedder or of reading its model; search then uses words alone."""


class Embedder(Protocol):
    """A model that turns text into vectors."""

    @property
    def model(self) -> str:
        """The name and content hash of the model; vectors of two models are not comparable."""

    def encode(self, text: str) -> bytes:
        """Returns the vector of `text`; empty if it has no token of the model."""

    def encode_many(self, texts: Sequence[str]) -> list[bytes]:
        """Returns the vector of each text, as `encode` does; faster for many texts."""


def open_embedder(setting: str | None = None) -> Embedder:
    """Returns the embedder for the setting `embedding.model`: a folder, or None for the packaged.

    Raises `Invalid` if the folder has no model2vec model. Nothing is loaded yet.
    """
    if setting is None:
        from mimo.index.embedding.packaged import packaged_model

        return packaged_model()
    from mimo.index.embedding.static import OwnModel

    return OwnModel(setting)


def stamp(files: Iterable[Path]) -> str:
    """Returns a short hash of the names, sizes and times of a model's files."""
    stats = ((file.name, file.stat()) for file in files)
    stamps = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
    return disk.sha256(repr(stamps).encode()).hex()[:12]


def without_surrogates(text: str) -> str:
    """Returns a text without lone surrogates, which tokenizers refuse."""
    return text.encode("utf-8", "ignore").decode()


def is_elsewhere(encoder: Embedder) -> bool:
    """Returns whether an encoder is on another machine, which must get no private text."""
    return getattr(encoder, "is_elsewhere", False)


_THIS_MACHINE = r"localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1"


def other_machine(place: str) -> str:
    """Returns the host of an encoder's URL on another machine; empty for any other encoder."""
    if "://" not in place:
        return ""
    import re
    from urllib.parse import urlsplit

    host = urlsplit(place).hostname or ""
    return "" if re.fullmatch(_THIS_MACHINE, host) else host


def without_encoder(error: MindError) -> str:
    """Returns the notice that the encoder can't be used, with the reason and what to do."""
    return Hint(f"compared without the encoder: {error.message}; ", error.hint)


def open_encoder(settings: Config, *, stays_here: bool = False) -> Embedder | None:
    """Returns the encoder for the settings `embedding.…`; None if it is off, or without numpy.

    With `stays_here`, it is the packaged one instead of one on another machine. Raises `Invalid` if
    the user's own encoder can't be used, or its machine was not allowed to get texts.
    """
    place = settings["embedding.encoder"]
    if host := other_machine(place):
        if stays_here:
            place = "on"
        elif host != settings["embedding.other_host"].lower():
            raise Invalid(
                f"embedding.encoder: `{host}` is another machine, which would get the texts of"
                " memories; `embedding.other_host` does not name it",
                hint=Hint(
                    "to allow that: ", Command("config", "embedding.other_host", host, user=True)
                ),
            )
    if place == "off":
        return None
    try:
        if place == "on":
            from mimo.index.embedding.encoder import packaged_encoder

            return packaged_encoder()
        from mimo.index.embedding import own
    except ImportError:
        return None
    return own.open_encoder(
        own.Options(
            place,
            model=settings["embedding.encoder_model"],
            query=settings["embedding.query_prefix"],
            passage=settings["embedding.passage_prefix"],
            dimensions=settings["embedding.dimensions"],
            batch=settings["embedding.batch"],
        )
    )
