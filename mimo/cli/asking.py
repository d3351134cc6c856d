"""Questions that a command puts to the person at the terminal."""

import sys

from mimo.cli.output import complain
from mimo.surroundings import Question

_put: list[Question] = []
"""The question that stands on the terminal, so that it is printed once."""


def ask(question: Question, seconds: float) -> str | None:
    """Returns the choice that was typed, or None where none was made within so many seconds.

    Whoever ends the input has no answer, and stops the command as Ctrl-C does.
    """
    from select import select

    if _put != [question]:
        _put[:] = [question]
        complain(f"{question.text} [{'/'.join(question.choices)}]")
    if not select([sys.stdin], [], [], seconds)[0]:
        return None
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt
    chosen = _fitting(line.strip(), question.choices)
    if chosen is None:
        complain(f"answer with one of {', '.join(question.choices)}")
        return None
    _put.clear()
    return chosen


def _fitting(answer: str, choices: tuple[str, ...]) -> str | None:
    """Returns the one choice that begins as the answer does, or None."""
    exact = [choice for choice in choices if choice == answer]
    near = exact or [c for c in choices if answer and c.lower().startswith(answer.lower())]
    return near[0] if len(near) == 1 else None
