"""The threads of the browser: which jobs they do, and which results they drop."""

from threading import Event
from typing import Any

from mimo.errors import Internal, Invalid
from mimo.extensions.browse.lanes import Job, Lane

PATIENCE = 60


def test_only_the_latest_job_is_answered():
    lane, running, go, done = Lane("test", latest=True), Event(), Event(), Event()
    answers: list[Any] = []

    def first(halted):
        running.set()
        go.wait(PATIENCE)
        assert halted()
        return "first"

    def last(answer):
        answers.append(answer)
        done.set()

    lane.put(Job(work=first, done=answers.append))
    assert running.wait(PATIENCE)
    lane.put(Job(work=lambda _: "second", done=answers.append))
    lane.put(Job(work=lambda _: "third", done=last))
    go.set()

    assert done.wait(PATIENCE)
    assert answers == ["third"]
    lane.close(PATIENCE)


def test_every_change_is_done_in_its_order():
    lane, done = Lane("test", latest=False), Event()
    answers: list[Any] = []

    def numbered(number: int) -> Job[int]:
        return Job(work=lambda _: number, done=answers.append)

    for number in range(5):
        lane.put(numbered(number))
    lane.put(Job(work=lambda _: None, done=lambda _: done.set()))

    assert done.wait(PATIENCE)
    assert answers == [0, 1, 2, 3, 4]
    lane.close(PATIENCE)


def test_an_error_is_an_answer_and_the_thread_goes_on():
    lane, done = Lane("test", latest=False), Event()
    answers: list[Any] = []

    def wrong(_):
        raise Invalid("no")

    def broken(_):
        raise KeyError("a memory")

    lane.put(Job(work=wrong, done=answers.append))
    lane.put(Job(work=broken, done=answers.append))
    lane.put(Job(work=lambda _: None, done=lambda _: done.set()))

    assert done.wait(PATIENCE)
    assert [type(answer) for answer in answers] == [Invalid, Internal]
    assert "a memory" not in str(answers[1])
    lane.close(PATIENCE)


def test_closing_asks_the_running_job_to_stop_and_drops_the_others():
    lane, running, stopped = Lane("test", latest=False), Event(), Event()
    answers: list[Any] = []

    def long(halted):
        running.set()
        while not halted():
            stopped.wait(0.01)
        stopped.set()

    lane.put(Job(work=long, done=answers.append))
    lane.put(Job(work=lambda _: "next", done=answers.append))
    assert running.wait(PATIENCE)
    lane.close(PATIENCE)

    assert stopped.is_set()
    assert answers == []
