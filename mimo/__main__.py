"""The program `mind`."""

import gc
import os
import sys

GARBAGE = 100_000
"""So many new objects before garbage is looked for: a short command ends before it has made them.

Python's own 700 lets it look some hundred times while modules load, and find nothing.
"""


def main() -> int:
    """Returns the exit status of the command line in `sys.argv`."""
    _hold_streams()
    if sys.argv[1:] == ["--version"] and sys.stdout is not None:
        from mimo import __version__

        sys.stdout.write(f"mind {__version__}\n")
        return 0
    gc.set_threshold(GARBAGE)
    if sys.argv[1:2] == ["hook"] and _is_told_something():
        from mimo.features.hooks.command import main as hook

        return hook(sys.argv[2:])
    if sys.argv[1:2] == ["merge-driver"]:
        from mimo.features.history.merge_driver import main as merge

        return merge(sys.argv[2:])
    try:
        import signal

        # Ctrl-C and a service manager end a command alike: what is being written is written.
        signal.signal(signal.SIGTERM, _terminate)
        from mimo.cli.main import main as run

        return run()
    except KeyboardInterrupt as error:  # while the modules load, before anything could catch it
        from mimo.errors import status_of

        return status_of(error)
    finally:
        # What is left goes with the process: the interpreter need not go through it once more.
        gc.freeze()


def _terminate(*_: object) -> None:
    raise KeyboardInterrupt("SIGTERM")


def _hold_streams() -> None:
    """Opens closed standard streams on nothing, as cron may leave them.

    The next file to be opened would take the number of a closed one, and what is printed would go
    into it.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # It takes the lowest free number: this one.


def _is_told_something() -> bool:
    """Returns whether `mind hook` is run by a client, and not by a person who looks at it."""
    asks = {"--help", "-h"} & set(sys.argv)
    try:
        return not asks and not os.isatty(0)
    except OSError:
        return not asks


if __name__ == "__main__":
    sys.exit(main())
