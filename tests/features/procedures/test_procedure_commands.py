"""The `mind procedure` commands on the command line."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call, Console
from mimo.cli.completing import candidates
from mimo.cli.main import main
from mimo.errors import Invalid
from mimo.features.procedures import executing
from mimo.features.procedures.commands import add
from mimo.features.procedures.commands import run as start
from mimo.features.procedures.library import EXAMPLE
from mimo.surroundings import Ask, Question
from tests import privacy_fakes
from tests.kit import acting_as
from tests.sample_procedures import GREET, WAIT, Time, begun, put, text


@pytest.fixture
def run(call: Call, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Returns the exit status and the output, without ids and times."""
    monkeypatch.chdir(call.mind.project.root)
    call.mind.timer = Time().timer()

    def words(*argv: str) -> tuple[int, str]:
        status = main([*argv], open=lambda _: call.mind)
        shown = capsys.readouterr()
        output = shown.out + shown.err
        return status, re.sub(r"_20261120_[a-z0-9]+", "_ID", output)

    return words


@pytest.mark.attack("secret in a procedure's file")
def test_add_refuses_a_file_with_a_secret(run: Any, call: Call) -> None:
    token = privacy_fakes.TOKENS["github_token"][0](privacy_fakes.Draw(9))
    texts = {"log": GREET.replace("Hello", token), "note": f"{GREET}# {token}\n"}
    for name, states in texts.items():
        Path(f"{name}.md").write_text(text(name, states), encoding="utf-8")
        status, output = run("procedure", "add", f"{name}.md", "--verbose")
        assert (status, "[SECRET_DETECTED]" in output) == (1, True)
        assert f"`{name}.md` holds a secret on line" in output
        assert token not in output
        assert not (call.mind.folder / "procedures" / f"{name}@1.0.md").exists()
    assert run("procedure", "add", "log.md", "--allow-secret")[0] == 0


def test_send_and_cancel_reach_a_running_run(run: Any, call: Call) -> None:
    put(call, "wait", WAIT)
    execution = begun(call, "wait")
    executing.carry_out(call, execution, waits=False)
    execution.append({"kind": "resume", "at": 0, "time": call.mind.now().isoformat()})
    with execution.held():
        assert run("procedure", "send", "latest", "yes") == (0, "✓ sent yes; now in state ask\n")
        assert run("procedure", "send", "latest", "odd")[0] == 2
        status, output = run("procedure", "cancel", "latest", "--reason", "enough")
        assert (status, output.splitlines()[0]) == (0, "wait@1.0  running")
    assert execution.cancelled() == "cancelled: enough"

    status, output = run("procedure", "cancel", "latest")
    assert (status, output.splitlines()[0]) == (0, "wait@1.0  interrupted")
    assert output.count("the run is not running; nothing was cancelled") == 1


@pytest.mark.attack("a context that claims to be the run")
def test_a_context_cannot_stand_for_the_run(call: Call) -> None:
    put(call, "wait", WAIT.replace("Go on?", "Is {{run.id}} right?"))
    asks = start(acting_as(call, "claude-code"), "wait", context={"run.id": "another run"})
    assert asks.question == f"Is {asks.execution_id} right?"


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        ("yes", "yes"),
        ("ja, bitte", "'ja, bitte'"),
        ("it's; rm x", """'it'"'"'s; rm x'"""),
        ("--help", "-- --help"),
        ("a`b", "EVENT"),
    ],
)
def test_the_command_that_answers_a_question_is_quoted(
    run: Any, call: Call, event: str, shown: str
) -> None:
    put(call, "wait", WAIT.replace('"yes"', json.dumps(event)))
    asks = start(acting_as(call, "claude-code"), "wait")
    line = f"mind procedure send {asks.execution_id} {shown}"
    assert f"`{line}` answers it" in str(asks.answering)
    output = run("procedure", "status", "latest")[1]
    assert f"  mind procedure send wait_ID {shown}\n  mind procedure send wait_ID no\n" in output
    output = run("procedure", "resume", "latest", "--timeout", "100")[1]
    assert f"  mind procedure send wait_ID {shown}\n  mind procedure send wait_ID no\n" in output
    if shown != "EVENT":
        assert run(*shlex.split(line)[1:])[0] == 0
        assert run("procedure", "resume", "latest")[0] == 0


def test_ctrl_c_leaves_a_run_that_can_be_resumed(
    run: Any, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(call, "wait", WAIT)

    def ask(question: Question, seconds: float) -> str | None:
        raise KeyboardInterrupt

    def answering(ask: Ask) -> None:
        monkeypatch.setattr("mimo.cli.main._console", lambda *_: Console(ask=ask))

    answering(ask)
    status, output = run("procedure", "run", "wait")
    stopped = r"interrupted: `wait` in state `ask`; `mind procedure resume (\w+)` continues it\n"
    assert (status, bool(match := re.fullmatch(stopped, output))) == (130, True)
    status, output = run("procedure", "status", "latest")
    assert (status, "Ctrl-C" in output) == (0, True)
    answering(lambda question, seconds: "yes")
    assert match
    assert run("procedure", "resume", match[1])[0] == 0


def test_names_and_ids_are_completed(run: Any, call: Call) -> None:
    put(call, "greet", GREET)
    put(call, "greet", GREET, "1.1")
    execution = begun(call, "greet")

    assert candidates("procedure", "g", None) == [("greet", "")]
    assert candidates("procedure", "x", None) == []
    assert candidates("execution", "gr", None) == [(execution.id, "")]


def test_the_example_for_agents_is_a_procedure_that_runs(call: Call) -> None:
    with pytest.raises(Invalid) as refusal:
        add(acting_as(call, "probe"), text="Say hi")
    assert json.dumps(EXAMPLE) in refusal.value.hint
    added = add(call, text=EXAMPLE)
    assert (added.name, added.version, added.trust) == ("greet", "1.0.0", "trusted")
    ran = start(call, "greet", context={"who": "Ada"})
    assert (ran.status, ran.final_state, ran.log) == ("completed", "done", ("info: Hi, Ada",))
