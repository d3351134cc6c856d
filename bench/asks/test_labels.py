"""The labels of the stores name rows that exist, and each store has every kind of case."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent
TEAMS = ("data", "embedded", "infra", "korean", "mobile", "web")
DOCUMENTS = ("ferry", "quill")
LANGUAGES = ("crossing",)
MONTHS = ("kiosk", "meter")


def read(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def test_every_store_is_listed_here() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.toml")) == sorted(
        TEAMS + DOCUMENTS + LANGUAGES + MONTHS
    )


@pytest.mark.parametrize("name", TEAMS)
def test_the_labels_of_a_team_name_its_rows(name: str) -> None:
    data = read(name)
    rows = [*data["memory"], *data["edge"]]
    keys = {row["key"] for row in rows}
    edges = {edge["key"] for edge in data["edge"]}

    assert len(keys) == len(rows)
    assert all(set(item["answers"]) <= keys and item["answers"] for item in data["question"])
    assert all(set(item["speak"]) <= keys for item in data["prompt"])
    assert all(set(item["edges"]) <= edges for item in data["intent"] + data["diff"])
    assert {memory["supersedes"] for memory in data["memory"] if "supersedes" in memory} <= keys


@pytest.mark.parametrize("name", TEAMS)
def test_a_team_has_every_kind_of_case(name: str) -> None:
    data = read(name)

    assert 25 <= len(data["memory"]) <= 60
    assert [len(data[kind]) for kind in ("question", "unanswerable", "prompt")] == [40, 15, 40]
    assert [len(data[kind]) for kind in ("intent", "diff")] == [20, 10]
    assert sum(bool(prompt["speak"]) for prompt in data["prompt"]) == 20


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_labels_of_documents_name_pages_and_memories(name: str) -> None:
    data = read(name)
    folder = FOLDER / data["folder"]
    pages = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")}
    memories = {f"@{memory['key']}" for memory in data["memory"]}

    assert all(item["answers"] for item in data["question"])
    assert {key for item in data["question"] for key in item["answers"]} <= pages | memories
    assert len(data["unanswerable"]) == 15


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_questions_cross_languages_both_ways(name: str) -> None:
    data = read(name)
    hangul = {row["key"] for row in data["memory"] if is_korean(row["content"])}
    keys = {row["key"] for row in data["memory"]}
    directions = Counter(
        (is_korean(item["ask"]), item["answers"][0] in hangul) for item in data["question"]
    )

    assert len(hangul) == len(keys - hangul) == 20
    assert {key for item in data["question"] for key in item["answers"]} == keys
    assert directions == {(True, False): 20, (False, True): 20, (True, True): 20}
    assert len(data["unanswerable"]) == 15


def is_korean(text: str) -> bool:
    return any("가" <= letter <= "힣" for letter in text.replace("한글", ""))


@pytest.mark.parametrize("name", MONTHS)
def test_the_labels_of_a_month_name_its_rows(name: str) -> None:
    data = read(name)
    memories = {row["key"] for row in (*data["memory"], *data["document"])}
    edges = {edge["key"] for edge in data["edge"]}

    assert [len(data[kind]) for kind in ("memory", "document", "edge")] == [60, 2, 12]
    assert [len(data[kind]) for kind in ("question", "unanswerable")] == [80, 15]
    assert all(set(item["answers"]) <= memories and item["answers"] for item in data["question"])
    assert Counter(item["kind"] for item in data["prompt"]) == {
        "right": 15,
        "near": 12,
        "plain": 15,
    }
    assert all(set(item["speak"]) <= memories for item in data["prompt"])
    assert all(bool(item["speak"]) == (item["kind"] == "right") for item in data["prompt"])
    assert all(set(item["edges"]) <= edges for item in data["intent"])
    assert sum(bool(row.get("home")) for row in data["memory"]) == 2
