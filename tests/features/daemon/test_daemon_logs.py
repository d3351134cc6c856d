"""Following the daemon's log: past its end, and into the next file."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.cli.main import main
from mimo.features import daemon
from mimo.surroundings import Timer


class Over(Exception):
    """No step is left."""


@pytest.fixture
def log(call: Call) -> Path:
    path = daemon.log_file(call.mind.home)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def write(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def followed(call: Call, count: int, *steps: Callable[[], object]) -> list[str]:
    """Returns the new lines, while each pause does one of the steps."""
    coming = iter(steps)

    def sleep(_: float) -> None:
        step = next(coming, None)
        if step is None:
            raise Over
        step()

    call.mind.timer = Timer(sleep=sleep)
    lines: list[str] = []
    with suppress(Over):
        for some in daemon.followed(call, count):
            lines += some
    return lines


def test_following_starts_with_the_end_of_the_log(call: Call, log: Path) -> None:
    write(log, "1\n2\n3\n")
    steps = (lambda: None, lambda: write(log, "4\n5"), lambda: write(log, "5\n6\n"))
    assert followed(call, 2, *steps) == ["2", "3", "4", "55", "6"]


def test_following_continues_after_rotation(call: Call, log: Path) -> None:
    write(log, "1\n")

    def turn_over() -> None:
        write(log, "2\n")
        log.rename(f"{log}.1")
        write(log, "3\n")

    assert followed(call, 9, turn_over, lambda: write(log, "4\n")) == ["1", "2", "3", "4"]


def test_following_waits_for_a_missing_log(call: Call, log: Path) -> None:
    assert followed(call, 9, lambda: None, lambda: write(log, "1\n")) == ["1"]


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_following_ends_with_an_interrupt(
    call: Call, log: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    write(log, "1\n2\n")

    def sleep(_: float) -> None:
        raise KeyboardInterrupt

    call.mind.timer = Timer(sleep=sleep)
    argv = ["daemon", "logs", "-n", "1", "--follow", *options]
    assert main(argv, open=lambda _: call.mind) == 130
    assert capsys.readouterr().out == ('{"lines": ["2"]}\n' if options else "2\n")
