"""Completion in real shells: what is typed, what a tab makes of it, and what Enter then runs."""

import fcntl
import os
import pty
import re
import select
import shlex
import shutil
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mimo.features.upkeep.completion import FILES, SCRIPTS, Shell
from mimo.text.clean import SEQUENCES
from tests.conftest import git
from tests.kit import repository, run

ROOT = Path(__file__).parents[2]
SECONDS = 30.0

STARTS = {
    Shell.BASH: ["bash", "--noprofile", "--norc", "-i"],
    Shell.ZSH: ["zsh", "-f", "-i"],
    Shell.FISH: ["fish", "--no-config", "-i"],
}

PREPARED = {
    Shell.BASH: r"""
bind 'set show-all-if-ambiguous on'; bind 'set completion-query-items 0'
bind 'set page-completions off'; bind 'set enable-bracketed-paste off'
bind -x '"\C-g": printf "<%s>" "$READLINE_LINE"'
""",
    Shell.ZSH: r"""
autoload -U compinit; compinit -u -D; LISTMAX=999
tell() { print -rn -- "<$BUFFER>" }; zle -N tell; bindkey '^G' tell
""",
    Shell.FISH: r"""
function fish_prompt; end; set -g fish_autosuggestion_enabled 0
bind \cg 'printf "<%s>" (commandline | string collect)'
""",
}
"""The settings of each shell: Ctrl-G prints the line."""

WORDS = (
    "a1 $(touch pwned)",
    "b2 `touch pwned`",
    "c3;touch pwned",
    "d4'single",
    'e5"double',
    "f6\\back",
    "g7:colon:x",
    "h8=eq@at",
    "i9*?[x]",
    "j0!hist#~",
    "k1%n{a,b}",
    "l2>pwned",
    "m3&touch pwned&",
    "n4 é 日本",
    "o5\\",
)
"""Words that a shell must insert as they are; none begins with another's first letter."""

HELP = "'\"$(touch pwned)`touch pwned` \\ %F{red} :x"


class Typing:
    """A shell on a terminal of 80 columns, into which a test types."""

    def __init__(self, shell: Shell, folder: Path, path: str) -> None:
        argv = STARTS[shell]
        settings = folder.parent / "settings"
        script = (SCRIPTS / FILES[shell]).read_text("utf-8")
        settings.write_text(f"{PREPARED[shell]}\n{script}", encoding="utf-8")
        self._pid, self._terminal = pty.fork()
        if not self._pid:
            kept = {name: value for name, value in os.environ.items() if "COVERAGE" not in name}
            os.chdir(folder)
            own = {"PATH": path, "TERM": "xterm", "COLUMNS": "80", "PS1": "", "HISTFILE": ""}
            os.execvpe(argv[0], argv, kept | own)  # noqa: S606 - it has the terminal to itself
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 80, 0, 0))
        self.type(f"source {shlex.quote(str(settings))}; echo rea''dy\n")
        self.until("ready")

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def until(self, pattern: str) -> str:
        """Returns what the shell has printed when a pattern appears."""
        printed, end = b"", time.monotonic() + SECONDS
        poll = select.poll()  # It takes any descriptor, unlike `select`.
        poll.register(self._terminal, select.POLLIN)
        while not re.search(pattern, text := _plain(printed), re.DOTALL):
            left = end - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                raise AssertionError(f"no {pattern!r} in {text!r}")
            printed += os.read(self._terminal, 65_536)
        return text

    def completed(self, line: str) -> str:
        """Returns the line after a tab."""
        self.type(f"{line}\t\x07")
        return str(re.findall(r"<(.*?)>", self.until(r"<.*?>"), re.DOTALL)[-1])

    def close(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._terminal)


def _plain(printed: bytes) -> str:
    return re.sub(SEQUENCES, "", printed.decode("utf-8", "replace")).replace("\r", "")


@pytest.fixture(params=Shell)
def shell(request: pytest.FixtureRequest) -> Shell:
    if shutil.which(request.param) is None:
        pytest.skip(f"needs {request.param}: `make test-shells` installs it")
    return Shell(request.param)


@pytest.fixture
def typing(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str, Path], Typing]]:
    """Returns a function that starts the shell, with a program `mind` of this text."""
    opened: list[Typing] = []
    monkeypatch.setenv("LC_ALL", "C.UTF-8")

    def start(program: str, folder: Path) -> Typing:
        file = tmp_path / "bin" / "mind"
        file.parent.mkdir()
        file.write_text(program, encoding="utf-8")
        file.chmod(0o755)
        opened.append(Typing(shell, folder, f"{file.parent}:{os.environ['PATH']}"))
        return opened[-1]

    yield start
    for typed in opened:
        typed.close()


def real() -> str:
    return f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {sys.executable} -m mimo "$@"\n'


def canned(lines: list[str], ran: Path) -> str:
    """Returns a program that offers these lines; otherwise it writes its arguments down."""
    offered = "\n".join(lines)
    return f"""#!/bin/sh
if [ -z "$_MIND_COMPLETE" ]; then
    printf '%s\\0' "$@" > {shlex.quote(str(ran))}
    echo do''ne
    exit
fi
for start; do :; done
while IFS= read -r line; do
    case $line in "$start"*) printf '%s\\n' "$line" ;; esac
done <<'END'
{offered}
END
"""


@pytest.mark.attack("command in a completed word")
def test_a_completed_word_is_the_argument_as_it_was_offered(
    shell: Shell, typing: Callable[[str, Path], Typing], tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    folder = tmp_path / "work"
    folder.mkdir()
    typed = typing(canned([f"{word}\t{HELP}" for word in WORDS], ran), folder)

    got = []
    for word in WORDS:
        typed.completed(f"mind list {word[:2]}")
        typed.type("\n")
        typed.until("done")
        got.append(ran.read_text("utf-8").split("\0")[1])

    assert [word.rstrip() for word in got] == list(WORDS)
    assert list(folder.iterdir()) == []


QUOTED = {
    "mind list g7:co": "g7:colon:x",
    "mind list g7:": "g7:colon:x",
    "mind list h8=": "h8=eq@at",
    "mind list h8=eq@": "h8=eq@at",
    "mind list 'p6": "p6 x",
    'mind list "p6': "p6 x",
    "mind list p6\\ ": "p6 x",
}


def test_a_word_is_completed_after_its_separators_and_within_quotes(
    shell: Shell, typing: Callable[[str, Path], Typing], project: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    typed = typing(canned(["g7:colon:x\tA", "h8=eq@at\tB", "p6 x\tC"], ran), project)

    for line, word in QUOTED.items():
        typed.completed(line)
        typed.type("\n")
        typed.until("done")
        assert ran.read_text("utf-8").split("\0")[1] == word, line


@pytest.mark.parametrize("shell", [Shell.BASH], indirect=True)
def test_bash_leaves_a_word_that_is_not_safe_within_the_open_quotes(
    typing: Callable[[str, Path], Typing], project: Path, tmp_path: Path
) -> None:
    typed = typing(canned(["a1 $(touch pwned)", "b2'x"], tmp_path / "ran"), project)

    assert typed.completed('mind list "a1') == 'mind list "a1'
    typed.type("\x15")
    assert typed.completed("mind list 'b2") == "mind list 'b2"


@pytest.fixture
def team(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in git with a few memories, a tag and a document."""
    repository(project)
    monkeypatch.chdir(project)
    jwt = "Use JWT with refresh tokens", "--type", "decision", "--topic", "auth_strategy"
    for words in (
        jwt,
        ("Green tea; $(touch pwned)\x1b[31m 'is' \"warm\"", "--tag", "tea"),
        ("White tea is pale", "--tag", "tea"),
    ):
        run(None, "add", *words)
    (project / "GUIDE.md").write_text("Guide\n", encoding="utf-8")
    git(project, "add", "GUIDE.md", ".mind")
    git(project, "commit", "-qm", "Add a guide")
    git(project, "tag", "v1.0")
    return project


COMPLETED = {
    "mind unt": "mind untrust ",
    "mind add x --type=deci": "mind add x --type=decision ",
    "mind search by-topic auth": "mind search by-topic auth_strategy ",
    "mind show auth_": "mind show auth_strategy ",
    "mind search tea --at v1": "mind search tea --at v1.0 ",
    "mind diff v1.0..mai": "mind diff v1.0..main ",
    "mind list --project ./GUI": "mind list --project ./GUIDE.md",
    "mind ingest GUI": "mind ingest GUIDE.md",
    "mind completion fi": "mind completion fish ",
}


def test_a_shell_completes_commands_words_revisions_and_files(
    shell: Shell, typing: Callable[[str, Path], Typing], team: Path
) -> None:
    typed = typing(real(), team)

    got = {}
    for line in COMPLETED:
        got[line] = typed.completed(line)
        typed.type("\x15")

    assert {line: after.rstrip() for line, after in got.items()} == {
        line: after.rstrip() for line, after in COMPLETED.items()
    }


def test_ids_are_listed_with_their_titles(
    shell: Shell, typing: Callable[[str, Path], Typing], team: Path
) -> None:
    typed = typing(real(), team)
    if shell is Shell.FISH:  # Its list is a screen of its own; this prints what it would show.
        typed.type("complete -C 'mind show '; echo lis''ted\n")
        shown = typed.until("listed\n")
    else:
        typed.type("mind show \t\x07")
        shown = typed.until("<mind show .*?>")
    lines = shown.replace("mind show", "\n").split("\n")  # which zsh draws again below the list
    rows = [line.split(None, 1) for line in lines if re.match(r"[a-z2-7]{6}\s", line)]
    titles = [title.removeprefix("-- ").rstrip() for _, title in rows]

    assert sorted(titles) == [
        "Green tea; $(touch pwned) 'is' \"warm\"",
        "Use JWT with refresh tokens",
        "White tea is pale",
    ]
    typed.type("\x15")
    assert typed.completed(f"mind show {rows[0][0][:5]}").rstrip() == f"mind show {rows[0][0]}"
    assert not (team / "pwned").exists()
