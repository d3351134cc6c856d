"""Encoders that a user prefers: a folder of a sentence-transformers model, or a server's model."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from hashlib import sha256
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from mimo.data import disk
from mimo.data.loads import loads
from mimo.errors import Invalid
from mimo.frozen import NamedTuple
from mimo.index.embedding import Embedder, other_machine, stamp, without_surrogates
from mimo.index.embedding.transformer import Dense, Layer, Network, quantised, rounded
from mimo.index.embedding.wordpiece import MAX_CHARACTERS

if TYPE_CHECKING:
    from mimo.index.embedding.transformer import Array

_HINT = "see docs/encoders.md, or set `embedding.encoder` to `on`"

_QUERY_SECONDS, _BATCH_SECONDS = 5.0, 120.0
"""The time that the server may take for a query, and for a batch of stored texts."""

_MOST_ANSWER = 64 * 1024 * 1024
"""The largest answer that is read, in bytes: 1,000 vectors of 4,096 numbers."""

_LEAST_DIMS = 128
"""The least length of a vector: a number of a shorter one may not fit into a byte."""

_SMALLEST = 1e-30
"""Vectors whose numbers are all smaller count as empty."""

_MOST_DIMS = 8_192
"""The greatest length of a server's vector."""

_TYPES = ("bert", "xlm-roberta", "roberta")
_MOST_TOKENS = 512


class Options(NamedTuple):
    """The settings of such an encoder."""

    place: str
    """The folder, or the address."""
    model: str = ""
    """The name of the server's model."""
    query: str = ""
    passage: str = ""
    """The prefixes of queries and of stored texts."""
    dimensions: int = 0
    """The number of dimensions that the server is asked for; 0 for the model's own."""
    batch: int = 32
    """The number of texts in a request."""

    @property
    def key(self) -> str:
        """The part of the options that vectors depend on, as a short hash."""
        options = repr((self.model, self.query, self.passage, self.dimensions, "spread"))
        return sha256(options.encode()).hexdigest()[:12]


def spread(rows: Array) -> Array:
    """Returns rows of at least `_LEAST_DIMS` numbers that have the same cosines.

    Some models have a dimension with most of a vector's length, which would not fit into a byte. So
    signs are changed by a fixed draw, and the discrete Hartley transform, which is orthogonal,
    spreads each number over all others (R. N. Bracewell, 1983).
    """
    width = max(_LEAST_DIMS, rows.shape[1])
    signs = 1 - 2 * np.frombuffer(sha256(b"signs").digest(), np.uint8).astype("f4") % 2
    padded = np.zeros((len(rows), width), "f4")
    padded[:, : rows.shape[1]] = rows * np.resize(signs, rows.shape[1])
    waves = np.fft.fft(padded, axis=1)
    return np.asarray((waves.real - waves.imag) / np.sqrt(width), "f4")


@lru_cache(maxsize=2)
def open_encoder(options: Options) -> Embedder:
    """Returns the encoder of the options, one for the process.

    Raises `Invalid` if the folder has no such model. A server is not asked yet.
    """
    if options.place.startswith(("http://", "https://")):
        return ServerEncoder(options)
    return FolderEncoder(options)


class FolderEncoder:
    """An `Embedder` of a BERT or XLM-R model that sentence-transformers saved into a folder."""

    def __init__(self, options: Options) -> None:
        """Raises `Invalid` if the folder has no model that can be read."""
        self._options = options
        self._folder = disk.expanded(options.place)
        self._files: list[Path] = []
        if not self._folder.is_dir():
            raise self._invalid("is not a folder" if self._folder.exists() else "does not exist")
        if not (self._folder / "modules.json").exists():
            raise self._invalid("has no modules.json: it is not a sentence-transformers folder")
        modules = self._read("modules.json", of=list)
        if not all(isinstance(each, dict) for each in modules):
            raise self._invalid("has a modules.json of another form")
        paths = {str(each.get("type")).rpartition(".")[2]: each.get("path") for each in modules}
        if "Transformer" not in paths or paths.keys() - {"Transformer", "Pooling", "Normalize"}:
            raise self._invalid("is not a folder of a transformer with pooling alone")
        self._weights = self._folder / str(paths["Transformer"])
        self._config = self._read(str(paths["Transformer"]), "config.json")
        self._pooling = self._read(str(paths.get("Pooling")), "config.json")
        if self._config.get("model_type") not in _TYPES or self._config.get("hidden_act") != "gelu":
            raise self._invalid(f"is not one of {', '.join(_TYPES)}")
        if not (self._uses_cls_token or self._pooling.get("pooling_mode_mean_tokens")):
            raise self._invalid("has another pooling than the mean or the first token")
        for file in (self._weights / "model.safetensors", self._weights / "tokenizer.json"):
            if not file.is_file():
                raise self._invalid(f"has no {file.name}")
            self._files.append(file)

    @cached_property
    def model(self) -> str:
        """The folder's name, the stamp of the files that are read, and a hash of the options."""
        return f"{self._folder.name}:{stamp(self._files)}+{self._options.key}"

    def encode(self, text: str) -> bytes:
        """Returns the vector of a query; empty if it has no text."""
        return self._encoded([text], self._options.query)[0]

    def encode_many(self, texts: Sequence[str]) -> list[bytes]:
        """Returns the vector of each stored text. Raises `Invalid` if the model can't be loaded."""
        return self._encoded(texts, self._options.passage)

    def _encoded(self, texts: Sequence[str], prefix: str) -> list[bytes]:
        try:
            network, tokenizer = self._network
        # For a damaged file, the libraries below raise exceptions of many types.
        except Exception as error:
            raise self._invalid(f"can't be loaded ({error})") from error
        cut = [without_surrogates(text[:MAX_CHARACTERS]).strip() for text in texts]
        pieces = tokenizer.encode_batch([prefix + text for text in cut])
        rows = [each.ids if text else [] for each, text in zip(pieces, cut, strict=True)]
        return quantised(spread(network.sums(rows, cls_only=self._uses_cls_token)))

    @property
    def _uses_cls_token(self) -> bool:
        return bool(self._pooling.get("pooling_mode_cls_token"))

    @cached_property
    def _network(self) -> tuple[Network, Any]:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        loaded = load_file(self._weights / "model.safetensors")
        # Models of a task have the network under a name of their own.
        start = next(name for name in loaded if name.endswith("embeddings.word_embeddings.weight"))
        prefix = start.removesuffix("embeddings.word_embeddings.weight")
        arrays = {name.removeprefix(prefix): np.asarray(a, "f4") for name, a in loaded.items()}
        config = self._config
        positions = arrays["embeddings.position_embeddings.weight"]
        if config["model_type"] != "bert":  # The first ones are for padding.
            positions = positions[config["pad_token_id"] + 1 :]
        limit = min(len(positions), _MOST_TOKENS)
        tokenizer = Tokenizer.from_file(str(self._weights / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(limit)
        table = arrays["embeddings.word_embeddings.weight"]
        positions = positions[:limit] + arrays["embeddings.token_type_embeddings.weight"][0]
        layers = [_layer(arrays, n, config) for n in range(config["num_hidden_layers"])]
        norm = _pair(arrays, "embeddings.LayerNorm")
        heads, epsilon = config["num_attention_heads"], config["layer_norm_eps"]
        network = Network(table.__getitem__, positions, norm, layers, heads=heads, epsilon=epsilon)
        return network, tokenizer

    def _read(self, *names: str, of: type = dict) -> Any:
        """Returns the content of a file of JSON, which is of a type. Raises `Invalid`."""
        self._files.append(Path(self._folder, *names))
        try:
            value = loads(disk.read(self._files[-1], follow=True))
        except (OSError, ValueError) as error:
            raise self._invalid(f"can't be read ({error})") from error
        if not isinstance(value, of):
            raise self._invalid(f"has a {names[-1]} of another form")
        return value

    def _invalid(self, reason: str) -> Invalid:
        return Invalid(f"embedding.encoder: `{self._options.place}` {reason}", hint=_HINT)


def _layer(arrays: dict[str, Array], number: int, config: dict[str, Any]) -> Layer:
    """Returns a layer, its matrices rounded to bytes; the query's are divided by a root."""
    old = f"encoder.layer.{number}."
    root = np.sqrt(np.float32(config["hidden_size"] // config["num_attention_heads"]))
    parts = [_pair(arrays, f"{old}attention.self.{name}") for name in ("query", "key", "value")]
    parts[0] = parts[0][0] / root, parts[0][1] / root

    def dense(matrix: Array, bias: Array) -> Dense:
        return Dense(*rounded(matrix), bias)

    return Layer(
        qkv=dense(*(np.concatenate(some) for some in zip(*parts, strict=True))),
        out=dense(*_pair(arrays, f"{old}attention.output.dense")),
        norm1=_pair(arrays, f"{old}attention.output.LayerNorm"),
        up=dense(*_pair(arrays, f"{old}intermediate.dense")),
        down=dense(*_pair(arrays, f"{old}output.dense")),
        norm2=_pair(arrays, f"{old}output.LayerNorm"),
    )


def _pair(arrays: dict[str, Array], name: str) -> tuple[Array, Array]:
    return arrays[f"{name}.weight"], arrays[f"{name}.bias"]


def _shut(opened: socket.socket) -> None:
    """Ends a connection, so that a thread that is reading from it goes on."""
    with suppress(OSError):
        socket.socket.shutdown(opened, socket.SHUT_RDWR)


class ServerEncoder:
    """An `Embedder` that asks a server with OpenAI's API of embeddings; redirects are errors."""

    def __init__(self, options: Options) -> None:
        """Takes the options, whose address is checked already. The server is not asked yet."""
        self._options = options
        self._address = urlsplit(options.place)
        self._dims = options.dimensions

    @property
    def is_elsewhere(self) -> bool:
        """True if the server is on another machine."""
        return bool(other_machine(self._options.place))

    @property
    def model(self) -> str:
        """The address without a password, the model's name, and a hash of the options."""
        host = f"{self._address.hostname}:{self._address.port}{self._address.path}"
        return f"{host}#{self._options.model}:{self._options.key}"

    def encode(self, text: str) -> bytes:
        """Returns the vector of a query; empty if it has no text. Raises `Invalid`."""
        return self._encoded([text], self._options.query, _QUERY_SECONDS)[0]

    def encode_many(self, texts: Sequence[str]) -> list[bytes]:
        """Returns the vector of each stored text. Raises `Invalid` if it gives none."""
        vectors: list[bytes] = []
        for start in range(0, len(texts), self._options.batch):
            some = texts[start : start + self._options.batch]
            vectors += self._encoded(some, self._options.passage, _BATCH_SECONDS)
        return vectors

    def _encoded(self, texts: Sequence[str], prefix: str, seconds: float) -> list[bytes]:
        cut = [without_surrogates(text[:MAX_CHARACTERS]) for text in texts]
        asked = [place for place, text in enumerate(cut) if text.strip()]
        encoded = [b""] * len(cut)
        if asked:
            rows = self._ask([prefix + cut[place] for place in asked], seconds)
            for place, vector in zip(asked, quantised(spread(rows)), strict=True):
                encoded[place] = vector
        return encoded

    def _ask(self, texts: list[str], seconds: float) -> Array:
        """Returns the server's vectors, one row for each text."""
        request: dict[str, Any] = {"input": texts, "model": self._options.model}
        if self._options.dimensions:
            request["dimensions"] = self._options.dimensions
        try:
            status, body = self._post(json.dumps(request).encode(), seconds)
            if status != 200:
                raise self._invalid(f"answered with status {status}")
            listed = loads(body)["data"]
            ordered = sorted(listed, key=lambda each: int(each["index"]))
            rows = np.array([each["embedding"] for each in ordered], "f8")
        except (OSError, HTTPException) as error:
            raise self._invalid(
                f"gives no answer ({str(error) or type(error).__name__})"
            ) from error
        except (ValueError, KeyError, TypeError, ArithmeticError) as error:
            raise self._invalid("gives no vectors") from error
        if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
            raise self._invalid("gives no vectors")
        if not 0 < rows.shape[1] <= _MOST_DIMS:
            raise self._invalid(f"gives vectors of {rows.shape[1]:,} numbers")
        self._dims = self._dims or rows.shape[1]
        if rows.shape[1] != self._dims:
            raise self._invalid(f"gives {rows.shape[1]} numbers instead of {self._dims}")
        # Only directions count, and squares of large numbers would overflow.
        largest = np.abs(rows).max(axis=1, keepdims=True)
        return np.asarray(rows / np.where(largest > _SMALLEST, largest, 1), "f4")

    def _post(self, body: bytes, seconds: float) -> tuple[int, bytes]:
        """Returns the status and the body of the answer to a request.

        Raises `OSError`, also if the answer is not complete in time, and `HTTPException`.
        """
        deadline = time.monotonic() + seconds
        address = self._address
        kind = HTTPSConnection if address.scheme == "https" else HTTPConnection
        connection = kind(address.hostname or "", address.port, timeout=seconds)
        try:
            connection.connect()
            # The timeout is that of each step, and a server may send byte after byte.
            ending = Timer(deadline - time.monotonic(), _shut, (connection.sock,))
            ending.daemon = True
            ending.start()
        except BaseException:
            connection.close()
            raise
        try:
            path = address.path.rstrip("/")
            path += "" if path.endswith("/embeddings") else "/embeddings"
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.status, response.read(_MOST_ANSWER)
            if time.monotonic() < deadline:  # Else the body may have been cut.
                return answer
            raise TimeoutError
        except (OSError, HTTPException) as error:
            if time.monotonic() < deadline:
                raise
            raise TimeoutError(f"in {seconds:g} s") from error
        finally:
            ending.cancel()
            connection.close()

    def _invalid(self, reason: str) -> Invalid:
        return Invalid(f"the encoder at `{self._options.place}` {reason}", hint=_HINT)
