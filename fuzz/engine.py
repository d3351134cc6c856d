"""Runs one target under atheris, in a process of its own: `python -m fuzz.engine TARGET …`.

The further words are options of libFuzzer, after the program by which it starts itself again for
`-merge=1`. The process ends at the first input that fails.
"""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages

import atheris

import mimo

with atheris.instrument_imports(include=["mimo"]):
    for module in walk_packages(mimo.__path__, "mimo."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):
                import_module(module.name)
    from fuzz import project, targets


def main() -> None:
    """Fuzzes until the time is used up, or an input fails."""
    target = targets.TARGETS[sys.argv[1]]
    target(b"")  # what is imported late is instrumented, too
    try:
        atheris.Setup(sys.argv[2:], target)
        atheris.Fuzz()
    finally:
        shutil.rmtree(project.scratch(), ignore_errors=True)


if __name__ == "__main__":
    main()
