"""The git repository that a project lies in."""

from pathlib import Path
from typing import TYPE_CHECKING

from mimo.errors import Invalid
from mimo.store.git import environment, hardened

if TYPE_CHECKING:
    import subprocess

DRIVER = "mind merge-driver %O %A %B %P || git merge-file %A %O %B"
"""What git merges memories with; without mind on its PATH it merges them as text."""

_SECONDS = 60
_NO_GIT = "install git, or do without: every memory is a file of its own"


class Repository:
    """Asks git about one project, with everything off that a repository could make it run."""

    def __init__(self, root: Path) -> None:
        """Take the project's root, which may be a folder of the work tree."""
        self.root = root

    def ask(self, *words: str, given: bytes | None = None, seconds: float = _SECONDS) -> bytes:
        """Returns what git prints. Raises `Invalid` with its complaint where it fails."""
        answer = self.run(*words, given=given, seconds=seconds)
        if answer.returncode:
            raise Invalid(f"git {words[0]}: {complaint(answer.stderr)}", hint="see `git status`")
        return answer.stdout

    def run(
        self, *words: str, given: bytes | None = None, seconds: float = _SECONDS
    ) -> "subprocess.CompletedProcess[bytes]":
        """Returns git's answer, whatever it is. Raises `Invalid` where it can't be asked."""
        command = hardened(self.root, *words)
        if not command:
            raise Invalid("git is not installed", hint=_NO_GIT)
        return _run(command, given=given, seconds=seconds, reading=True)

    def run_as_person(
        self, *words: str, seconds: float = _SECONDS
    ) -> "subprocess.CompletedProcess[bytes]":
        """Returns git's answer to what a person could have typed: their hooks and signing run."""
        command = hardened(self.root)
        if not command:
            raise Invalid("git is not installed", hint=_NO_GIT)
        plain = [command[0], "-C", str(self.root), *words]
        return _run(plain, given=None, seconds=seconds, reading=False)

    def is_there(self) -> bool:
        """Returns whether the project lies in a work tree, and git can be asked about it."""
        try:
            answer = self.run("rev-parse", "--is-inside-work-tree")
        except Invalid:
            return False
        return answer.stdout.strip() == b"true"

    def merges(self) -> bool:
        """Returns whether git merges memories here with our driver."""
        return self.run("config", "--get", "merge.mind.driver").stdout.strip() != b""

    def install_driver(self) -> bool:
        """Lets git merge memories with our driver; returns whether that is new."""
        known = self.run("config", "--local", "--get", "merge.mind.driver").stdout
        if known.decode("utf-8", "replace").strip() == DRIVER:
            return False
        self.ask("config", "--local", "merge.mind.name", "memories, field by field")
        self.ask("config", "--local", "merge.mind.driver", DRIVER)
        return True


def complaint(told: bytes) -> str:
    """Returns the first line that git complains with."""
    lines = told.decode("utf-8", "replace").strip().splitlines()
    said = [line for line in lines if line.startswith(("fatal: ", "error: "))] or lines
    return said[0].removeprefix("fatal: ").removeprefix("error: ") if said else "no reason given"


def _run(
    command: list[str], *, given: bytes | None, seconds: float, reading: bool
) -> "subprocess.CompletedProcess[bytes]":
    import subprocess

    try:
        return subprocess.run(
            command,
            input=given or b"",
            capture_output=True,
            timeout=seconds,
            env=environment(reading=reading),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Invalid(f"git took longer than {seconds:g} s", hint="try it by hand") from None
    except OSError as error:
        raise Invalid(f"git can't be run: {error.strerror}", hint=_NO_GIT) from None
