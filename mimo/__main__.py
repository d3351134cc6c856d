"""The program `mind`: fast paths for what clients and git call often, then the command line."""

import gc
import os
import sys

GARBAGE = 100_000
"""The number of new objects that starts a garbage collection, which no short command reaches.

With Python's default of 700, some hundred collections run while modules load, without effect.
"""


def main() -> int:
    """Returns the exit status of the command line in `sys.argv`."""
    _hold_streams()
    if sys.argv[1:] in (["--version"], ["-V"]) and sys.stdout is not None:
        from mimo import __version__

        try:
            os.write(sys.stdout.fileno(), f"mind {__version__}\n".encode())
        except OSError:
            pass  # The command line below reports it.
        else:
            return 0
    gc.set_threshold(GARBAGE)
    try:
        from mimo.data import disk

        # For every program that is started: an editor, a pager, a browser, those that git starts.
        os.environ["PATH"] = disk.search_path()
        if sys.argv[1:2] == ["hook"] and _is_client():
            from mimo.features.hooks.command import main as hook

            return hook(sys.argv[2:])
        if sys.argv[1:2] == ["merge-driver"]:
            from mimo.features.history.merge_driver import main as merge

            return merge(sys.argv[2:])
        import _signal  # type: ignore[import-not-found] # `signal` first makes enumerations

        # A service manager ends a command as Ctrl-C does: the current write is finished.
        _signal.signal(_signal.SIGTERM, _terminate)
        from mimo.cli.asked import answer

        if (status := answer(sys.argv[1:])) is not None:
            return status
        from mimo.cli.main import main as run

        return run()
    except KeyboardInterrupt as error:  # while the modules load, or a server is asked
        from mimo.errors import status_of
        from mimo.rendering import interrupted

        interrupted()
        return status_of(error)
    finally:
        gc.freeze()  # The process ends: a last collection would have no effect.


def _terminate(*_: object) -> None:
    raise KeyboardInterrupt("SIGTERM")


def _hold_streams() -> None:
    """Opens closed standard streams on the null device; cron may leave them closed.

    Otherwise the next file would take the number of a closed stream, and output would go into it.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # This takes the lowest free number.


def _is_client() -> bool:
    """Returns whether a client runs `mind hook`, rather than a user on a terminal."""
    wants_help = {"--help", "-h"} & set(sys.argv)
    try:
        return not wants_help and not os.isatty(0)
    except OSError:
        return not wants_help


if __name__ == "__main__":
    sys.exit(main())
