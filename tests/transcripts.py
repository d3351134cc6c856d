"""Transcripts: commands with what they print, one scenario after another in a text file.

    A topic finds its current decision
    req 004-13
      $ mind save decision auth 'Use JWT' --because Stateless
      ✓ rdkaaa  Use JWT

A line that is not indented begins a scenario, or gives it a mark: `req` with requirements, `attack`
with a kind, and the number of attempts unless it is 1. Each scenario has a project of its own, at a
fixed time, with fixed ids. Before it, the commands of a first scenario named `Before each` run. The
shell runs all commands but these:

- `mind …`: a command line, with a memory opened for it. After `|`, the shell gets its output.
  With `COLUMNS=20` before it, a terminal of that width shows its answer.
- `tool NAME JSON`: the call of an agent that is connected over MCP.
- `press mind …`: a command line on a terminal, whose input lines are keys, such as `y` or `^C`, or
  answers to questions.
  A line that begins with `$` is run in the shell before the next key. The end is that of the input.
- `hook EVENT JSON`: what Claude Code gets from a hook, with the fields of the JSON; its notes are
  shown as lines. It answers from the index, so a command has to read the files that the shell wrote
  before it. `CLIENT=codex` before it names another client.
- `later 2 days`: moves the clock. `cd FOLDER`: changes the working directory.
- `export NAME=VALUE`: sets a variable for the commands that follow.
- `cat > PATH`: writes a file at the time of the clock, and makes its folder.
- those that a test adds to `Stage.builtins`.

Lines with `>` below a command are its input. A status other than 0 follows the output as `[1]`.
`make transcripts` writes the outputs again.
"""

import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from difflib import unified_diff
from itertools import count
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

import pytest

from mimo.call import Call, Caller, Surface
from mimo.call.spec import to_json
from mimo.call.table import all_commands
from mimo.cli.main import main
from mimo.data.disk import home_of
from mimo.errors import MindError
from mimo.features.hooks.command import react
from mimo.features.hooks.events import recognised
from mimo.mind import Mind
from mimo.operations.invoke import invoke
from mimo.rendering.terminal import TerminalScreen
from mimo.surroundings import Timer
from mimo.text.tool_names import folded
from tests.conftest import CHANCE, NOW, Clock
from tests.kit import script

RECORDING = "MIND_RECORD"
"""Set by `make transcripts`: outputs are written instead of being compared."""

_TOOLS = all_commands().tools({"sessions.enabled": "on"})
_AGENT = Caller(surface=Surface.MCP, name="tester")
_MARK = re.compile(r"(req|attack) (?:(\d+) )?(.+)")
_ASSIGNMENT = re.compile(r"([A-Z_]+)=(\S*) ")
_DIGEST = re.compile(
    # Of those with seven digits, one in 27 has no letter, and one in 1,000 only letters.
    r"\b(?:(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,64}"
    r"|[0-9]{7}|[a-f]{7}|[0-9]{12}|[0-9]{16})\b"
)

_STYLE_OR_NUMBER = re.compile(r"\x1b\[[0-9;]*m|\[Errno \d+\] ")
"""The colours of a terminal, and the numbers of errors, which systems do not share."""

_UPDATED = re.compile(r'(\bupdated_at"?: )"[^"]*Z"')
"""The time of a file that a command wrote."""

_CONTROL = re.compile(r"\^(.)")

_KEPT = (".git", ".index", ".local", "home")
"""The ends of folders in which files keep their times."""


Builtin = Callable[[str, str | None], tuple[int, str]]
"""Takes the words after a command's name, and its input; returns its status and output."""

_GNU = re.compile(r"\bsed -i|\bls\b|\bhead -c|\bstat -c|-perm /")
"""Commands of the shell that do or print something else on other systems than Linux."""


class Command(NamedTuple):
    """A command line, and the lines of its input; None without any."""

    line: str
    input: str | None


class Scenario(NamedTuple):
    """A scenario of a transcript, with its title, marks and commands."""

    title: str
    marks: tuple[str, ...]
    commands: tuple[Command, ...]
    text: str
    """All its lines as they are in the file."""
    setup: tuple[Command, ...] = ()
    """The commands that run before, which must succeed."""


def scenarios(text: str) -> Iterator[Scenario]:
    """Yields the scenarios of a transcript."""
    setup: tuple[Command, ...] = ()
    for block in re.split(r"\n+(?=[^\s])(?!(?:req|attack) )", text.strip("\n")):
        title, *lines = block.splitlines()
        marks = tuple(line for line in lines if line and not line.startswith(" "))
        commands: list[Command] = []
        for line, before in zip(lines, [title, *lines], strict=False):
            if line.startswith("  $ "):
                commands.append(Command(line[4:], None))
            elif line.startswith("  >") and before.startswith(("  $ ", "  >")):
                commands[-1] = Command(commands[-1].line, f"{commands[-1].input or ''}{line[4:]}\n")
        if title == "Before each":
            setup = tuple(commands)
        else:
            yield Scenario(title, marks, tuple(commands), block, setup)


def attempts(scenario: Scenario) -> int:
    """Returns how many attacks a scenario tries, for `make redteam`."""
    matches = (_MARK.fullmatch(mark) for mark in scenario.marks)
    return next((int(match[2]) for match in matches if match and match[2]), 1)


def marks_of(scenario: Scenario) -> Iterator[pytest.MarkDecorator]:
    """Yields the marks of pytest that a scenario carries."""
    for mark in scenario.marks:
        matched = _MARK.fullmatch(mark)
        assert matched, f"`{mark}` is not a mark"
        name, _, value = matched.groups()
        yield from (
            [pytest.mark.attack(value)] if name == "attack" else [pytest.mark.req(*value.split())]
        )


def below(*folders: Path) -> list[Any]:
    """Returns the parameters `path` and `scenario` of a test of the transcripts in folders."""
    return [
        pytest.param(
            path,
            scenario,
            id=f"{path.parent.name}/{path.stem}: {scenario.title}",
            marks=list(marks_of(scenario)),
        )
        for folder in folders
        for path in sorted(folder.rglob("*.transcript"))
        for scenario in scenarios(path.read_text(encoding="utf-8"))
    ]


class _Terminal(io.StringIO):
    """The terminal of a user: its input ends at once, and its output is kept."""

    def isatty(self) -> bool:
        """Returns True."""
        return True


class Stage:
    """A project in which commands run in this process, at a fixed time and with fixed ids."""

    def __init__(self, root: Path, clock: Clock, randomness: Callable[[int], bytes]) -> None:
        """Takes the root of the project, the clock that `later` moves, and a source of ids."""
        self.clock, self.randomness = clock, randomness
        self.places = [(str(root.parent), "~"), (str(root.parent.resolve()), "~")]
        self.exported: dict[str, str] = {}
        self.steps, self.root, self.began = count(), root, time.time() - 1
        self.builtins: dict[str, Builtin] = {
            "mind": self._mind,
            "tool": self._tool,
            "press": self._press,
            "hook": self._hook,
            "export": self._export,
            "later": self._later,
            "cd": _cd,
            "cat": self._cat,
        }

    def open(self, project: Path | None = None) -> Mind:
        """Returns the memory around the working directory, or of the named project."""
        mind = Mind.open(Path.cwd(), project=project, clock=self.clock)
        mind.randomness = self.randomness
        mind.timer = Timer(monotonic=lambda: next(self.steps) * 1e-6, sleep=self._sleep)
        return mind

    def _sleep(self, seconds: float) -> None:
        """Moves the time that commands measure, without waiting."""
        self.steps = count(next(self.steps) + round(seconds * 1e6))

    def play(self, scenario: Scenario) -> str:
        """Returns the scenario with the output of its commands."""
        CHANCE.begin(scenario.title)
        for command in scenario.setup:
            status, printed = self.run(command)
            assert status == 0, printed
        lines = [scenario.title, *scenario.marks]
        for command in scenario.commands:
            status, printed = self.run(command)
            lines.append(f"  $ {command.line}")
            lines += [f"  > {line}".rstrip() for line in (command.input or "").splitlines()]
            lines += [f"  {line}".rstrip() for line in self._masked(printed).splitlines()]
            lines += [f"  [{status}]"] if status else []
        return "\n".join(lines).rstrip("\n")

    def run(self, command: Command) -> tuple[int, str]:
        """Returns the status of a command, and everything that it prints."""
        line, environ = command.line, dict(self.exported)
        while matched := _ASSIGNMENT.match(line):
            environ[matched[1]], line = matched[2], line[matched.end() :]
        own, _, rest = line.partition(" | ")
        name, _, given = own.partition(" ")
        with pytest.MonkeyPatch.context() as patch:
            for variable, value in environ.items():
                patch.setenv(variable, value)
            if name not in self.builtins:
                return self._in_shell(command.line, command.input or "")
            status, printed = self.builtins[name](given, command.input)
        return (status, _shell(rest, printed)[1]) if rest else (status, printed)

    def _in_shell(self, line: str, given: str) -> tuple[int, str]:
        """Runs a command of the shell, which writes files at the time of the clock."""
        before = self._times()
        done = _shell(line, given)
        self._set_times(before)
        return done

    def _set_times(self, before: Mapping[Path, float]) -> None:
        """Sets the times of files that have others than before to that of the clock."""
        for path, written in self._times().items():
            if written != before.get(path) and written > self.began:
                os.utime(path, (self.clock().timestamp(),) * 2)
                # The system's own time of a folder may be that of a change some milliseconds ago.
                os.utime(path.parent, ns=(time.time_ns(),) * 2)

    def _times(self) -> dict[Path, float]:
        """Returns when each file was written."""
        times = {}
        for folder, folders, names in os.walk(self.root.parent):
            folders[:] = {name for name in folders if not name.endswith(_KEPT)}
            for path in (Path(folder, name) for name in names):
                if path.is_file():
                    times[path] = path.stat().st_mtime
        return times

    def _mind(self, words: str, given: str | None) -> tuple[int, str]:
        stdin, terminal = io.TextIOWrapper(io.BytesIO((given or "").encode())), io.StringIO()
        if given is None:
            stdin.isatty = lambda: True  # type: ignore[method-assign]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", stdin)
            if columns := os.environ.get("COLUMNS"):
                screen = TerminalScreen(colour=False, width=int(columns), height=500)
                patch.setattr("mimo.rendering.results.screen_for", lambda *_, **__: screen)
            with redirect_stdout(terminal), redirect_stderr(terminal):
                status = main(shlex.split(words), open=self.open)
        return status, terminal.getvalue()

    def _tool(self, words: str, given: str | None) -> tuple[int, str]:
        name, _, arguments = words.partition(" ")
        call, fields = Call(self.open()).by(_AGENT), json.loads(arguments or "{}")
        specs = next(specs for tool, specs in _TOOLS.items() if folded(tool) == folded(name))
        spec = next((s for s in specs if s.operation == fields.get("operation")), specs[0])
        if spec.operation:
            del fields["operation"]
        try:
            answer: Any = to_json(invoke(spec, call, fields))
        except MindError as error:
            hint = f"hint: {error.hint}\n" if error.hint else ""
            return 1, f"{error.code}: {error.message}\n{hint}"
        finally:
            call.mind.close()
        return 0, "".join(f"{line}\n" for key in answer for line in _field(key, answer[key]))

    def _press(self, words: str, given: str | None) -> tuple[int, str]:
        keys, terminal = iter((given or "").splitlines()), _Terminal()

        def pressed(echo: bool = False) -> str:
            for key in keys:
                if not key.startswith("$ "):
                    terminal.write(f"‹{key}›\n")
                    return _CONTROL.sub(lambda match: chr(ord(match[1]) - 64), key)
                assert self._in_shell(key[2:], "") == (0, "")
            raise EOFError

        def typed() -> str:
            with suppress(EOFError):
                return f"{pressed()}\n"
            return ""

        def screen(*_: object, **__: object) -> TerminalScreen:
            return TerminalScreen(colour=False, width=100, height=500)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("click.getchar", pressed)
            patch.setattr("mimo.rendering.results.screen_for", screen)
            patch.setattr("mimo.cli.guided.screen_for", screen)
            patch.setattr(sys, "stdin", terminal)
            patch.setattr(terminal, "readline", typed)
            patch.setattr("mimo.rendering._PROGRESS_SECONDS", float("inf"))
            patch.setattr("select.select", lambda files, *_: (files, [], []))
            with redirect_stdout(terminal), redirect_stderr(terminal):
                status = main(shlex.split(words)[1:], open=self.open)
        printed = terminal.getvalue().replace("\r\x1b[K", "")
        return status, printed.replace("\a", "‹bell›\n")

    def _hook(self, words: str, given: str | None) -> tuple[int, str]:
        name, _, fields = words.partition(" ")
        common = {"session_id": "s1", "cwd": str(Path.cwd()), "hook_event_name": name}
        event = recognised(common | json.loads(fields or "{}"), os.environ.get("CLIENT", ""))
        assert event is not None
        home = home_of(os.environ)
        answer = react(event, home=home, now=self.clock(), environ=os.environ) or {}
        answer |= answer.pop("hookSpecificOutput", {})
        notes = answer.pop("additionalContext", "").splitlines()
        shown = [line for line in notes if not line.startswith(("<mind-context", "</mind-context"))]
        shown += [f"{key}: {value}" for key, value in answer.items() if key != "hookEventName"]
        return 0, "".join(f"{line}\n" for line in shown)

    def _export(self, words: str, given: str | None) -> tuple[int, str]:
        name, _, value = words.partition("=")
        self.exported[name] = value
        return 0, ""

    def _later(self, words: str, given: str | None) -> tuple[int, str]:
        number, unit = words.split()
        self.clock.forward(**{f"{unit.rstrip('s')}s": float(number)})
        return 0, ""

    def _cat(self, words: str, given: str | None) -> tuple[int, str]:
        if not words.startswith("> "):
            return _shell(f"cat {words}", given or "")
        path = Path(words[2:])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(given or "", encoding="utf-8")
        self._set_times({})
        return 0, ""

    def _masked(self, printed: str) -> str:
        for place, shown in self.places:
            printed = printed.replace(place, shown)
        printed = _UPDATED.sub(r'\1"TIME"', _STYLE_OR_NUMBER.sub("", printed))
        return _DIGEST.sub("DIGEST", printed)


def _cd(words: str, given: str | None) -> tuple[int, str]:
    os.chdir(words)
    return 0, ""


def _field(key: str, value: object) -> Iterator[str]:
    """Yields the lines of a field of an answer: each row of a list has its own."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        yield f"{key}:"
        for row in value:
            yield f"- {json.dumps(row, ensure_ascii=False)}"
    else:
        yield f"{key}: {json.dumps(value, ensure_ascii=False)}"


def _shell(line: str, given: str) -> tuple[int, str]:
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout


@pytest.fixture
def stage(
    project: Path,
    clock: Clock,
    randomness: Callable[[int], bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> Stage:
    """A stage in the project, in which git works as Ann, unless a repository names another user.

    The program `mind` is on the PATH, as the merge driver needs it.
    """
    code = f'#!/bin/sh\nexec {sys.executable} -m mimo "$@"\n'
    program = script(project.parent / "bin" / "mind", code)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.chdir(project)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(Path(__file__).with_name("gitconfig")))
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_DATE", NOW.isoformat())
    return Stage(project, clock, randomness)


def check(path: Path, scenario: Scenario, stage: Stage) -> None:
    """Fails if a scenario prints something else; in a recording, writes it into the file."""
    if sys.platform != "linux" and _GNU.search(scenario.text):
        pytest.skip("it uses programs of GNU")
    if any("ssh-keygen" in each.line for each in scenario.setup) and not which("ssh-keygen"):
        pytest.skip("ssh-keygen is not installed")
    assert scenario.commands, f"`{scenario.title}` has no line that begins with `  $ `"
    played = stage.play(scenario)
    if os.environ.get(RECORDING):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(scenario.text, played), encoding="utf-8")
    elif played != scenario.text:
        before, now = scenario.text.splitlines(), played.splitlines()
        shown = unified_diff(before, now, str(path), "now", lineterm="")
        advice = f"If that is intended: make transcripts ONLY={path.parent.name}/{path.stem}"
        pytest.fail("\n".join((*shown, advice)), pytrace=False)
