"""Stores of released versions are opened by this one, and those of later versions are refused."""

import json
import tarfile
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mimo.config import FORMAT
from scripts.store_fixture import LATER, STORES, mind

VERSIONS = sorted(path.name.removesuffix(".tar.xz") for path in STORES.glob("*.tar.xz"))

Store = Callable[[str], Path]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    def extracted(version: str) -> Path:
        with tarfile.open(STORES / f"{version}.tar.xz") as archive:
            archive.extractall(tmp_path, filter="data")
        return tmp_path

    return extracted


def lasting(answer: Any) -> Any:
    """Returns an answer without the number of records, to which each call adds one."""
    return {key: value for key, value in answer.items() if key != "records"}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("index", ["its index", "no index"])
def test_a_store_of_a_released_version_gives_the_same_answers(
    store: Store, version: str, index: str
) -> None:
    top = store(version)
    if index == "no index":
        for path in (top / "shop/.mind/.index").iterdir():
            path.unlink()

    for words, answer in json.loads((top / "answers.json").read_text("utf-8")):
        assert lasting(mind(top, LATER, *words)) == lasting(answer), words


@pytest.mark.parametrize("version", VERSIONS)
def test_a_store_of_a_released_version_can_be_changed(store: Store, version: str) -> None:
    top, now = store(version), LATER + timedelta(days=1)
    before = {row["id"] for row in mind(top, now, "list")["memories"]}
    mind(top, now, "evolve", "supersede", "auth", "Use passkeys", "--because", "No password")
    added = mind(top, now, "add", "Biscuits are in the tin")["id"]
    mind(top, now, "edit", added, "--content", "Biscuits are in the jar")
    mind(top, now, "undo")

    after = mind(top, now, "list")["memories"]
    texts = {row["id"]: row["title"] for row in after}
    assert texts[added] == "Biscuits are in the tin"
    assert "Use passkeys" in texts.values()
    assert before - set(texts) == set()
    assert mind(top, now, "audit", "verify")["whole"]
    assert {row["trust"] for row in after} == {"trusted"}


def test_a_project_of_a_later_format_is_not_written(store: Store) -> None:
    top = store(VERSIONS[-1])
    settings = top / "shop/.mind/config.toml"
    settings.write_text(
        settings.read_text().replace(f"format = {FORMAT}", f"format = {FORMAT + 1}")
    )
    before = {path: path.read_bytes() for path in (top / "shop/.mind").rglob("*.md")}

    with pytest.raises(RuntimeError, match="this memory has format 2; this mind writes format 1"):
        mind(top, LATER, "add", "Milk goes in first")

    assert {path: path.read_bytes() for path in (top / "shop/.mind").rglob("*.md")} == before


@pytest.mark.parametrize(
    ("pattern", "line", "words"),
    [
        ("home/.mind/trust/*/approved", b"later 0123\n", ("trust",)),
        ("home/.mind/trust/*/approved", b"later 0123\n", ("add", "Milk goes in first")),
        ("home/.mind/tokens.toml", b"[bo]\nlater = 1\n", ("token", "rm", "ana")),
        ("shop/.mind/.local/audit.jsonl", b'{"later": 1}\n', ("list",)),
        ("shop/.mind/values/**/*.md", b"later: 1\n", ("value", "list", "agent.build")),
    ],
)
def test_data_of_a_later_version_is_kept(
    store: Store, pattern: str, line: bytes, words: tuple[str, ...]
) -> None:
    top = store(VERSIONS[-1])
    paths = [path for path in top.glob(pattern) if path.is_file()]
    assert paths
    for path in paths:
        path.write_bytes(path.read_bytes() + line)
    before = {path: path.read_bytes() for path in paths}

    with suppress(RuntimeError):  # It may be refused.
        mind(top, LATER, *words)

    for path, data in before.items():
        aside = path.with_name(f"{path.name}.damaged")
        assert (aside if aside.exists() else path).read_bytes().startswith(data)
