"""Proposals from sessions: repetition, mended failures, order, and the labelled sessions."""

import pytest

from bench.proposals import FOLDER, read, share, verdict
from mimo.extensions.sessions.cues import Family
from mimo.extensions.sessions.model import Role, Turn
from mimo.extensions.sessions.proposals import History, proposed, shifts_of
from mimo.extensions.sessions.store import KeptTurn
from mimo.memory.model import Kind

RULE = "prices are integers in cents, never floats"


def history(session: str, *turns: Turn | str) -> History:
    made = [Turn(role=Role.USER, text=turn) if isinstance(turn, str) else turn for turn in turns]
    return History(session, [KeptTurn(n, turn) for n, turn in enumerate(made, 1)])


def agent(text: str) -> Turn:
    return Turn(role=Role.AGENT, text=text)


def called(command: str, error: str = "", *files: str) -> Turn:
    return Turn(role=Role.TOOL, text=command, error=error, files=files)


def test_a_rule_is_proposed_with_its_place() -> None:
    (proposal,) = proposed([history("cc-1", "hi", RULE)])
    assert (proposal.type, proposal.source) == (Kind.FACT, "session:cc-1#2")
    assert proposal.text == "Prices are integers in cents, never floats"


def test_turns_that_were_not_typed_propose_nothing() -> None:
    turn = Turn(role=Role.USER, text=RULE, is_typed=False)
    assert proposed([history("cc-1", turn, agent(RULE))]) == []


def test_what_is_said_in_two_sessions_is_one_proposal_and_the_first() -> None:
    first = history("cc-1", RULE, "please use pnpm, npm breaks the lockfile")
    second = history("cc-2", "again: pnpm, not npm.")
    proposal = proposed([first, second])
    assert [(item.text, item.sessions) for item in proposal] == [
        ("Please use pnpm, npm breaks the lockfile", 2),
        ("Prices are integers in cents, never floats", 1),
    ]
    assert [mention.session for mention in proposal[0].mentions] == ["cc-1", "cc-2"]


def test_a_copy_of_a_session_is_no_repetition() -> None:
    (proposal,) = proposed([history("cc-1", RULE), history("cc-2", RULE)])
    assert proposal.sessions == 1


def test_a_mended_failure_needs_the_cause_in_the_words_of_the_agent() -> None:
    failed = called("docker compose up", "port 9092 is already allocated")
    mended = called("docker compose -p ingest up")
    cause = "The problem was a second project on this port."
    assert proposed([history("cc-1", "go", failed, mended, agent("It works."))]) == []
    assert proposed([history("cc-1", "go", failed, agent(cause))]) == []
    (proposal,) = proposed([history("cc-1", "go", failed, mended, agent(cause))])
    assert (proposal.type, proposal.family) == (Kind.INSIGHT, Family.MEND)
    assert proposal.text == (
        "`docker compose up` failed: port 9092 is already allocated. The problem was a second"
        " project on this port. Then `docker compose -p ingest up` worked."
    )


def test_another_subcommand_mends_nothing_and_earlier_edits_are_not_the_mend() -> None:
    cause = agent("The problem was the stale branch.")
    failed, edit = called("git push", "rejected"), called("Edit a.py", "", "a.py")
    assert proposed([history("cc-1", "go", failed, called("git status"), cause)]) == []
    (proposal,) = proposed([history("cc-1", "go", edit, failed, failed, called("git push"), cause)])
    assert proposal.text == "`git push` failed: rejected. The problem was the stale branch."


def test_a_command_in_a_folder_and_a_pipe_is_the_same_command() -> None:
    turns = (called("cd app && npm test", "1 failed"), called("cd app && npm test | tail -5"))
    cause = agent("The root cause was the clock.")
    assert len(proposed([history("cc-1", "go", *turns, cause)])) == 1


def test_a_long_command_is_cut() -> None:
    command = f"make {'x' * 500}"
    failed = called(command, "Error 2")
    turns = ("go", failed, failed, called(command), agent("The cause was a typo."))
    (proposal,) = proposed([history("cc-1", *turns)])
    assert len(proposal.text) < 250


def test_of_many_changed_files_the_first_are_named() -> None:
    failed = called("make", "Error 2")
    edits = [called("Edit", "", f"{n}.py") for n in range(1_000)]
    turns = [failed, *edits, failed, called("make"), agent("The cause was a typo.")]
    (proposal,) = proposed([history("cc-1", "go", *turns)])
    assert proposal.text.endswith("Changed: 0.py, 1.py, 2.py, 3.py, 4.py …")


def test_a_failure_that_was_seen_before_is_worth_more() -> None:
    cause = "The root cause was the cache."
    turns = (
        "go",
        called("make", "Error 2 in 'a'"),
        called("make", "Error 2 in 'a'"),
        called("Edit a.py", "", "a.py"),
        called("make"),
    )
    first, second = (history(id, *turns, agent(cause)) for id in ("cc-1", "cc-2"))
    (alone,) = proposed([first])
    (repeated,) = proposed([history("cc-0", "go", called("make", "Error 3 in 'b'")), second])
    assert repeated.strength > alone.strength
    assert alone.text.endswith("Changed: a.py.")


def test_rejections_of_a_family_silence_its_weaker_proposals() -> None:
    sessions = [history("cc-1", RULE, "I prefer small functions")]
    shifts = shifts_of([("prefer", "rejected", 4), ("rule", "accepted", 1)])
    assert [item.family for item in proposed(sessions, shifts)] == [Family.RULE]
    assert len(proposed(sessions, shifts_of([("prefer", "rejected", 1)]))) == 2


def test_an_answer_to_a_choice_is_stronger_than_one_to_an_offer() -> None:
    words = "let's use sharp"
    assert proposed([history("cc-1", agent("Sharp or a CDN?"), words)])
    assert not proposed([history("cc-1", agent("Would you like sharp or a CDN?"), words)])


@pytest.mark.parametrize(
    ("half", "precision"),
    [("open", 0.75), ("sealed", 0.75), ("talk", 0.7), ("talk-sealed", 0.65), ("languages", 0.8)],
)
def test_most_proposals_of_the_labelled_sessions_are_good(half: str, precision: float) -> None:
    marks = [
        verdict(item, person.labels)
        for person in read(FOLDER / f"{half}.txt")
        for item in proposed(person.histories)
    ]
    assert share(marks, ("s",)) >= precision
