"""The words of a user among what clients put around them."""

import pytest

from mimo.extensions.sessions.readers.wrappings import last_line, without_notes, words_of
from mimo.features.hooks.events import REQUEST
from tests.conftest import assert_linear

NOTE = "<mind-context>\nDecision: x\n</mind-context>"
ESCAPED = NOTE.replace("<", "&lt;").replace(">", "&gt;")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" Hi. ", "Hi."),
        ("<system-reminder>x</system-reminder>\n\nHi.", "Hi."),
        ("<ide_opened_file>x</ide_opened_file>\n<ide_selection a='b'>y</ide_selection>Hi.", "Hi."),
        ("<user_query>\nHi.\n</user_query>", "Hi."),
        ('<user_input mode="act">Hi.</user_input>', "Hi."),
        ("<user_info>x</user_info>\n<user_query>Hi.</user_query>", "Hi."),
        ("<task>Hi.</task>\n<environment_details>x</environment_details>", "Hi."),
        (f"<hook_context>{ESCAPED}</hook_context>\n\nHi.", "Hi."),
        (f"{NOTE}\nHi.", "Hi."),
        (f"Hi.\n{NOTE}", "Hi."),
        ("# Context from my IDE setup:\n\n## Open tabs\n\n## My request for Codex:\nHi.", "Hi."),
        ("<command-name>/clear</command-name>\n<command-args></command-args>", ""),
        ("<local-command-stdout>Compacted</local-command-stdout>", ""),
        ("<bash-input>ls</bash-input>", ""),
        ("<task-notification>x</task-notification>\nRead the output file.", ""),
        ("<turn_aborted>\nx\n</turn_aborted>", ""),
        ("# AGENTS.md instructions for /home/mina/shop\n\n<INSTRUCTIONS>x</INSTRUCTIONS>", ""),
        ("[Request interrupted by user for tool use]", ""),
        ("Implement the following plan:\n\n# Plan", ""),
        ("<environment_context>\n<cwd>/</cwd>\n</environment_context>", ""),
    ],
)
def test_wrappings_are_taken_off(text: str, words: str) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    "text",
    [
        "Why is <system-reminder>x</system-reminder> here?",
        "Why does `<mind-context>x</mind-context>` come?",
        "<system-reminder> has no end, and this is mine",
        "<command-name> is in my log, why?",
        "<task-notification> is in my log, why?",
        "<mind-context is never closed",
        "<user_query>x</user_query> and more words",
        "<task>one</task> <task>two</task>",
        "<div>not a wrapping</div>",
        "<user_query>no end",
        "[Request a review]",
    ],
)
def test_what_the_user_quotes_stays(text: str) -> None:
    assert words_of(text) == text


def test_notes_are_left_out_of_answers() -> None:
    assert without_notes(f"One.\n{NOTE}\nTwo.\n{ESCAPED}") == "One.\n\nTwo."
    assert without_notes("A mind-context is a note.") == "A mind-context is a note."


@pytest.mark.parametrize(
    "piece",
    [
        "<system-reminder>x</system-reminder>",
        "<system-reminder>",
        "<task>",
        "<task></task>",
        "<mind-context>",
        "<mind-context></mind-context>",
        "x<mind-context></mind-context>",
        "\n",
        "<a ",
        "<user_query></user_query><user_info></user_info>",
    ],
)
def test_hostile_texts_take_linear_time(piece: str) -> None:
    assert_linear(lambda size: words_of(piece * size))


@pytest.mark.parametrize(
    ("output", "line"),
    [("", ""), ("a\n\n", "a"), ("E  x\n1 failed\n====\n", "1 failed"), ("-" * 9, "")],
)
def test_the_last_line_says_something(output: str, line: str) -> None:
    assert last_line(output) == line


KEY_LINES = ("MIIEowIBAAKCAQEA7bq5Zk3mT9xVhR2wYc8LpQ4s", "Jd6fGhN1vB0uXeKiOaWzEyCtMlPrSgUj5D8nFqHk")
BEGIN = "-----BEGIN RSA PRIVATE KEY-----"
TOKEN = "ghp_9aKq2Lx7Rt4Vb8Nz1Mw5Yc3Df6Gh0JpQsWeX"


@pytest.mark.parametrize(
    "output",
    [
        "\n".join((BEGIN, *KEY_LINES)),
        f"{'x ' * 90}eyJhbGciOiJIUzI1NiJ9.{'eyJzdWIiOiI0Mi' * 3}.{TOKEN[4:]}",
        f"error {TOKEN} {'y' * 7_970}",
        f"error {TOKEN} {'y ' * 3_985}",
    ],
)
def test_the_last_line_has_no_part_of_a_secret(output: str) -> None:
    line = last_line(output)
    for secret in (*KEY_LINES, TOKEN, "eyJhbGciOiJIUzI1NiJ9"):
        assert not any(secret[n : n + 8] in line for n in range(len(secret) - 7))


def test_the_request_to_record_a_session_is_not_the_users() -> None:
    assert words_of(f"{REQUEST}, once in a session): record it now.") == ""
