"""A project in the shared index: its states, its names, and the end of sharing it."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from threading import Thread

import psycopg
import pytest

from mimo.call.spec import to_json
from mimo.cli.main import main
from mimo.errors import Denied, StorageFailed
from mimo.extensions.team import sharing
from mimo.extensions.team.postgres import schema, writing
from mimo.features.notes.commands import add, edit, rm
from mimo.features.search.commands import search
from mimo.features.upkeep.indexing import index
from mimo.features.upkeep.status import status
from mimo.operations import refresh
from tests.conftest import git
from tests.extensions.team.postgres.conftest import ORG, Open, Postgres
from tests.extensions.team.postgres.test_organisation import rows
from tests.kit import repository


def dump(postgres: Postgres, database: str) -> dict[str, str]:
    """Returns the content of each table, as text."""
    with psycopg.connect(postgres.url(database)) as sql:
        names = sql.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'mind'").fetchall()
        return {
            name: str(sql.execute(f"SELECT t::text FROM mind.{name} t".encode()).fetchall())
            for (name,) in names
        }


def test_a_memory_that_becomes_private_leaves_the_server_with_the_next_push(
    opened: Open, postgres: Postgres, database: str
) -> None:
    shop = opened("ana", "shop")
    add(shop, "Kafka is what we use")
    code = add(shop, "Zanzibar is the code name", topic="zanzibar", tags=("zanzi",)).id
    index(shop)
    index(shop, push=True)
    assert "zanzi" in dump(postgres, database)["frequencies"]
    (file,) = [path for path in shop.mind.folder.rglob("*.md") if code in path.read_text("utf-8")]
    private = shop.mind.folder / "private" / file.name
    private.parent.mkdir(exist_ok=True)
    file.rename(private)
    index(shop, push=True)
    held = dump(postgres, database)
    assert [name for name, text in held.items() if "zanzi" in text.lower()] == []
    assert "Kafka" in held["memories"]


def test_a_memory_that_becomes_private_without_a_commit_leaves_with_the_next_push(
    opened: Open, postgres: Postgres, database: str
) -> None:
    shop = opened("ana", "shop")
    add(shop, "Kafka is what we use")
    code = add(shop, "Zanzibar is the code name")
    index(shop, push=True)
    assert not sharing.is_behind(shop)
    (file,) = [
        path for path in shop.mind.folder.rglob("*.md") if code.id in path.read_text("utf-8")
    ]
    (shop.mind.folder / "private").mkdir(exist_ok=True)
    file.rename(shop.mind.folder / "private" / file.name)
    assert sharing.is_behind(shop)

    sharing.push_if_behind(shop)

    assert "Kafka" in dump(postgres, database)["memories"]
    assert "zanzibar" not in str(dump(postgres, database)).lower()
    assert not sharing.is_behind(shop)


def test_a_push_that_waited_for_another_pushes_what_is_there_then(
    opened: Open, postgres: Postgres, database: str
) -> None:
    shop, other = opened("ana", "shop"), opened("ana", "shop")
    index(shop, push=True)
    code = add(shop, "Zanzibar is the code name")
    with psycopg.connect(postgres.url(database), autocommit=True) as sql:
        sql.execute("SELECT pg_advisory_lock(%s, key) FROM mind.projects", (schema.LOCK,))
        thread = Thread(target=sharing.push, args=[shop])
        thread.start()
        waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while thread.is_alive() and not sql.execute(waiting.encode()).fetchone():
            thread.join(0.01)
        rm(other, code.id)
        refresh.refresh(other)
        sql.execute("SELECT pg_advisory_unlock_all()")
        thread.join()
    assert "zanzibar" not in str(dump(postgres, database)).lower()
    assert not sharing.is_behind(other)


def test_the_states_of_worktrees_share_rows_and_others_read_the_main_branch(
    opened: Open, postgres: Postgres, database: str
) -> None:
    shop, billing = opened("ana", "shop"), opened("ana", "billing")
    root = shop.mind.project.root
    add(shop, "Kafka is what we use")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "Remember")
    git(root, "worktree", "add", "-q", "-b", "feature", "../feature")
    feature = opened("ana", "feature")
    add(feature, "Kafka is replaced by NATS")
    index(shop, push=True)
    done = index(feature, push=True).shared
    assert done
    assert (done.memories, done.added) == (2, 1)
    assert sharing.working_copy(feature).label == "feature"
    with psycopg.connect(postgres.url(database)) as sql:
        counts = [
            sql.execute(f"SELECT count(*) FROM mind.{table}".encode()).fetchone()
            for table in ("projects", "views", "memories", "entries")
        ]
    assert counts == [(1,), (2,), (2,), (3,)]
    titles = [title for _, title in rows(search(billing, "kafka", scope=ORG))]
    assert titles == ["Kafka is what we use"]
    # Another branch in the same folder is the same state.
    git(root, "switch", "-q", "-c", "other")
    index(shop, push=True)
    with psycopg.connect(postgres.url(database)) as sql:
        labels = sql.execute("SELECT label FROM mind.views ORDER BY label").fetchall()
    assert labels == [("feature",), ("other",)]


@pytest.mark.parametrize("who", ["ana", "postgres"])
def test_a_withdrawal_during_a_push_leaves_nothing(
    opened: Open, postgres: Postgres, database: str, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    shop = opened(who, "shop")
    add(shop, "Kafka is what we use")
    index(shop, push=True)
    add(shop, "Zanzibar is the code name")
    other = opened(who, "shop")
    threads: list[Thread] = []

    def during(step: str, done: int, of: int) -> None:
        if step == "Sending memories":
            threads.append(Thread(target=sharing.withdraw_project, args=[other]))
            threads[-1].start()
            while "t" not in dump(postgres, database)["projects"].split(",")[3]:
                threads[-1].join(0.01)

    monkeypatch.setattr(shop, "advance", during)
    with suppress(StorageFailed):
        sharing.push(shop)
    (thread,) = threads
    thread.join()
    held = dump(postgres, database)
    assert {name for name, text in held.items() if text != "[]"} == {"meta", "projects", "access"}


def test_a_first_push_sends_nothing_into_a_project_of_another_role_unless_it_joins(
    opened: Open, postgres: Postgres, database: str
) -> None:
    shop = opened("ana", "shop")
    root = shop.mind.project.root
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "Remember")
    other = opened("ben", "shop", clone_of=root)
    index(other, push=True, writers=("everyone",))
    add(shop, "Zanzibar is the code name")

    with pytest.raises(Denied, match="belongs to `ben`, who chose its readers"):
        index(shop, push=True)
    assert "anzibar" not in str(dump(postgres, database))
    assert sharing.pushed_here(shop) is None

    index(shop, push=True, join=True)
    assert "anzibar" in dump(postgres, database)["memories"]
    add(shop, "Kafka is what we use")
    index(shop, push=True)  # It is known here now.


def test_a_state_that_the_index_has_removed_is_reported_and_pushed_again(
    opened: Open, postgres: Postgres, database: str
) -> None:
    shop = opened("ana", "shop")
    add(shop, "Kafka is what we use")
    index(shop, push=True)
    assert "memories pushed on 2026-" in sharing.described(shop)
    assert not sharing.is_behind(shop)
    with psycopg.connect(postgres.url(database), autocommit=True) as sql:
        sql.execute("DELETE FROM mind.views")

    with pytest.raises(StorageFailed, match="does not have the memories of this clone any more"):
        sharing.described(shop)

    later = shop.mind.now() + timedelta(days=31)
    shop.mind.clock = lambda: later
    assert sharing.is_behind(shop)
    sharing.push_if_behind(shop)
    assert not sharing.is_behind(shop)
    assert "memories pushed on" in sharing.described(shop)


def test_a_push_is_complete_although_the_index_by_nearness_fails(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise psycopg.errors.DiskFull("no space left")

    shop = opened("ana", "shop")
    add(shop, "Kafka is what we use")
    monkeypatch.setattr(writing, "_make_nearness", fails)

    shared = index(shop, push=True).shared

    assert shared
    assert shared.memories == 1
    assert not sharing.is_behind(shop)


def test_a_writer_whose_right_is_revoked_changes_nothing_more(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, billing = opened("ana", "shop"), opened("ana", "billing")
    add(shop, "Kafka is what we use")
    git(shop.mind.project.root, "add", ".")
    git(shop.mind.project.root, "commit", "-q", "-m", "Remember")
    index(shop, push=True, writers=("ben",))
    clone = opened("ben", "shop-of-ben", clone_of=shop.mind.project.root)
    index(clone, push=True, join=True)
    add(clone, "Kafka was replaced by NATS")

    def revoke(step: str, done: int, of: int) -> None:
        if step == "Sending memories":
            sharing.permit(shop, "ben", None)

    with monkeypatch.context() as patch:
        patch.setattr(clone, "advance", revoke)
        with pytest.raises(StorageFailed, match="may not do that"):
            sharing.push(clone)
    with pytest.raises(StorageFailed, match="may not write the project"):
        sharing.push(clone)
    titles = [title for _, title in rows(search(billing, "kafka", scope=ORG))]
    assert titles == ["Kafka is what we use"]


def test_a_project_that_moves_or_is_renamed_has_one_state(
    opened: Open, postgres: Postgres, database: str, tmp_path: Path
) -> None:
    shop = opened("ana", "shop")
    add(shop, "Kafka is what we use")
    index(shop, push=True)
    moved = tmp_path / "ana" / "store"
    shop.mind.close()
    shop.mind.project.root.rename(moved)
    store = opened("ana", "store")
    index(store, push=True)
    with psycopg.connect(postgres.url(database)) as sql:
        assert sql.execute("SELECT count(*) FROM mind.views").fetchone() == (1,)
        assert sql.execute("SELECT count(*) FROM mind.projects").fetchone() == (1,)

    shutil.copytree(moved, tmp_path / "ana" / "copy", symlinks=True)
    index(opened("ana", "copy"), push=True, join=True)
    index(store, push=True)
    with psycopg.connect(postgres.url(database)) as sql:
        assert sql.execute("SELECT count(*) FROM mind.views").fetchone() == (2,)


def test_a_project_without_git_stays_the_same_when_it_has_commits(
    opened: Open, postgres: Postgres, database: str, tmp_path: Path
) -> None:
    root = tmp_path / "ana" / "notes"
    root.mkdir(parents=True)
    notes = opened("ana", "notes")
    add(notes, "Kafka is what we use")
    first, second = index(notes, push=True).shared, index(notes, push=True).shared
    assert first
    assert second
    assert (first.added, second.added) == (1, 0)

    repository(root)
    git(root, "commit", "-q", "--allow-empty", "-m", "Start")
    index(notes, push=True)
    with psycopg.connect(postgres.url(database)) as sql:
        for table in ("projects", "views", "memories", "entries"):
            query = f"SELECT count(*) FROM mind.{table}"
            assert sql.execute(query.encode()).fetchone() == (1,)


def test_projects_in_folders_of_one_repository_are_several(opened: Open, tmp_path: Path) -> None:
    shop = opened("ana", "shop")
    roots = [shop.mind.project.root / name for name in ("web", "app")]
    identities = {sharing.working_copy(shop).identity}
    for root in roots:
        root.mkdir()
        opened_there = opened("ana", f"shop/{root.name}")
        identities.add(sharing.working_copy(opened_there).identity)
    assert len(identities) == 3


def test_names_that_are_not_unicode_do_not_stop_a_push(opened: Open) -> None:
    shop = opened("ana", os.fsdecode(b"caf\xe9"))
    add(shop, "Kafka is what we use")
    heads = shop.mind.project.root / ".git" / "refs" / "heads"
    (heads / "main").rename(heads / os.fsdecode(b"caf\xe9"))
    (shop.mind.project.root / ".git/HEAD").write_bytes(b"ref: refs/heads/caf\xe9\n")
    (shop.mind.folder / "policy.yaml").write_bytes(b"tools: {}\n# \x00\xff\n")
    done = index(shop, push=True).shared
    assert done
    assert done.memories == 1


def test_a_killed_push_is_completed_by_the_next(
    opened: Open, postgres: Postgres, database: str
) -> None:
    shop = opened("ana", "shop")
    add(shop, "Kafka is what we use")
    index(shop, push=True)
    before = dump(postgres, database)
    add(shop, "Zanzibar is the code name")
    index(shop)
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(shop.mind.project.root)],
        env={**os.environ, **shop.mind.environ},
    ) as process:
        assert process.wait() == -signal.SIGKILL
    after = dump(postgres, database)
    assert "Zanzibar" in after["memories"]
    for table in ("views", "entries", "frequencies"):
        assert after[table] == before[table]
    done = index(shop, push=True).shared
    assert done
    assert (done.memories, done.added) == (2, 0)


KILLED = """
import os, signal, sys
from pathlib import Path
from mimo.call import Call, Console
from mimo.mind import Mind
from mimo.extensions.team.postgres import schema
from mimo.operations import refresh
from mimo.extensions.team import sharing
from tests.kit import repository
def advance(step, done, of):
    if step == "Sending memories":
        os.kill(os.getpid(), signal.SIGKILL)
sharing.push(Call(Mind.open(Path(sys.argv[1])), console=Console(progress=advance)))
"""


def test_status_reports_what_was_not_pushed_without_asking_the_server(
    opened: Open, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = opened("ana", "shop")
    ids = [add(shop, text).id for text in ("Kafka is what we use", "Green tea", "Black coffee")]

    def shown() -> str:
        with monkeypatch.context() as patch:
            patch.setattr("mimo.extensions.team.postgres.connection.Server._connection", None)
            main(["status"], open=lambda _: shop.mind)
        lines = capsys.readouterr().out.splitlines()
        return "".join(line.partition(":")[2].strip() for line in lines if "shared index" in line)

    assert shown() == ""
    index(shop, push=True)
    assert shown().endswith(", pushed 2026-11-20, up to date")
    rm(shop, ids[0])
    assert shown().endswith(", pushed 2026-11-20, 1 change since  (`mind index --push`)")
    index(shop, push=True)
    edit(shop, ids[1], content="Green tea at noon")
    add(shop, "Water")
    assert "2 changes since" in shown()
    index(shop, push=True)
    assert "up to date" in shown()
    answer = to_json(status(shop))["current_project"]["shared"]
    assert (answer["memories"], answer["changes"]) == (3, 0)

    index(shop, rebuild=True)
    assert "up to date" in shown()
    add(shop, "Juice")
    assert "changed since" in shown()
