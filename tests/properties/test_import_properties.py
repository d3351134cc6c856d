"""An import keeps all texts of any database, and a second import changes nothing."""

import re
import sqlite3
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from mimo.call import Call
from mimo.features.importing.commands import mama
from mimo.features.importing.mama import convert
from mimo.memory.model import Problem
from tests import mama_databases
from tests.conftest import NOW

IDS = st.sampled_from(
    ["a", "A", "b", "c", "결정", "x/y", ".z", "decision__1757000000000_ab12", "7"]
)
SPICE = st.sampled_from(
    ["## Outcome", "\\## Reasoning", "# Title", "---", "```", "[[a]]", "\r\n", "\n", "- x", "k: v",
     "[", "{", '["a"]', '{"a": "b"}', "null", "0", "인증 전략", "\ufeff", "\u2028", "\t", "'", '"']
)  # fmt: skip
TEXT = st.lists(
    st.one_of(SPICE, st.text(st.characters(exclude_categories=["Cs"]), max_size=8)), max_size=5
).map("".join)
NUMBERS = st.one_of(
    st.integers(-(2**62), 2**62), st.floats(allow_nan=False), st.sampled_from([0, 1, 1_757_000_000])
)
ANY = st.one_of(st.none(), TEXT, NUMBERS, st.binary(max_size=6))


DECISIONS = st.lists(
    st.fixed_dictionaries(
        {"id": IDS, "topic": TEXT, "decision": TEXT},
        optional=dict.fromkeys(
            "reasoning outcome failure_reason limitation user_involvement session_id refined_from"
            " confidence created_at updated_at needs_validation usage_count trust_context"
            " duration_days last_validated_at".split(),
            ANY,
        )
        | {"supersedes": st.none() | IDS, "superseded_by": st.none() | IDS},
    ),
    max_size=5,
    unique_by=lambda row: row["id"],
)
EDGES = st.lists(
    st.fixed_dictionaries(
        {"from_id": IDS, "to_id": IDS, "relationship": st.sampled_from(["supersedes", "refines"])},
        optional={"reason": ANY, "weight": ANY, "created_at": ANY},
    ),
    max_size=5,
    unique_by=lambda row: tuple(row[name] for name in ("from_id", "to_id", "relationship")),
)
SESSIONS = st.lists(
    st.fixed_dictionaries(
        {"id": IDS},
        optional=dict.fromkeys(
            "rolling_summary latest_exchange project_path action_count started_at".split(), ANY
        ),
    ),
    max_size=4,
    unique_by=lambda row: row["id"],
)
PATTERNS = st.lists(
    st.fixed_dictionaries(
        {"id": IDS, "error_pattern": TEXT},
        optional=dict.fromkeys("error_type solution solution_type last_seen".split(), ANY),
    ),
    max_size=3,
    unique_by=(lambda row: row["id"], lambda row: row["error_pattern"]),
)
CHECKPOINTS = st.lists(
    st.fixed_dictionaries(
        {"timestamp": NUMBERS, "summary": TEXT},
        optional={"open_files": ANY, "next_steps": ANY, "status": TEXT},
    ),
    max_size=3,
)
DATABASES = st.fixed_dictionaries(
    {
        "decisions": DECISIONS,
        "decision_edges": EDGES,
        "sessions": SESSIONS,
        "error_patterns": PATTERNS,
        "checkpoints": CHECKPOINTS,
    }
)


def bare(text: str) -> str:
    """Returns the letters of a text: its layout is the file's."""
    return "".join(re.findall(r"\w+", text))


@given(DATABASES)
@settings(max_examples=40)
def test_every_text_is_in_the_files_and_a_second_import_changes_nothing(call, tmp_path, tables):
    path = tmp_path / "m.db"
    for file in (
        *tmp_path.glob("m.db*"),
        *call.mind.folder.rglob("*.md"),
        *call.mind.folder.rglob("*.json"),
    ):
        file.unlink()
    mama_databases.make(path, tables)

    result = mama(call, db=str(path))

    assert result.verified, result.lost
    assert all(left.reason == "the row is empty" for left in result.skipped)
    assert all(row.total == row.new + row.skipped for row in result.groups)
    links = result.statements
    assert links is not None
    assert links.found == links.written + links.repeated + links.kept_aside + links.left_out
    before = files_of(call.mind.folder)
    stored = stored_texts(call)
    for text in texts_of(path):
        assert bare(text) in stored, text

    again = mama(call, db=str(path))

    assert files_of(call.mind.folder) == before
    assert again.verified
    assert sum(row.new for row in again.groups) == 0
    assert not [note for note in again.notes if "differ from the database" in note]
    back = mama(call, db=str(path), rollback=True)
    assert back.removed == sum(row.new for row in result.groups)
    assert files_of(call.mind.folder) == {}


def files_of(store: Path) -> dict[str, bytes]:
    """Returns each memory's file."""
    paths = [path for path in store.rglob("*.md") if path.name != "MEMORY.md"]
    return {str(path): path.read_bytes() for path in paths}


def stored_texts(call: Call) -> str:
    """Returns the letters of all memories, as they are read from their files."""
    texts = []
    for path in call.mind.store.stamps():
        read = call.mind.store.read(path)
        assert not isinstance(read, Problem), read
        texts += [f"{record.memory.topic} {record.memory.text}" for record in read]
    return bare(" ".join(texts))


def texts_of(path: Path) -> list[str]:
    """Returns the prose in the database, as SQLite returns it."""
    with sqlite3.connect(path) as sql:
        texts = [
            value
            for table, columns in _PROSE.items()
            for row in sql.execute(f"SELECT {columns} FROM {table}")
            for value in row
            if isinstance(value, str) and value.strip() and value.strip() != "null"
        ]
    sql.close()
    return texts


_PROSE = {
    "decisions": "decision, topic, reasoning, failure_reason, limitation",
    "checkpoints": "summary, next_steps",
    "sessions": "rolling_summary",
    "error_patterns": "error_pattern, solution",
}


@given(DATABASES)
def test_every_id_belongs_to_one_memory(tables):
    checkpoints = [row | {"id": n} for n, row in enumerate(tables["checkpoints"], 1)]

    rows, _ = convert(tables | {"checkpoints": checkpoints}, now=NOW)

    memories = [row.memory for row in rows]
    ids = [memory.id.casefold() for memory in memories if memory]
    assert len(set(ids)) == len(ids)
