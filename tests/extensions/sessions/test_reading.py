"""Reading transcripts: what grew, was rewritten, moved or is missing, copies, and secrets."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.data.locks import lock
from mimo.errors import Invalid, StorageFailed
from mimo.extensions.sessions import store
from mimo.extensions.sessions.model import Facts, Part, Progress, Role, Source, Turn
from mimo.extensions.sessions.reading import Read, Reading, Selection, project_of
from mimo.frozen import replace
from tests.conftest import NOW
from tests.extensions.sessions.claude import CWD, Clients, edited, said, text_of
from tests.kit import repository

ONE, TWO = "11111111-1111", "22222222-2222"


@pytest.fixture
def clients(tmp_path: Path) -> Clients:
    return Clients(tmp_path)


def test_a_folder_of_no_possible_name_and_a_time_of_no_number_stop_no_run(clients: Clients) -> None:
    clients.write(ONE, said("a", "One", cwd=f"/{'x' * 300}"))
    late = clients.write(TWO, said("b", "Two"))
    os.utime(late, ns=(10**19, 10**19))
    if late.stat().st_mtime_ns < 10**19:
        pytest.skip("the file system has no such time")
    assert clients.read() == Read(sources=2, turns=2)
    assert clients.reading().behind() == 0


# What changed.


def test_an_unchanged_transcript_is_not_read_again(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys", "Done"))
    assert clients.reading().behind() == 1
    assert clients.read().turns == 2
    assert clients.reading().behind() == 0
    assert clients.read() == Read()


def test_a_growing_transcript_is_read_from_where_it_ended(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys", "Done"))
    clients.read()
    clients.append(ONE, said("b", "And rename", "Renamed", minute=5))
    assert clients.read() == Read(sources=1, turns=2)
    assert clients.numbered(ONE) == [
        (1, "Use keys"),
        (2, "Done"),
        (3, "And rename"),
        (4, "Renamed"),
    ]
    assert clients.sessions()[ONE].prompts == 2


def test_a_last_line_that_is_half_written_waits(clients: Clients) -> None:
    whole = text_of(said("a", "Use keys", "Done über"))
    data = whole.encode()
    path = clients.write(ONE, whole)
    path.write_bytes(data[:-20])
    clients.touch(path, hours_ago=2)
    clients.read()
    assert clients.texts(ONE) == ["Use keys"]
    path.write_bytes(data)
    clients.touch(path, hours_ago=1)
    clients.read()
    assert clients.texts(ONE) == ["Use keys", "Done über"]


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        (["A", "B", "E", "F", "G"], {1: "A", 2: "B", 3: "C", 4: "D", 5: "E", 6: "F", 7: "G"}),
        (["A", "X", "E", "F"], {1: "A", 2: "X", 5: "E", 6: "F"}),
        (["A", "X", "Y"], {1: "A", 2: "X", 3: "Y"}),
        (["X", "A", "B"], {1: "X", 2: "A", 3: "B"}),
    ],
)
def test_equal_turns_of_a_rewritten_transcript_keep_their_numbers(
    clients: Clients, texts: list[str], kept: dict[int, str]
) -> None:
    clients.write(ONE, said("a", *"ABCDEF"))
    clients.read()
    clients.write(ONE, said("b", *texts), hours_ago=0.5)
    clients.read()
    assert dict(clients.numbered(ONE)) == kept


def test_a_transcript_rewritten_at_equal_size_is_read_again(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys", "Done"))
    clients.read()
    clients.write(ONE, said("a", "Use kegs", "Done"), hours_ago=0.5)
    clients.read()
    assert clients.texts(ONE) == ["Use kegs", "Done"]


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_transcript_that_was_cut_off_loses_nothing(clients: Clients, left: int) -> None:
    records = said("a", "One", "First", "Two", "Second")
    clients.write(ONE, records)
    clients.read()
    revision = clients.sessions()[ONE].revision
    clients.write(ONE, records[:left], hours_ago=0.5)
    clients.read()
    assert clients.texts(ONE) == ["One", "First", "Two", "Second"]
    assert clients.sessions()[ONE].revision == revision


def test_a_session_in_use_is_read_when_it_is_quiet(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys"), hours_ago=1 / 3600)
    assert clients.reading().behind() == 0
    assert clients.read().sources == 0
    clients.now += timedelta(seconds=10)
    assert clients.read().sources == 1


def test_a_clock_that_was_ahead_delays_no_session(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys"), hours_ago=-5)
    assert clients.read().turns == 1


def test_a_moved_transcript_is_the_same_session(clients: Clients) -> None:
    path = clients.write(ONE, said("a", "Use keys", "Done"))
    clients.read()
    kept = clients.sessions()[ONE]
    folder = clients.project.with_name("-archive")
    folder.mkdir()
    path.rename(folder / path.name)
    clients.read()
    assert clients.sessions() == {ONE: kept}
    with clients.store.reading() as sql:
        assert [each[0] for each in store.source_states(sql, "claude-code")] == [
            str(folder / path.name)
        ]


def test_a_smaller_copy_of_a_transcript_takes_nothing_away(clients: Clients) -> None:
    clients.write(ONE, said("a", "One", "First", "Two", "Second"))
    clients.read()
    copy = clients.project.with_name("-backup") / f"{ONE}.jsonl"
    copy.parent.mkdir()
    copy.write_text(text_of(said("a", "One", "Other")))
    clients.touch(copy, hours_ago=0.5)
    clients.read()
    assert clients.texts(ONE) == ["One", "First", "Two", "Second"]
    clients.append(ONE, said("b", "Three", minute=9), hours_ago=0.25)
    clients.read()
    assert clients.texts(ONE)[-1] == "Three"
    assert clients.reading().behind() == 0


CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "rewrite", "cut", "delete", "move"]), st.integers(0, 6)),
    max_size=8,
)


@given(changes=CHANGES)
def test_after_any_changes_all_that_a_transcript_has_is_kept(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, int]]
) -> None:
    clients, numbers = Clients(tmp_path_factory.mktemp("clients")), iter(range(10_000))
    folder, lines = clients.project, [*said("a", "Begin", "Begun")]
    path = clients.write(ONE, lines)
    for change, place in changes:
        clients.read()
        previous, is_new = clients.texts(ONE), change == "rewrite" or not lines
        clients.now += timedelta(hours=2)
        new = said(f"n{next(numbers)}", f"Ask {next(numbers)}", f"Answer {next(numbers)}")
        if change == "move":
            folder = clients.project.with_name(f"-moved-{next(numbers)}")
            folder.mkdir()
            path = path.rename(folder / path.name) if path.exists() else folder / path.name
        else:
            keep = {"add": len(lines), "rewrite": place, "cut": place, "delete": 0}[change]
            lines = lines[:keep] + (new if change in ("add", "rewrite") else [])
            path.write_text(text_of(lines))
        clients.touch(path, hours_ago=1) if path.exists() else None
        if change == "delete":
            path.unlink()
        clients.read()
        current = [line["message"]["content"][0]["text"] for line in lines]
        kept = clients.texts(ONE)
        rest = iter(kept)
        assert all(text in rest for text in current)  # In this order.
        assert is_new or kept[: len(previous)] == previous
        assert len(clients.sessions()) == 1
        assert clients.read().turns == 0


# What is missing.


def test_what_the_client_deleted_is_kept(clients: Clients) -> None:
    path = clients.write(ONE, said("a", "Use keys", "Done"))
    clients.write(TWO, said("b", "Other"))
    clients.read()
    path.unlink()
    clients.read()
    assert clients.texts(ONE) == ["Use keys", "Done"]
    clients.write(ONE, said("a", "Use keys", "Done"))  # It was on a disk that is back.
    assert clients.read().turns == 2
    assert clients.numbered(ONE) == [(1, "Use keys"), (2, "Done")]


def test_sources_count_as_missing_after_an_hour_and_not_with_their_root(clients: Clients) -> None:
    def missing() -> int:
        with clients.store.reading() as sql:
            return store.summary(sql, clients.now)["claude-code"].missing

    paths = [clients.write(id, said(id, f"Said {id}")) for id in (ONE, TWO)]
    clients.read()
    for path in paths:
        path.rename(path.with_suffix(".away"))
    clients.read()
    clients.now += timedelta(hours=2)
    clients.read()
    assert missing() == 0
    paths[0].with_suffix(".away").rename(paths[0])
    clients.read()
    assert missing() == 0
    clients.now += timedelta(hours=2)
    clients.read()
    assert missing() == 1


# Copies.


def test_a_fork_has_its_own_turns_and_names_the_original(clients: Clients) -> None:
    shared = said("a", "Use keys", "Done")
    clients.write(ONE, shared, hours_ago=3)
    clients.write(TWO, [*shared, *said("b", "And invoices", "Done, too", minute=9)], hours_ago=2)
    clients.read()
    assert clients.texts(ONE) == ["Use keys", "Done"]
    assert clients.texts(TWO) == ["And invoices", "Done, too"]
    fork = clients.sessions()[TWO]
    assert (fork.copies, fork.parent) == (2, ONE)
    clients.append(TWO, said("c", "More", minute=20))
    clients.read()
    assert (clients.sessions()[TWO].copies, clients.texts(TWO)[-1]) == (2, "More")


def test_a_session_that_went_on_after_its_fork_has_its_turns(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys", "Done"), hours_ago=4)
    clients.read()
    shared = said("b", "More", "Sure")
    clients.write(TWO, [*said("a", "Use keys", "Done"), *shared, *said("c", "Last")], hours_ago=3)
    clients.append(ONE, shared, hours_ago=2)
    clients.read()
    assert clients.texts(ONE) == ["Use keys", "Done", "More", "Sure"]
    assert clients.texts(TWO) == ["Last"]


def test_a_fork_with_new_ids_is_known_by_its_texts_also_if_of_a_fork(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys", "Done"), hours_ago=4)
    clients.write(TWO, said("b", "Use keys", "Done", "More", "Sure"), hours_ago=3)
    third = "33333333"
    clients.write(third, said("c", "Use keys", "Done", "More", "Sure", "Last"), hours_ago=2)
    clients.read()
    assert clients.texts(TWO) == ["More", "Sure"]
    assert clients.texts(third) == ["Last"]
    assert clients.sessions()[third].parent == TWO


def test_a_record_with_an_equal_id_and_another_text_is_no_copy(clients: Clients) -> None:
    clients.write(ONE, said("1", "Use keys", "Done", "Thanks"), hours_ago=3)
    clients.write(TWO, said("1", "Use offsets", "Done", "Why?"), hours_ago=2)
    clients.read()
    assert clients.texts(ONE) == ["Use keys", "Done", "Thanks"]
    assert clients.texts(TWO) == ["Use offsets", "Why?"]
    clients.append(TWO, said("1", "Use both", minute=9))
    clients.read()
    assert clients.texts(TWO) == ["Use offsets", "Why?", "Use both"]
    assert clients.sessions()[TWO].copies == 1


def test_equal_first_prompts_alone_are_no_copies(clients: Clients) -> None:
    clients.write(ONE, said("a", "Review this", "It is good"), hours_ago=3)
    clients.write(TWO, said("b", "Review this", "It is bad"), hours_ago=2)
    clients.read()
    assert clients.texts(TWO) == ["Review this", "It is bad"]


# What is not kept.


def test_a_forgotten_session_is_never_read_again_nor_its_turns_in_a_fork(clients: Clients) -> None:
    shared = said("a", "Secret plan", "Done")
    clients.write(ONE, shared, hours_ago=3)
    clients.read()
    assert clients.forget([ONE]) == 1
    clients.append(ONE, said("b", "More", minute=5))
    clients.write(TWO, [*shared, *said("c", "Own words", minute=9)], hours_ago=0.25)
    assert clients.read().sources == 1
    assert ONE not in clients.sessions()
    assert clients.texts(TWO) == ["Own words"]
    assert clients.reading().behind() == 0


def test_opting_out_removes_what_was_kept_and_opting_in_reads_it_again(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys"))
    clients.write(TWO, said("b", "Elsewhere", cwd="/home/mina/other/deep"))
    clients.read()
    everything = clients.selection
    clients.selection = replace(everything, excluded=("/home/mina/shop/", "/home/mina/oth"))
    assert clients.read().removed == 1
    assert clients.sessions().keys() == {TWO}
    clients.append(ONE, said("c", "More", minute=5))
    assert (clients.read().turns, clients.reading().behind()) == (0, 0)
    clients.selection = Selection(clients=frozenset({"codex"}))
    assert clients.read() == Read(removed=1)
    clients.selection = everything
    assert clients.read().turns == 3


def test_a_project_may_forbid_and_only_with_approval_remove(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys"))
    clients.read()
    everything = clients.selection
    clients.selection = replace(everything, permits=lambda project: project != CWD)
    clients.append(ONE, said("b", "More", minute=5))
    clients.read()
    assert clients.texts(ONE) == ["Use keys"]
    clients.selection = replace(clients.selection, removes=lambda project: project == CWD)
    assert clients.read().removed == 1
    clients.selection = everything
    assert clients.read().turns == 2


def test_a_mistake_in_a_setting_removes_nothing(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys"))
    clients.read()
    clients.selection = Selection(clients=frozenset(), problem="`sessions.exclude` must be a list")
    with pytest.raises(Invalid, match=r"sessions\.exclude"):
        clients.read()
    assert ONE in clients.sessions()


def test_sessions_of_programs_are_not_read(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/temporary")
    storage = f"{clients.home}/.claude"
    clients.write("in-storage", said("a", "One", cwd=f"{storage}/projects"))
    clients.write("temporary", said("b", "Two", cwd="/temporary/x"))
    clients.write("worktree", said("c", "Three", cwd=f"{storage}/worktrees/x"))
    clients.write("no-repository", said("d", "Four", cwd="/somewhere"))
    clients.write("no-folder", said("e", "Five", cwd=""))
    clients.read()
    assert clients.sessions().keys() == {"worktree", "no-repository", "no-folder"}
    assert clients.sessions()["no-repository"].project == "/somewhere"


def test_old_sessions_leave_and_of_too_many_the_oldest(clients: Clients) -> None:
    for n in range(6):
        clients.write(f"s{n}", said(f"s{n}", f"Said {n} " * 2000, minute=n * 10), hours_ago=9 - n)
    clients.read()
    clients.selection = replace(clients.selection, most_bytes=100_000)
    assert clients.read().expired > 0
    left = sorted(clients.sessions())
    assert left == [f"s{n}" for n in range(6 - len(left), 6)] != []
    assert clients.read() == Read()  # They are not read again.
    clients.now += timedelta(days=800)
    clients.selection = replace(clients.selection, most_bytes=10**9)
    assert clients.read().expired == len(left)
    assert clients.reading().behind() == 0
    clients.write("s9", said("s9", "Too old"), hours_ago=0)
    clients.touch(clients.project / "s9.jsonl", hours_ago=800 * 24)
    assert clients.read() == Read()


# What is masked.

KEY, TOKEN = "AKIAIOSFODNN7EXAMPLE", "ghp_9aKq2Lx7Rt4Vb8Nz1Mw5Yc3Df6Gh0JpQsWeX"


@pytest.mark.parametrize(
    "text",
    [
        f"The key is {KEY}.",
        f"{'word ' * 1990}{'x' * 30} {TOKEN} {'word ' * 9000}",
        f"{'word ' * 9000} {TOKEN}{' word' * 1990} {'x' * 20}",
        f"first {TOKEN[:16]}\n\n{TOKEN[16:]} last",
        f"{KEY} mind:allow-secret",
    ],
)
def test_secrets_are_masked_before_anything_is_cut_or_stored(clients: Clients, text: str) -> None:
    clients.write(ONE, said("a", text, text))
    clients.read()
    assert all("EDACTED:" in text for text in clients.texts(ONE))
    data = clients.store.path.read_bytes()
    for part in (KEY, TOKEN, TOKEN[:16], TOKEN[16:]):
        assert part.encode() not in data


def test_a_secret_between_two_blocks_or_turns_is_masked(clients: Clients) -> None:
    user = said("a", "")[0]
    blocks = [{"type": "text", "text": part} for part in (f"It is {KEY[:9]}", f"{KEY[9:]} here")]
    user["message"]["content"] = blocks
    agent = said("b", "", "")[1:]
    agent[0]["message"]["content"] = blocks
    clients.write(ONE, [user, *agent])
    clients.read()
    data = clients.store.path.read_bytes()
    assert KEY[:9].encode() not in data
    assert KEY[9:].encode() not in data
    assert "here" in clients.texts(ONE)[-1]


def test_a_secret_in_three_blocks_or_two_turns_is_masked(clients: Clients) -> None:
    user, parts = said("a", "")[0], (KEY[:7], KEY[7:14], f"{KEY[14:]} here")
    user["message"]["content"] = [{"type": "text", "text": part} for part in ("of 4", *parts)]
    turns = [*said("b", f"It is {TOKEN[:30]}"), *said("c", f"{TOKEN[30:]} there")]
    clients.write(ONE, [user, *turns])
    clients.read()
    data = clients.store.path.read_bytes()
    for part in (*parts[:2], KEY[14:], TOKEN[:30], TOKEN[30:]):
        assert part.encode() not in data
    assert clients.texts(ONE)[0].startswith("of 4")
    assert clients.texts(ONE)[0].endswith(" here")


def test_a_paste_of_secrets_leaves_no_part_of_one_at_its_cut(clients: Clients) -> None:
    text = " ".join(f"{TOKEN[:-4]}{n}" for n in range(1_000, 3_000))
    clients.write(ONE, said("a", text, text))
    clients.read()
    for kept in clients.texts(ONE):
        assert not any(TOKEN[n : n + 8] in kept for n in range(len(TOKEN) - 12))


def test_a_file_of_the_future_is_not_the_latest_forever(clients: Clients) -> None:
    (record,) = said("a", "Use keys")
    del record["timestamp"]
    clients.write(ONE, [record], hours_ago=-50_000)
    clients.read()
    assert clients.sessions()[ONE].ended == clients.now


def test_secrets_in_names_paths_commands_and_errors_are_masked(clients: Clients) -> None:
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": f"login {TOKEN}"}}
    result = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": f"No {TOKEN}"}
    run, failed = said("r", "", ""), said("f", "")
    run[1]["message"]["content"] = [call]
    failed[0]["message"]["content"] = [result]
    cwd = f"/home/mina/{TOKEN}"
    records = [
        *said("a", "Go on", cwd=cwd),
        run[1],
        *failed,
        edited("e", f"{cwd}/{KEY}.py", cwd=cwd),
        {"type": "custom-title", "customTitle": f"Title {TOKEN}"},
    ]
    for record in records:
        record["gitBranch"] = f"fix-{TOKEN}"
    clients.write(ONE, records)
    clients.read()
    data = clients.store.path.read_bytes()
    assert TOKEN.encode() not in data
    assert KEY.encode() not in data
    session = clients.sessions()[ONE]
    assert all("[REDACTED:" in text for text in (session.title, session.branch, session.cwd))


def test_personal_data_and_plain_words_stay(clients: Clients) -> None:
    text = "Write to mina@example.org about keyset pagination\n\nand about page123 offsets"
    clients.write(ONE, said("a", text))
    clients.read()
    assert clients.texts(ONE) == [text]


# Hostile input.


def test_hostile_values_are_stored_harmlessly(clients: Clients) -> None:
    records = said("a", "One \ud800 \x1b[31mred \u202e NUL \x00", "Two")
    records[0]["timestamp"], records[1]["timestamp"] = (
        "0001-01-01T00:00:00Z",
        "9999-12-31T00:00:00Z",
    )
    records[0]["uuid"] = "\ud800" * 500
    clients.write(ONE, [*records, edited("e", "/etc/\ud800\x1b[0m../../passwd")])
    clients.read()
    assert clients.texts(ONE)[0] == "One ? red  NUL "
    assert clients.sessions()[ONE].started.year == clients.now.year


def test_a_name_that_is_not_utf_8_stops_nothing(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys"))
    path = os.fsencode(clients.project) + b"/\xff\xfe.jsonl"
    try:
        with open(path, "w") as file:  # noqa: PTH123 - a name in bytes
            file.write(text_of(said("b", "Other")))
    except OSError:
        pytest.skip("the file system has no such names")
    os.utime(path, (0, clients.now.timestamp() - 60))
    clients.read()
    assert len(clients.sessions()) == 2
    assert clients.reading().behind() == 0


class _Fake:
    """A reader of files with a text in each line; `!` and `?` raise an error in the middle."""

    client = "claude-code"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def sources(self, environment: object, home: Path) -> Iterator[Source]:
        for path in sorted(self.folder.iterdir()):
            state = path.stat()
            yield Source(path, "", state.st_size, state.st_mtime_ns, state.st_ino)

    def read(self, source: Source, since: Progress) -> Iterator[Part]:
        facts = Facts(client=self.client, native_id=source.path.stem, cwd=CWD)
        end = 0
        for line in source.path.read_text().splitlines(keepends=True):
            start, end = end, end + len(line)
            if start < since.offset:
                continue
            if line.strip() == "!":
                raise RecursionError("too deep")
            if line.strip() == "?":
                source.path.with_name("missing").read_bytes()
            turn = Turn(role=Role.USER, text=line.strip())
            yield Part(facts, [turn], Progress(end), 1, 0, replaces=not start)


def _of_fake(tmp_path: Path, files: dict[str, list[str]]) -> Reading:
    clients = Clients(tmp_path)
    folder = tmp_path / "fake"
    folder.mkdir(exist_ok=True)
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
        clients.touch(folder / name, hours_ago=1 + len(lines))
    reader = _Fake(folder)
    return Reading(clients.store, [reader], clients.selection, {}, clients.home, clients.now)


def test_a_reader_that_fails_stops_no_other_and_is_tried_again(tmp_path: Path) -> None:
    read = _of_fake(tmp_path, {"a": ["One", "!"], "b": ["Two"]}).run()
    assert (read.sources, read.unreadable, read.turns) == (2, 1, 2)
    again = _of_fake(tmp_path, {})
    assert again.behind() == 0
    assert again.run().unreadable == 1
    _of_fake(tmp_path, {"a": ["One", "Now"], "b": ["Two"]}).run()
    assert Clients(tmp_path).texts("a") == ["One", "Now"]


def test_files_that_cannot_be_read_for_one_reason_count_together(tmp_path: Path) -> None:
    _of_fake(tmp_path, {"a": ["?"], "b": ["?"]}).run()
    with Clients(tmp_path).store.reading() as sql:
        problems = store.summary(sql, NOW)["claude-code"].problems
    assert problems == {"No such file or directory": (2, str(tmp_path / "fake" / "a"))}


def test_a_failure_in_a_rewritten_transcript_takes_nothing_away(tmp_path: Path) -> None:
    _of_fake(tmp_path, {"a": ["One", "Two", "Three"]}).run()
    _of_fake(tmp_path, {"a": ["New", "!", "Three", "Four"]}).run()
    assert Clients(tmp_path).texts("a") == ["New", "Two", "Three"]
    _of_fake(tmp_path, {"a": ["New", "Three", "Four", "Five", "Six"]}).run()
    assert Clients(tmp_path).texts("a") == ["New", "Two", "Three", "Four", "Five", "Six"]


@pytest.mark.parametrize("kept", [0, 3])
def test_a_run_that_ends_between_two_parts_goes_on(tmp_path: Path, kept: int) -> None:
    if kept:
        _of_fake(tmp_path, {"a": ["Old one", "Old two", "Old three"]}).run()
    reading = _of_fake(tmp_path, {"a": ["One", "Two", "Three", "Four"]})
    put, count = store.put, iter(range(9))

    def put_once(*given: object) -> tuple[int, bool]:
        if next(count) == 2:
            raise KeyboardInterrupt
        return put(*given)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "put", put_once)
        with pytest.raises(KeyboardInterrupt):
            reading.run()
    _of_fake(tmp_path, {}).run()
    assert Clients(tmp_path).texts("a") == ["One", "Two", "Three", "Four"]


_KILLED = """
import os, sys
from pathlib import Path
from mimo.extensions.sessions import store
from tests.extensions.sessions.claude import Clients

folder, name, calls = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
function, left = getattr(store, name), [calls]

def last(*given, **named):
    result = function(*given, **named)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), 9)
    return result

setattr(store, name, last)
Clients(folder).read()
"""


@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("name", ["put", "sum_up", "note_source"])
def test_a_killed_run_loses_nothing_and_the_next_one_goes_on(
    tmp_path: Path, name: str, calls: int
) -> None:
    clients = Clients(tmp_path)
    for number in range(4):
        clients.write(
            f"s{number}", said(f"a{number}", f"Use {number}", "Done"), hours_ago=9 - number
        )
    command = [sys.executable, "-c", _KILLED, str(tmp_path), name, str(calls)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert len(clients.sessions()) == calls - 1  # As the transactions before it, and none in part.
    clients.read()
    assert [clients.texts(f"s{number}") for number in range(4)] == [
        [f"Use {number}", "Done"] for number in range(4)
    ]
    assert clients.read() == Read()


def test_one_process_reads_at_a_time(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys"))
    clients.store.lock.parent.mkdir(parents=True)
    with lock(clients.store.lock), pytest.raises(StorageFailed, match="reads the transcripts"):
        clients.read()
    assert clients.sessions() == {}
    assert clients.read().turns == 1


def test_a_run_that_may_waits_for_the_process_that_reads(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys"))
    clients.store.lock.parent.mkdir(parents=True)
    with ExitStack() as held:
        held.enter_context(lock(clients.store.lock))
        assert clients.reading().run(wait=held.close).turns == 1


def test_a_hostile_content_is_read_again_only_once_the_file_changes(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimo.extensions.sessions.readers.lines.MOST_LINES", 2)
    path = clients.write(ONE, [*said("a", "Use keys"), *said("b", "And"), *said("c", "So")])
    assert clients.read().unreadable == 1
    assert clients.read().sources == 0
    clients.touch(path, hours_ago=0.7)
    assert clients.read().unreadable == 1


@pytest.mark.parametrize(
    "change",
    [
        *(f"sessions SET {change}" for change in ("kind = 'other'", "ended = 1 << 62")),
        *(f"sessions SET {name} = x'ff'" for name in ("id", "cwd", "project", "title")),
        *(f"turns SET {name} = x'ff'" for name in ("role", "text", "error")),
        *("turns SET n = 1.5", "edits SET path = x'ff'"),
    ],
)
def test_impossible_values_are_a_damage(clients: Clients, change: str) -> None:
    clients.write(ONE, said("a", "Use keys"))
    clients.read()
    with closing(sqlite3.connect(clients.store.path)) as sql, sql:
        sql.execute("INSERT INTO edits SELECT session, n, 'a.py' FROM turns")
        sql.execute(f"UPDATE {change}")
    with pytest.raises(StorageFailed, match="damaged"):
        [clients.texts(id) for id in clients.sessions()]


@pytest.mark.parametrize("name", ["native_id", "omitted", "problem", "state"])
def test_impossible_values_of_a_source_are_a_damage(clients: Clients, name: str) -> None:
    clients.write(ONE, said("a", "Use keys"))
    clients.read()
    with closing(sqlite3.connect(clients.store.path)) as sql, sql:
        sql.execute(f"UPDATE sources SET {name} = x'ff'")
    with pytest.raises(StorageFailed, match="damaged"):
        clients.read()


def test_looking_for_new_sessions_writes_nothing(clients: Clients) -> None:
    clients.write(ONE, said("a", "Use keys"))
    assert clients.reading().behind() == 1
    assert not clients.store.path.exists()


def test_projects_are_repositories_also_of_worktrees_that_are_gone(tmp_path: Path) -> None:
    root = repository(tmp_path / "shop")
    inside = root / "deep"
    inside.mkdir()
    assert project_of(str(inside)) == str(root)
    assert project_of(f"{root}/.claude/worktrees/x/deep") == str(root)
    assert project_of("/nowhere/at/all") == "/nowhere/at/all"
    assert project_of(".") == "."  # It is of another process.


def test_edited_files_are_relative_to_the_project(clients: Clients) -> None:
    edits = [edited("e", f"{CWD}/src/auth.py"), edited("f", "/etc/x")]
    clients.write(ONE, [*said("a", "Go on"), *edits, *said("b", "Good", minute=9)])
    clients.read()
    with closing(sqlite3.connect(clients.store.path)) as sql:
        assert sorted(sql.execute("SELECT path FROM edits")) == [("/etc/x",), ("src/auth.py",)]


def test_no_step_takes_longer_with_many_equal_sessions(clients: Clients) -> None:
    for n in range(60):
        clients.write(
            f"s{n:03}", said(f"s{n}", "Run the tests", "Done", f"Own {n}"), hours_ago=99 - n
        )
    seen: list[str] = []
    clients.read()
    with clients.store.writing() as sql:
        sql.set_trace_callback(seen.append)
        facts = Facts(client="claude-code", native_id="new")
        digest = store.digest_of("Done")
        assert len([*store.beginnings(sql, facts, 2, digest, 2)]) <= 20
        sql.set_trace_callback(None)
    assert len(seen) <= 21
    assert json.dumps(sorted(clients.texts("s005"))) == '["Own 5"]'
