"""Calls of one server in several threads, each held up at the worst moment for the others."""

import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, get_ident
from typing import Any

import pytest

from mimo.call import Call, Caller, Surface
from mimo.call.table import all_commands
from mimo.data.cache import CacheBusy
from mimo.errors import Denied
from mimo.features.notes.commands import add
from mimo.guard import policy
from mimo.guard.audit import Session
from mimo.guard.guard import Guard
from mimo.guard.policy import ActivePolicies, Operation, PolicyFile, Request
from mimo.index.tables import Tables
from mimo.memory.approval import approval_of
from mimo.mind import Mind
from mimo.operations import finding, refresh
from mimo.operations.invoke import invoke
from mimo.operations.listening import Memory
from mimo.project import approvals as stored
from mimo.project import trust
from mimo.project.trust import Trust
from mimo.project.vouching import Vouching
from tests.conftest import NOW, git
from tests.kit import repository, with_console

ONE, TWO, THREE = ("a" * 64, "b" * 64, "c" * 64)
FORBIDS = "tool_permissions:\n  mind_search:\n    operations: []\n"
AGENT = Caller(surface=Surface.MCP, name="claude")

pytestmark = pytest.mark.attack("calls at the same time")


class HeldUp:
    """Lets one thread do something, and holds it up once, at the end of a function.

    Meanwhile, another one does something else. It may have to wait for the first one.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self._held: int | None = None
        self._reached, self._go_on = Event(), Event()

    def at(self, owner: Any, name: str, *, before: bool = False) -> None:
        """Sets where the first thread is held up."""
        function = getattr(owner, name)

        def held(*args: Any, **options: Any) -> Any:
            if before:
                self.here()
            result = function(*args, **options)
            if not before:
                self.here()
            return result

        self._patch.setattr(owner, name, held)

    def here(self) -> None:
        """Holds the first thread up, once."""
        if get_ident() == self._held:
            self._held = None
            self._reached.set()
            assert self._go_on.wait(20)

    def let_go(self) -> None:
        """Lets the first thread go on, and gives it the time to."""
        self._go_on.set()
        time.sleep(0.2)

    @contextmanager
    def until_held_up(self, first: Callable[[], object]) -> Iterator["Future[object]"]:
        """Runs the block while the first thread is held up."""

        def start() -> object:
            self._held = get_ident()
            return first()

        with ThreadPoolExecutor(1) as thread:
            running = thread.submit(start)
            try:
                assert self._reached.wait(20) or running.result()
                yield running
            finally:
                self.let_go()
            running.result()

    def run(self, first: Callable[[], object], second: Callable[[], object]) -> tuple[Any, Any]:
        """Returns the results of both."""
        with self.until_held_up(first) as running, ThreadPoolExecutor(1) as thread:
            other = thread.submit(second)
            wait_for([other], 0.3)
            self.let_go()
        return running.result(), other.result()


@pytest.fixture
def held_up(monkeypatch: pytest.MonkeyPatch) -> HeldUp:
    return HeldUp(monkeypatch)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tree/.mind/facts").mkdir(parents=True)
    return tmp_path / "tree"


def call_tool(call: Call, path: str, **arguments: object) -> Any:
    """Returns the result of a command, as for a call of a server."""
    return invoke(
        all_commands().at(path), with_console(call, progress=None, halted=None).by(AGENT), arguments
    )


def test_a_call_is_judged_while_another_one_reads_the_policy_again(
    root: Path, held_up: HeldUp
) -> None:
    path = root / policy.FILE
    path.write_text(FORBIDS, encoding="utf-8")
    others, asked = ExitStack(), []

    def trusted(digest: str) -> bool:
        asked.append(digest)
        if len(asked) == 1:
            path.write_text(f"{FORBIDS}# again\n", encoding="utf-8")
            others.enter_context(held_up.until_held_up(read.active))
        return True

    read = PolicyFile(root, trusted)
    held_up.at(policy, "parse", before=True)
    with others:
        active = read.active()
    search = Request(tool="mind_search", operation=Operation.READ, agent="claude", at=NOW)
    assert not active.judge(search).permitted


def test_only_the_policy_that_was_approved_counts_as_approved(root: Path, held_up: HeldUp) -> None:
    path = root / policy.FILE
    path.write_text(FORBIDS, encoding="utf-8")
    approved = approval_of(policy.FILE, path.read_bytes())

    def trusted(digest: str) -> bool:
        held_up.here()
        return digest == approved

    def other() -> ActivePolicies:
        path.write_text("pii:\n  on_write: allow\n", encoding="utf-8")
        return read.active()

    read = PolicyFile(root, trusted)
    first, second = held_up.run(read.active, other)
    assert (first.digest, first.trusted, second.trusted) == (approved, True, False)


def test_a_verdict_of_an_earlier_policy_is_not_kept(root: Path, held_up: HeldUp) -> None:
    asked = Request(tool="mind_search", operation=Operation.READ, agent="claude", at=NOW)
    guard = Guard(root=root, trusted=lambda _: True, owner=lambda: "x", session=Session({}, NOW))

    def other() -> None:
        (root / policy.FILE).write_text(FORBIDS, encoding="utf-8")
        guard.policies()

    held_up.at(ActivePolicies, "judge")
    held_up.run(lambda: guard.authorise(asked), other)
    with pytest.raises(Denied):
        guard.authorise(asked)


def test_a_notice_belongs_to_the_call_that_it_is_about(call: Call, held_up: HeldUp) -> None:
    add(call, "tea is hot")
    held_up.at(finding, "folded")
    first, second = held_up.run(
        lambda: call_tool(call, "search recent"),
        lambda: call_tool(call, "search recent", time_filter="yesterday"),
    )
    assert first.notice is None
    assert "yesterday" in second.notice


@pytest.fixture
def watched(call: Call) -> Iterator[Call]:
    """A memory whose files a server watches."""
    memory = Memory(lambda: call.mind)
    opened = Call(memory.mind())
    assert opened.mind.watched
    call_tool(opened, "list")
    yield opened
    memory.close()


def edited(path: Path) -> None:
    path.write_text(f"{path.read_text('utf-8')}\nzebra\n", encoding="utf-8")


def test_a_change_that_could_not_be_indexed_is_indexed_later(
    watched: Call, held_up: HeldUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [
        watched.mind.project.root / add(watched, f"{name} is hot").file for name in ("tea", "soup")
    ]
    call_tool(watched, "list")
    apply, note, busy = refresh._apply, Mind.note, get_ident()

    def applied(*args: Any, **options: Any) -> None:
        if busy == get_ident():
            raise CacheBusy("another process is writing")
        apply(*args, **options)

    def noted(self: Mind, about: str, notice: str | None) -> bool:
        if about == "pending" and not notice:
            held_up.here()
        is_noted = note(self, about, notice)
        if about == "pending" and notice:
            held_up.let_go()
        return is_noted

    monkeypatch.setattr(refresh, "_apply", applied)
    monkeypatch.setattr(Mind, "note", noted)
    edited(paths[0])
    with held_up.until_held_up(lambda: call_tool(watched, "list")):
        edited(paths[1])
        call_tool(watched, "list")
    busy = 0
    assert call_tool(watched, "search", query="zebra").total == 2


def test_a_rebuild_empties_the_index_for_no_other_call(watched: Call, held_up: HeldUp) -> None:
    for number in range(5):
        add(watched, f"Service {number} uses port {4000 + number}")
    path = watched.mind.project.root / add(watched, "tea is hot").file
    call_tool(watched, "list")
    held_up.at(refresh, "_scan", before=True)
    with held_up.until_held_up(lambda: call_tool(watched, "index", rebuild=True)):
        edited(path)
        assert call_tool(watched, "list").total == 6
    assert call_tool(watched, "list").total == 6


def test_a_search_of_a_removed_index_leaves_nothing_for_the_new_one(
    watched: Call, held_up: HeldUp
) -> None:
    names = "alpha bravo charlie delta echo foxtrot golf hotel india juliett".split()
    for name in reversed(names):
        add(watched, f"The service {name} is deployed with the tool {name}ctl")

    def found(name: str) -> str:
        return str(call_tool(watched, "search", query=f"how is {name} deployed").results[0].title)

    held_up.at(Tables, "stored", before=True)
    with held_up.until_held_up(lambda: found("golf")):
        shutil.rmtree(watched.mind.folder / ".index")
        found("charlie")
    for number in range(14):
        add(watched, f"Unrelated remark {number} about lunch place {number}")
    for name in names:
        assert name in found(name)


def test_an_approval_is_kept_while_another_call_reads_the_approvals_again(
    home: Path, root: Path, held_up: HeldUp
) -> None:
    approvals = Trust(home, root)
    approvals.approve([ONE])
    Trust(home, root).approve([TWO])  # Another process.
    held_up.at(stored.ApprovalDatabase, "approvals")
    held_up.run(lambda: approvals.approved(ONE), lambda: approvals.approve([THREE]))
    assert approvals.approved(THREE)


def test_git_answers_every_call_after_a_commit(home: Path, root: Path, held_up: HeldUp) -> None:
    repository(root)
    git(root, "config", "user.email", "ann@example.com")
    approvals = Trust(home, root, globs=())
    approvals.begin()
    approvals.checker()
    path = root / ".mind/facts/tea.md"
    path.write_text("Tea is hot\n", encoding="utf-8")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "Tea")
    text = approval_of(".mind/facts/tea.md", path.read_bytes())
    held_up.at(Vouching, "look")
    both = held_up.run(lambda: approvals.trusted(text), lambda: approvals.trusted(text))
    assert both == (True, True)


def test_the_first_approvals_of_a_project_may_be_made_at_once(
    home: Path, root: Path, held_up: HeldUp
) -> None:
    approvals = Trust(home, root)
    held_up.at(trust, "key_of")
    held_up.run(lambda: approvals.approve([ONE]), lambda: approvals.approve([TWO]))
    assert Trust(home, root).approved(ONE)
    assert Trust(home, root).approved(TWO)
