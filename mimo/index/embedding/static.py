"""Static vectors through model2vec: of the user's own model, and of many texts by the packaged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mimo.data import disk
from mimo.errors import Invalid
from mimo.index.embedding import stamp, without_surrogates

if TYPE_CHECKING:
    import numpy as np
    from model2vec import StaticModel
    from numpy.typing import NDArray

_HINT = "set `embedding.model` to a folder that model2vec's save_pretrained wrote, or remove it"

_BATCH = 4096
"""The number of texts encoded at a time; the means of a batch take 4 MB."""


class OwnModel:
    """An `Embedder` of a model in a local folder, which the first text loads."""

    def __init__(self, folder: str) -> None:
        """Takes a folder, whose path may begin with `~`. Raises `Invalid` if it has no model."""
        self._folder = disk.expanded(folder)
        if not self._folder.is_dir():
            raise Invalid(f"embedding.model: `{folder}` is not a folder", hint=_HINT)
        if not self._files:
            raise Invalid(f"embedding.model: `{folder}` holds no model.safetensors", hint=_HINT)

    @cached_property
    def model(self) -> str:
        """The folder's name and the stamp of its files."""
        return f"{self._folder.name}:{stamp(self._files)}"

    def encode(self, text: str) -> bytes:
        """Returns the vector of `text`; empty if it has no token of the model."""
        return self.encode_many([text])[0]

    def encode_many(self, texts: Sequence[str]) -> list[bytes]:
        """Returns the vector of each text. Raises `Invalid` if the model can't be loaded."""
        encoded: list[bytes] = []
        for start in range(0, len(texts), _BATCH):
            some = texts[start : start + _BATCH]
            batch = list(map(without_surrogates, some))
            means = self._static_model.encode(batch, normalize=False, use_multiprocessing=False)
            encoded += quantised(means)
        return encoded

    @property
    def _files(self) -> list[Path]:
        """The weights and the tokenizer, in the folder or in its sub-folder for them."""
        for folder in (self._folder, self._folder / "0_StaticEmbedding"):
            files = [folder / "model.safetensors", folder / "tokenizer.json"]
            if all(file.is_file() for file in files):
                return files
        return []

    @cached_property
    def _static_model(self) -> StaticModel:
        try:
            _disable_threads()
            from model2vec import StaticModel

            return StaticModel.from_pretrained(self._folder, force_download=False)
        # For a damaged file, the libraries below raise exceptions of many types.
        except Exception as error:
            raise Invalid(
                f"embedding.model: `{self._folder}` can't be loaded ({error})", hint=_HINT
            ) from error


def quantised(means: NDArray[np.float32]) -> list[bytes]:
    """Returns the rows of an (n, dims) array at length 127 in int8; empty for a row of zeros."""
    import numpy as np

    means = means.astype(np.float64)
    lengths = np.sqrt((means * means).sum(axis=1))
    scales = 127 / np.where(lengths, lengths, 1)
    rows = np.rint(means * scales[:, None]).astype(np.int8)
    return [row.tobytes() if length else b"" for row, length in zip(rows, lengths, strict=True)]


def _disable_threads() -> None:
    """Keeps libraries from starting threads, which would outlive a call and break a later fork."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from tqdm import tqdm

    tqdm.monitor_interval = 0  # Each progress bar, never shown here, would start a monitor.
