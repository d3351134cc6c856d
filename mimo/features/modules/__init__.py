"""Modules for hosts that look into `.mcp/modules/`: writing ours there, and finding all of them.

A manifest comes with a clone as any file does. Whoever wrote it could have a host import code of
theirs, or put words into its prompt; so what counts is what the packaged manifest says, and what
the host itself allows by the name of its entry point.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mimo.errors import Conflict, Invalid, MindError
from mimo.frozen import frozen
from mimo.store import files
from mimo.text.clean import clean

# A module's manifest: which commands it has, and what runs them.


_ID = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_COMMAND = re.compile(r"[A-Za-z0-9_./-]{1,64}")
_ENTRY_POINT = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_LONGEST = 4_000
"""Characters of the longest text in a manifest: each costs its place in every prompt."""


@frozen
class ModuleCommand:
    """A command as its manifest describes it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    response: Mapping[str, Any]


@frozen
class Manifest:
    """What a module says of itself."""

    id: str
    version: str
    name: str
    entrypoint: str
    schema_version: str
    commands: tuple[ModuleCommand, ...]

    @property
    def is_python(self) -> bool:
        """Returns whether the entry point is one of Python's, `package.module:function`."""
        return _ENTRY_POINT.fullmatch(self.entrypoint) is not None

    def command(self, name: str) -> ModuleCommand | None:
        """Returns the command of that name, or None."""
        return next((command for command in self.commands if command.name == name), None)


def parse(text: str) -> Manifest:
    """Returns the manifest that a file holds; raises `Invalid` where it is none."""
    import json

    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"the manifest is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise Invalid("the manifest is no JSON object")
    commands = data.get("commands")
    if not isinstance(commands, list) or not commands:
        raise Invalid("`commands` in the manifest must be a list with a command")
    found = Manifest(
        id=_text(data, "id", _ID),
        version=_text(data, "version"),
        name=_text(data, "name"),
        entrypoint=_text(data, "entrypoint"),
        schema_version=_text(data, "schema_version"),
        commands=tuple(map(_command, commands)),
    )
    if len({command.name for command in found.commands}) < len(found.commands):
        raise Invalid("two commands in the manifest have one name")
    return found


def _command(data: Any) -> ModuleCommand:
    if not isinstance(data, dict):
        raise Invalid("a command in the manifest is no JSON object")
    return ModuleCommand(
        name=_text(data, "name", _COMMAND),
        description=_text(data, "description"),
        parameters=_schema(data, "parameters"),
        response=_schema(data, "response"),
    )


def _text(data: Mapping[str, Any], key: str, form: re.Pattern[str] | None = None) -> str:
    value = data.get(key)
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST:
        raise Invalid(f"`{key}` in the manifest must be a text of 1 to {_LONGEST:,} characters")
    if (form and not form.fullmatch(value)) or clean(value) != value:
        raise Invalid(f"`{key}` in the manifest holds characters that it may not")
    return value


def _schema(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    if not isinstance(value, dict) or value.get("type") != "object":
        raise Invalid(f"`{key}` in the manifest must be the JSON Schema of an object")
    return value


MODULES = ".mcp/modules"
MANIFEST = "memory-tool.module.json"
OTHER_MANIFESTS = ".module.json"
"""How the names of other producers' manifests end."""

PACKAGED = Path(__file__).parents[2] / "mcp_module"
"""The module's folder as it is written into a project."""

_MOST_BYTES = 1_000_000


@frozen
class Installed:
    """What was written."""

    id: str
    folder: Path
    written: tuple[str, ...]
    unchanged: tuple[str, ...]


@frozen
class FoundModule:
    """A manifest that a scan found."""

    path: Path
    file: str
    """Relative to the scanned root, with `/`."""
    manifest: Manifest | None
    """None where it can't be read."""
    reason: str | None = None
    """Why it does not run; None where it does."""


def read_manifest(path: Path) -> Manifest:
    """Returns the manifest in a file. Raises `Invalid` and `StorageFailed`."""
    try:
        data, _ = files.look(path, limit=_MOST_BYTES)
    except OSError as error:
        raise files.failure("read", path, error) from error
    if len(data) > _MOST_BYTES:
        raise Invalid(f"the manifest has more than {_MOST_BYTES:,} bytes")
    try:
        return parse(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise Invalid("the manifest is not UTF-8") from None


def packaged() -> Manifest:
    """Returns our own manifest."""
    return read_manifest(PACKAGED / MANIFEST)


def install(root: Path, *, force: bool = False) -> Installed:
    """Writes our module's folder below `root`; what is there already stays as it is.

    Raises `Conflict`, with nothing written, where somebody changed a file (unless `force`), and
    `StorageFailed`.
    """
    if not root.is_dir():
        raise Invalid(f"`{root}` is no folder", hint="make it first, or name another one")
    module = packaged().id
    folder = f"{MODULES}/{module}"
    wanted = {name: files.read(PACKAGED / name) for name in _packaged_files()}
    present = {name: _present(files.safe_path(root, f"{folder}/{name}")) for name in wanted}
    changed = [name for name, data in wanted.items() if present[name] not in (None, data)]
    if changed and not force:
        raise Conflict(
            f"`{root / folder}` holds files that differ: {', '.join(changed)}",
            hint="nothing was written; `--force` puts ours in their place",
        )
    written = [name for name, data in wanted.items() if present[name] != data]
    for name in written:
        old = present[name]
        path = files.safe_path(root, f"{folder}/{name}")
        if old is None:
            files.write_new(path, wanted[name])
        else:
            files.replace(path, wanted[name], expect=files.digest(old))
    return Installed(
        id=module,
        folder=root / folder,
        written=tuple(written),
        unchanged=tuple(name for name in wanted if name not in written),
    )


def _packaged_files() -> list[str]:
    paths = (path for path in PACKAGED.rglob("*") if path.is_file())
    names = (path.relative_to(PACKAGED).as_posix() for path in paths)
    return sorted(name for name in names if "__pycache__" not in name)


def _present(path: Path) -> bytes | None:
    try:
        return files.read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise files.failure("read", path, error) from error


def find(root: Path, *, allow: Collection[str] = ()) -> tuple[FoundModule, ...]:
    """Returns every module below `root`, ours first, each with why it does not run, if it doesn't.

    Ours runs where its manifest is the packaged one; any other where its entry point is in `allow`.
    Of two that run, the first keeps a command that both have.
    """
    found = [_found(root, file) for file in _manifests(root)]
    ours = packaged()
    judged = [
        one if one.manifest is None else replace(one, reason=_reason(one.manifest, ours, allow))
        for one in found
    ]
    judged.sort(key=lambda one: (one.manifest != ours, one.file))
    return tuple(_without_doubles(judged))


def _manifests(root: Path) -> Iterator[str]:
    """Yields the manifests below `root`, by the exact name before other producers' names."""
    for folder in _names(root / MODULES):
        names = _names(root / MODULES / folder)
        for name in sorted(names, key=lambda name: name != MANIFEST):
            if name.endswith(OTHER_MANIFESTS):
                yield f"{MODULES}/{folder}/{name}"


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []


def _found(root: Path, file: str) -> FoundModule:
    path = root / file
    try:
        manifest = read_manifest(files.safe_path(root, file))
    except MindError as error:
        return FoundModule(path=path, file=file, manifest=None, reason=error.message)
    return FoundModule(path=path, file=file, manifest=manifest)


def _reason(manifest: Manifest, ours: Manifest, allow: Collection[str]) -> str | None:
    if not manifest.is_python:
        return f"its entry point `{manifest.entrypoint}` is not Python's"
    if manifest == ours or manifest.entrypoint in allow:
        return None
    if manifest.entrypoint == ours.entrypoint:
        return "its manifest is not the one that mind writes; `mind module install --force` does"
    return f"its entry point `{manifest.entrypoint}` is somebody else's code, not allowed here"


def _without_doubles(modules: list[FoundModule]) -> Iterator[FoundModule]:
    taken: set[str] = set()
    for one in modules:
        if one.manifest is None or one.reason:
            yield one
            continue
        names = {command.name for command in one.manifest.commands}
        if names & taken:
            yield replace(one, reason=f"another module has {', '.join(sorted(names & taken))}")
            continue
        taken |= names
        yield one
