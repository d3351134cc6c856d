"""Text from memories -> text that hides nothing and steers nothing: no control characters."""

import re
from functools import cache

_SEQUENCES = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, the cursor
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # OSC and kin
    r"|\x1b[ -/]*[0-~]"
)
HIDDEN = "\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\U000e0000-\U000e007f"
"""What shows nothing or turns the direction of what follows, as a class of characters."""

_CONTROLS = f"[\x00-\x08\x0b-\x1f\x7f-\x9f{HIDDEN}]"


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Returns a pattern, compiled when first needed: most answers never need one."""
    return re.compile(pattern)


def clean(text: str) -> str:
    """Returns the text without escape sequences, control and bidirectional characters.

    Line ends and tabs stay.
    """
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return compiled(_CONTROLS).sub("", compiled(_SEQUENCES).sub("", text))
