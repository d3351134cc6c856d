"""Runs: events, errors, retries, limits, questions, cancelling and resuming."""

import json
import os
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from mimo.call import Call
from mimo.errors import (
    Conflict,
    FileTooLarge,
    Invalid,
    NotFound,
    PiiDetected,
    QuotaExceeded,
    RateLimited,
    SecretDetected,
    StorageFailed,
    Untrusted,
)
from mimo.features.procedures import executing
from mimo.features.procedures.commands import cancel, runs, send, status
from mimo.features.procedures.machine import Status
from mimo.surroundings import Question, Timer
from tests.kit import acting_as, with_console
from tests.sample_procedures import GREET, WAIT, Commands, Time, begun, path_of, put, ran


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def call(call: Call, time: Time) -> Call:
    call.mind.timer = time.timer()
    return call


CALL = """\
initial_state: work
states:
  work:
    action: {module: mind, function: mind_status, args: [{n: "{{n}}"}]}
    transitions: [{event: success, target: done}]
  done: {}
"""
CAUGHT = CALL.replace("target: done}]", "target: done}, {event: error, target: sorry}]").replace(
    "done: {}", "done: {}\n  sorry: {}"
)
FULL = StorageFailed("the disk is full")


def names(call: Call) -> list[str]:
    return [event.name for event in call.mind.events.read()[0]]


@pytest.mark.req("000-01")
@pytest.mark.req("000-10")
def test_a_result_is_merged_and_its_event_selects_the_next_state(call: Call) -> None:
    put(call, "call", CALL)
    commands = Commands({"found": 2})
    done = ran(call, "call", commands, n=7, kept="yes")

    assert (done.status, done.run.state) == (Status.COMPLETED, "done")
    assert done.run.context == {"n": 7, "kept": "yes", "found": 2}
    assert commands.calls == [{"n": 7}]


def test_a_result_can_be_stored_under_a_key(call: Call) -> None:
    put(call, "call", CALL.replace('"{{n}}"}]', "1}], result: answer"))
    done = ran(call, "call", Commands({"found": 2}), found=1)

    assert done.run.context == {"found": 1, "answer": {"found": 2}}


@pytest.mark.req("000-28")
def test_an_error_transition_is_taken_instead_of_a_retry(call: Call, time: Time) -> None:
    """Register G-04: a terminal state that is reached so ends `completed`."""
    put(call, "call", CAUGHT)
    done = ran(call, "call", Commands(FULL), n=1)

    assert (done.status, done.run.state) == (Status.COMPLETED, "sorry")
    assert path_of(done) == [("work", "error", "sorry")]
    assert time.seconds == 0


@pytest.mark.req("000-28")
def test_retries_wait_longer_each_time(call: Call, time: Time) -> None:
    """Trap (a): a retry that is swallowed is never carried out, and the run hangs."""
    put(call, "call", CALL)
    commands = Commands(FULL, FULL, {"found": 2})
    done = ran(call, "call", commands, n=1)

    assert (done.status, len(commands.calls)) == (Status.COMPLETED, 3)
    assert time.seconds == pytest.approx(1 + 2)


@pytest.mark.req("000-28")
def test_a_run_fails_after_its_last_retry(call: Call, time: Time) -> None:
    put(call, "call", CALL)
    commands = Commands(FULL, FULL, FULL, FULL)
    done = ran(call, "call", commands, n=1)

    assert (done.status, done.run.state) == (Status.FAILED, "work")
    assert done.run.error == "the disk is full [STORAGE_ERROR]"
    assert commands.answers == []
    assert time.seconds == pytest.approx(1 + 2 + 4)


def test_without_retries_an_action_is_tried_once(call: Call) -> None:
    put(call, "call", CALL, max_retries=0)

    assert ran(call, "call", Commands(FULL), n=1).status is Status.FAILED


@pytest.mark.parametrize(
    "error",
    [
        *(Invalid("wrong"), NotFound("gone"), SecretDetected("a password"), PiiDetected("a name")),
        *(QuotaExceeded("full"), FileTooLarge("huge")),
    ],
)
def test_permanent_errors_are_not_retried(call: Call, error: Exception) -> None:
    put(call, "call", CALL)

    assert ran(call, "call", Commands(error), n=1).status is Status.FAILED


LOOP = """\
initial_state: a
states:
  a:
    action: {module: step, function: delay, args: [{ms: 400}]}
    transitions: [{event: success, target: b}]
  b:
    action: {module: step, function: delay, args: [{ms: 400}]}
    transitions: [{event: success, target: a}]
"""


@pytest.mark.req("000-28")
def test_a_transition_does_not_restart_the_overall_timeout(call: Call, time: Time) -> None:
    """Trap (b): upstream's overall limit was reset by every transition."""
    put(call, "loop", LOOP, timeout_ms=1500)
    done = ran(call, "loop")

    assert (done.status, done.run.error) == (
        Status.FAILED,
        "overall timeout exceeded: 1500 ms",
    )
    assert time.seconds == pytest.approx(1.5, abs=0.1)
    assert len(done.run.history) == 3


def test_an_endless_loop_is_stopped(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mimo.features.procedures.machine.MOST_TRANSITIONS", 10)
    put(call, "loop", LOOP.replace("400", "0"))
    done = ran(call, "loop")

    assert (done.status, done.run.error) == (Status.FAILED, "more than 10 transitions")


def test_a_run_with_a_large_journal_is_stopped(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mimo.features.procedures.executing._LARGEST_JOURNAL", 3000)
    put(call, "loop", LOOP.replace("400", "0"))
    done = ran(call, "loop")

    assert (done.status, done.run.error) == (Status.FAILED, "it wrote more than 3,000 bytes")


def test_a_context_has_a_maximum_size(call: Call) -> None:
    put(call, "call", CALL)
    done = ran(call, "call", Commands({"found": "x" * 2**20}), n=1)

    assert done.status is Status.FAILED
    assert str(done.run.error).startswith("the context would grow to")
    with pytest.raises(Invalid, match="at most"):
        ran(call, "call", Commands(), large="x" * 2**20)


def test_a_context_that_grows_deeper_in_a_loop_fails_the_run(call: Call) -> None:
    deeper = '{module: step, function: set_context, args: [{values: {x: {y: "{{x}}"}}}]}'
    put(call, "deeper", LOOP.replace("{module: step, function: delay, args: [{ms: 400}]}", deeper))
    done = ran(call, "deeper", x=1)

    assert done.run.error == "the context would be nested deeper than 100"


def test_a_context_with_an_infinite_number_fails_the_run(call: Call) -> None:
    put(call, "call", CALL)
    done = ran(call, "call", Commands({"x": float("inf")}), n=1)

    assert done.run.error == "the context would contain an infinite number or `NaN`"


def test_the_failure_in_the_records_of_an_earlier_version_is_read(call: Call) -> None:
    put(call, "greet", GREET)
    execution = begun(call, "greet")
    execution.append({"kind": "failing", "error": "the disk is full", "at": 1})
    report = executing.report(call, execution)

    assert (report.status, report.error) == (Status.FAILED, "the disk is full")
    with pytest.raises(Conflict, match="is failed already"):
        executing.carry_out(call, execution)


def test_an_action_has_its_own_timeout(call: Call, time: Time) -> None:
    put(call, "late", LOOP.replace("delay,", "delay, timeout: 300,"), max_retries=0)
    done = ran(call, "late")

    assert (done.status, done.run.error) == (Status.FAILED, "timed out after 300 ms")
    assert time.seconds == pytest.approx(0.3)


@pytest.mark.parametrize("ms", ["soon", "[1]", "9" * 400])
def test_an_invalid_delay_fails_the_run(call: Call, ms: str) -> None:
    put(call, "late", LOOP.replace("400", '"{{ms}}"'), max_retries=0)
    done = ran(call, "late", ms=json.loads(ms) if ms != "soon" else ms)

    assert done.status is Status.FAILED
    assert str(done.run.error).startswith("`ms` must be a number")


def test_a_command_that_hangs_is_not_retried(call: Call) -> None:
    ticks = iter(range(10**9))
    call.mind.timer = Timer(monotonic=lambda: next(ticks) / 10, sleep=lambda _: None)
    released = threading.Event()

    class Hanging(Commands):
        def call(self, call: Call, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
            self.calls.append(arguments)
            released.wait(60)
            return {}

    commands = Hanging()
    put(call, "call", CALL.replace("mind_status,", "mind_status, timeout: 500,"))
    try:
        done = ran(call, "call", commands, n=1)
    finally:
        released.set()

    assert (done.status, done.run.error) == (Status.FAILED, "timed out after 500 ms")
    assert len(commands.calls) == 1


LAST = """\
initial_state: a
states:
  a:
    action: {module: step, function: log, args: [{message: first}]}
    transitions: [{event: success, target: z}]
  z:
    action: {module: step, function: log, args: [{message: "at {{run.state}}", fields: [n]}]}
"""


def test_a_failing_action_of_a_final_state_fails_the_run(call: Call) -> None:
    broken = "{rules: {n: {required: true}}}"
    put(call, "last", LAST.replace('log, args: [{message: "at', f"validate, args: [{broken}]}}\n#"))
    done = ran(call, "last")

    assert (done.status, done.run.error) == (Status.FAILED, "`n` is missing")


@pytest.mark.req("000-17")
def test_the_elapsed_time_of_an_ended_run_does_not_change(
    call: Call, time: Time, clock: Any
) -> None:
    """Trap (g): elapsed_ms went on growing."""
    put(call, "late", LAST.replace("log, args: [{message: first}]", "delay, args: [{ms: 700}]"))
    done = ran(call, "late", n=1)
    assert done.elapsed_ms == pytest.approx(700, abs=1)

    time.seconds += 60
    clock.forward(hours=1)
    assert executing.report(call, executing.executions(call).find(done.id)).elapsed_ms == (
        done.elapsed_ms
    )


def test_the_elapsed_time_of_a_running_run_increases(call: Call, clock: Any) -> None:
    put(call, "wait", WAIT)
    execution = begun(call, "wait")
    with execution.held():
        clock.forward(seconds=3)
        reports = executing.report(call, execution)

    assert (reports.status, reports.elapsed_ms) == (Status.RUNNING, 3000)
    assert executing.report(call, execution).status is Status.INTERRUPTED


@pytest.mark.req("000-28")
def test_a_cancelled_run_is_interrupted_and_can_be_resumed(call: Call) -> None:
    put(call, "loop", LOOP)
    execution = begun(call, "loop")

    def cancel(seconds: float) -> None:
        execution.cancel("cancelled: enough")

    call.mind.timer = call.mind.timer._replace(sleep=cancel)
    stopped = executing.carry_out(call, execution)
    assert (stopped.status, stopped.run.error) == (Status.INTERRUPTED, "cancelled: enough")
    report, was_running = executing.cancel(call, execution, "again")
    assert (report.status, was_running) == (Status.INTERRUPTED, False)

    passed = iter([0.1] * 20)

    def halted() -> bool:
        return next(passed, None) is None

    call = with_console(call, halted=halted)
    call.mind.timer = Time().timer()
    again = executing.carry_out(call, execution)
    assert (again.status, again.run.error) == (Status.INTERRUPTED, "the caller cancelled the call")
    assert path_of(again) == [("a", "success", "b")]


@pytest.mark.req("000-28")
def test_a_run_is_interrupted_after_the_time_that_its_caller_waits(call: Call) -> None:
    put(call, "wait", WAIT)
    stopped = executing.carry_out(call, begun(call, "wait"), wait_ms=500)

    assert stopped.status is Status.INTERRUPTED
    assert stopped.run.error == "timed out after 500 ms, while it waited for yes or no"


TWO = """\
initial_state: stage
states:
  stage:
    action: {module: step, function: ask, args: [{question: "Deploy to staging?"}]}
    transitions: [{event: "yes", target: delete}, {event: "no", target: stopped}]
  delete:
    action: {module: step, function: ask, args: [{question: "Delete the old database?"}]}
    transitions: [{event: "yes", target: deleted}, {event: "no", target: stopped}]
  deleted: {}
  stopped: {}
"""
SIGNALS = """\
initial_state: work
states:
  work:
    action: {module: step, function: log, args: [{message: "working"}]}
    transitions: [{event: success, target: agree}]
  agree:
    action: {module: step, function: ask, args: [{question: "Go on?"}]}
    transitions: [{event: "yes", target: first}]
  first:
    transitions: [{event: built, target: second}, {event: "yes", target: stopped}]
  second:
    transitions: [{event: built, target: done}, {event: signed, target: signed}]
  done: {}
  signed: {}
  stopped: {}
"""


def test_concurrent_answers_to_a_question_do_not_answer_the_next_one(call: Call) -> None:
    """Two processes may send an answer at the same moment, or one just after the run went on."""
    put(call, "two", TWO)
    execution = begun(call, "two")
    executing.carry_out(call, execution, waits=False)
    for _ in range(2):
        execution.send("yes", turn=0)

    assert executing.carry_out(call, execution, waits=False).run.state == "delete"
    execution.send("yes", turn=0)
    assert executing.carry_out(call, execution, waits=False).run.state == "delete"


def test_answers_repeated_with_an_earlier_version_answer_one_question(call: Call) -> None:
    put(call, "two", TWO)
    execution = begun(call, "two")
    question = {"kind": "stay", "state": "stage", "at": 1, "question": "Deploy to staging?"}
    execution.append(question)
    execution.append({"kind": "end", "status": "interrupted", "at": 1, "error": "no answer yet"})
    inbox = call.mind.folder / ".local" / "executions" / execution.id / "inbox.jsonl"
    inbox.write_text('{"event": "yes"}\n{"event": "yes"}\n', encoding="utf-8")

    asks = executing.carry_out(call, execution, waits=False)
    assert path_of(asks) == [("stage", "yes", "delete")]
    assert asks.run.question == "Delete the old database?"


def test_an_event_sent_before_a_question_does_not_answer_it(call: Call) -> None:
    put(call, "two", TWO)
    execution = begun(call, "two")
    with execution.held(), pytest.raises(Conflict, match="has not asked the question") as refused:
        executing.send(call, execution, "yes")
    assert "mind procedure status" in refused.value.hint
    execution.send("yes", turn=None)  # as if the run asked just after it was checked

    assert executing.carry_out(call, execution, waits=False).run.state == "stage"


def test_an_early_event_is_kept_for_the_state_that_waits_for_it(call: Call) -> None:
    put(call, "signals", SIGNALS)
    execution = begun(call, "signals")
    with execution.held():
        executing.send(call, execution, "signed")
        executing.send(call, execution, "built")
        with pytest.raises(Conflict, match="`built` was already sent"):
            executing.send(call, execution, "built")
    asks = executing.carry_out(call, execution, waits=False)
    assert asks.run.state == "agree"
    executing.send(call, execution, "yes")
    done = executing.carry_out(call, execution, waits=False)

    assert path_of(done)[2:] == [("first", "built", "second"), ("second", "signed", "signed")]


def test_an_event_for_a_state_that_waits_is_not_kept_for_the_next(call: Call) -> None:
    states = SIGNALS.partition("  first:")[2]
    put(call, "signals", f"initial_state: first\nstates:\n  first:{states}")
    execution = begun(call, "signals")
    executing.carry_out(call, execution, waits=False)
    executing.send(call, execution, "built")
    with pytest.raises(Conflict, match="`built` was already sent to `first`"):
        executing.send(call, execution, "built")

    assert executing.carry_out(call, execution, waits=False).run.state == "second"


def test_an_unknown_event_is_refused(call: Call) -> None:
    put(call, "wait", WAIT)
    execution = begun(call, "wait")
    with pytest.raises(Conflict, match="takes no events"):
        executing.send(call, execution, "yes")

    executing.carry_out(call, execution, waits=False)
    with pytest.raises(Invalid) as refused:
        executing.send(call, execution, "maybe")
    assert refused.value.hint == "events are no, yes"


def test_an_event_without_a_transition_changes_nothing(call: Call) -> None:
    put(call, "wait", WAIT)
    execution = begun(call, "wait")
    executing.carry_out(call, execution, waits=False)
    execution.send("odd", turn=0)
    execution.send("yes", turn=0)
    done = executing.carry_out(call, execution)

    assert path_of(done) == [("ask", "yes", "done")]
    assert "mimo.procedure.unknown_event" in names(call)


def test_a_question_is_asked_on_the_terminal(call: Call) -> None:
    asked: list[Question] = []

    def ask(question: Question, seconds: float) -> str | None:
        asked.append(question)
        return "no" if len(asked) == 3 else None

    call = with_console(call, ask=ask)
    put(call, "wait", WAIT)
    done = executing.carry_out(call, begun(call, "wait"))

    assert done.run.state == "stopped"
    assert set(asked) == {Question(text="Go on?", choices=("yes", "no"))}


def test_without_a_terminal_a_question_is_shown_once_with_the_way_to_answer_it(
    call: Call, time: Time
) -> None:
    shown: list[str] = []
    put(call, "wait", WAIT)
    call = with_console(call, show_line=shown.append)
    execution = begun(call, "wait")

    def sleep(seconds: float) -> None:
        time.seconds += seconds
        if time.seconds > 1:
            execution.send("yes", turn=0)

    call.mind.timer = call.mind.timer._replace(sleep=sleep)
    assert executing.carry_out(call, execution).run.state == "done"
    assert shown == [
        f"Go on? It waits for `yes` or `no`; `mind procedure send {execution.id} yes` answers it"
    ]


def test_a_question_that_can_not_be_shown_interrupts_the_run_with_the_reason(call: Call) -> None:
    def ask(question: Question, seconds: float) -> str | None:
        raise Invalid("the question contains a secret")

    call = with_console(call, ask=ask)
    put(call, "wait", WAIT)
    execution = begun(call, "wait")
    with pytest.raises(Invalid, match="contains a secret"):
        executing.carry_out(call, execution)
    report = executing.report(call, execution)

    assert (report.status, report.error) == (Status.INTERRUPTED, "the question contains a secret")

    call = with_console(call, ask=lambda *_: "no")
    assert executing.carry_out(call, execution).run.state == "stopped"


def test_an_unknown_event_does_not_extend_the_timeout_of_a_question(call: Call, time: Time) -> None:
    put(call, "wait", WAIT.replace("ask, args", "ask, timeout: 1000, args"))
    execution = begun(call, "wait")
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        time.seconds += seconds
        waited.append(seconds)
        if len(waited) == 10:
            execution.send("odd", turn=0)

    call.mind.timer = call.mind.timer._replace(sleep=sleep)
    done = executing.carry_out(call, execution)

    assert (done.status, done.run.error) == (Status.FAILED, "no answer by 1000 ms")
    assert time.seconds == pytest.approx(1, abs=0.1)


def test_a_run_has_one_process(call: Call) -> None:
    put(call, "greet", GREET)
    execution = begun(call, "greet", who="Ada")

    with execution.held(), pytest.raises(Conflict, match="is running already"):
        executing.carry_out(call, execution)


@pytest.mark.req("000-27")
@pytest.mark.attack("calls that wait")
def test_the_runs_in_the_background_are_limited(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executing, "MOST_RUNNING", 2)
    put(call, "wait", WAIT)
    first, second, third = (begun(call, "wait") for _ in range(3))

    with first.held():
        with second.held():
            with pytest.raises(RateLimited):
                executing.start(call, third)
            with pytest.raises(RateLimited) as refused:
                executing.begin(call, "wait", "latest", {}, asynchronous=True)
            assert refused.value.hint.startswith("run it again")
        assert len(executing.executions(call).ids()) == 3
        assert executing.start(call, third)
    executing.cancel(call, third, "enough")


def test_events_record_the_start_and_the_end(call: Call) -> None:
    put(call, "greet", GREET, "1.2")
    done = ran(call, "greet", who="Ada")
    events = {event.name: event for event in call.mind.events.read()[0]}
    about = {"execution_id": done.id, "name": "greet", "version": "1.2"}

    start = events["mimo.procedure.start"]
    assert (start.measurements, start.metadata) == ({"count": 1}, {**about, "async": False})
    end = events["mimo.procedure.complete"]
    assert end.measurements == {"duration_ms": done.elapsed_ms}
    assert end.metadata == {**about, "status": "completed", "final_state": "done", "error": None}
    assert {event.name for event in call.mind.events.read()[0]} >= {
        "mimo.procedure.transition",
        "mimo.procedure.log",
    }


def test_a_run_that_came_with_a_clone_does_not_run(call: Call) -> None:
    put(call, "greet", GREET)
    journal = call.mind.folder / ".local" / "executions" / begun(call, "greet").id / "journal.jsonl"
    start = json.loads(journal.read_text(encoding="utf-8"))
    for change in ({"mark": "0" * 64}, {"text": start["text"].replace("Hello", "Goodbye")}):
        journal.write_text(json.dumps(start | change) + "\n", encoding="utf-8")

        with pytest.raises(Untrusted):
            executing.carry_out(call, executing.executions(call).find(journal.parent.name))


@pytest.mark.attack("local state planted by a clone")
def test_a_run_that_came_with_a_clone_is_neither_shown_nor_answered(call: Call) -> None:
    put(call, "wait", WAIT)
    own, planted = begun(call, "wait"), begun(call, "wait")
    journal = call.mind.folder / ".local" / "executions" / planted.id / "journal.jsonl"
    start = json.loads(journal.read_text(encoding="utf-8"))
    journal.write_text(json.dumps(start | {"mark": "0" * 64}) + "\n", encoding="utf-8")

    assert executing.executions(call).find("latest").id == own.id
    assert executing.executions(call).find("wait").id == own.id
    assert [row.execution_id for row in runs(call).runs] == [own.id]
    for attempt in (
        lambda: status(call, planted.id),
        lambda: send(call, planted.id, "yes"),
        lambda: cancel(call, planted.id),
    ):
        with pytest.raises(Untrusted):
            attempt()


def test_the_user_can_approve_a_text_on_the_terminal(call: Call) -> None:
    put(call, "greet", GREET)
    call.mind.trust.forget()
    asked: list[str] = []

    def answering(answer: str) -> Call:
        def ask(question: Question, seconds: float) -> str:
            asked.append(question.text)
            return answer

        return with_console(call, ask=ask)

    with pytest.raises(Untrusted):
        begun(answering("no"), "greet", who="Ada")
    assert ran(answering("yes"), "greet", who="Ada").status is Status.COMPLETED
    call = with_console(call, ask=None)
    assert ran(call, "greet", who="Ada").status is Status.COMPLETED
    assert "[log message: Hello, {{who}}]" in asked[0]
    assert len(asked) == 2


@pytest.mark.req("000-09")
def test_concurrent_runs_do_not_mix(call: Call) -> None:
    """Trap (f): a sync run answered with the latest run of that name."""
    put(call, "greet", GREET)
    call.mind.randomness = os.urandom
    reports: dict[int, Any] = {}

    def start_run(number: int) -> None:
        view = acting_as(call, None)
        reports[number] = ran(view, "greet", who=number)

    threads = [threading.Thread(target=start_run, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {number: report.run.context["who"] for number, report in reports.items()} == {
        number: number for number in range(10)
    }
    assert {number: report.run.log for number, report in reports.items()} == {
        number: [f"info: Hello, {number}"] for number in range(10)
    }
    assert len({report.id for report in reports.values()}) == 10


DEEP = json.loads("[" * 900 + "]" * 900)


@pytest.mark.attack("journal of a run damaged")
@pytest.mark.parametrize(
    ("start", "record"),
    [
        ({"text": "nonsense"}, {}),
        ({"context": [1]}, {}),
        ({"context": {"who": float("inf")}}, {}),
        ({"context": {"who": DEEP}}, {}),
        ({}, {"merge": {"x": DEEP}}),
        ({}, {"to": "nowhere"}),
        ({}, {"kind": "odd"}),
        ({}, {"at": None, "merge": 3}),
        ({}, {"at": float("inf")}),
        ({}, {"kept": 1}),
        ({}, {"kept": ["1"]}),
        ({"text": "\ud800"}, {}),
        ({"time": 5}, {}),
        ({"time": "9999-12-31T23:59:59-14:00"}, {}),
        ({"warnings": 1}, {}),
    ],
)
def test_a_record_that_does_not_fit_the_procedure_is_an_error(
    call: Call, start: dict[str, Any], record: dict[str, Any]
) -> None:
    put(call, "greet", GREET)
    execution = begun(call, "greet", who="Ada")
    journal = call.mind.folder / ".local" / "executions" / execution.id / "journal.jsonl"
    move = {"n": 1, "kind": "transition", "from": "greet", "to": "done", "event": "success"}
    records = [json.loads(journal.read_bytes()) | start, {**move, "at": 1, **record}]
    journal.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")

    with pytest.raises((StorageFailed, Untrusted), match=r"is damaged|you did not begin"):
        executing.report(call, execution)
