"""Text from memories -> text that is harmless on a terminal."""

import re

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, the cursor
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # OSC and kin
    r"|\x1b[ -/]*[0-~]"
)
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_CONTROLS = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}]")
_HARMFUL = re.compile(f"[\x7f-\x9f{_BIDI}]")


def clean(text: str) -> str:
    """Returns the text without escape sequences, control and bidirectional characters.

    Line ends and tabs stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return _CONTROLS.sub("", _SEQUENCES.sub("", text))


def escaped(json: str) -> str:
    """Returns JSON text with such characters written as escapes, which changes nothing it says."""
    return _HARMFUL.sub(lambda found: f"\\u{ord(found[0]):04x}", json)
