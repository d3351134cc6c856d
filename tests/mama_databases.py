"""Databases as MAMA v1.0 and its successors make them, for tests and benchmarks."""

import json
import random
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

V1 = """
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER, description TEXT);
CREATE TABLE decisions (
  id TEXT PRIMARY KEY, topic TEXT NOT NULL, decision TEXT NOT NULL, reasoning TEXT,
  outcome TEXT, failure_reason TEXT, limitation TEXT, duration_days INTEGER,
  user_involvement TEXT, session_id TEXT,
  supersedes TEXT, superseded_by TEXT, refined_from TEXT, confidence REAL DEFAULT 0.5,
  created_at INTEGER DEFAULT (unixepoch()), updated_at INTEGER DEFAULT (unixepoch()),
  needs_validation INTEGER DEFAULT 0, validation_attempts INTEGER DEFAULT 0,
  last_validated_at INTEGER, usage_count INTEGER DEFAULT 0,
  trust_context TEXT, usage_success INTEGER DEFAULT 0, usage_failure INTEGER DEFAULT 0,
  time_saved INTEGER DEFAULT 0,
  FOREIGN KEY (supersedes) REFERENCES decisions(id),
  FOREIGN KEY (superseded_by) REFERENCES decisions(id)
);
CREATE TABLE decision_edges (
  from_id TEXT NOT NULL, to_id TEXT NOT NULL, relationship TEXT NOT NULL, reason TEXT,
  weight REAL DEFAULT 1.0, created_at INTEGER DEFAULT (unixepoch()),
  PRIMARY KEY (from_id, to_id, relationship)
);
CREATE TABLE sessions (
  id TEXT PRIMARY KEY, project_path TEXT, rolling_summary TEXT, latest_exchange TEXT,
  action_count INTEGER DEFAULT 0, decision_count INTEGER DEFAULT 0,
  started_at INTEGER, last_active_at INTEGER, ended_at INTEGER
);
CREATE TABLE error_patterns (
  id TEXT PRIMARY KEY, error_pattern TEXT NOT NULL UNIQUE, error_type TEXT, solution TEXT,
  solution_type TEXT DEFAULT 'bash', success_rate REAL DEFAULT 0, occurrences INTEGER DEFAULT 1,
  successes INTEGER DEFAULT 0, last_seen INTEGER, first_seen INTEGER, embedding BLOB,
  created_at INTEGER, updated_at INTEGER
);
"""

CHECKPOINTS = """
CREATE TABLE checkpoints (
  id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp INTEGER NOT NULL, summary TEXT NOT NULL,
  open_files TEXT, next_steps TEXT, status TEXT DEFAULT 'active'
);
"""

LATER = """
ALTER TABLE decisions ADD COLUMN evidence TEXT;
ALTER TABLE decisions ADD COLUMN alternatives TEXT;
ALTER TABLE decisions ADD COLUMN risks TEXT;
ALTER TABLE decisions ADD COLUMN is_static INTEGER DEFAULT 0;
ALTER TABLE decisions ADD COLUMN kind TEXT DEFAULT 'decision';
ALTER TABLE decisions ADD COLUMN status TEXT DEFAULT 'active';
ALTER TABLE decisions ADD COLUMN summary TEXT;
ALTER TABLE decisions ADD COLUMN event_date INTEGER;
ALTER TABLE decision_edges ADD COLUMN created_by TEXT DEFAULT 'user';
ALTER TABLE decision_edges ADD COLUMN approved_by_user INTEGER DEFAULT 1;
ALTER TABLE decision_edges ADD COLUMN decision_id TEXT;
ALTER TABLE decision_edges ADD COLUMN evidence TEXT;
ALTER TABLE checkpoints ADD COLUMN recent_conversation TEXT DEFAULT '[]';
CREATE TABLE link_audit_log (id INTEGER PRIMARY KEY, action TEXT);
CREATE TABLE restart_metrics (id INTEGER PRIMARY KEY, latency INTEGER);
CREATE TABLE embeddings (rowid INTEGER PRIMARY KEY, vector BLOB);
"""
"""What migrations 005 to 024 add, as far as memories are concerned."""

VECTORS = "CREATE VIRTUAL TABLE vss_memories USING vec0(embedding float[384])"

SEPTEMBER = 1_757_000_000_000
"""4 September 2025, in milliseconds."""

Rows = Iterable[Mapping[str, Any]]


def make(
    path: Path,
    rows: Mapping[str, Rows] | None = None,
    *,
    version: int = 4,
    with_checkpoints: bool = True,
    vectors: bool = False,
    wal: bool = True,
    **tables: Rows,
) -> Path:
    """Makes a database with the given rows by table, and returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as sql:
        if wal:
            sql.execute("PRAGMA journal_mode = WAL")
        sql.executescript(V1 + (CHECKPOINTS if with_checkpoints else ""))
        if version > 4:
            sql.executescript(LATER)
        sql.execute("INSERT INTO schema_version VALUES (?, 0, 'made by a test')", (version,))
        for table, listed in {**(rows or {}), **tables}.items():
            insert(sql, table, listed)
        if vectors:
            _plant_vectors(sql)
    sql.close()
    return path


def insert(sql: sqlite3.Connection, table: str, rows: Rows) -> None:
    for row in rows:
        names, marks = ", ".join(row), ", ".join("?" for _ in row)
        sql.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))


def fill(table: str, given: str | None) -> tuple[int, str]:
    """The command `mama TABLE` of transcripts: each line of its input is a row as a JSON object.

    The database is `mama.db` beside the project, made if it is missing. Lists and objects become
    text, and a table gets the columns that it does not have. Returns status 0 and no output.
    """
    path = Path("../mama.db")
    if not path.exists():
        make(path)
    with closing(sqlite3.connect(path)) as sql, sql:
        for row in map(json.loads, (given or "").splitlines()):
            cells = {
                name: json.dumps(value) if isinstance(value, list | dict) else value
                for name, value in row.items()
            }
            if table == "decisions":
                cells = decision(cells.pop("id", None), **cells)
            columns = {name for _, name, *_ in sql.execute(f"PRAGMA table_info({table})")}
            for name in cells:
                if name not in columns:
                    sql.execute(f"ALTER TABLE {table} ADD COLUMN {name}")
            insert(sql, table, [cells])
    return 0, ""


def _plant_vectors(sql: sqlite3.Connection) -> None:
    """Adds the virtual table that the extension makes, without the extension."""
    sql.execute("PRAGMA writable_schema = ON")
    sql.execute(
        "INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql) VALUES"
        " ('table', 'vss_memories', 'vss_memories', 0, ?)",
        (VECTORS,),
    )
    sql.execute("CREATE TABLE vss_memories_chunks (chunk_id INTEGER PRIMARY KEY, size INTEGER)")
    sql.execute("INSERT INTO vss_memories_chunks VALUES (1, 1024)")


def decision(id: str | None, **columns: Any) -> dict[str, Any]:
    """Returns a row of `decisions` as MAMA writes one."""
    given = {"topic": "auth", "decision": "Use JWT", "reasoning": None, "created_at": SEPTEMBER}
    return {"id": id, "updated_at": SEPTEMBER, **given, **columns}


def example(path: Path) -> Path:
    """Makes the database of docs/migrating-from-mama.md."""
    day = 86_400_000
    first = "decision_auth_strategy_1757000000000_k3x9"
    second = "decision_auth_strategy_1758209600000_p7q2"
    korean = "decision__1758300000000_a1b2"
    rows: dict[str, Rows] = {
        "decisions": [
            decision(first, topic="auth_strategy", decision="Server sessions in Redis",
                     reasoning="Simple, and one node is enough for now.", outcome="FAILED",
                     failure_reason="Sessions were lost when the second node came up",
                     superseded_by=second, updated_at=SEPTEMBER + 14 * day),
            decision(second, topic="auth_strategy",
                     decision="Use JWT with refresh tokens, 15 minutes and 30 days",
                     reasoning="No shared session store is needed.", confidence=0.9,
                     supersedes=first, created_at=SEPTEMBER + 14 * day,
                     user_involvement="approved"),
            decision(korean, topic="캐시 전략", decision="응답을 10분 동안 캐시한다",
                     reasoning="가격은 하루에 한 번 바뀐다.",
                     created_at=(SEPTEMBER + 15 * day) // 1000),
        ],
        "decision_edges": [
            {"from_id": second, "to_id": first, "relationship": "supersedes",
             "reason": "sessions did not survive the second node"},
            {"from_id": korean, "to_id": "decision_prices_1740000000000_zzzz",
             "relationship": "refines", "weight": 0.87},
        ],
        "checkpoints": [
            {"timestamp": SEPTEMBER + 16 * day,
             "summary": "Refresh tokens work; the logout page is half done",
             "open_files": '["src/auth.ts", "src/logout.tsx"]',
             "next_steps": "1. finish logout\n2. test with two nodes"}
        ],
        "sessions": [
            {"id": "session_1758400000000", "project_path": "/home/ana/shop",
             "rolling_summary": "Moved the login from sessions to JWT.",
             "started_at": SEPTEMBER + 14 * day},
            {"id": "session_1758500000000", "project_path": "/home/ana/shop"},
        ],
    }  # fmt: skip
    return make(path, rows, vectors=True)


def many(path: Path, size: int) -> Path:
    """Makes a database of that many decisions in chains of five, a fifth of them in Korean."""
    draw = random.Random(size)
    decisions: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    for number in range(size):
        korean = number % 5 == 4
        topic = f"인증 전략 {number // 5}" if korean else f"topic_{number // 5}"
        slug = "" if korean else topic
        when = SEPTEMBER + number * 60_000
        name = f"decision_{slug}_{when}_{number % 1_679_616:04x}"
        older = decisions[-1]["id"] if number % 5 else None
        if older:
            decisions[-1]["superseded_by"] = name
            edges.append({"from_id": name, "to_id": older, "relationship": "supersedes"})
        words = " ".join(draw.choices(_WORDS, k=40))
        decisions.append(
            decision(
                name,
                topic=topic,
                decision=f"{'토큰을 갱신한다' if korean else 'Decision'} {number}: {words[:90]}",
                reasoning=f"Because {words}.",
                confidence=round(draw.random(), 2),
                created_at=when if number % 2 else when // 1000,
                supersedes=older,
                superseded_by=None,
                outcome=draw.choice([None, None, "SUCCESS", "FAILED", "PARTIAL"]),
                failure_reason="it broke under load" if number % 7 == 0 else None,
            )
        )  # fmt: skip
    return make(path, decisions=decisions, decision_edges=edges)


_WORDS = (
    "service queue worker deploy rollback schema migration index header cookie session user order "
    "invoice refund webhook timeout cluster replica shard backup restore metric alert budget"
).split()
