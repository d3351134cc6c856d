"""Our module: one command, `recall_memory`, for a host that calls it from Python."""

import logging
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from mimo.commands.invoke import Caller
from mimo.commands.invoke import invoke as run
from mimo.commands.recall import recall_memory, recollection
from mimo.commands.schema import to_json
from mimo.commands.spec import Surface, spec_of
from mimo.domain.manifest import Manifest
from mimo.errors import Internal, Invalid, MindError, NotFound
from mimo.mind import Mind
from mimo.services import modules, summary

log = logging.getLogger("mind")


class Token(Protocol):
    """What says that a call is to stop, such as `threading.Event`."""

    def is_set(self) -> bool:
        """Returns whether it is."""


class MemoryModule:
    """The memory of the project around a manifest, or around the working directory.

    It holds nothing open between calls and may be called from any thread.
    """

    def __init__(
        self, manifest: str | PathLike[str] | None = None, *, project: Path | None = None
    ) -> None:
        """Read the manifest, the packaged one unless named. Raises `Invalid`, `StorageFailed`."""
        path = Path(manifest).absolute() if manifest is not None else None
        self.manifest: Manifest = modules.read_manifest(path) if path else modules.packaged()
        self._start = path.parent if path else None
        self._project = project

    def invoke(
        self, name: str, arguments: Mapping[str, Any], *, cancel: Token | None = None
    ) -> dict[str, Any]:
        """Returns `summary`, `confidence` and `source_refs`; what goes wrong is told there.

        Raises `NotFound` for any other command, `Invalid` for wrong arguments, and `CancelledError`
        once `cancel` is set: looked at before and after, and at each file that is read anew.
        """
        spec = spec_of(recall_memory)
        if spec is None or name != spec.name or self.manifest.command(name) is None:
            raise NotFound(f"Unsupported command: {name}", hint="the command is recall_memory")
        token = cancel or threading.Event()
        _stop_if_set(token)
        try:
            with closing(Mind.open(self._start or Path.cwd(), project=self._project)) as mind:
                mind.progress = lambda *_: _stop_if_set(token)
                answer = run(spec, mind, Caller(surface=Surface.MCP, name="module"), arguments)
        except Invalid:
            raise
        except MindError as error:
            _stop_if_set(token)
            if isinstance(error, Internal):
                log.exception("a call failed", exc_info=error.__cause__)
            answer = recollection(summary.unable(error))
        _stop_if_set(token)
        found: dict[str, Any] = to_json(answer)
        return found

    async def invoke_async(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what `invoke` does, beside the event loop; it is cancelled with its task."""
        import asyncio

        stop = threading.Event()
        try:
            return await asyncio.to_thread(self.invoke, name, arguments, cancel=stop)
        finally:
            stop.set()


def invoke(
    name: str,
    arguments: Mapping[str, Any],
    *,
    cancel: Token | None = None,
    manifest: str | PathLike[str] | None = None,
) -> dict[str, Any]:
    """Returns what the module that a manifest describes answers: the manifest's entry point."""
    return MemoryModule(manifest).invoke(name, arguments, cancel=cancel)


def _stop_if_set(token: Token) -> None:
    if token.is_set():
        raise CancelledError("the call was cancelled")
