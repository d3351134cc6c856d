"""Listing, finding, showing, continuing and forgetting earlier sessions."""

import os
import shutil
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call, Caller, Surface
from mimo.call.table import all_commands
from mimo.cli.completing import completions
from mimo.errors import Cancelled, Invalid, NotFound, StorageFailed
from mimo.extensions.sessions import commands, turning_on
from mimo.extensions.sessions.indexing import sessions_of
from mimo.mind import Mind
from mimo.surroundings import Question
from tests.claude_sessions import claude_code
from tests.conftest import NOW
from tests.extensions.sessions.talks import KEYSET, LONG, OTHER, kept, user
from tests.kit import do, put, with_console

__all__ = ["kept", "user"]


def ids(result: Any) -> list[str]:
    return [row.id for row in result.sessions]


def test_an_answer_that_is_not_sure_points_at_other_projects(kept: Call) -> None:
    result = do(kept, "sessions search", query="renamed redis pool")
    assert [row.weak for row in result.sessions] == [True]
    assert str(result.notice).startswith("no session of this project surely matches; ")
    assert do(kept, "sessions search", query="keyset pagination").notice is None


def test_a_file_names_the_sessions_that_edited_it_and_why(kept: Call, project: Path) -> None:
    for file in ("orders/pages.py", "pages.py", "./orders/pages.py", project / "orders/pages.py"):
        (row,) = do(kept, "sessions", file=str(file)).sessions
        assert row.best[0].turn == 1
        assert row.best[0].text.startswith("Let's use keyset pagination")
        assert row.best[0].answer.startswith("The root cause")
    assert ids(do(kept, "sessions", file="ages.py")) == []
    assert ids(do(kept, "sessions", file="orders/")) == ["cc-aaaaaaaa"]
    assert ids(do(kept, "sessions", file="order")) == []
    assert ids(do(kept, "sessions search", query="pagination", file="other.py")) == []


def test_a_file_is_named_from_the_working_directory(
    kept: Call, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "orders").mkdir(exist_ok=True)
    monkeypatch.chdir(project / "orders")

    assert ids(do(kept, "sessions", file="../orders/pages.py")) == ["cc-aaaaaaaa"]


def test_an_empty_store_says_that_nothing_is_kept(call: Call, home: Path) -> None:
    put(home / "config.toml", '[sessions]\nenabled = "on"\n')
    assert do(call, "sessions").notice == "no session is kept yet"
    assert do(call, "sessions search", query="redis").notice == "no session is kept yet"


def test_the_progress_of_reading_ends(user: Path, call: Call) -> None:
    steps = dict[str, list[tuple[int, int]]]()

    def note(label: str, done: int, total: int) -> None:
        steps.setdefault(label, []).append((done, total))

    do(with_console(call, progress=note), "sessions index")
    assert set(steps) >= {"Reading transcripts", "Indexing sessions"}
    assert all(shown[-1] == (shown[-1][1],) * 2 for shown in steps.values())


def test_ids_are_completed_those_of_this_project_first(
    kept: Call, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    for words in ("show", "resume", "forget", "propose", "show --around 3"):
        assert completions(all_commands(), ["sessions", *words.split(), "cc"]) == [
            "cc-aaaaaaaa\tLet's use keyset pagination for orders, because OFFSET took",
            "cc-bbbbbbbb\tWhy does redis time out?",
        ]
    assert completions(all_commands(), ["sessions", "show", "cc-b"]) == [
        "cc-bbbbbbbb\tWhy does redis time out?"
    ]
    put(home / "config.toml", "")
    assert completions(all_commands(), ["sessions", "show", "cc"]) == []


def test_a_long_session_has_no_advantage(user: Path, call: Call, project: Path) -> None:
    talk = [("user", f"Look at pagination again, part {n} of the plan") for n in range(60)]
    claude_code(user, LONG, project, talk, NOW - timedelta(days=2))
    do(call, "sessions index")

    rows = do(call, "sessions search", query="keyset pagination because OFFSET took 4 s").sessions
    assert rows[0].id == "cc-aaaaaaaa"


def test_a_turn_that_no_number_of_the_database_can_name_is_missing(kept: Call) -> None:
    for reference, turn in (("cc-aaaaaaaa#9" + "9" * 5_000, None), ("cc-aaaaaaaa", 10**30)):
        with pytest.raises(NotFound, match="has no turn"):
            commands.transcript(kept, reference, turn)
    with pytest.raises(NotFound, match="no session `#5`"):
        do(kept, "sessions show", session="#5")


# Forgetting.


def test_what_is_forgotten_is_in_no_file_and_is_not_read_again(kept: Call, home: Path) -> None:
    with pytest.raises(Invalid, match="removes 1 session for good"):
        do(kept, "sessions forget", sessions=["cc-aaaaaaaa"])
    do(kept, "sessions forget", sessions=["cc-aaaaaaaa"], yes=True)

    do(kept, "sessions index")
    assert ids(do(kept, "sessions", all_projects=True)) == ["cc-bbbbbbbb"]
    kept.mind.close()
    for folder in (home / "sessions", home / "cache" / "sessions"):
        for path in folder.iterdir():
            assert b"keyset" not in path.read_bytes(), path


def test_what_the_settings_leave_out_is_in_no_file_either(kept: Call, home: Path) -> None:
    put(home / "config.toml", '[sessions]\nenabled = "on"\nclients = ["codex"]\n')
    other = Call(kept.mind.reopened())
    assert do(other, "sessions index").removed == 2
    for folder in (home / "sessions", home / "cache" / "sessions"):
        for path in folder.iterdir():
            assert b"keyset" not in path.read_bytes(), path


def test_sub_agents_are_forgotten_with_their_session(user: Path, call: Call, project: Path) -> None:
    talk = [("user", "Find each use of offset."), ("agent", "In three files.")]
    path = claude_code(user, "agent-0001", project, talk, NOW - timedelta(days=20))
    records = path.read_text("utf-8").replace(
        '"sessionId": "agent-0001"', f'"sessionId": "{KEYSET}"'
    )
    part = put(path.with_name(KEYSET) / "subagents" / path.name, records)
    os.utime(part, (path.stat().st_mtime,) * 2)
    path.unlink()
    do(call, "sessions index")

    assert len(ids(do(call, "sessions", hidden=True))) == 2
    assert len(do(call, "sessions forget", sessions=[KEYSET], yes=True).ids) == 2
    assert ids(do(call, "sessions", hidden=True)) == []


def test_old_sessions_are_forgotten_after_a_question(kept: Call) -> None:
    questions = []

    def ask(question: Question, _: float) -> str:
        questions.append(question.text)
        return "yes"

    asked = with_console(kept, ask=ask)
    result = do(asked, "sessions forget", all=True, all_projects=True, older_than="1 year")
    assert result.ids == ("cc-bbbbbbbb",)
    assert questions == ["Remove 1 session for good (cc-bbbbbbbb)?"]


@pytest.mark.parametrize(
    "options", [{}, {"sessions": ["x"], "all": True}, {"sessions": ["x"], "older_than": "1 day"}]
)
def test_sessions_are_chosen_by_ids_or_filters(kept: Call, options: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        do(kept, "sessions forget", yes=True, **options)


# Continuing.


def test_a_session_is_continued_in_its_first_folder_with_each_word_quoted(
    user: Path, call: Call, tmp_path: Path
) -> None:
    place = tmp_path / "it's here; rm"
    place.mkdir()
    claude_code(user, LONG, place, [("user", "Hello")], NOW - timedelta(days=1))
    do(call, "sessions index")

    way = do(call, "sessions resume", session="cc-cccccccc")
    quoted = str(place).replace("'", "'\"'\"'")
    assert way.line == f"cd '{quoted}' && claude --resume {LONG}"
    assert (way.folder, way.notice) == (str(place), None)
    place.rmdir()
    way = do(call, "sessions resume", session="cc-cccccccc")
    assert (way.line, way.notice) == (f"claude --resume {LONG}", f"its folder `{place}` is missing")


def test_a_session_whose_transcript_is_deleted_may_be_unknown_to_its_client(
    user: Path, kept: Call
) -> None:
    assert do(kept, "sessions resume", session="cc-aaaaaaaa").notice is None
    for transcript in user.rglob("*.jsonl"):
        transcript.unlink()

    notice = do(kept, "sessions resume", session="cc-aaaaaaaa").notice
    assert notice == "claude-code deleted its transcript, so it may not know the session"


@pytest.mark.attack("options as ids")
@pytest.mark.parametrize("id", ["--help", "a;rm -rf x", "$(id)", "x y"])
def test_an_id_that_is_no_id_continues_nothing(user: Path, call: Call, id: str) -> None:
    claude_code(user, id, "/nowhere", [("user", "Hello")], NOW - timedelta(days=1))
    do(call, "sessions index")
    (row,) = (
        row for row in do(call, "sessions", all_projects=True).sessions if row.title == "Hello"
    )

    with pytest.raises(Invalid, match="no command that continues"):
        do(call, "sessions resume", session=row.id)


def test_sessions_are_listed_and_read_while_no_index_can_be_written(kept: Call, home: Path) -> None:
    shutil.rmtree(home / "cache" / "sessions")
    put(home / "cache" / "sessions", "not a folder")
    with closing(kept.mind.reopened()) as mind:
        again = Call(mind)
        assert ids(do(again, "sessions")) == ["cc-aaaaaaaa"]
        assert do(again, "sessions show", session="cc-aaaaaaaa").total == 6
        with pytest.raises(StorageFailed):
            do(again, "sessions search", query="keyset")


@pytest.mark.parametrize(
    ("session", "around"),
    [("cc-aaaaaaaa#" + "9" * 5_000, None), ("cc-aaaaaaaa#" + "9" * 20, None), ("cc-a", 2**63 - 1)],
)
def test_a_turn_with_a_number_beyond_all_is_not_found(
    kept: Call, session: str, around: int | None
) -> None:
    with pytest.raises(NotFound, match="has no turn"):
        do(kept, "sessions show", session=session, around=around)


# Moved folders.


@pytest.fixture
def moved(tmp_path: Path, kept: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """A call in the new place of the folder of the other project."""
    place = tmp_path / "new" / "bank"
    place.mkdir(parents=True)
    monkeypatch.chdir(place)
    return Call(Mind.open(place, clock=kept.mind.clock))


def test_a_moved_project_is_told_how_its_sessions_are_found_and_they_stay(
    tmp_path: Path, user: Path, moved: Call
) -> None:
    old, new = tmp_path / "bank", tmp_path / "new" / "bank"
    assert (
        "if this was"
        not in do(moved, "sessions", Caller(surface=Surface.CLI, agent="codex")).notice
    )
    notice = do(moved, "sessions").notice
    assert f"if this was `{old}`, `mind sessions index --moved {old}` takes its" in notice

    assert do(moved, "sessions index", moved="../../bank/").notice == (
        f"1 session of `{old}` moved to `{new}`"
    )
    (transcript,) = user.rglob(f"{OTHER}.jsonl")
    with transcript.open("a") as file:
        file.write(transcript.read_text().splitlines()[-1].replace("too small", "16") + "\n")
    os.utime(transcript, (0, NOW.timestamp() - 60))
    assert do(moved, "sessions index").turns == 1
    assert ids(do(moved, "sessions")) == ["cc-bbbbbbbb"]
    assert ids(do(moved, "sessions search", query="redis time out")) == ["cc-bbbbbbbb"]
    assert str(old) not in str(do(moved, "sessions search", query="postgres").notice)


def test_a_moved_home_takes_all_projects_below(
    tmp_path: Path, kept: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "home of mina"
    (place / "bank").mkdir(parents=True)
    monkeypatch.chdir(place)
    call = Call(Mind.open(place, clock=kept.mind.clock))
    with sessions_of(call.mind).store.writing() as sql:
        sql.execute("UPDATE sessions SET project = '/Users/mina/bank' WHERE title LIKE '%redis%'")
        sql.execute("UPDATE sessions SET project = '/Users/minas' WHERE title LIKE '%keyset%'")

    do(call, "sessions index", moved="/Users/mina")

    rows = do(call, "sessions", all_projects=True).sessions
    assert [row.project for row in rows] == ["/Users/minas", str(place / "bank")]


@pytest.mark.parametrize("place", ["user", "nowhere", "~nobody-of-this-name/shop"])
def test_a_folder_that_did_not_move_keeps_its_sessions(
    tmp_path: Path, moved: Call, place: str
) -> None:
    with pytest.raises(Invalid, match=r"was not moved here|no session of|unknown user"):
        do(moved, "sessions index", moved=place if place[0] == "~" else str(tmp_path / place))


def test_the_folder_of_other_projects_did_not_become_this_project(moved: Call) -> None:
    with sessions_of(moved.mind).store.writing() as sql:
        sql.execute("UPDATE sessions SET project = '/Users/mina/' || key")
    with pytest.raises(Invalid, match="no session of `/Users/mina` is of a folder here"):
        do(moved, "sessions index", moved="/Users/mina")
    assert {row.project for row in do(moved, "sessions", all_projects=True).sessions} == {
        "/Users/mina/1",
        "/Users/mina/2",
    }


def test_no_folder_that_only_looks_like_an_option_is_named_as_moved(moved: Call) -> None:
    with sessions_of(moved.mind).store.writing() as sql:
        sql.execute("UPDATE sessions SET project = '--all/bank'")
    assert "--all/bank" not in str(do(moved, "sessions").notice)


def test_a_folder_is_not_moved_to_itself(kept: Call, project: Path) -> None:
    with pytest.raises(Invalid, match="was not moved here"):
        do(kept, "sessions index", moved=str(project))


# The asking agent.


def test_a_session_whose_transcript_grows_is_taken_for_that_of_the_agent(
    kept: Call, user: Path
) -> None:
    (path,) = (user / ".claude" / "projects").rglob(f"{KEYSET}.jsonl")
    os.utime(path, (NOW.timestamp(),) * 2)

    for agent, listed in (("claude-code", []), ("codex", ["cc-aaaaaaaa"])):
        shell = Caller(surface=Surface.CLI, agent=agent)
        assert ids(do(kept, "sessions", shell)) == listed
        assert ids(do(kept, "sessions search", shell, query="keyset pagination")) == listed


# The index.


def test_a_damaged_index_is_made_again(kept: Call, home: Path) -> None:
    kept.mind.close()
    for path in (home / "cache" / "sessions").iterdir():
        path.write_bytes(b"no database" * 1000)
    again = Call(Mind.open(kept.mind.project.root, clock=kept.mind.clock))

    assert ids(do(again, "sessions search", query="keyset pagination")) == ["cc-aaaaaaaa"]
    again.mind.close()


def test_what_was_read_before_a_stop_is_kept(user: Path, call: Call, project: Path) -> None:
    for number in range(3):
        talk = [("user", f"Hello {number}"), ("agent", "Hello")]
        claude_code(user, f"{number}" * 12, project, talk, NOW - timedelta(days=number + 1))
    steps = iter([False] * 3 + [True] * 9)
    stopped = with_console(call, halted=lambda: next(steps))

    with pytest.raises(Cancelled):
        do(stopped, "sessions index")
    with sessions_of(call.mind).store.reading() as sql:
        (number,) = sql.execute("SELECT count(*) FROM sessions").fetchone()
    assert number == 3
    assert do(call, "sessions index").sessions == 5


def test_a_search_indexes_some_sessions_and_reports_the_others(
    user: Path, call: Call, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "AT_ONCE", 2)
    for number in range(4):
        talk = [("user", f"Hello {number}"), ("agent", "Hello")]
        claude_code(user, f"{number}" * 12, project, talk, NOW - timedelta(days=number + 1))
    turning_on.reading(call.mind).run()

    for left in (4, 2):
        notice = do(call, "sessions search", query="hello").notice
        assert str(notice).startswith(f"{left} sessions newer than the index")
    assert do(call, "sessions search", query="hello").notice is None


def test_vectors_are_made_of_the_words_that_count(
    kept: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    sessions = sessions_of(kept.mind)

    class Noting:
        model = "noting"

        def encode(self, text: str) -> bytes:
            return bytes(384)

        def encode_many(self, given: Sequence[str]) -> list[bytes]:
            texts.extend(given)
            return [bytes(384) for _ in given]

    monkeypatch.setattr(Mind, "encoder", Noting())
    assert sessions.make_meanings(lambda done, total: None) > 0
    assert any(text.startswith("Let's use keyset") for text in texts)
    assert not any(text.startswith("> ") for text in texts)
    assert ids(do(kept, "sessions search", query="keyset pagination")) == ["cc-aaaaaaaa"]


def test_a_session_in_place_of_a_removed_one_is_found(
    kept: Call, user: Path, project: Path, home: Path
) -> None:
    put(home / "config.toml", f'[sessions]\nenabled = "on"\nexclude = ["{project}"]\n')
    talk = [("user", "Which queue do we use?"), ("agent", "The deadlock is gone with NATS.")]
    claude_code(user, LONG, user / "queue", talk, NOW - timedelta(days=1))

    call = Call(Mind.open(project, clock=kept.mind.clock))
    assert do(call, "sessions index").removed == 1

    result = do(call, "sessions search", query="deadlock NATS", all_projects=True)
    assert ids(result) == ["cc-cccccccc"]
