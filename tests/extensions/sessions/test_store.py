"""The database of kept sessions: never lost, refused if it is damaged, and described by doctor."""

import os
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.config import CLIENTS
from mimo.errors import Invalid, LaterFormat, NotFound, StorageFailed
from mimo.extensions.sessions import describing, indexing, readers, store, turning_on
from mimo.extensions.sessions.model import Facts, Kind, Progress, Role, Source, Turn
from mimo.extensions.sessions.readers.lines import WITHOUT_ZSTD
from mimo.extensions.sessions.reading import Selection
from mimo.extensions.sessions.store import SourceState
from tests.conftest import NOW, make_store
from tests.extensions.sessions.claude import CWD, Clients, said
from tests.kit import do, put

ONE, TWO = "11111111-1111", "22222222-2222"


@pytest.fixture
def clients(tmp_path: Path) -> Clients:
    return Clients(tmp_path)


def test_files_are_private(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys"))
    clients.read()
    assert clients.store.path.parent.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in clients.store.path.parent.iterdir()} == {0o600}


@pytest.mark.parametrize("damage", [b"", b"not a database at all" * 100, None])
def test_a_damaged_database_is_refused_and_stays(clients: Clients, damage: bytes | None) -> None:
    clients.write(ONE, said("a", "Use keys"))
    clients.read()
    clients.store.close()
    data = clients.store.path.read_bytes()
    spoiled = data[:4096] + b"\xff" * (len(data) - 4096) if damage is None else damage
    clients.store.path.write_bytes(spoiled)
    if not damage and damage is not None:  # An empty one has nothing to lose.
        assert clients.read().turns == 1
        return
    with pytest.raises(StorageFailed) as caught:
        clients.read()
    assert "may be the only copy" in str(caught.value)
    assert "put a backup of it in its place" in str(caught.value.hint)
    assert clients.store.path.read_bytes() == spoiled


def test_a_number_that_is_none_is_damage(clients: Clients) -> None:
    clients.write("one", said("a", "Use keys"))
    clients.read()
    with clients.store.writing() as sql:
        sql.execute("UPDATE sources SET inode = '12''6'")
    with pytest.raises(StorageFailed):
        clients.reading().run()


def test_damage_that_a_use_within_another_finds_is_stated_with_the_file(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys"))
    clients.read()
    with closing(sqlite3.connect(clients.store.path)) as sql:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'sources'"
        (page,) = sql.execute(query).fetchone()
        (size,) = sql.execute("PRAGMA page_size").fetchone()
    clients.store.close()
    with clients.store.path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    for use in (clients.store.reading, clients.store.writing):
        with pytest.raises(StorageFailed, match="may be the only copy") as caught, use():
            clients.reading().behind()
        assert str(clients.store.path) in str(caught.value)


def test_a_database_of_a_later_version_is_refused_and_stays(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys"))
    clients.read()
    clients.store.close()
    with closing(sqlite3.connect(clients.store.path)) as sql:
        sql.execute("PRAGMA user_version = 7")
    with pytest.raises(LaterFormat):
        clients.read()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_home_that_is_read_only_is_read(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys"))
    clients.read()
    clients.store.close()
    clients.store.path.chmod(0o400)
    clients.store.path.parent.chmod(0o500)
    try:
        assert clients.texts(ONE) == ["Use keys"]
        clients.append(ONE, said("b", "More", minute=5))
        with pytest.raises(StorageFailed):
            clients.read()
    finally:
        clients.store.path.parent.chmod(0o700)


def test_a_full_disk_loses_nothing(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys"), hours_ago=3)
    clients.read()
    with clients.store.writing() as sql:
        sql.execute("PRAGMA max_page_count = 1")  # It can't grow.
    clients.append(ONE, said("b", "word " * 30_000, minute=5))
    with pytest.raises(StorageFailed, match="full"):
        clients.read()
    assert clients.texts(ONE) == ["Use keys"]
    clients.store.close()
    clients.read()
    assert len(clients.texts(ONE)) == 2


def test_two_stores_of_one_home_see_the_same(clients: Clients, tmp_path: Path) -> None:
    other = Clients(tmp_path)
    clients.write(ONE, said("a", "Use keys"))
    clients.read()
    other.append(ONE, said("b", "More", minute=5))
    assert other.read().turns == 1
    assert clients.texts(ONE) == ["Use keys", "More"]
    other.forget([ONE])
    assert clients.sessions() == {}


def test_sessions_are_found_by_id_its_beginning_and_the_client_s_id(clients: Clients) -> None:
    for id in (ONE, TWO, "33331111-1111"):
        clients.write(id, said(id, f"Said {id}"))
    clients.read()
    with clients.store.reading() as sql:
        ids = {each.native_id: each.id for each in store.sessions(sql)}
        assert ids == {
            "33331111-1111": "cc-311111111",
            ONE: "cc-11111111",
            TWO: "cc-22222222",
        }
        assert store.find(sql, "session:cc-22222222#4").native_id == TWO
        assert store.find(sql, "cc-3").native_id == "33331111-1111"
        assert store.find(sql, ONE).native_id == ONE
        with pytest.raises(Invalid):
            store.find(sql, "cc-")
        with pytest.raises(NotFound):
            store.find(sql, "cc-%")


def test_a_greeting_is_the_title_only_until_there_are_more_words(clients: Clients) -> None:
    clients.write(ONE, said("a", "hi", "Hello!"))
    clients.write(TWO, said("b", "결제 오류", "Which?", "The one of today, at the terminal"))
    clients.read()
    assert [each.title for each in clients.sessions().values()] == ["결제 오류", "hi"]
    clients.append(ONE, said("c", "Set up the deployment", "Done.", "Now pin it", minute=5))
    clients.read()
    assert clients.sessions()[ONE].title == "Set up the deployment"


def test_ids_hold_only_letters_and_digits_of_hostile_ones(clients: Clients) -> None:
    with clients.store.writing() as sql:
        for native_id in ("; rm -rf ~", "--help", "../../x", "é\x1b[31m", "…"):
            facts = Facts(client="codex", native_id=native_id, kind=Kind.MAIN)
            store.key_of(sql, facts, make=True)
        assert all(each.id.isascii() or "é" in each.id for each in store.sessions(sql))
        assert all(" " not in each.id and "/" not in each.id for each in store.sessions(sql))


def test_numbers_stay_with_equal_turns_of_long_sessions(clients: Clients) -> None:
    facts = Facts(client="codex", native_id="x")
    turns = [Turn(role=Role.USER, text=f"Turn {n % 700}") for n in range(3_000)]
    with clients.store.writing() as sql:
        key = store.key_of(sql, facts, make=True)
        assert key is not None
        assert store.put(sql, key, turns, 0, {}) == (3_000, True)
        numbers = store.numbers(sql, key)
        assert store.put(sql, key, turns, 0, numbers) == (3_000, False)
        assert store.put(sql, key, turns[5:], 0, numbers) == (3_000, False)
        assert store.end_of(sql, key) == (3_000, 0)


# What doctor reports.


@pytest.fixture
def mind(call: Call) -> Call:
    do(call, "config", key="sessions.enabled", value="on")
    return call


def selected(call: Call) -> Selection:
    """Returns the selection of a process that starts now."""
    return turning_on.selection(call.mind.reopened())


def lines(call: Call) -> list[str]:
    return [f"{line.message} | {line.hint}" for line in describing.described(call.mind)]


def test_the_state_of_each_client_is_described(mind: Call) -> None:
    assert lines(mind) == [
        "sessions are on, and none was read yet | read them with `mind sessions index`"
    ]
    kept = indexing.sessions_of(mind.mind).store
    with kept.exclusive():
        pass
    os.utime(kept.lock, (0, mind.mind.now().timestamp()))
    assert lines(mind) == ["0 sessions; last read on 2026-11-20 at 15:30 | "]
    with kept.exclusive(), kept.writing() as sql:
        facts = Facts(client="codex", native_id="x")
        key = store.key_of(sql, facts, make=True)
        assert key is not None
        store.put(sql, key, [Turn(role=Role.USER, text="word " * 500_000)], 0, {})
        store.sum_up(sql, key, facts, CWD, at=0, copies=0)
        state = SourceState(Source(Path("/1")), "codex", "x", Progress(), b"", 100, 31)
        store.note_source(sql, state)
        store.note_source(sql, state._replace(source=Source(Path("/2")), problem=WITHOUT_ZSTD))
        store.note_source(sql, state._replace(source=Source(Path("/3")), problem=WITHOUT_ZSTD))
        denied = state._replace(source=Source(Path("/5")), problem="Permission denied")
        store.note_source(sql, denied)
        store.note_source(
            sql, state._replace(source=Source(Path("/6 ghp_" + "a1" * 18)), problem="damaged")
        )
        long_ago = mind.mind.now() - timedelta(days=1)
        store.note_source(sql, state._replace(source=Source(Path("/4")), missing_since=long_ago))
    os.utime(kept.lock, (0, mind.mind.now().timestamp()))
    assert lines(mind) == [
        "1 session of codex, 2.5 MB of text; last read on 2026-11-20 at 15:30 | ",
        "1 transcript of codex deleted since; what was read of them is kept | ",
        "31 % of the records of codex are unknown | update mind: the client changed its form",
        (
            "1 transcript of codex can't be read: Permission denied (`/5`)"
            " | give yourself the right to read it, if you want to keep it; each run tries again"
        ),
        (
            "1 transcript of codex can't be read: damaged (`/6 [REDACTED:github_token]`)"
            " | what is before the damage is kept; each run tries again"
        ),
        (
            f"2 transcripts of codex can't be read: {WITHOUT_ZSTD} (such as `/2`)"
            " | pip install './mimo[zstd]' beside the checkout; each run tries again"
        ),
    ]


# The user's settings, and those of projects.


def test_a_damaged_transcript_that_is_left_out_is_not_described(clients: Clients) -> None:
    left_out = SourceState(
        *(Source(Path("/a.jsonl")), "codex", "", Progress(), b""), problem="damaged", omitted="/srv"
    )
    with clients.store.writing() as sql:
        store.note_source(sql, left_out)
        assert store.summary(sql, NOW) == {}


def test_every_client_with_a_reader_can_be_named() -> None:
    assert set(readers.CLIENTS) == set(CLIENTS)


def test_settings_select_what_is_kept(mind: Call) -> None:
    do(mind, "config", key="sessions.exclude", value="~/private, /srv")
    do(mind, "config", key="sessions.clients", value="codex")
    do(mind, "config", key="sessions.keep_days", value="10")
    selection = selected(mind)
    assert selection.clients == {"codex"}
    assert not selection.admits(str(Path("~/private/x").expanduser()))
    assert selection.keep == timedelta(days=10)
    put(mind.mind.home / "config.toml", '[sessions]\nenabled = "on"\nclients = ["codexx"]\n')
    assert "codexx" in selected(mind).problem


def test_a_folder_is_left_out_by_the_name_of_a_link_to_it_too(mind: Call, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "private")
    do(mind, "config", key="sessions.exclude", value=f"{tmp_path / 'link'}, relative")
    for name in ("link", "private"):
        assert not selected(mind).admits(str(tmp_path / name / "shop"))
    assert selected(mind).admits(str(Path.cwd() / "relative"))
    do(mind, "config", key="sessions.exclude", value="~nobody-of-this-name/x")
    with pytest.raises(Invalid, match="unknown user"):
        selected(mind)


OFF = 'format = 1\n\n[sessions]\nproject = "off"\n'


def test_a_project_restricts_at_once_and_removes_once_approved(mind: Call, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    put(make_store(clone) / "config.toml", OFF)
    selection = selected(mind)
    assert (selection.permits(str(clone)), selection.removes(str(clone))) == (False, False)
    assert (selection.permits(""), selection.permits("/nowhere")) == (True, True)
    root = str(mind.mind.project.root)
    assert (selected(mind).permits(root), selected(mind).removes(root)) == (True, False)
    put(mind.mind.folder / "config.toml", OFF)  # The user's own project.
    assert (selected(mind).permits(root), selected(mind).removes(root)) == (False, True)


@pytest.mark.parametrize(
    "policy",
    [
        "tool_permissions:\n  memories:\n    operations: [READ]\n",
        "tool_permissions:\n  '*':\n    operations: []\n",
        "tool_permissions: 5\n",
        "tool_permissions:\n  mind_sessions_index:\n    operations: []\n",
    ],
)
def test_a_policy_that_forbids_to_save_keeps_sessions_out(mind: Call, policy: str) -> None:
    put(mind.mind.folder / "policy.yaml", policy)
    selection = selected(mind)
    root = str(mind.mind.project.root)
    assert (selection.permits(root), selection.removes(root)) == (False, False)
