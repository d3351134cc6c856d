"""The program `mind`."""

import sys


def main() -> int:
    """Returns the exit status of the command line in `sys.argv`."""
    if sys.argv[1:] == ["--version"]:
        from mimo import __version__

        sys.stdout.write(f"mind {__version__}\n")
        return 0
    from mimo.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
