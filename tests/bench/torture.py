"""Lets writing commands fail at each of their writing calls, and checks what is left.

    python -m tests.bench.torture [--minutes N] [--seed N] [--points N] [--only COMMAND]

A shim in C (torture.c, loaded with LD_PRELOAD) counts the calls that write below a scratch folder,
in `mind` and in the git that it runs. At the n-th one it kills all of them, cuts a write short, or
lets the call fail with an error. After each run the project is examined without the shim: a command
that ended with 0 did all of its work; any other left every file as it was or complete; approvals,
the record of calls and the index are right; the next command works.

This process imports mind once and forks for each run, which takes a tenth of the time.
"""

import argparse
import contextlib
import errno
import importlib
import io
import json
import mmap
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SHIM = Path(__file__).with_suffix(".c")
KINDS = (
    "write", "pwrite", "writev", "ftruncate", "rename", "unlink",
    "link", "mkdir", "create", "fsync", "chmod",
)  # fmt: skip
_HEADER = struct.Struct("=6i2q1024s")
_STATE_BYTES = _HEADER.size + (1 << 16)
_LONGEST_SECONDS = 60
_BEGIN, _END = "<!-- figures -->", "<!-- end of figures -->"

_WRITES = ("write", "pwrite")
_GROWS = (*_WRITES, "writev", "create", "mkdir", "link", "rename", "fsync")


class Fault(NamedTuple):
    """One way in which a call fails."""

    name: str
    how: int
    kinds: Sequence[str]
    error: int = 0
    lasting: bool = False
    """Whether all later calls of these kinds fail, too."""

    @property
    def mask(self) -> int:
        """Returns the kinds as bits."""
        return sum(1 << KINDS.index(kind) for kind in self.kinds)


FAULTS = (
    Fault("killed before the call", 1, KINDS),
    Fault("killed in the middle of the write, or after the call", 2, KINDS),
    Fault("short write", 3, _WRITES),
    Fault("disk full (ENOSPC) from here on", 4, _GROWS, errno.ENOSPC, lasting=True),
    Fault("quota used up (EDQUOT) from here on", 4, _GROWS, errno.EDQUOT, lasting=True),
    Fault("read-only (EROFS) from here on", 4, KINDS, errno.EROFS, lasting=True),
    Fault("input/output error (EIO), once", 4, KINDS, errno.EIO),
    Fault("too many open files (EMFILE), once", 4, ("create",), errno.EMFILE),
    Fault("interrupted (EINTR), once", 4, (*_WRITES, "create", "fsync", "ftruncate"), errno.EINTR),
)


class Command(NamedTuple):
    """A command that is tried, and what must be there before it."""

    name: str
    words: tuple[str, ...]
    before: Callable[["Scratch"], None] = lambda scratch: None


class Result(NamedTuple):
    """How one run of `mind` ended."""

    status: int
    """Negative for a signal."""
    output: str
    errors: str

    @property
    def answer(self) -> Any:
        """Returns what `--json` printed, None if that is not JSON."""
        with contextlib.suppress(ValueError):
            return json.loads(self.output)
        return None


Facts = Mapping[str, tuple[str, ...]]
"""What a person could lose, by a name for it: each of these must be whole."""


class Shim:
    """The shared state of the shim."""

    def __init__(self, path: Path, root: Path) -> None:
        """Maps the state file; nothing is counted yet."""
        self._file = path.open("r+b")
        self._map = mmap.mmap(self._file.fileno(), _STATE_BYTES)
        self._root = os.fsencode(root)

    def arm(self, fault: Fault | None, at: int = 0) -> None:
        """Counts from now on, and lets the call with number `at` fail."""
        words = (fault.how, fault.error, fault.lasting, fault.mask) if fault else (0, 0, 0, 0)
        _HEADER.pack_into(self._map, 0, 1, *words, 0, at, 0, self._root)

    @property
    def is_armed(self) -> bool:
        """Returns whether calls are counted."""
        return self._map[0] == 1

    def disarm(self) -> tuple[bool, list[int]]:
        """Stops counting; returns whether a call failed, and the kinds of all calls."""
        _, _, _, _, _, acted, _, count, _ = _HEADER.unpack_from(self._map, 0)
        self._map[0:4] = b"\0" * 4
        return bool(acted), list(self._map[_HEADER.size + 1 : _HEADER.size + 1 + count])


class Scratch:
    """A home and a project that can be put back to how they were."""

    def __init__(self, top: Path, shim: Shim | None = None) -> None:
        """Makes the folders. All paths stay the same after each return to a copy."""
        self.top, self.shim = top, shim
        self.tree = top / "tree"
        self.home = self.tree / "home"
        self.project = self.tree / "shop"
        self.ids: dict[str, str] = {}

    def save(self, name: str) -> None:
        """Keeps the tree as it is now."""
        shutil.copytree(self.tree, self.top / name, symlinks=True)

    def load(self, name: str) -> None:
        """Puts the tree back."""
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.copytree(self.top / name, self.tree, symlinks=True)

    def warm(self) -> None:
        """Imports what the last run imported, so that the next forks need not."""
        for name in (self.top / "modules").read_text().splitlines():
            with contextlib.suppress(Exception):
                importlib.import_module(name)

    def git(self, *words: str) -> str:
        """Returns what git answers in the project."""
        command = ["git", "-C", str(self.project), *words]
        environ = {**os.environ, "HOME": str(self.home)}
        return subprocess.run(
            command, check=True, capture_output=True, text=True, env=environ
        ).stdout

    def write(self, path: str, text: str) -> None:
        """Writes a file of the project."""
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def mind(
        self, *words: str, fault: Fault | None = None, at: int = 0, armed: bool = False
    ) -> Result:
        """Runs `mind` in a process of its own, and returns how it ended."""
        output, errors = self.top / "stdout", self.top / "stderr"
        if self.shim and armed:
            self.shim.arm(fault, at)
        pid = os.fork()
        if not pid:
            self._become(words, output, errors)
        status = _waited(pid)
        return Result(
            status, output.read_text("utf-8", "replace"), errors.read_text("utf-8", "replace")
        )

    def _become(self, words: Sequence[str], output: Path, errors: Path) -> None:
        """Is the process of one run, until its end."""
        status = 70
        try:
            os.setsid()
            for number, path in ((1, output), (2, errors)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.chdir(self.project)
            os.environ.update(HOME=str(self.home), MIND_HOME=str(self.home / ".mind"))
            sys.stdout = io.TextIOWrapper(io.FileIO(1, "w"), "utf-8", write_through=True)
            sys.stderr = io.TextIOWrapper(io.FileIO(2, "w"), "utf-8", write_through=True)
            from mimo.cli.main import main

            status = main(list(words))
            sys.stdout.flush()
            if self.shim is None or not self.shim.is_armed:
                (self.top / "modules").write_text("\n".join(sys.modules))
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
        except BaseException:  # noqa: BLE001 - it is what a person would see
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)


def _waited(pid: int) -> int:
    """Returns the exit status of a process, which is killed after a minute."""
    deadline = time.monotonic() + _LONGEST_SECONDS
    while time.monotonic() < deadline:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            # What it started must not write any more either.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -int(signal.SIGALRM)


# What there is before the commands


def prepared(scratch: Scratch) -> None:
    """Makes a project with a little of everything."""
    scratch.project.mkdir(parents=True)
    scratch.home.mkdir()
    (scratch.home / ".gitconfig").write_text("[user]\nname = A\nemail = a@example.org\n")
    scratch.git("init", "--quiet", "--initial-branch=main")
    _done(scratch, "init")
    scratch.ids["fact"] = _done(scratch, "add", "Tea is served at four o'clock")["id"]
    scratch.ids["other"] = _done(scratch, "add", "The kettle holds two litres", "--private")["id"]
    words = ("save", "decision", "auth_strategy", "Use JWT", "--because", "No session store")
    scratch.ids["decision"] = _done(scratch, *words)["id"]
    scratch.write(
        "docs/guide.md", "".join(f"# Part {n}\n\n{'Water boils. ' * 30}\n\n" for n in range(4))
    )
    scratch.write("docs/short.md", "# Short\n\nCups are in the cupboard.\n")
    scratch.write("EDITED.md", "")
    _done(scratch, "sync")
    for line in ("doctor", "audit verify", "search tea", "list"):
        _done(scratch, *line.split())


def _done(scratch: Scratch, *words: str) -> Any:
    result = scratch.mind(*words, "--json")
    if result.status:
        raise SystemExit(f"mind {' '.join(words)} failed: {result.errors or result.output}")
    scratch.warm()
    return result.answer


def _untrusted(scratch: Scratch) -> None:
    _done(scratch, "untrust")


def _changed(scratch: Scratch) -> None:
    _done(scratch, "edit", scratch.ids["fact"], "--content", "Tea is served at five")


def _removed(scratch: Scratch) -> None:
    _done(scratch, "rm", scratch.ids["fact"])


def _unsynced(scratch: Scratch) -> None:
    _done(scratch, "add", "The pot is blue")


def _competing(scratch: Scratch) -> None:
    text = "---\nid: {}\ntype: decision\ntitle: {}\ntopic: db\n---\n{}\n"
    for name, title in (
        ("decision_db_20260101_aaaaaa", "Use A"),
        ("decision_db_20260102_bbbbbb", "Use B"),
    ):
        scratch.write(f".mind/decisions/{name}.md", text.format(name, title, title))
    scratch.git("add", ".mind")
    scratch.git("commit", "--quiet", "--message=two")
    _done(scratch, "trust")


def _foreign_database(scratch: Scratch) -> None:
    from tests import mama_databases

    mama_databases.example(scratch.tree / "mama.db")


def _procedure(scratch: Scratch) -> None:
    from tests.sample_procedures import GREET, text

    scratch.write("greet.md", text("greet", GREET))
    _done(scratch, "procedure", "add", "greet.md")


def _no_project(scratch: Scratch) -> None:
    shutil.rmtree(scratch.project / ".mind")
    shutil.rmtree(scratch.home / ".mind")


COMMANDS = (
    Command("add", ("add", "Milk goes in first")),
    Command("save decision", ("save", "decision", "cache", "Redis", "--because", "Fast")),
    Command("save checkpoint", ("save", "checkpoint", "Login works", "--next", "Write the test")),
    Command("save insight", ("save", "insight", "Safari drops cookies", "--tag", "safari")),
    Command("evolve outcome", ("evolve", "outcome", "auth_strategy", "failed", "--reason", "No")),
    Command(
        "evolve supersede",
        ("evolve", "supersede", "auth_strategy", "Use sessions", "--because", "Revocable"),
    ),
    Command("edit", ("edit", "{fact}", "--content", "Tea is served at six", "--tag", "tea")),
    Command("rm", ("rm", "{fact}")),
    Command("rm of a private memory", ("rm", "{other}")),
    Command("ingest", ("ingest", "docs/guide.md", "docs/short.md")),
    Command("value put", ("value", "put", "agent.build", "last", '{"ok": true}')),
    Command("trust", ("trust",), _untrusted),
    Command("untrust", ("untrust",)),
    Command("review settle", ("review", "settle", "decision_db_20260101_aaaaaa", "1"), _competing),
    Command("sync", ("sync",), _unsynced),
    Command("import", ("import", "mama", "--db", "../mama.db"), _foreign_database),
    Command("undo", ("undo",), _removed),
    Command("restore", ("restore", "{fact}"), _changed),
    Command("edges add", ("edges", "add", "Cold cup", "Tea cools", "Warm the cup")),
    Command("keep", ("keep", "{fact}")),
    Command("procedure run", ("procedure", "run", "greet", "--context", '{"who": 1}'), _procedure),
    Command("index --rebuild", ("index", "--rebuild")),
    Command("init", ("init",), _no_project),
    Command("config", ("config", "decay.rate", "0.05")),
    Command("context write", ("context", "write")),
    Command("install", ("install", "claude-code")),
)  # fmt: skip


# What must hold after each run

_VARIES = (
    (re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?)?"), "TIME"),
    (re.compile(r"_\d{8}_[0-9a-z]{6}"), "_ID"),
    (re.compile(r"[0-9a-f]{16,}"), "HEX"),
    (re.compile(r"\b1\d{9}(\.\d+)?\b"), "SECONDS"),
)


def _same(text: str) -> str:
    for pattern, name in _VARIES:
        text = pattern.sub(name, text)
    return text


def facts(scratch: Scratch) -> Facts:
    """Returns what a person could lose."""
    found: dict[str, list[str]] = {}
    kept = [
        scratch.project / ".mind",
        scratch.home / ".mind/memories",
        scratch.home / ".mind/edges",
    ]
    single = [scratch.project / "CLAUDE.md", scratch.project / ".mcp.json"]
    single += [scratch.home / ".mind/projects.json", scratch.home / ".mind/config.toml"]
    single += sorted((scratch.project / ".claude").rglob("*.json"))
    for path in [*single, *(file for folder in kept for file in sorted(folder.rglob("*")))]:
        name = path.relative_to(scratch.tree).as_posix()
        passing = re.search(r"/\.(index|local)(/|$)|/\.mind-[^/]*\.tmp$|lock$", name)
        if path.is_file() and not passing:
            found.setdefault(_same(name), []).append(_same(path.read_text("utf-8", "replace")))
    if (scratch.project / ".mind").is_dir():
        rows = scratch.mind("list", "--limit", "500", "--json").answer or {"memories": []}
        for row in rows["memories"]:
            found.setdefault(f"trust of {_same(row['id'])}", []).append(row["trust"])
    found["commits"] = [scratch.git("rev-list", "--count", "--all").strip()]
    return {name: tuple(sorted(texts)) for name, texts in found.items()}


def lost(acknowledged: bool, before: Facts, after: Facts, now: Facts, errors: str) -> Iterator[str]:
    """Yields what an acknowledged run did not do, and what another left half done."""
    for name in sorted({*before, *after, *now}):
        old, new, here = (one.get(name, ()) for one in (before, after, now))
        if here == new:
            continue
        if acknowledged:
            if not (name.startswith("trust of ") and "could not be approved" in errors):
                yield f"acknowledged, but {name} is not as it should be"
        elif any(text not in (*old, *new, *_unapproved(name, errors)) for text in here):
            yield f"{name} is neither as before nor as after"
        elif not here and old and new:
            yield f"{name} is lost"


def _unapproved(name: str, errors: str) -> tuple[str, ...]:
    """Returns the trust that a memory may have, too, if a failure kept mind from approving it.

    A killed process prints nothing, and leaves each text that it wrote approved.
    """
    return ("untrusted",) if errors and name.startswith("trust of ") else ()


def examined(scratch: Scratch, command: Command) -> Iterator[str]:
    """Yields what is wrong with the project and the home after a run."""
    if command.name == "init" and (again := scratch.mind("init", "--json")).status:
        yield f"init can't be repeated: {again.errors.strip()}"
    health = scratch.mind("doctor", "--json").answer or {"checks": [{"verdict": "fault"}]}
    for check in health["checks"]:
        if check["verdict"] == "fault" or (check["name"] == "audit" and check.get("hint")):
            yield f"doctor: {check.get('name')}: {check.get('message')}"
    if (verdict := scratch.mind("audit", "verify", "--json")).status:
        yield f"audit verify: {verdict.output[:300]}{verdict.errors[:200]}"
    held = _answers(scratch)
    shutil.rmtree(scratch.project / ".mind/.index", ignore_errors=True)
    if (fresh := _answers(scratch)) != held:
        yield f"the index differs from a fresh one: {held} {fresh}"
    added = scratch.mind("add", "Biscuits are in the tin", "--json")
    if added.status or added.answer["id"] not in _answers(scratch)[0]:
        yield f"the next command fails: {added.errors.strip()[:300]}"


def _answers(scratch: Scratch) -> tuple[list[str], list[str]]:
    """Returns the ids of all memories, and those that a search answers with."""
    everything = scratch.mind("list", "--limit", "500", "--json").answer or {}
    found = scratch.mind("search", "tea at four", "--json").answer or {}
    ids = [row["id"] for row in everything.get("memories", [{"id": "no answer"}])]
    return sorted(ids), [row["id"] for row in found.get("memories", found.get("results", []))]


class Point(NamedTuple):
    """One call at which one fault is tried."""

    command: Command
    fault: Fault
    at: int
    kind: str
    is_index: bool
    """Whether the call writes the index, which can be made again."""


class Failure(NamedTuple):
    """What a point brought to light."""

    point: Point
    what: str


class Torture:
    """All points of all commands, and what came of those that were tried."""

    def __init__(self, scratch: Scratch, commands: Sequence[Command]) -> None:
        """Prepares the trees, and counts the calls of each command."""
        self._scratch = scratch
        self._before: dict[str, Facts] = {}
        self._after: dict[str, Facts] = {}
        self.points: list[Point] = []
        self.tried: list[Point] = []
        self.failures: list[Failure] = []
        self.ended: Counter[str] = Counter()
        prepared(scratch)
        scratch.save("base")
        for command in commands:
            self._count(command)

    def _words(self, command: Command) -> list[str]:
        return [word.format(**self._scratch.ids) if word[0] == "{" and word[-1] == "}" and
                word[1:-1] in self._scratch.ids else word for word in command.words]  # fmt: skip

    def _count(self, command: Command) -> None:
        scratch = self._scratch
        assert scratch.shim is not None
        scratch.load("base")
        command.before(scratch)
        self._before[command.name] = facts(scratch)
        scratch.save(command.name)
        result = scratch.mind(*self._words(command), armed=True)
        _, kinds = scratch.shim.disarm()
        if result.status:
            raise SystemExit(f"mind {command.name} fails by itself: {result.errors}")
        self._after[command.name] = facts(scratch)
        for at, number in enumerate(kinds, 1):
            kind, is_index = KINDS[number & 127], number > 127
            suited = (fault for fault in FAULTS if kind in fault.kinds)
            self.points += [Point(command, fault, at, kind, is_index) for fault in suited]

    def run(self, points: Sequence[Point], deadline: float) -> None:
        """Tries points until they or the time are used up."""
        for point in points:
            if time.monotonic() > deadline:
                return
            for what in self._try(point):
                self.failures.append(Failure(point, what))
                print(f"FAILED {point.command.name}: {point.fault.name}", end=" ")
                print(f"at call {point.at} ({point.kind}): {what}", flush=True)

    def _try(self, point: Point) -> list[str]:
        scratch, name = self._scratch, point.command.name
        assert scratch.shim is not None
        scratch.load(name)
        words = self._words(point.command)
        result = scratch.mind(*words, fault=point.fault, at=point.at, armed=True)
        acted, _ = scratch.shim.disarm()
        if not acted:
            return []
        self.tried.append(point)
        way = "were killed" if result.status < 0 else "failed with an error"
        self.ended[way if result.status else "did their work"] += 1
        problems = []
        if "inside mind" in result.errors or "Traceback" in result.errors or result.status == 70:
            problems.append(f"internal error: {result.errors.strip()[-300:]}")
        if result.status == -signal.SIGALRM:
            problems.append("it hangs")
        if result.status > 0 and "error:" not in result.errors:
            problems.append(f"exit status {result.status} without an error")
        now = facts(scratch)
        before, after = self._before[name], self._after[name]
        problems += lost(result.status == 0, before, after, now, result.errors)
        problems += examined(scratch, point.command)
        return problems


def ordered(points: Sequence[Point], seed: int) -> list[Point]:
    """Returns the points in a random order in which those of no kind come late.

    However early it ends, every command, every fault and every kind of call had its turn.
    """
    shuffled = list(points)
    random.Random(seed).shuffle(shuffled)
    rounds: Counter[object] = Counter()
    turns: Counter[object] = Counter()
    placed = []
    for point in shuffled:
        kind = (point.command.name, point.fault.name, point.kind, point.is_index)
        rounds[kind] += 1
        placed.append((rounds[kind], point))
    placed.sort(key=lambda one: one[0])
    taken = []
    for _, point in placed:
        turn = (point.command.name, point.is_index)
        turns[turn] += 1
        taken.append((turns[turn], point))
    taken.sort(key=lambda one: one[0])
    return [point for _, point in taken]


def report(torture: Torture, seed: int) -> str:
    """Returns the figures as Markdown."""
    bad = {failure.point for failure in torture.failures}
    lines = ["| fault | points | tried | failed |", "|---|---:|---:|---:|"]
    lines += _rows(torture, bad, lambda point: point.fault.name, [one.name for one in FAULTS])
    names = list(dict.fromkeys(point.command.name for point in torture.points))
    lines += ["", "| command | points | tried | failed |", "|---|---:|---:|---:|"]
    lines += _rows(torture, bad, lambda point: f"`{point.command.name}`", [f"`{n}`" for n in names])
    total = f"{len(torture.tried):,} of {len(torture.points):,} points tried, {len(bad):,} failed"
    ended = ", ".join(f"{number:,} {way}" for way, number in sorted(torture.ended.items()))
    head = f"{total} (seed {seed}, {len(names)} commands). Of the runs, {ended or 'none was made'}."
    return "\n".join([head, "", *lines, ""])


def _rows(
    torture: Torture, bad: set[Point], key: Callable[[Point], str], names: Sequence[str]
) -> list[str]:
    every, tried = Counter(map(key, torture.points)), Counter(map(key, torture.tried))
    failed = Counter(map(key, bad))
    return [f"| {n} | {every[n]:,} | {tried[n]:,} | {failed[n]:,} |" for n in names if every[n]]


def built(folder: Path) -> Path | None:
    """Compiles the shim and returns its path, None if this system can't."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    library = folder / "torture.so"
    words = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SHIM), "-ldl"]
    done = subprocess.run(words, check=False, capture_output=True)
    return library if done.returncode == 0 else None


def _reexecuted(folder: Path) -> int:
    """Runs this program again with the shim loaded, and returns its exit status."""
    library = built(folder)
    if library is None:
        print("skipped: this needs Linux and a C compiler (`cc`)")
        return 0
    state = folder / "state"
    state.write_bytes(b"\0" * _STATE_BYTES)
    own = {"MIND_PROJECT", "SANDBOX_DIR", "MIND_HOME", "GIT_DIR"}
    environ = {name: value for name, value in os.environ.items() if name not in own}
    environ |= {"LD_PRELOAD": str(library), "TORTURE_STATE": str(state), "TMPDIR": str(folder)}
    words = [sys.executable, "-m", "tests.bench.torture", *sys.argv[1:]]
    return subprocess.run(words, check=False, env=environ).returncode


def main() -> int:
    """Returns 1 if a point failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--points", type=int, help="most points to try")
    parser.add_argument("--only", action="append", help="a command to try (can be repeated)")
    parser.add_argument("--write", type=Path, help="file to write the figures into")
    options = parser.parse_args()
    if "TORTURE_STATE" not in os.environ:
        memory = Path("/dev/shm")  # noqa: S108 - a folder of our own is made there
        place = memory if os.access(memory, os.W_OK) else None
        with tempfile.TemporaryDirectory(prefix="mind-torture-", dir=place) as folder:
            return _reexecuted(Path(folder))
    deadline = time.monotonic() + options.minutes * 60

    state = Path(os.environ["TORTURE_STATE"])
    top = state.parent
    scratch = Scratch(top, Shim(state, top / "tree"))
    commands = [one for one in COMMANDS if not options.only or one.name in options.only]
    torture = Torture(scratch, commands)
    torture.run(ordered(torture.points, options.seed)[: options.points], deadline)
    figures = report(torture, options.seed)
    print(figures)
    if options.write:
        text = options.write.read_text("utf-8")
        head, _, rest = text.partition(_BEGIN)
        tail = rest.partition(_END)[2]
        options.write.write_text(f"{head}{_BEGIN}\n{figures}{_END}{tail}", "utf-8")
    return 1 if torture.failures else 0


if __name__ == "__main__":
    sys.exit(main())
