"""The socket of a server: planted by a clone, of another user, flooded, or silent."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from mimo.cli import asked
from mimo.data import disk
from mimo.mind import Mind
from mimo.operations import asking, listening
from tests.kit import served, status

PLANTED = "socket planted or taken over"
FLOODED = "server held up over its socket"

Server = Callable[[socket.socket], object]


@contextmanager
def false_server(home: Path, root: Path, converse: Server) -> Iterator[None]:
    """Listens in place of a server."""
    folder = Path(asking.folder_of(str(home)))
    folder.mkdir(mode=0o700, exist_ok=True, parents=True)
    with socket.socket(socket.AF_UNIX) as listens:
        listens.bind(str(folder / asking.name_of(str(root))))
        listens.listen()

        def accept() -> None:
            while True:
                try:
                    peer, _ = listens.accept()
                except OSError:
                    return
                with peer:
                    try:
                        converse(peer)
                    except OSError:
                        continue

        Thread(target=accept, daemon=True).start()
        yield
        listens.shutdown(socket.SHUT_RDWR)


def greeting(**fields: object) -> bytes:
    return f"{json.dumps({**asking.GREETING, **fields})}\n".encode()


def greets(reply: bytes) -> Server:
    """Returns a server that greets, reads a request and replies."""

    def converse(peer: socket.socket) -> None:
        peer.sendall(greeting())
        peer.recv(100_000)
        peer.sendall(reply)

    return converse


SERVERS: dict[str, Server] = {
    "silent": lambda peer: Event().wait(0.5),
    "hangs up": lambda peer: peer.close(),
    "garbage": lambda peer: peer.sendall(b"\xff\x00{{\n"),
    "other version": lambda peer: peer.sendall(greeting(call="0.1")),
    "other build": lambda peer: peer.sendall(greeting(build="1 2 /usr/lib")),
    "other protocol": lambda peer: peer.sendall(greeting(protocol=2)),
    "deep": lambda peer: peer.sendall(b"[" * 900 + b"\n"),
    "long greeting": lambda peer: peer.sendall(b"x" * 100_000),
    "half a line": greets(b'{"status": 0, "notes": [], "te'),
    "not an object": greets(b"[1]\n"),
    "refuses": greets(b'{"no": true}\n'),
    "odd reply": greets(b'{"near": {"a": 1}}\n'),
}


@pytest.mark.attack(PLANTED)
@pytest.mark.parametrize("name", SERVERS)
def test_a_false_server_changes_nothing(
    name: str,
    project: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setattr(asking, "GREETING_SECONDS", 0.1)
    with false_server(home, project, SERVERS[name]):
        assert asked.answer(["list"]) is None
    assert capsys.readouterr() == ("", "")


def test_a_server_whose_code_was_replaced_makes_room_for_another(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(home, project):
        with monkeypatch.context() as patched:
            patched.setattr("mimo.installation.is_changed", lambda: True)
            assert status(home, project) is None
        with served(home, project):
            assert status(home, project)


@pytest.mark.attack(PLANTED)
def test_only_the_user_can_connect_to_a_server(project: Path, home: Path) -> None:
    with served(home, project):
        assert list(disk.exposed_below(Path(asking.folder_of(str(home))))) == []


def test_a_folder_of_sockets_that_others_can_change_is_not_used(project: Path, home: Path) -> None:
    with served(home, project):
        folder = Path(asking.folder_of(str(home)))
        folder.chmod(0o770)
        assert status(home, project) is None
        folder.chmod(0o700)
        assert status(home, project)
        folder.rename(folder.with_name("real"))
        folder.symlink_to("real")
        assert status(home, project) is None
        folder.unlink()
        folder.with_name("real").rename(folder)


@pytest.mark.attack(PLANTED)
def test_a_clone_brings_no_socket(project: Path, home: Path, tmp_path: Path) -> None:
    """The home has the sockets: nothing in the project is looked at."""
    with served(home, project):
        assert not [path for path in (project / ".mind").rglob("*") if path.is_socket()]
        other = tmp_path / "other"
        (other / ".mind").mkdir(parents=True)
        assert status(home, other) is None


@pytest.mark.attack(PLANTED)
def test_a_project_at_another_path_is_not_answered(
    project: Path, home: Path, tmp_path: Path
) -> None:
    with served(home, project):
        moved = project.rename(tmp_path / "moved")
        assert status(home, moved) is None


@pytest.mark.attack(FLOODED)
def test_requests_too_long_incomplete_or_odd_end_the_connection_only(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "SECONDS", 0.2)
    requests = (
        b"x" * (asking.MOST_REQUEST + 10),
        b"{}\n",
        b"[]\n",
        b'{"ask": "near", "environ": 1}\n',
        b"[" * 60_000 + b"\n",
        b"half",
        b"",
    )
    with served(home, project):
        for data in requests:
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(f"{asking.folder_of(str(home))}/{asking.name_of(str(project))}")
                peer.settimeout(5)
                assert peer.recv(1_000) == greeting()
                try:
                    peer.sendall(data)
                    assert peer.recv(1_000) in (b'{"no": true}\n', b"")
                except (BrokenPipeError, ConnectionResetError):
                    continue
        assert status(home, project)


@pytest.mark.attack(FLOODED)
def test_many_clients_that_never_ask_or_read_do_not_stop_others(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "SECONDS", 0.2)
    address = f"{asking.folder_of(str(home))}/{asking.name_of(str(project))}"
    with served(home, project):
        peers = [socket.socket(socket.AF_UNIX) for _ in range(3 * listening.MOST_CONNECTIONS)]
        for peer in peers:
            peer.connect(address)
        while not status(home, project):
            Event().wait(0.02)
        for peer in peers:
            peer.close()


@pytest.mark.attack(FLOODED)
def test_concurrent_questions_are_all_answered(project: Path, home: Path) -> None:
    replies: list[object] = []
    with served(home, project):
        threads = [Thread(target=lambda: replies.append(status(home, project))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert replies == [{"pid": os.getpid()}] * 8


LISTEN = """
import sys, time
from pathlib import Path
sys.path[:] = {path!r}
from mimo.mind import Mind
from mimo.operations.listening import Listener, Memory
home, root = map(Path, sys.argv[1:])
listener = Listener(home, Memory(lambda: Mind.open(root, project=root)), lambda *_: None)
listener.start()
print("started", flush=True)
time.sleep(60)
"""


@pytest.mark.attack(PLANTED)
def test_the_next_server_takes_over_from_one_that_was_killed(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process leaves its socket behind, and the system frees its lock."""
    monkeypatch.setattr(listening, "_PAUSE_SECONDS", 0.05)
    code = LISTEN.format(path=sys.path)
    killed = subprocess.Popen([sys.executable, "-c", code, str(home), str(project)])
    while not (reply := status(home, project)):
        Event().wait(0.05)
    assert reply == {"pid": killed.pid}
    waiting = listening.Listener(
        home, listening.Memory(lambda: Mind.open(project, project=project)), lambda *_: None
    )
    waiting.start()
    killed.kill()
    killed.wait()
    while not (reply := status(home, project)):
        Event().wait(0.05)
    waiting.close()
    assert reply == {"pid": os.getpid()}
    assert status(home, project) is None


def test_a_path_too_long_for_the_system_has_no_socket(
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = tmp_path / ("long" * 30)
    home.mkdir()
    monkeypatch.setenv("MIND_HOME", str(home))
    monkeypatch.chdir(project)
    listener = listening.Listener(
        home, listening.Memory(lambda: Mind.open(project, project=project)), lambda *_: None
    )
    listener.start()
    listener._thread.join(30)

    assert not listener._thread.is_alive()
    assert asked.answer(["list"]) is None
    assert capsys.readouterr() == ("", "")


@pytest.mark.attack(FLOODED)
def test_ctrl_c_ends_the_wait_for_a_silent_server(project: Path, home: Path) -> None:
    asked_for = Event()

    def falls_silent(peer: socket.socket) -> None:
        peer.sendall(greeting())
        peer.recv(100_000)
        asked_for.set()
        peer.recv(1)

    command = [sys.executable, "-m", "mimo", "list"]
    with (
        false_server(home, project, falls_silent),
        subprocess.Popen(
            command,
            cwd=project,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as waiting,
    ):
        assert asked_for.wait(30)
        waiting.send_signal(signal.SIGINT)
        printed = waiting.communicate(timeout=30)

    assert (waiting.returncode, *printed) == (130, "", "interrupted\n")
