"""A model2vec model of the user's own is loaded from its folder, and from nowhere else."""

import os
import shutil
import threading
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.errors import Invalid
from mimo.index.embedding import open_embedder
from mimo.index.embedding.wordpiece import FOLDER

FILES = ("model.safetensors", "tokenizer.json", "config.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model in the user's folder that happens to be the packaged one."""
    made = tmp_path / "my model"
    made.mkdir()
    for name in FILES:
        shutil.copyfile(FOLDER / name, made / name)
    return made


def test_it_encodes_as_the_same_model_in_the_package_does(folder: Path) -> None:
    own, packaged = open_embedder(str(folder)), open_embedder()
    texts = ["retry after a timeout", "", "☃", "mem\ud800ory", "long " * 2000]

    assert own.encode_many(texts) == packaged.encode_many(texts)
    assert own.encode(texts[0]) == packaged.encode(texts[0])


def test_much_text_leaves_no_thread_behind(folder: Path) -> None:
    before = set(threading.enumerate())

    open_embedder(str(folder)).encode_many(["some text"] * 20_000)

    assert set(threading.enumerate()) == before


def test_the_home_folder_may_be_written_as_a_tilde(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("USERPROFILE", str(folder.parent))

    assert open_embedder("~/my model").encode("retry")


def test_its_name_changes_when_its_files_do(folder: Path) -> None:
    before = open_embedder(str(folder)).model
    unchanged = open_embedder(str(folder)).model
    os.utime(folder / "model.safetensors", ns=(0, 1))

    assert before == unchanged
    assert before.startswith("my model:")
    assert open_embedder(str(folder)).model != before


def test_a_model_may_be_in_the_layout_of_sentence_transformers(folder: Path) -> None:
    inner = folder / "0_StaticEmbedding"
    inner.mkdir()
    for name in FILES[:2]:
        (folder / name).rename(inner / name)

    assert open_embedder(str(folder)).model.startswith("my model:")


@pytest.mark.parametrize("setting", ["minishlab/potion-base-8M", "/nowhere", "\0"])
def test_a_path_that_is_not_a_folder_is_refused_at_once(setting: str) -> None:
    """A name on a model hub, too: nothing is ever downloaded."""
    with pytest.raises(Invalid, match="is not a folder") as caught:
        open_embedder(setting)

    assert "embedding.model" in caught.value.hint


@pytest.mark.parametrize("missing", FILES[:2])
def test_a_folder_without_a_model_is_refused_at_once(folder: Path, missing: str) -> None:
    (folder / missing).unlink()

    with pytest.raises(Invalid, match=r"holds no model\.safetensors"):
        open_embedder(str(folder))


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_model_is_reported_when_it_is_needed(folder: Path, name: str) -> None:
    (folder / name).write_text("damaged", encoding="utf-8")
    own = open_embedder(str(folder))

    with pytest.raises(Invalid, match="can't be loaded"):
        own.encode("text")


def test_a_memory_that_is_opened_again_shares_the_packaged_model(call: Call) -> None:
    again = call.mind.reopened()

    assert again.config is not call.mind.config
    assert again.embedder is call.mind.embedder
