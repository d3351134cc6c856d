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
            Mutant("- _quota(limit) + 1", "- _quota(limit)"),
            Mutant("f'{name} {number}'", "f'{name}'"),
        ),
    ),
    Module(
        "mimo/guard/policy.py",
        ("tests/guard/test_policy.py", "tests/features/policy", "tests/guard"),
        (
            Mutant("if request.operation not in rule.operations:", "if not rule.operations:"),
            Mutant("request.ttl_seconds > limit:", "request.ttl_seconds >= limit:"),
            Mutant("if not any(covers(p, request", "if not all(covers(p, request"),
            Mutant("Limit(min(rates),", "Limit(max(rates),"),
            Mutant("    if name in named:", "    if not named:"),
            Mutant("if request.context in (None, ALL)", "if request.context is None"),
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
            Mutant('(prev or "").encode("utf-8", "surrogatepass") + _canonical', "_canonical"),
            Mutant("if key is not None and not", "if key is None and not"),
            Mutant("if not (exact and texts and linked):", "if not (texts and linked):"),
        ),
    ),
    Module(
        "mimo/memory/decay.py",
        ("tests/memory/test_decay.py", "tests/properties/test_decay_properties.py"),
        (
            Mutant("math.exp(-rate * days)", "math.exp(-days)"),
            Mutant("max(use.last, created)", "use.last"),
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
            Mutant(
                "if not set(map(tag_key, draft.tags)) <= set(", "if not set(draft.tags) <= set("
            ),
            Mutant("return memory.type is not Kind.CHECKPOINT", "return True"),
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
            Mutant("and len(parts) > len(mask):", "and len(parts) >= len(mask) + 2:"),
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
            Mutant("max(run.events, place + 1)", "max(run.events, place)"),
        ),
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
        "mimo/ranking/__init__.py",
        ("tests/ranking",),
        (
            Mutant("key=lambda place: -orders", "key=lambda place: orders"),
            Mutant("lowest = min(lowest, ", "lowest = max(lowest, "),
            Mutant("if lowest < self._threshold and len(ranked)", "if len(ranked)"),
        ),
    ),
    Module(
        "mimo/memory/merge.py",
        ("tests/memory/test_merge.py", "tests/properties/test_merge_properties.py"),
        (
            Mutant(
                "unchanged = theirs == base or ours in (base, theirs)", "unchanged = ours == theirs"
            ),
            Mutant("if name in left and name in right]", "if name in left or name in right]"),
            Mutant("return (-len(text), text)", "return (len(text), text)"),
            Mutant('(1 if key == "confidence" else -1)', "1"),
        ),
    ),
    Module(
        "mimo/features/graph/linking.py",
        ("tests/test_transcripts.py", "-k", "graph/links"),
        (
            Mutant("start.memory.created < second", "start.memory.created > second"),
            Mutant("if start.memory.id == second.memory.id:", "if False:"),
            Mutant("link_type in (None, old.type)", "link_type in (None,)"),
            Mutant("already=exists or None,", "already=None,"),
        ),
    ),
    Module(
        "mimo/features/decisions/__init__.py",
        ("tests/test_transcripts.py", "-k", "decisions/ or redteam/unapproved"),
        (
            Mutant("elif old.place.private and not private:", "elif False:"),
            Mutant("tags=old.memory.tags if approved else draft.tags,", "tags=old.memory.tags,"),
            Mutant("after if after != previous else memory.confidence", "memory.confidence"),
            Mutant('(record.memory.status or "").lower() != ARCHIVED', "True"),
            Mutant("is_local and branches.get(id, here) == here", "is_local"),
        ),
    ),
    Module(
        "mimo/features/fading/commands.py",
        ("tests/test_transcripts.py", "-k", "fading/ or memory_tool"),
        (
            Mutant("round(item.days, 2) if isfinite(item.days) else None", "0.0"),
            Mutant('"lasts" if left is None else', '"lasts" if not left else'),
            Mutant('"does not fade" if result.protected', '"does not fade" if result'),
            Mutant("if row.days_left is None:", "if not row.days_left:"),
        ),
    ),
    Module(
        "mimo/features/context/__init__.py",
        ("tests/features/context",),
        (
            Mutant("budget, result[section.title] = left,", "result[section.title] ="),
            Mutant("if len(line.text) + 1 <= left:", "if len(line.text) <= left + 3:"),
        ),
    ),
    Module(
        "mimo/operations/invoke.py",
        ("tests/test_transcripts.py", "-k", "context/"),
        (Mutant("if spec.has_budget:", "if True:"),),
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
