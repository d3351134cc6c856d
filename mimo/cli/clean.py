"""Text from memories -> text that is harmless on a terminal."""

from mimo.domain.clean import HIDDEN, clean, compiled

__all__ = ["clean", "escaped"]

_HARMFUL = f"[\x7f-\x9f{HIDDEN}]"


def escaped(text: str) -> str:
    """Returns JSON text with such characters written as escapes, which changes nothing it says."""
    if text.isascii() and "\x7f" not in text:
        return text
    return compiled(_HARMFUL).sub(lambda found: _escape(found[0]), text)


def _escape(character: str) -> str:
    from json import dumps

    return f"\\u{ord(character):04x}" if character == "\x7f" else dumps(character)[1:-1]
