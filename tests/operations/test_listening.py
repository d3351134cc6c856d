"""The memory behind a server, and its socket: files that are no longer used are closed."""

import errno
import gc
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Semaphore
from typing import Any, cast

import pytest

from mimo.call import Call
from mimo.data import locks
from mimo.errors import Cancelled
from mimo.index.embedding import Embedder
from mimo.index.index import Index
from mimo.memory.model import Filter
from mimo.mind import Mind
from mimo.operations import asking, finding, refresh, searching
from mimo.operations.listening import Listener, Memory, replied
from mimo.surroundings import Timer
from tests.conftest import descriptors, descriptors_left
from tests.kit import do, put, served


@pytest.fixture
def memory(call: Call) -> Iterator[Memory]:
    """The memory of a project in which an index, a watch and the user's memory are open."""
    put(call.mind.folder / "facts" / "tea.md", "Tea is served at four\n")
    call.user(make=True)
    opened = Memory(call.mind.reopened)
    yield opened
    opened.close()


def use(memory: Memory) -> Mind:
    mind = memory.mind()
    user = mind.user()
    assert user
    for each in (mind, user):
        searching.search(Call(each), "tea", finding.Options())
    return mind


def change_settings(folder: Path, number: int) -> None:
    folder.joinpath("config.toml").write_text(f"[trash]\ndays = {number}\n", encoding="utf-8")


def test_a_change_of_settings_leaves_no_files_open(memory: Memory, call: Call) -> None:
    opened = []
    for number in range(6):
        change_settings(call.mind.folder, 10 + number)
        use(memory)
        opened.append(descriptors_left())

    assert max(opened[2:]) <= opened[1]


def test_a_project_whose_folder_is_out_of_reach_is_opened_again(
    memory: Memory, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = memory.mind()
    stat = os.stat

    def stale(path: Any, *args: Any, **named: Any) -> os.stat_result:
        if os.fspath(path) == str(call.mind.folder):
            raise OSError(errno.ESTALE, "Stale file handle", str(path))
        return stat(path, *args, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", stale)
        assert before.is_outdated
        assert memory.mind() is not before
    assert use(memory).index.count(Filter()) == 1


def is_on_disk(mind: Mind) -> bool:
    return mind.index.stats().bytes > 0


def visit(memory: Memory) -> Mind:
    """Makes the call of another process, and returns the memory that it visited."""
    server = memory.mind()
    with server.visited(server.environ) as view:
        call = Call(view)
        assert searching.search(call, "tea", finding.Options(limit=3)).hits
        assert ("index could not be used" in (call.notice or "")) is not is_on_disk(view)
    return server


@contextmanager
def unusable_index(home: Path) -> Iterator[None]:
    owner = home / "index-owner"
    aside = owner.rename(home / "aside")
    owner.mkdir()
    try:
        yield
    finally:
        owner.rmdir()
        aside.rename(owner)


def test_processes_that_ask_share_the_replacement_of_an_unusable_index(
    memory: Memory, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    in_memory = Index.in_memory

    def counted(embedder: Embedder | None) -> Index:
        made.append(seconds)
        return in_memory(embedder)

    monkeypatch.setattr(Index, "in_memory", counted)
    seconds = 0.0
    call.mind.timer = Timer(monotonic=lambda: seconds)
    with unusable_index(call.mind.home):
        for time in (0.0, 1.0, 20.0, 700.0, 701.0, 702.0, 1400.0, 1401.0):
            seconds = time
            visit(memory)

    assert made == [0.0, 700.0, 1400.0]


def test_a_server_that_only_other_processes_ask_uses_its_index_again(
    memory: Memory, call: Call
) -> None:
    seconds = 0.0
    call.mind.timer = Timer(monotonic=lambda: seconds)
    with unusable_index(call.mind.home):
        assert not is_on_disk(visit(memory))
    path = call.mind.folder / "facts" / "coffee.md"
    path.write_text("Coffee comes after tea\n", encoding="utf-8")

    opened = []
    for number in range(9):
        seconds = 700.0 + number
        visit(memory)
        opened.append(descriptors_left())

    server = memory.mind()
    assert is_on_disk(server)
    assert server.watched
    assert refresh.up_to_date(Call(server)).totals().memories == 2
    assert max(opened) == opened[0]


def test_a_change_of_settings_leaves_no_files_of_other_memories_open(call: Call) -> None:
    call.user(make=True)
    opened = []
    for number in range(6):
        change_settings(call.mind.home, 10 + number)
        user = call.user()
        assert user
        searching.search(user, "tea", finding.Options())
        opened.append(descriptors_left())

    assert max(opened[2:]) <= opened[1]


def test_a_call_goes_on_while_the_settings_change(memory: Memory, call: Call) -> None:
    view = use(memory)
    index = view.index
    change_settings(call.mind.folder, 10)
    other = use(memory)
    searching.search(Call(other), "tea", finding.Options())  # Opens the files.

    assert other.index is not index
    assert index.totals().memories == 1
    (call.mind.folder / "facts" / "coffee.md").write_text("Coffee comes at six\n", encoding="utf-8")
    refresh.refresh(Call(view))
    for each in (view, other):
        assert searching.search(Call(each), "coffee", finding.Options()).hits
    # SQLite keeps descriptors of closed connections while others have locks on the file, and uses
    # them again.
    opened = []
    for limit in range(20, 26):
        view.close()
        change_settings(call.mind.folder, limit)
        view, other = other, use(memory)
        searching.search(Call(other), "tea", finding.Options())
        opened.append(descriptors_left())
    assert max(opened[3:]) <= max(opened[:3])


def test_a_memory_is_closed_while_another_call_opens_one(call: Call) -> None:
    class Closing:
        """An open memory, during whose use another thread closes all."""

        @property
        def is_past(self) -> bool:
            thread = threading.Thread(target=call.mind.close)
            thread.start()
            thread.join(0.1)
            return True

        def close(self) -> None:
            pass

    keys = [Path(name) for name in "abcde"]
    call.mind._others.update({key: cast("Mind", Closing()) for key in keys})
    assert call.mind.beside(Path("new"), dict).is_past


def test_a_closed_memory_can_be_watched_again(memory: Memory) -> None:
    mind = use(memory)
    before = mind.watched
    mind.close()
    mind.watch()
    assert mind.watched is not before
    assert mind.index.totals().memories == 1


def test_a_listener_that_waits_for_another_server_can_be_closed(
    home: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, tried, hold = call.mind.project.root, Semaphore(0), locks.hold

    def counted(*given: Any, **named: Any) -> Any:
        held = hold(*given, **named)
        tried.release()
        return held

    with served(home, root), ExitStack() as closing:
        gc.collect()
        files, threads = descriptors(), threading.active_count()
        monkeypatch.setattr(locks, "hold", counted)
        for _ in range(4):
            memory = Memory(lambda: Mind.open(root, project=root))
            listener = Listener(home, memory, lambda *_: None)
            listener.start()
            closing.callback(listener.close)
        assert all(tried.acquire(timeout=30) for _ in range(4))
        closing.close()
        assert descriptors() <= files
        assert threading.active_count() <= threads


def test_a_server_compares_a_prompt_with_both_memories_and_tells_its_kind_of_work(
    home: Path, call: Call
) -> None:
    root = call.mind.project.root
    do(call, "add", content="Orders are kept in PostgreSQL, since MySQL lost some")
    pitfall = {"title": "Moved databases lose orders", "workaround": "Export them"}
    edge = do(call, "pitfalls add", description="-", project=True, **pitfall).id
    do(call, "add", content="Ask me before any data is deleted", user=True)
    user = call.mind.user()
    assert user
    for mind in (call.mind, user):
        refresh.refresh(Call(mind))
        mind.index.make_meanings(lambda *_: None)

    same = {"ask": "near", "folder": str(root)}
    same |= asking.surroundings(Mind(home=home, project=None).environ)

    def near(prompt: str) -> dict[str, Any]:
        return asking.ask(str(home), str(root), {**same, "prompt": prompt}, seconds=20) or {}

    with served(home, root):
        replies = near("move all orders to another database"), near("fix the typo in the heading")
        nothing = near("")

    def late(*_: object) -> None:
        raise Cancelled("the caller cancelled the call")

    request = {**same, "prompt": "move all orders", **asking.surroundings(call.mind.environ)}
    assert [*(replied(call.mind, request, late) or {})] == ["near", "work", "near_of_user"]
    assert [list(reply) for reply in replies] == [["near", "work", "near_of_user", "edges"]] * 2
    assert [reply["edges"] for reply in replies] == [[edge], []]
    assert replies[0]["work"] > 0.1
    assert replies[1]["work"] < -0.1
    assert nothing == {"near": []}
    for reply in replies:
        assert len(reply["near"]) == 1 + len(reply["near_of_user"]) == 2
    assert replies[0]["near"][0][1] > 0.3 > replies[1]["near"][0][1]
