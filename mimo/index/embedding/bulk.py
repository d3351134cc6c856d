"""Vectors through model2vec: for much text at once, and for a model of the user's own."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from model2vec import StaticModel

_BATCH = 4096
"""Texts at a time; the means of a batch take 4 MB."""


def load_packaged(folder: Path, *, dims: int, max_tokens: int) -> "StaticModel":
    """Returns the packaged model under model2vec, built without importing a hub's client."""
    _stay_in_this_thread()
    import numpy as np
    from model2vec import StaticModel
    from tokenizers import Tokenizer

    file = np.memmap(folder / "model.safetensors", dtype=np.int8, mode="r")
    start = 8 + int.from_bytes(file[:8].tobytes(), "little")
    return StaticModel(
        vectors=file[start:].reshape(-1, dims),
        tokenizer=Tokenizer.from_file(str(folder / "tokenizer.json")),
        max_length=max_tokens,
    )


def load_folder(folder: Path) -> "StaticModel":
    """Returns the model2vec model in a local folder; what fails in there is raised as it comes."""
    _stay_in_this_thread()
    from model2vec import StaticModel

    return StaticModel.from_pretrained(folder, force_download=False)


def vectors(model: "StaticModel", texts: Sequence[str]) -> list[bytes]:
    """Returns the int8 vector of each text; empty where it holds no known token."""
    return [vector for batch in _batches(model, texts) for vector in batch]


def _batches(model: "StaticModel", texts: Sequence[str]) -> Iterator[list[bytes]]:
    for start in range(0, len(texts), _BATCH):
        batch = list(texts[start : start + _BATCH])
        yield _quantised(model.encode(batch, normalize=False, use_multiprocessing=False))


def _quantised(means: Any) -> list[bytes]:
    """Returns the rows of an (n, dims) array at length 127 in int8; empty for a row of zeros."""
    import numpy as np

    means = means.astype(np.float64)
    lengths = np.sqrt((means * means).sum(axis=1))
    scales = 127 / np.where(lengths, lengths, 1)
    rows = np.rint(means * scales[:, None]).astype(np.int8)
    return [row.tobytes() if length else b"" for row, length in zip(rows, lengths, strict=True)]


def _stay_in_this_thread() -> None:
    """Keeps libraries from starting threads, which would outlive us and upset a later fork."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from tqdm import tqdm

    tqdm.monitor_interval = 0  # its bars are never shown, yet each would start a monitor
