"""Changes the code in ways that the tests must notice, and prints those that they do not.

    python -m bench.mutants [--only MODULE...]

A mutant is one text of a module replaced by another. The program copies the repository, applies
one mutant at a time and runs the tests that are named for its module, until one fails. The exit
status is 1 if fewer than 95 % of the mutants were noticed, 2 if a text is no longer in its module;
the other mutants are tried all the same.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LEAST_KILLED = 0.95
_LONGEST_SECONDS = 300


class Mutant(NamedTuple):
    """A text of a module, and what replaces it."""

    text: str
    replacement: str


class Module(NamedTuple):
    """A module, the tests that must notice its mutants, and these."""

    path: str
    tests: tuple[str, ...]
    mutants: tuple[Mutant, ...]


MODULES = (
    Module(
        "mimo/guard/limits.py",
        ("tests/guard/test_limits.py",),
        (
            Mutant("shift = ceil(back)", "shift = 0"),
            Mutant("tokens=bucket.tokens - 1,", "tokens=bucket.tokens,"),
            Mutant("- most + 1", "- most"),
            Mutant('f"{name} {number}"', 'f"{name}"'),
        ),
    ),
    Module(
        "mimo/guard/policy.py",
        ("tests/guard/test_policy.py", "tests/features/policy", "tests/guard"),
        (
            Mutant("if call.operation not in rule.operations:", "if not rule.operations:"),
            Mutant("call.ttl_seconds > most:", "call.ttl_seconds >= most:"),
            Mutant("Limit(min(rates),", "Limit(max(rates),"),
            Mutant("    if name in named:", "    if not named:"),
            Mutant("if call.context in (None, ALL)", "if call.context is None"),
        ),
    ),
    Module(
        "mimo/guard/guard.py",
        ("tests/guard/test_guard.py",),
        (
            Mutant("return min(actions, key=", "return max(actions, key="),
            Mutant("if all(rule.contexts is None", "if any(rule.contexts is None"),
        ),
    ),
    Module(
        "mimo/guard/chain.py",
        ("tests/guard/test_chain.py",),
        (
            Mutant('(prev or "").encode() + _canonical(event)', "_canonical(event)"),
            Mutant("if key is not None and not", "if key is None and not"),
            Mutant("if not (exact and texts and linked):", "if not (texts and linked):"),
        ),
    ),
    Module(
        "mimo/memory/decay.py",
        ("tests/memory/test_decay.py", "tests/properties/test_decay_properties.py"),
        (
            Mutant("math.exp(-rate * days)", "math.exp(-days)"),
            Mutant("max(use.last, memory.created)", "use.last"),
            Mutant("if now_score <= floor:", "if now_score < 0:"),
            Mutant("return max(0.0, (now", "return abs(0.0 + (now"),
        ),
    ),
    Module(
        "mimo/memory/duplicates.py",
        (
            "tests/memory/test_duplicates.py",
            "tests/properties/test_duplicate_properties.py",
            "tests/operations/test_doubles_stored.py",
        ),
        (
            Mutant("if cosine is None else", "if cosine is not None else"),
            Mutant("(shared + max(0.0, cosine)) / 2", "shared + max(0.0, cosine)"),
            Mutant("and draft.outcome in (None, existing.outcome)", ""),
            Mutant("- shared + 1]", "- shared]"),
        ),
    ),
    Module(
        "mimo/memory/ids.py",
        ("tests/memory/test_ids.py", "tests/memory/test_names.py", "tests/features/values"),
        (
            Mutant('and text.strip(".")', ""),
            Mutant('.lower() == "session"', ' == "session"'),
            Mutant("len(given) > len(wanted):", "len(given) >= len(wanted) + 2:"),
            Mutant("if len(longer) > _SLUG_LENGTH:", "if len(longer) > 2 * _SLUG_LENGTH:"),
        ),
    ),
    Module(
        "mimo/features/procedures/machine.py",
        ("tests/features/procedures", "tests/properties/test_procedures.py"),
        (
            Mutant("run.attempts >= run.procedure", "run.attempts > run.procedure"),
            Mutant("2**run.attempts * 1000", "run.attempts * 1000"),
            Mutant("if ERROR in run.current.transitions:", "if False:"),
            Mutant("if at >= run.procedure.timeout_ms:", "if at > 2 * run.procedure.timeout_ms:"),
            Mutant("if run.current.terminal:", "if False:"),
        ),
    ),
    Module(
        "mimo/features/procedures/executing.py",
        ("tests/features/procedures", "tests/properties/test_procedures.py"),
        (Mutant('{"events": run.events + 1}', '{"events": run.events}'),),
    ),
    Module(
        "mimo/data/append_log.py",
        ("tests/project/test_append_log.py", "tests/redteam/test_interrupted.py"),
        (
            Mutant(
                "left = left[os.write(descriptor, left) :]", "os.write(descriptor, left); break"
            ),
            Mutant("if end < os.fstat(descriptor).st_size:", "if False:"),
            Mutant("if os.path.samestat(os.fstat(descriptor), path.lstat()):", "if True:"),
            Mutant(
                "        os.ftruncate(descriptor, end)\n                raise",
                "        pass\n                raise",
            ),
        ),
    ),
    Module(
        "mimo/index/pages.py",
        ("tests/index/test_pages.py",),
        (
            Mutant("if state == self._sound and not again:", "if self._sound:"),
            Mutant("if number > head.copied:", "if False:"),
            Mutant("(number == recorded and chain == head.chain)", "True"),
            Mutant("if logged and logged.is_behind:", "if False:"),
            Mutant("is_sound and os.pread(file, 4, at) == _entry(value)", "is_sound"),
            Mutant("if value != expected and", "if False and"),
            Mutant("first = head.done", "first = 0"),
        ),
    ),
    Module(
        "mimo/ranking/__init__.py",
        ("tests/ranking",),
        (
            Mutant("if above[", "if not above["),
            Mutant("key=lambda item: -item.order", "key=lambda item: item.order"),
            Mutant(">= MODELLED_SHARE * len(letters)", "> MODELLED_SHARE * len(letters)"),
        ),
    ),
    Module(
        "mimo/memory/merge.py",
        ("tests/memory/test_merge.py", "tests/properties/test_merge_properties.py"),
        (
            Mutant("if theirs in (base, ours):", "if theirs == ours:"),
            Mutant("if name in left and name in right]", "if name in left or name in right]"),
            Mutant("return (-len(text), text)", "return (len(text), text)"),
            Mutant('(1 if key == "confidence" else -1)', "1"),
        ),
    ),
)


def is_killed(root: Path, module: Module, mutant: Mutant) -> bool:
    """Returns whether a test fails while the mutant is in place."""
    path = root / module.path
    original = path.read_text("utf-8")
    path.write_text(original.replace(mutant.text, mutant.replacement), "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *module.tests]
    environ = {**os.environ, "PYTHONPATH": str(root)}  # also for processes that a test starts
    try:
        done = subprocess.run(
            command,
            cwd=root,
            env=environ,
            check=False,
            capture_output=True,
            timeout=_LONGEST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(original, "utf-8")
    return done.returncode == 1


def occurrences(root: Path, module: Module, mutant: Mutant) -> int:
    """Returns how often the text of a mutant is in its module; it should be once."""
    path = root / module.path
    return path.read_text("utf-8").count(mutant.text) if path.is_file() else 0


def main() -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", metavar="MODULE", help="modules that are changed")
    only = parser.parse_args().only
    modules = [module for module in MODULES if not only or module.path in only]
    tried = alive = stale = 0
    with tempfile.TemporaryDirectory(prefix="mind-mutants-") as folder:
        root = Path(folder) / "mind"
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(".venv", ".git", "__pycache__"))
        for module in modules:
            started = time.monotonic()
            for mutant in module.mutants:
                change = f"{module.path}: `{mutant.text}` -> `{mutant.replacement}`"
                if (count := occurrences(root, module, mutant)) != 1:
                    stale += 1
                    print(f"not tried, as the text occurs {count} times: {change}", flush=True)
                    continue
                tried += 1
                if not is_killed(root, module, mutant):
                    alive += 1
                    print(f"not noticed: {change}", flush=True)
            print(f"{module.path}: {time.monotonic() - started:.0f} s", flush=True)
    share = (tried - alive) / max(tried, 1)
    print(f"{tried - alive} of {tried} mutants noticed ({share:.0%}) in {len(modules)} modules")
    return 2 if stale else int(share < LEAST_KILLED)


if __name__ == "__main__":
    sys.exit(main())
