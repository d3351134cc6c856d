"""Programs of procedures: approval, environment and timeouts."""

import os
import sys
import time
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.errors import Conflict, Untrusted
from mimo.features.procedures import actions, executing, library
from mimo.features.procedures.machine import Status
from mimo.features.review import trusting
from mimo.frozen import replace
from mimo.surroundings import Question, Timer
from tests.kit import acting_as, with_console
from tests.sample_procedures import GREET, begun, put, ran, text


def program(*argv: str, more: str = "") -> str:
    words = ", ".join(f'"{word}"' for word in (sys.executable, *argv))
    return (
        "initial_state: work\nstates:\n  work:\n"
        f"    action: {{module: shell, function: run, args: [{words}]{more}}}\n"
        "    transitions: [{event: success, target: done}]\n  done: {}\n"
    )


def agree(call: Call) -> list[str]:
    """Answers every question on the terminal with yes; returns the questions."""
    asked: list[str] = []

    def ask(question: Question, seconds: float) -> str:
        asked.append(question.text)
        return "yes"

    call.console = replace(call.console, ask=ask)
    return asked


def test_a_program_runs_in_the_project_with_a_scrubbed_environment(call: Call) -> None:
    call.mind.environ = {
        "PATH": f"bin:{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
        "API_TOKEN": "hidden",
        "MIND_EXECUTION_LOCK": "7",
    }
    code = "import os; print(os.getcwd()); print(sorted(os.environ)); print(os.environ['PATH'])"
    put(call, "work", program("-c", code))
    agree(call)
    done = ran(call, "work")

    assert done.status is Status.COMPLETED, done.run.error
    folder, names, path = done.run.context["shell"]["stdout"].splitlines()
    assert Path(folder) == call.mind.project.root.resolve()
    assert "TOKEN" not in names
    assert "MIND" not in names
    assert path == os.environ["PATH"]


def test_a_program_learns_of_the_agent_that_a_run_acts_for(call: Call) -> None:
    code = "import os; print(os.environ.get('AI_AGENT'))"
    put(call, "work", program("-c", code))
    agree(call)
    for agent in (None, "claude-code"):
        done = ran(acting_as(call, agent), "work")

        assert done.run.context["shell"]["stdout"] == f"{agent}\n"


def test_relative_folders_are_removed_from_path() -> None:
    assert actions.scrubbed({"PATH": "bin:."}, [])["PATH"] == os.defpath


def test_the_words_of_a_program_are_not_interpreted(call: Call) -> None:
    code = "import sys; print(sys.argv[1:])"
    put(call, "work", program("-c", code, "{{branch}}", "$HOME; ls", "{{n}}"))
    agree(call)
    done = ran(call, "work", branch="main && rm -rf /", n=3)

    assert done.run.context["shell"]["stdout"] == "['main && rm -rf /', '$HOME; ls', '3']\n"


def test_the_error_of_a_program_is_its_last_line(call: Call) -> None:
    code = "import sys; print('first', file=sys.stderr); sys.exit('disk full')"
    put(call, "work", program("-c", code), max_retries=0)
    agree(call)
    done = ran(call, "work")

    assert done.status is Status.FAILED
    assert done.run.error == f"`{sys.executable}` exited with 1: disk full"


def test_a_missing_program_is_a_failure(call: Call) -> None:
    put(call, "work", program().replace(sys.executable, "no-such-program"))
    agree(call)

    assert str(ran(call, "work").run.error).startswith("`no-such-program` can't be run")


def test_long_output_is_truncated(call: Call) -> None:
    put(call, "work", program("-c", "print('x' * 1_000_000)"))
    agree(call)

    assert len(ran(call, "work").run.context["shell"]["stdout"]) == actions.MOST_OUTPUT


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"


CHILD = (
    "import os,sys,time; pid = os.fork(); "
    "time.sleep(60) if pid == 0 else (open('child','w').write(str(pid)), {then})"
)


@pytest.mark.parametrize(
    ("then", "more", "status"),
    [
        ("time.sleep(60)", ", timeout: 300", Status.FAILED),
        ("os._exit(0)", "", Status.COMPLETED),
    ],
)
@pytest.mark.req("000-28")
def test_child_processes_of_a_program_are_killed_with_its_step(
    call: Call, then: str, more: str, status: Status
) -> None:
    child = call.mind.project.root / "child"

    def seconds() -> float:
        return 10 if child.exists() and child.stat().st_size else 0

    call.mind.timer = Timer(monotonic=seconds, sleep=lambda _: None)
    put(call, "work", program("-c", CHILD.format(then=then), more=more), max_retries=0)
    agree(call)
    done = ran(call, "work")

    assert done.status is status, done.run.error
    while not is_gone(
        int(child.read_text(encoding="utf-8"))
    ):  # killed, but perhaps not yet taken off the table
        time.sleep(0.01)


WRITER = """\
import os
if os.fork():
    while not (os.path.exists("child") and os.path.getsize("child")):
        pass
    os._exit(0)
if {leaves}:
    os.setsid()
with open("child", "w") as file:
    file.write(str(os.getpid()))
while True:
    print("tick", flush=True)
"""


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.req("000-28")
def test_a_step_ends_with_its_program_although_a_child_goes_on_writing(
    call: Call, leaves: bool
) -> None:
    """A child that leaves the process group is not killed; its pipe is closed."""
    argv = [sys.executable, "-c", WRITER.format(leaves=leaves)]
    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        assert calls < 10_000, "the step waits for the child"

    status, _, _ = actions.run_program(
        argv, folder=call.mind.project.root, environ=os.environ, check=check
    )

    assert status == 0
    child = call.mind.project.root / "child"
    while not is_gone(int(child.read_text(encoding="utf-8"))):
        time.sleep(0.01)


def test_all_output_before_the_end_of_a_program_is_kept(call: Call) -> None:
    """The pipes are full when it ends."""
    code = "import os; [os.write(n, b'x' * 60_000) for n in (1, 2)]"
    put(call, "work", program("-c", code))
    agree(call)
    shell = ran(call, "work").run.context["shell"]

    assert (len(shell["stdout"]), len(shell["stderr"])) == (60_000, 60_000)


def test_stopping_a_run_kills_its_program(call: Call) -> None:
    put(call, "work", program("-c", CHILD.format(then="time.sleep(60)")))
    agree(call)
    execution = begun(call, "work")
    call = with_console(call, halted=(call.mind.project.root / "child").exists)
    done = executing.carry_out(call, execution)

    assert (done.status, done.run.error) == (Status.INTERRUPTED, "the caller cancelled the call")
    while not (written := (call.mind.project.root / "child").read_text(encoding="utf-8")):
        time.sleep(0.01)
    while not is_gone(int(written)):
        time.sleep(0.01)


def test_programs_run_only_after_the_user_agreed_on_a_terminal(call: Call) -> None:
    put(call, "work", program("-c", "print(1)"))
    with pytest.raises(Untrusted, match="which runs programs"):
        begun(call, "work")
    trusting.approve_all(call, follow=True)
    with pytest.raises(Untrusted):
        begun(call, "work")

    asked = agree(call)
    assert ran(call, "work").status is Status.COMPLETED
    call = with_console(call, ask=None)
    assert ran(call, "work").status is Status.COMPLETED
    assert len(asked) == 1
    assert f"$ {sys.executable} -c 'print(1)'" in asked[0]


def test_a_program_in_an_added_procedure_is_not_approved(call: Call) -> None:
    file, result = library.added(call, text("work", program("-c", "print(1)")).encode(), "text")

    assert result.procedure
    assert not library.is_approved(call, file.data, result.procedure)
    with pytest.raises(Untrusted):
        begun(call, "work")


def test_a_procedure_that_could_not_be_added_is_not_approved(call: Call) -> None:
    first = text("greet", GREET).encode()
    other = first.replace(b"Hello", b"Bye")
    file, _ = library.added(call, first, "text")
    with pytest.raises(Conflict):
        library.added(call, other, "text")

    (call.mind.project.root / file.path).write_bytes(other)  # As a pull brings it.

    with pytest.raises(Untrusted):
        begun(call, "greet")
    assert library.added(call, other, "text")[0].path == file.path
    with pytest.raises(Untrusted):
        begun(call, "greet")
