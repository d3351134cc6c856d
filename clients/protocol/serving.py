"""`mind mcp --http` for the conformance suite, which can't send a token.

    python -m clients.protocol.serving real|fixture PROJECT

The token is added to every request that has none; every other part is that of `mind mcp --http`.
`fixture` adds the tools, resources and prompts that the suite expects of a server.
"""

import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from clients.protocol.fixture import Fixture
from mimo.extensions.team import hosting, http


class Known(http.Gate):
    """A gate for clients without a token."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = [pair for pair in scope["headers"] if pair[0] != b"authorization"]
            token = f"Bearer {self._token}".encode()
            scope = {**scope, "headers": [*headers, (b"authorization", token)]}
        await super().__call__(scope, receive, send)


def main(kind: str, project: str) -> None:
    """Serves until a signal."""
    setattr(http, "Gate", Known)  # noqa: B010 - for this process
    if kind == "fixture":
        setattr(hosting, "Named", Fixture)  # noqa: B010 - for this process
    os.environ["MIND_HTTP_TOKEN"] = "a-token-of-the-tests"
    http.main(
        at="0",
        answers=lambda *_: None,
        project=Path(project),
        toolsets=(),
        naming=None,
        announce=partial(print, flush=True),
    )


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main(*sys.argv[1:])
