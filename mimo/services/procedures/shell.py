"""Running a program: an argument list, never a shell's line, in a scrubbed environment."""

import os
import signal
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from mimo.domain.procedures.outcome import Refused

if TYPE_CHECKING:
    import subprocess

MOST_OUTPUT = 64 * 1024
"""Bytes of each stream that are kept; what comes after is read and dropped."""
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "SHELL")
_WAIT = 0.05


def scrubbed(environ: Mapping[str, str], allowed: Iterable[str]) -> dict[str, str]:
    """Returns the part of an environment that programs may see: no keys, no tokens.

    Relative folders are dropped from PATH, where a clone could put a program of its own.
    """
    names = {*_KEPT, *allowed, *(name for name in environ if name.startswith("LC_"))}
    kept = {name: environ[name] for name in names if name in environ}
    folders = [f for f in kept.get("PATH", "").split(os.pathsep) if Path(f).is_absolute()]
    kept["PATH"] = os.pathsep.join(folders) or os.defpath
    return kept


class Program:
    """One program that is run to its end, or stopped."""

    def __init__(self, argv: list[str], *, folder: Path, environ: Mapping[str, str]) -> None:
        """Take what to run and where; nothing is started yet."""
        self._argv = argv
        self._folder = folder
        self._environ = environ
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def run(self) -> tuple[int, str, str]:
        """Returns the exit status and both outputs. Raises `Refused` where it can't be started."""
        import subprocess

        try:
            process = subprocess.Popen(
                self._argv,
                cwd=self._folder,
                env=dict(self._environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise Refused(f"`{self._argv[0]}` can't be run: {reason}") from None
        self._process = process
        if self._stopped:
            self.stop()
        with process:
            out, err = self._read(process)
            status = process.wait()
            _kill_group(process.pid)  # What it left running must not outlive its step.
            return status, out, err

    def stop(self) -> None:
        """Kills the program and whatever it started."""
        self._stopped = True
        if self._process is not None and self._process.returncode is None:
            _kill_group(self._process.pid)

    def _read(self, process: "subprocess.Popen[bytes]") -> tuple[str, str]:
        """Returns both outputs; a child that keeps them open is not waited for."""
        import selectors

        kept: dict[IO[bytes], bytearray] = {}
        with selectors.DefaultSelector() as selector:
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    kept[stream] = bytearray()
                    selector.register(stream, selectors.EVENT_READ, stream)
            while selector.get_map():
                ready = selector.select(_WAIT)
                if not ready and process.poll() is not None:
                    break
                for key, _ in ready:
                    stream = key.data
                    if data := os.read(stream.fileno(), 65536):
                        kept[stream] += data[: MOST_OUTPUT - len(kept[stream])]
                    else:
                        selector.unregister(stream)
        out, err = (bytes(data).decode("utf-8", "replace") for data in kept.values())
        return out, err


def _kill_group(leader: int) -> None:
    with suppress(OSError):
        os.killpg(leader, signal.SIGKILL)
