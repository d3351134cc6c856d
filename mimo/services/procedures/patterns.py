"""Regular expressions that somebody else wrote: matched in a process that can be killed."""

import sys

from mimo.domain.procedures.outcome import Refused

_SECONDS = 2
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-/:@,^$")
_MATCH = """\
import re, sys
pattern, text = sys.stdin.buffer.read().decode().split("\\0", 1)
sys.exit(0 if re.search(pattern, text) else 1)
"""


def matches(pattern: str, text: str) -> bool:
    """Returns whether a pattern is found in a text; raises `Refused` where that takes too long."""
    if _PLAIN.issuperset(pattern):
        import re

        return re.search(pattern, text) is not None
    import subprocess

    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _MATCH],
            input=f"{pattern}\0{text}".encode("utf-8", "replace"),
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Refused(f"the pattern `{pattern}` takes too long to match") from None
    return done.returncode == 0
