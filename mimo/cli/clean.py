"""Text from memories -> text that is harmless on a terminal and in the log of a build."""

from mimo.domain.clean import HIDDEN, RUNS, clean, compiled, inert, one_line

__all__ = ["clean", "escaped", "inert", "one_line"]

_HARMFUL = rf"[\x7f-\x9f{HIDDEN}]|{RUNS}|#(?=#(?:vso|teamcity)?\[)"


def escaped(text: str) -> str:
    """Returns JSON text with what is harmful written as escapes, which stand for the same text."""
    if text.isascii() and "\x7f" not in text and "##" not in text:
        return text
    return compiled(_HARMFUL).sub(lambda harmful: _escape(harmful[0]), text)


def _escape(text: str) -> str:
    from json import dumps

    return f"\\u{ord(text):04x}" if text.isascii() else dumps(text)[1:-1]
