"""A model2vec model of the user's own, from a local folder and never from a network."""

from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from mimo.errors import Invalid

if TYPE_CHECKING:
    from model2vec import StaticModel

_HINT = "set `embedding.model` to a folder that model2vec's save_pretrained wrote, or remove it"


class OwnModel:
    """An `Embedder` of the model in a folder; it is loaded when the first text comes."""

    def __init__(self, folder: str) -> None:
        """Take the folder's path, `~` allowed; raises `Invalid` where it holds no model."""
        self._folder = Path(folder).expanduser()
        if not self._folder.is_dir():
            raise Invalid(f"embedding.model: `{folder}` is not a folder", hint=_HINT)
        if not self._files:
            raise Invalid(f"embedding.model: `{folder}` holds no model.safetensors", hint=_HINT)

    @cached_property
    def model(self) -> str:
        """The folder's name and a hash of its files' sizes and times, which is quick."""
        stats = ((file.name, file.stat()) for file in self._files)
        seen = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
        return f"{self._folder.name}:{sha256(repr(seen).encode()).hexdigest()[:12]}"

    @property
    def dims(self) -> int:
        """Length of a vector."""
        return int(self._static_model.dim)

    def encode(self, text: str) -> bytes:
        """Returns the vector of `text`; empty where it holds no known token."""
        return self.encode_many([text])[0]

    def encode_many(self, texts: Sequence[str]) -> list[bytes]:
        """Returns the vector of each text; raises `Invalid` where the model can't be loaded."""
        from mimo.index.embedding.bulk import vectors

        readable = [text.encode("utf-8", "ignore").decode() for text in texts]
        return vectors(self._static_model, readable)

    @property
    def _files(self) -> list[Path]:
        """The weights and the tokenizer, beside each other or in the sub-folder for them."""
        for folder in (self._folder, self._folder / "0_StaticEmbedding"):
            files = [folder / "model.safetensors", folder / "tokenizer.json"]
            if all(file.is_file() for file in files):
                return files
        return []

    @cached_property
    def _static_model(self) -> "StaticModel":
        from mimo.index.embedding.bulk import load_folder

        try:
            return load_folder(self._folder)
        # The libraries below raise bare exceptions of their own for a damaged file.
        except Exception as error:
            raise Invalid(
                f"embedding.model: `{self._folder}` can't be loaded ({error})", hint=_HINT
            ) from error
