"""A server of a project in a thread of the test."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from mimo.call import Answers
from mimo.cli.answering import reply as reply_of
from mimo.mind import Mind
from mimo.operations import asking
from mimo.operations.listening import Listener, Memory


def status(home: Path, root: Path) -> dict[str, Any] | None:
    """Returns the reply of a server to the question whether it answers."""
    environ = Mind(home=home, project=None).environ
    request = {"ask": "status", "folder": str(root), **asking.surroundings(environ)}
    return asking.ask(str(home), str(root), request)


@contextmanager
def serving(home: Path, root: Path, reply: Answers = reply_of) -> Iterator[Memory]:
    """Runs the block while a server answers."""
    memory = Memory(lambda: Mind.open(root, project=root))
    listener = Listener(home, memory, reply)
    listener.start()
    for _ in range(3_000):
        if status(home, root):
            break
        Event().wait(0.01)
    else:
        raise AssertionError("the server does not answer")
    try:
        yield memory
    finally:
        listener.close()
        memory.close()
