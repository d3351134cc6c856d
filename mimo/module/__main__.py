"""One invocation from a file or standard input: `python -m mimo.module FILE`."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from mimo import rendering
from mimo.data.failures import failure
from mimo.data.loads import loads
from mimo.errors import Invalid, MindError, StorageFailed
from mimo.module import invoke


def main(argv: Sequence[str], *, manifest: Path | None = None) -> int:
    """Returns the exit status of an invocation, `{"name": …, "arguments": {…}}`."""
    try:
        rendering.prepare()
        name, arguments = _read(Path(argv[0]) if argv and argv[0] != "-" else None)
        answer = invoke(name, arguments, manifest=manifest)
        rendering.write(f"{json.dumps(answer, indent=2)}\n")
    except MindError as error:
        return rendering.report(error, as_wire=True)
    except BrokenPipeError:
        rendering.give_up_stdout()
    return 0


def _read(path: Path | None) -> tuple[str, dict[str, object]]:
    if path is None and sys.stdin is None:
        raise StorageFailed("standard input is closed", hint="name a file")
    try:
        text = path.read_text(encoding="utf-8") if path else sys.stdin.read()
        invocation = loads(text)
    except OSError as error:
        raise failure("read", path or Path("-"), error) from error
    except ValueError as error:
        raise Invalid(f"the invocation is not JSON: {error}") from None
    if not isinstance(invocation, dict) or not isinstance(invocation.get("name"), str):
        raise Invalid("the invocation has no `name`")
    arguments = invocation.get("arguments", {})
    if not isinstance(arguments, dict):
        raise Invalid("`arguments` of the invocation must be an object")
    return invocation["name"], arguments


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
