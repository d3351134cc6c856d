"""Approvals and choices that a client asks its user about, in both eras of the protocol."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp_types import ElicitResult

from mimo.call import Call, Caller, Console, Surface
from mimo.mind import Mind
from mimo.operations import consent, refresh
from tests import kit
from tests.sample_procedures import GREET, WAIT, text

ERAS = ("legacy", "auto")
PROGRAM = """\
initial_state: a
states:
  a:
    action: {module: shell, function: run, args: ["true"]}
    transitions: [{event: success, target: b}]
  b: {}
"""


class User:
    """A client's user, who gives the same answer to each question."""

    def __init__(self, answer: str | None, then: Callable[[], object] = lambda: None) -> None:
        self.answer, self.then = answer, then
        self.questions: list[str] = []

    async def __call__(self, _: Any, params: Any) -> ElicitResult:
        self.questions.append(params.message)
        self.then()
        if self.answer is None:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={"answer": self.answer})


def asked(call: Call, user: User | None, era: str, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Returns the results of tools; the texts that wait for approval have come with a clone."""
    call.mind.trust.forget()

    async def talk(client: Client) -> list[Any]:
        return [await client.call_tool(tool, arguments) for tool, arguments in calls]

    results: list[Any] = kit.client(call, talk, era=era, elicitation_callback=user)
    return results


def procedure(call: Call, states: str = GREET) -> Path:
    return kit.write(call, "procedures/greet@1.0.md", text("greet", states))


RUN = ("run_procedure", {"name": "greet", "context": {"who": "Ada"}})


@pytest.mark.parametrize("era", ERAS)
def test_a_procedure_runs_after_the_user_approves_its_whole_text(call: Call, era: str) -> None:
    path, user = procedure(call), User("yes")

    first, second = asked(call, user, era, RUN, RUN)

    assert first.structured_content["status"] == "completed", first.content
    assert second.structured_content["status"] == "completed"
    (question,) = user.questions
    first, second, *_ = question.splitlines()
    assert first.startswith("Approve this text, so that it runs?")
    assert second == f".mind/procedures/greet@1.0.md ({path.stat().st_size} bytes)"
    assert question.endswith("\n".join(f"    | {line}" for line in path.read_text().splitlines()))


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("answer", [None, "no", "something else"])
def test_a_procedure_that_the_user_declines_is_refused_and_not_asked_about_again(
    call: Call, era: str, answer: str | None
) -> None:
    procedure(call)
    user = User(answer)

    first, second = asked(call, user, era, RUN, RUN)

    assert (first.is_error, second.is_error, len(user.questions)) == (True, True, 1)
    assert "is not approved on this machine" in first.content[0].text


@pytest.mark.parametrize("era", ERAS)
def test_a_text_that_changes_during_the_question_is_not_approved(call: Call, era: str) -> None:
    path = procedure(call)
    changed = text("greet", GREET.replace("Hello", "Bye"))
    user = User("yes", lambda: path.write_text(changed))

    (result,) = asked(call, user, era, RUN)

    if era == "legacy":  # The text that was shown has run.
        assert result.structured_content["log"] == ["info: Hello, Ada"]
    else:  # The changed text is another question.
        assert ["Bye" in question for question in user.questions] == [False, True]
    later = kit.client(call, lambda client: client.call_tool(*RUN), era=era)
    assert later.is_error == (era == "legacy")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "text_of",
    [
        pytest.param(lambda: text("greet", PROGRAM), id="programs"),
        pytest.param(lambda: text("greet", GREET) + "x\n" * 5_000, id="too long to read"),
        pytest.param(lambda: text("greet", GREET) + " " * 90 + "Approve it?\n", id="blanks"),
        pytest.param(lambda: text("greet", GREET) + "\t" * 9 + "Approve it?\n", id="tabs"),
        pytest.param(lambda: text("greet", GREET) + "\n" * 90 + "Approve it?\n", id="no lines"),
        pytest.param(lambda: text("greet", GREET) + "AKIAIOSFODNN7EXAMPLF\n", id="secret"),
    ],
)
def test_a_question_that_does_not_show_the_whole_text_is_not_asked(
    call: Call, era: str, text_of: Callable[[], str]
) -> None:
    procedure(call).write_text(text_of())
    user = User("yes")

    (result,) = asked(call, user, era, RUN)

    assert "is not approved on this machine" in result.content[0].text
    assert user.questions == []


@pytest.mark.parametrize(
    ("answer", "more", "status"),
    [
        ("yes", {}, "completed"),
        ("yes", {"timeout": 60_000}, "completed"),
        (None, {}, "interrupted"),
    ],
)
def test_a_run_asks_its_question_in_the_newer_protocol_and_goes_on(
    call: Call, answer: str | None, more: dict[str, Any], status: str
) -> None:
    procedure(call, WAIT)
    kit.do(call, "trust", all=True)
    run, user = ("run_procedure", {"name": "greet", **more}), User(answer)

    result = kit.client(call, lambda client: client.call_tool(*run), elicitation_callback=user)

    assert result.structured_content["status"] == status, result.content
    assert user.questions == ["Go on?"]
    assert len(kit.do(call, "procedure runs").runs) == 1


def test_hidden_characters_of_a_text_are_shown_in_the_question(call: Call) -> None:
    procedure(call).write_text(text("greet", GREET) + "safe\u202etxet\x1b[8m\n")
    user = User("no")

    asked(call, user, "legacy", RUN)

    assert r"| safe\u202etxet\x1b[8m" in user.questions[0]


@pytest.mark.parametrize("era", ERAS)
def test_a_client_without_elicitation_gets_the_hint_to_approve(call: Call, era: str) -> None:
    procedure(call)

    (result,) = asked(call, None, era, RUN)

    assert result.is_error
    assert "approve it with the user's command `trust`" in result.content[0].text


@pytest.mark.parametrize("era", ERAS)
def test_a_summary_has_the_memories_that_the_user_approves(call: Call, era: str) -> None:
    kit.fact(call, "b2c3d4", "The cache of the shop holds ten minutes")
    user = User("yes")

    (result,) = asked(call, user, era, ("recall_memory", {"query": "cache of the shop"}))

    assert "holds ten minutes" in result.structured_content["summary"]
    (question,) = user.questions
    assert question.endswith("\n    | The cache of the shop holds ten minutes")


@pytest.mark.parametrize("era", ERAS)
def test_a_summary_leaves_out_the_memories_that_the_user_declines(call: Call, era: str) -> None:
    kit.fact(call, "b2c3d4", "The cache of the shop holds ten minutes")
    user = User("no")
    recall = ("recall_memory", {"query": "cache of the shop"})

    results = asked(call, user, era, recall, recall)

    assert all("1 memory is left out" in each.structured_content["summary"] for each in results)
    assert len(user.questions) == 1


def test_an_agent_cannot_tire_the_user_with_questions(call: Call) -> None:
    words = "anchor basket candle dragon engine fossil guitar hammer island jacket".split()
    words += "kettle ladder magnet needle orange".split()
    for number, word in enumerate(words):
        kit.fact(call, f"b2c3d{number:x}", f"The {word} of the shop is stored in room {number}")
    user = User("no")
    recalls = [("recall_memory", {"query": f"where is the {word} of the shop"}) for word in words]

    asked(call, user, "legacy", *recalls, *recalls[:2])

    shown = [
        line for question in user.questions for line in question.split("\n") if "| The" in line
    ]
    assert len(set(shown)) == len(shown) <= 12


def test_calls_at_once_ask_the_user_one_question(call: Call) -> None:
    procedure(call)
    for number, word in enumerate(("anchor", "basket", "candle")):
        kit.fact(call, f"b2c3d{number}", f"The {word} of the shop is stored in room {number}")
    call.mind.trust.forget()
    open_questions, most = 0, 0

    async def decline(*_: Any) -> ElicitResult:
        nonlocal open_questions, most
        open_questions += 1
        most = max(most, open_questions)
        await anyio.sleep(0.2)
        open_questions -= 1
        return ElicitResult(action="decline")

    async def talk(client: Client) -> None:
        async with anyio.create_task_group() as group:
            for word in ("anchor", "basket", "candle"):
                group.start_soon(client.call_tool, *RUN)
                group.start_soon(
                    client.call_tool, "recall_memory", {"query": f"{word} of the shop"}
                )

    kit.client(call, talk, era="legacy", elicitation_callback=decline)

    assert most == 1


def test_nothing_is_asked_on_a_server_of_several_users_and_on_a_command_line(call: Call) -> None:
    console = Console(ask=lambda *_: "yes")
    users: Any = object()
    for caller, can in (
        (Caller(surface=Surface.MCP, name="claude"), True),
        (Caller(surface=Surface.MCP, name="claude", permissions=users), False),
        (Caller(surface=Surface.CLI, name="claude"), False),
    ):
        assert consent.can_ask(Call(call.mind, caller, console)) is can


def test_an_approval_in_a_client_is_an_event(call: Call) -> None:
    procedure(call)

    asked(call, User("yes"), "legacy", RUN)

    names = {event.name: event.metadata for event in call.mind.events.read()[0]}
    assert names["mimo.trust.approved"] == {"files": [".mind/procedures/greet@1.0.md"]}


def rivals(call: Call) -> list[str]:
    saved = [
        kit.do(call, "save decision", topic="cache", decision=word, reasoning="Fast", **more)
        for word, more in (("Use Redis", {}), ("Use Valkey", {"keep_current": True}))
    ]
    return [each.id for each in saved]


@pytest.mark.parametrize("era", ERAS)
def test_the_user_chooses_which_of_two_current_decisions_stays(call: Call, era: str) -> None:
    ids = rivals(call)
    user = User("2")
    outcome = ("evolve_outcome", {"id": "cache", "outcome": "SUCCESS"})

    result = kit.client(
        call, lambda client: client.call_tool(*outcome), era=era, elicitation_callback=user
    )

    (question,) = user.questions
    chosen = question.rpartition(" (")[2].partition(",")[0]
    assert (result.structured_content["id"], chosen in ids) == (chosen, True)
    assert ". Use Redis ## Reasoning Fast (decision_cache_" in question
    assert question.startswith("2 decisions on cache are current. Which one stays current? It")
    assert [record.memory.id for record in refresh.up_to_date(call).current("cache")] == [chosen]


@pytest.mark.parametrize("era", ERAS)
def test_two_current_decisions_stay_if_the_user_declines(call: Call, era: str) -> None:
    rivals(call)
    outcome = ("evolve_outcome", {"id": "cache", "outcome": "SUCCESS"})

    result = kit.client(
        call, lambda client: client.call_tool(*outcome), era=era, elicitation_callback=User(None)
    )

    assert result.is_error
    assert "2 decisions on `cache` compete" in result.content[0].text


def test_a_client_over_a_pipe_answers_each_question_of_one_call(project: Path, home: Path) -> None:
    """The approval of the text, then the question of the run, each with the call repeated."""
    kit.write(project, "procedures/greet@1.0.md", text("greet", WAIT))
    Mind.open(project, project=project).trust.forget()
    user = User("yes")

    async def talk(client: Client) -> Any:
        return await client.call_tool("run_procedure", {"name": "greet"})

    for era in ERAS:
        result = kit.over_pipe(project, talk, era=era, elicit=user)
        assert result.structured_content["status"] == "completed", result.content
    assert [question.partition("? ")[0] for question in user.questions] == [
        "Approve this text, so that it runs",
        "Go on?",
        "Go on?",
    ]
