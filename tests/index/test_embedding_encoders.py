"""Encoders of the user: a folder of weights, and a server with OpenAI's API."""

import json
import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from mimo.errors import Invalid
from mimo.index.cosine import cosines
from mimo.index.embedding import own
from mimo.index.embedding.own import FolderEncoder, Options, ServerEncoder, open_encoder, spread

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghijklmnop"]
WIDTH, INNER, HEADS, LAYERS, LIMIT = 128, 192, 4, 2, 24


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small BERT model with random weights, as sentence-transformers saves one."""
    return model_in(tmp_path / "small", "bert")


def model_in(made: Path, kind: str) -> Path:
    random = np.random.default_rng(1)
    offset = 0 if kind == "bert" else 1
    shapes = {
        "embeddings.word_embeddings.weight": (len(WORDS), WIDTH),
        "embeddings.position_embeddings.weight": (LIMIT + offset, WIDTH),
        "embeddings.token_type_embeddings.weight": (1, WIDTH),
    }
    for n in range(LAYERS):
        layer = f"encoder.layer.{n}"
        for part in ("query", "key", "value"):
            shapes[f"{layer}.attention.self.{part}.weight"] = (WIDTH, WIDTH)
        shapes[f"{layer}.attention.output.dense.weight"] = (WIDTH, WIDTH)
        shapes[f"{layer}.intermediate.dense.weight"] = (INNER, WIDTH)
        shapes[f"{layer}.output.dense.weight"] = (WIDTH, INNER)
    weights = {name: random.normal(0, 0.2, shape).astype("f4") for name, shape in shapes.items()}
    weights |= {
        name.replace("weight", "bias"): random.normal(0, 0.1, shape[0]).astype("f4")
        for name, shape in shapes.items()
        if "encoder" in name
    }
    norms = ["embeddings"]
    norms += [f"encoder.layer.{n}.{p}output" for n in range(LAYERS) for p in ("attention.", "")]
    for norm in norms:
        weights[f"{norm}.LayerNorm.weight"] = np.ones(WIDTH, "f4")
        weights[f"{norm}.LayerNorm.bias"] = np.zeros(WIDTH, "f4")
    (made / "1_Pooling").mkdir(parents=True)
    save_file(weights, made / "model.safetensors")
    config = {
        "model_type": kind,
        "hidden_act": "gelu",
        "hidden_size": WIDTH,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
    }
    write(made / "config.json", config)
    write(made / "1_Pooling/config.json", {"pooling_mode_mean_tokens": True})
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [{"path": p, "type": f"sentence_transformers.models.{k}"} for p, k in kinds.items()]
    write(made / "modules.json", modules)
    vocabulary = {word: place for place, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(made / "tokenizer.json"))
    return made


def write(path: Path, data: object) -> None:
    path.write_text(json.dumps(data), encoding="utf-8")


def exact(folder: Path, text: str, *, first: bool = False):
    """The vector by the textbook, in float64 and with the exact GELU."""
    from math import erf

    from safetensors.numpy import load_file

    w = {
        name: array.astype("f8") for name, array in load_file(folder / "model.safetensors").items()
    }
    ids = [2, *(WORDS.index(word) if word in WORDS else 1 for word in text.split()), 3]
    offset = len(w["embeddings.position_embeddings.weight"]) - LIMIT

    def norm(x, name):
        x = x - x.mean(1, keepdims=True)
        return x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-12) + 0 * w[f"{name}.LayerNorm.bias"]

    def dense(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    x = w["embeddings.word_embeddings.weight"][ids]
    x = x + w["embeddings.position_embeddings.weight"][offset : offset + len(ids)]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings")
    for n in range(LAYERS):
        layer = f"encoder.layer.{n}"
        q, k, v = (
            dense(x, f"{layer}.attention.self.{p}").reshape(len(ids), HEADS, -1).transpose(1, 0, 2)
            for p in ("query", "key", "value")
        )
        a = np.exp(q @ k.transpose(0, 2, 1) / np.sqrt(WIDTH // HEADS))
        mixed = (a / a.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(ids), WIDTH)
        x = norm(x + dense(mixed, f"{layer}.attention.output.dense"), f"{layer}.attention.output")
        inner = dense(x, f"{layer}.intermediate.dense")
        inner = inner * (1 + np.vectorize(erf)(inner / np.sqrt(2))) / 2
        x = norm(x + dense(inner, f"{layer}.output.dense"), f"{layer}.output")
    pooled = x[0] if first else x.mean(0)
    return pooled / np.linalg.norm(pooled)


def cosine(vector: bytes, other) -> float:
    numbers = np.frombuffer(vector, np.int8).astype(float)
    return float(numbers @ spread(other[None])[0] / np.linalg.norm(numbers))


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta"])
@pytest.mark.parametrize("first", [False, True], ids=["mean", "first token"])
def test_a_folder_encodes_as_the_exact_network(tmp_path, kind, first):
    made = model_in(tmp_path / "model", kind)
    if first:
        write(made / "1_Pooling/config.json", {"pooling_mode_cls_token": True})
    encoder = open_encoder(Options(str(made)))

    for text in ("a b c", "p", "c c c d e f g unknown"):
        assert cosine(encoder.encode(text), exact(made, text, first=first)) > 0.99
        assert encoder.encode_many([text, "x"])[0] == encoder.encode(text)
    assert len(encoder.encode("a")) == WIDTH
    assert encoder.encode_many(["", " \n", "\ud800"]) == [b"", b"", b""]


def test_only_a_change_of_a_file_that_is_read_makes_vectors_again(tmp_path):
    made = model_in(tmp_path / "model", "bert")
    before = FolderEncoder(Options(str(made))).model
    weights = next(made.rglob("model.safetensors")).parent
    (weights / "README.md").write_text("other words")
    assert FolderEncoder(Options(str(made))).model == before

    write(made / "1_Pooling/config.json", {"pooling_mode_cls_token": True})
    assert FolderEncoder(Options(str(made))).model != before


def test_prefixes_distinguish_queries_from_stored_texts(folder):
    encoder = FolderEncoder(Options(str(folder), query="a ", passage="b "))

    assert cosine(encoder.encode("c d"), exact(folder, "a c d")) > 0.99
    assert cosine(encoder.encode_many(["c d"])[0], exact(folder, "b c d")) > 0.99


def test_vectors_of_other_weights_or_prefixes_have_another_name(folder):
    names = {FolderEncoder(Options(str(folder), query=query)).model for query in ("", "a ")}
    save_file({"x": np.zeros(3, "f4")}, folder / "model.safetensors")
    names.add(FolderEncoder(Options(str(folder))).model)

    assert len(names) == 3


def test_a_text_of_any_length_is_cut(folder):
    assert len(FolderEncoder(Options(str(folder))).encode("a b " * 5_000)) == WIDTH


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("modules.json", None),
        ("modules.json", "{"),
        ("modules.json", "{}"),
        ("modules.json", "[1]"),
        (
            "modules.json",
            '[{"path": "", "type": "x.Transformer"}, {"path": "2", "type": "x.Dense"}]',
        ),
        ("config.json", '{"model_type": "t5", "hidden_act": "gelu"}'),
        ("1_Pooling/config.json", '{"pooling_mode_max_tokens": true}'),
        ("model.safetensors", None),
        ("tokenizer.json", None),
    ],
)
def test_a_folder_without_such_a_model_is_refused_at_once(folder, file, content):
    (folder / file).unlink()
    if content:
        (folder / file).write_text(content)

    with pytest.raises(Invalid, match=r"embedding\.encoder"):
        FolderEncoder(Options(str(folder)))
    with pytest.raises(Invalid):
        FolderEncoder(Options(str(folder / "missing")))


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json"])
def test_a_damaged_folder_is_reported_when_it_is_needed(folder, file):
    (folder / file).write_bytes(b"damaged")

    with pytest.raises(Invalid, match="can't be loaded"):
        FolderEncoder(Options(str(folder))).encode("a")


LETTERS = np.random.default_rng(2).normal(size=(128, 64))


class Answering(BaseHTTPRequestHandler):
    """Answers as OpenAI's API does: the vector of a text is the sum of those of its letters."""

    answer: tuple[int, str] | None = None
    url = ""
    asked: ClassVar[list[dict[str, object]]] = []

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).asked.append({"path": self.path, **request})
        rows = [sum(LETTERS[ord(letter)] for letter in text).tolist() for text in request["input"]]
        data = [{"index": n, "embedding": row} for n, row in enumerate(rows)]
        status, body = self.answer or (200, json.dumps({"data": data[::-1]}))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def server():

    class Answers(Answering):
        asked: ClassVar[list[dict[str, object]]] = []

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    Answers.url = f"http://127.0.0.1:{serving.server_port}/v1"
    yield Answers
    serving.shutdown()
    serving.server_close()
    thread.join()


def test_a_server_is_asked_in_batches_with_prefixes(server):
    options = Options(server.url, model="m", query="a", passage="bb", dimensions=64, batch=2)
    encoder = open_encoder(options)

    query, stored = encoder.encode("c"), encoder.encode_many(["c", " ", "d", "cd", ""])

    assert [len(vector) for vector in stored] == [128, 0, 128, 128, 0]
    asked, held = (sum(LETTERS[ord(letter)] for letter in text) for text in ("ac", "bbc"))
    expected = asked @ held / np.linalg.norm(asked) / np.linalg.norm(held)
    assert cosines(query, stored[:1], 381) == [pytest.approx(expected, abs=0.01)]
    assert [call["input"] for call in server.asked] == [["ac"], ["bbc"], ["bbd", "bbcd"]]
    assert {(call["path"], call["model"], call["dimensions"]) for call in server.asked} == {
        ("/v1/embeddings", "m", 64)
    }


@pytest.mark.parametrize(
    "answer",
    [
        (500, "{}"),
        (302, ""),
        (200, "no JSON"),
        (200, "[]"),
        (200, '{"data": []}'),
        (200, '{"data": [{"index": 0, "embedding": ["x"]}]}'),
        (200, '{"data": [{"index": 0, "embedding": [NaN, 1]}]}'),
        (200, '{"data": [{"index": 0, "embedding": [1, 2, 3, 4, 5]}]}'),
        (200, "[" * 100_000),
        (200, '{"data": [{"index": 1e999, "embedding": [1, 2, 3, 4, 5, 6, 7, 8]}]}'),
        (200, f'{{"data": [{{"index": 0, "embedding": [{"9" * 400}]}}]}}'),
        (200, f'{{"data": [{{"index": {"9" * 400}, "embedding": [{"9" * 400}]}}]}}'),
        (200, f'{{"data": [{{"index": 0, "embedding": [{"1," * 9_000}1]}}]}}'),
        (200, '{"data": [{"index": 0, "embedding": []}]}'),
    ],
)
def test_an_answer_without_vectors_is_an_error_that_names_the_server(server, answer):
    encoder = ServerEncoder(Options(server.url))
    assert len(encoder.encode("a")) == 128
    server.answer = answer

    with pytest.raises(Invalid, match=r"encoder at `http://127"):
        encoder.encode("a")


@pytest.mark.parametrize("dims", [8, 64, 300, 768])
@pytest.mark.parametrize("largest", [0.0, 0.9])
def test_vectors_of_any_shape_keep_their_cosines(server, dims, largest):
    """Also those of few numbers, and those with one number that has most of the length."""
    random = np.random.default_rng(dims)
    rows = random.normal(size=(9, dims)) / np.sqrt(dims)
    rows[:, 1] += largest * 3
    data = [{"index": n, "embedding": row.tolist()} for n, row in enumerate(rows)]
    server.answer = 200, json.dumps({"data": data})

    first, *others = ServerEncoder(Options(server.url)).encode_many(list("abcdefghi"))

    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert cosines(first, others, 381) == pytest.approx((units[1:] @ units[0]).tolist(), abs=0.01)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-200, 1e-12, 3e38, 1e300])
def test_length_of_a_vector_does_not_matter(server, scale):
    rows = np.random.default_rng(3).normal(size=(2, 64))
    vectors = []
    for factor in (1.0, scale):
        data = [{"index": n, "embedding": list(row * factor)} for n, row in enumerate(rows)]
        server.answer = 200, json.dumps({"data": data})
        vectors.append(ServerEncoder(Options(server.url)).encode_many(["a", "b"]))
    assert vectors[1] == (vectors[0] if scale > 1e-30 else [b"", b""])


@pytest.mark.attack("slow server holds a search")
@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b""])
def test_answer_that_comes_byte_after_byte_ends_with_the_deadline(monkeypatch, start):
    monkeypatch.setattr(own, "_QUERY_SECONDS", 0.3)
    has_ended = threading.Event()

    def drip(listening):
        with listening.accept()[0] as client, suppress(OSError):
            client.sendall(start)
            while not has_ended.wait(0.02):
                client.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip, args=(listening,))
        thread.start()
        encoder = ServerEncoder(Options(f"http://127.0.0.1:{listening.getsockname()[1]}/v1"))
        (limit := threading.Timer(30, has_ended.set)).start()
        try:
            with pytest.raises(Invalid, match=r"gives no answer \(in 0.3 s\)"):
                encoder.encode("a")
            assert not has_ended.is_set()
        finally:
            limit.cancel()
            has_ended.set()
            thread.join()


def test_a_server_that_does_not_run_is_an_error_that_names_it():
    with pytest.raises(Invalid, match="gives no answer"):
        ServerEncoder(Options("http://127.0.0.1:9/v1")).encode("a")
