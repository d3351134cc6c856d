"""Values in files and in the database of what passes."""

import errno
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mimo.data import disk, files
from mimo.data.sqlite import Database
from mimo.errors import Invalid, QuotaExceeded, StorageFailed
from mimo.memory.model import Problem
from mimo.project.values import MOST_ITEMS, ValueFiles, Values, path_of
from tests.conftest import NOW
from tests.kit import put

PUT = """
import sys
from datetime import datetime, UTC
from pathlib import Path
from mimo.errors import QuotaExceeded
from mimo.project.values import Values
values, full = Values(Path(sys.argv[1]), "me"), 0
for number in range(60):
    try:
        values.put(sys.argv[2], f"key{sys.argv[3]}-{number}", number, None, datetime.now(UTC))
    except QuotaExceeded:
        full += 1
print(full)
"""


@pytest.fixture
def values(project: Path) -> Values:
    return Values(project, "me")


def got(values: Values, namespace: str, key: str, **later: float) -> Any:
    value = values.get(namespace, key, NOW + timedelta(**later))
    return value.value if value else None


def write(project: Path, path: str, text: str) -> None:
    put(project / ".mind" / "values" / path, text)


@pytest.mark.req("002-25", "002-55")
def test_a_value_without_a_ttl_is_a_file(values: Values, project: Path) -> None:
    values.put("agent.a", "Key", {"x": [1]}, None, NOW)

    assert got(values, "agent.a", "Key", days=9999) == {"x": [1]}
    assert (project / path_of("agent.a", "Key")).is_file()
    assert not list((project / ".mind" / ".local").glob("values-*.db"))
    assert got(Values(project, "somebody else"), "agent.a", "Key") == {"x": [1]}


@pytest.mark.parametrize(
    ("namespace", "ttl"), [("session.a", None), ("agent.a", 60), ("session", 9)]
)
def test_session_values_and_values_with_a_ttl_are_never_files(
    values: Values, project: Path, namespace: str, ttl: int | None
) -> None:
    values.put(namespace, "k", 1, ttl, NOW)

    assert got(values, namespace, "k") == 1
    assert not (project / ".mind" / "values").exists()
    assert got(Values(project, "somebody else"), namespace, "k") is None


@pytest.mark.req("002-21", "002-26")
def test_a_value_expires_for_every_reader(values: Values, project: Path) -> None:
    values.put("agent.a", "k", 1, 60, NOW)

    assert got(values, "agent.a", "k", seconds=59.9) == 1
    assert got(Values(project, "me"), "agent.a", "k", seconds=60) is None
    assert values.keys("agent.a", NOW + timedelta(seconds=60)) == []


@pytest.mark.req("002-26")
def test_a_ttl_of_zero_removes_the_earlier_value(values: Values) -> None:
    for first in (None, 60):
        values.put("agent.a", "k", 1, first, NOW)
        values.put("agent.a", "k", 2, 0, NOW)
        assert got(values, "agent.a", "k") is None


@pytest.mark.parametrize(("first", "second"), [(None, 60), (60, None), (60, 90), (None, None)])
def test_the_last_write_replaces_a_file_or_a_database_entry(
    values: Values, first: int | None, second: int | None
) -> None:
    values.put("agent.a", "k", "old", first, NOW)
    values.put("agent.a", "k", "new", second, NOW)

    assert got(values, "agent.a", "k") == "new"
    assert values.keys("agent.a", NOW) == ["k"]
    assert got(values, "agent.a", "k", days=1) == ("new" if second is None else None)


@pytest.mark.parametrize("ttl", [60, 0])
def test_a_put_that_can_not_remove_the_file_leaves_the_value_unchanged(
    values: Values, monkeypatch: pytest.MonkeyPatch, ttl: int
) -> None:
    values.put("agent.a", "k", "old", None, NOW)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", _refuse)
        with pytest.raises(StorageFailed):
            values.put("agent.a", "k", "new", ttl, NOW)

    assert got(values, "agent.a", "k") == "old"
    assert values.keys("agent.a", NOW) == ["k"]


@pytest.mark.parametrize("held", ["write", "read"])
def test_a_put_while_the_database_is_held_leaves_the_value_unchanged(
    project: Path, monkeypatch: pytest.MonkeyPatch, held: str
) -> None:
    monkeypatch.setattr(disk, "WAIT_SECONDS", 0.01)
    values = Values(project, "me")
    values.put("agent.a", "k", "temporary", 60, NOW)
    (path,) = (project / ".mind" / ".local").glob("values-*.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        if held == "write":
            other.execute("BEGIN IMMEDIATE")
        else:  # The transaction begins, and can't be committed.
            other.execute("BEGIN")
            other.execute("SELECT * FROM entries").fetchall()
        with pytest.raises(StorageFailed, match="is held by another process"):
            values.put("agent.a", "k", "permanent", None, NOW)

    assert got(values, "agent.a", "k") == "temporary"
    assert got(values, "agent.a", "k", seconds=60) is None


def test_a_removal_that_fails_leaves_both_values(
    values: Values, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values.put("agent.a", "k", "temporary", 60, NOW)
    write(project, "agent.a/k.md", "---\nvalue: from git\n---\n")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", _refuse)
        with pytest.raises(StorageFailed):
            values.remove("agent.a", "k", NOW)

    assert got(values, "agent.a", "k") == "temporary"
    assert got(values, "agent.a", "k", seconds=60) == "from git"


def _refuse(path: Path, missing_ok: bool = False) -> None:
    raise PermissionError(errno.EPERM, "operation not permitted", str(path))


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize(("first", "second"), [(None, 60), (60, None)])
@pytest.mark.parametrize("read", ["read", "keys"])
def test_a_value_that_moves_during_a_read_is_not_missed(
    values: Values,
    monkeypatch: pytest.MonkeyPatch,
    read: str,
    first: int | None,
    second: int | None,
    late: bool,
) -> None:
    """Another writer moves it before or after the files are read."""
    values.put("agent.a", "k", "old", first, NOW)
    original = getattr(ValueFiles, read)

    def moving(*words: Any) -> Any:
        monkeypatch.undo()
        early = original(*words)
        values.put("agent.a", "k", "new", second, NOW)
        return early if late else original(*words)

    monkeypatch.setattr(ValueFiles, read, moving)

    assert values.get("agent.a", "k", NOW) is not None
    assert values.keys("agent.a", NOW) == ["k"]


def test_setting_the_clock_back_neither_revives_nor_prolongs_a_value(
    values: Values,
) -> None:
    values.put("agent.a", "gone", 1, 60, NOW)
    values.put("agent.a", "here", 1, 600, NOW)
    assert got(values, "agent.a", "gone", seconds=61) is None

    assert got(values, "agent.a", "gone", days=-1) is None
    assert got(values, "agent.a", "here", days=-1) == 1
    assert got(values, "agent.a", "here", days=-1, seconds=601) is None


def test_expired_values_are_removed_from_the_disk(values: Values, project: Path) -> None:
    values.put("session.a", "k", "a word to forget", 60, NOW)
    assert values.expire(NOW + timedelta(seconds=60)) == 1
    values.close()

    for path in (project / ".mind" / ".local").iterdir():
        assert b"a word to forget" not in path.read_bytes()


def test_removing_returns_whether_there_was_a_value(values: Values) -> None:
    values.put("agent.a", "k", 1, None, NOW)
    values.put("session.a", "k", 1, 60, NOW)

    assert values.remove("agent.a", "k", NOW)
    assert not values.remove("agent.a", "k", NOW)
    assert not values.remove("session.a", "k", NOW + timedelta(seconds=61))


@pytest.mark.req("002-58")
def test_a_full_namespace_refuses_and_evicts_nothing(values: Values) -> None:
    for number in range(MOST_ITEMS):
        values.put("session.a", f"k{number}", number, 3600, NOW)

    with pytest.raises(QuotaExceeded) as caught:
        values.put("session.a", "more", 1, None, NOW)
    assert caught.value.code == "QUOTA_EXCEEDED"
    assert caught.value.details["namespace"] == "session.a"
    assert len(values.keys("session.a", NOW)) == MOST_ITEMS
    values.put("session.a", "k0", "another value of the same key", 3600, NOW)
    values.put("session.b", "k", 1, None, NOW)
    values.put("session.a", "more", "after an hour there is room", 60, NOW + timedelta(hours=1))


@pytest.mark.parametrize("namespace", ["session.a", "agent.a"])
@pytest.mark.req("002-58")
def test_the_quota_counts_bytes(
    values: Values, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.project.values.MOST_BYTES", 3_100_000)
    large = "x" * 1_000_000
    for number in range(3):
        values.put(namespace, f"k{number}", large, None, NOW)

    with pytest.raises(QuotaExceeded, match="bytes"):
        values.put(namespace, "more", large, None, NOW)
    values.put(namespace, "small", "x", None, NOW)


@pytest.mark.req("002-23", "002-58")
def test_a_value_that_is_too_large_leaves_the_key_unchanged(
    values: Values,
) -> None:
    values.put("agent.a", "k", "old", None, NOW)

    with pytest.raises(QuotaExceeded):
        values.put("agent.a", "k", "é" * 524_288, None, NOW)
    assert got(values, "agent.a", "k") == "old"
    values.put("agent.a", "k", "x" * (1024 * 1024 - 2), None, NOW)


@pytest.mark.parametrize("namespace", ["agent.a", "session.a"])
def test_concurrent_writers_lose_nothing_and_keep_the_quota(
    values: Values, project: Path, namespace: str
) -> None:
    for number in range(MOST_ITEMS - 100):
        if namespace == "agent.a":
            write(project, f"agent.a/k{number}.md", "---\nvalue: 1\n---\n")
        else:
            values.put(namespace, f"k{number}", 1, None, NOW)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PUT, str(project), namespace, str(number)],
            stdout=subprocess.PIPE,
        )
        for number in range(2)
    ]
    refused = sum(int(process.communicate()[0]) for process in started)

    assert refused == 20
    assert len(values.keys(namespace, NOW)) == MOST_ITEMS


def test_files_written_by_hand_are_read(values: Values, project: Path) -> None:
    write(project, "agent.a/theme.md", "---\nvalue: dark\n---\nSaid by hand.\n")
    write(project, "agent.a/list.md", "```json\n[1, 2]\n```\n")

    assert values.keys("agent.a", NOW) == ["list", "theme"]
    assert got(values, "agent.a", "theme") == "dark"
    assert got(values, "agent.a", "list") == [1, 2]


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        ("agent.a/k.md", "nothing here\n", "needs one value"),
        ("agent.a/k.md", "---\nnamespace: agent.b\nvalue: 1\n---\n", "belongs into"),
        ("agent.a/k.md", "---\nkey: other\nvalue: 1\n---\n", "belongs into"),
        ("agent.a/k.md", "---\nkey: ../x\nvalue: 1\n---\n", "not a name of a key"),
        ("agent.a/My notes.md", "---\nvalue: 1\n---\n", "not a name of a key"),
        ("agent.a/A.md", "---\nvalue: 1\n---\n", "belongs into"),
        ("agent.a/a~00000000.md", "---\nkey: a\nvalue: 1\n---\n", "belongs into"),
        ("Agent.a/k.md", "---\nvalue: 1\n---\n", "belongs into"),
        ("loose.md", "---\nvalue: 1\n---\n", "outside of any namespace"),
        ("agent.a/sub/k.md", "---\nvalue: 1\n---\n", "not a regular file"),
    ],
)
def test_a_broken_file_is_reported_and_unchanged(
    values: Values, project: Path, path: str, text: str, reason: str
) -> None:
    write(project, path, text)

    (problem,) = ValueFiles(project).everything()
    assert isinstance(problem, Problem)
    assert reason in problem.reason
    if path == "agent.a/k.md":
        for attempt in (
            lambda: values.get("agent.a", "k", NOW),
            lambda: values.put("agent.a", "k", 1, None, NOW),
            lambda: values.put("agent.a", "k", 1, 60, NOW),
            lambda: values.remove("agent.a", "k", NOW),
        ):
            with pytest.raises(StorageFailed):
                attempt()
        assert list(ValueFiles(project).everything()) == [problem]
        assert not list((project / ".mind" / ".local").glob("values-*.db"))
    assert (project / ".mind" / "values" / path).read_text(encoding="utf-8") == text


def test_other_keys_that_would_grow_too_large_leave_the_file_unchanged(
    values: Values, project: Path
) -> None:
    blank = "\n" * 40_000
    write(project, "agent.a/k.md", f"---\nnote: |\n  a{blank}  b\nvalue: 1\n---\n")
    path = project / path_of("agent.a", "k")
    before = path.read_bytes()

    with pytest.raises(Invalid, match="larger than 64 KiB") as caught:
        values.put("agent.a", "k", 2, None, NOW)

    assert "nothing was changed" in (caught.value.hint or "")
    assert path.read_bytes() == before
    assert got(values, "agent.a", "k") == 1
    assert values.remove("agent.a", "k", NOW)


def test_a_header_with_another_namespace_is_refused(values: Values, project: Path) -> None:
    write(project, "public.a/k.md", "---\nnamespace: agent.a\nkey: k\nvalue: 1\n---\n")

    assert values.get("agent.a", "k", NOW) is None
    with pytest.raises(StorageFailed):
        values.get("public.a", "k", NOW)


def test_a_file_in_the_folder_of_a_session_is_ignored(values: Values, project: Path) -> None:
    write(project, "session.a/k.md", "---\nvalue: planted\n---\n")

    assert values.get("session.a", "k", NOW) is None
    assert values.keys("session.a", NOW) == []


@pytest.mark.parametrize("content", [b"not a database", b"", b"SQLite format 3\0" + b"\0" * 200])
def test_a_damaged_database_is_reported_and_kept(
    values: Values, project: Path, content: bytes
) -> None:
    values.put("session.a", "k", 1, None, NOW)
    values.close()
    (path,) = (project / ".mind" / ".local").glob("values-*.db")
    for beside in path.parent.glob(f"{path.name}-*"):
        beside.unlink()
    path.write_bytes(content)

    if content:
        with pytest.raises(StorageFailed) as caught:
            values.get("session.a", "k", NOW)
        assert "remove it" in caught.value.hint
        assert path.read_bytes() == content
    else:
        assert values.get("session.a", "k", NOW) is None


def test_a_database_with_another_schema_is_refused(project: Path) -> None:
    path = project / ".mind" / ".local" / "x.db"
    path.parent.mkdir(exist_ok=True)
    schema = "CREATE TABLE t (a TEXT)"
    with sqlite3.connect(path) as connection:
        connection.execute(schema)
        connection.execute("CREATE TRIGGER evil AFTER INSERT ON t BEGIN DELETE FROM t; END")
    connection.close()

    with (
        pytest.raises(StorageFailed, match="did not create it"),
        Database(partial(files.local, project, "x.db"), schema).writing(),
    ):
        pass


@pytest.mark.req("002-46")
def test_one_connection_serves_every_call(values: Values) -> None:
    for number in range(10):
        values.put("session.a", f"k{number}", number, 60, NOW)
        assert got(values, "session.a", f"k{number}") == number

    assert values._database.openings == 1


def test_a_removed_database_is_created_again(values: Values, project: Path) -> None:
    values.put("session.a", "k", 1, None, NOW)
    (path,) = (project / ".mind" / ".local").glob("values-*.db")
    path.unlink()
    assert got(values, "session.a", "k") is None
    other = Values(project, "me")
    other.put("session.a", "k", 2, None, NOW)
    assert got(values, "session.a", "k") == 2

    path.unlink()
    other.put("session.a", "k", 3, None, NOW)
    values.put("session.a", "l", 4, None, NOW)
    assert other.keys("session.a", NOW) == ["k", "l"]


def test_a_linked_folder_is_refused(values: Values, project: Path) -> None:
    (project / ".mind" / "values").write_text("in the way", encoding="utf-8")

    with pytest.raises(StorageFailed):
        values.put("agent.a", "k", 1, None, NOW)
    with pytest.raises(Invalid):
        values.put("agent.a", "k", {"x": float("nan")}, None, NOW)
