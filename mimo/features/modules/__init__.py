"""Modules for hosts that read `.mcp/modules/`: installing ours, and finding all of them.

A manifest comes with a clone like any file. Its author could make a host import code of theirs, or
add text to its prompt. Therefore only the packaged manifest runs, and modules whose entry point the
host itself allows.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from mimo.call.spec import Out
from mimo.data import disk, files
from mimo.data.failures import failure
from mimo.data.loads import DataError, loads
from mimo.errors import Command, Conflict, Hint, Invalid, MindError
from mimo.frozen import frozen, replace
from mimo.text.clean import clean

MODULES = ".mcp/modules"
MANIFEST = "memory-tool.module.json"
OTHER_MANIFESTS = ".module.json"
"""The suffix of other producers' manifests."""

PACKAGED = Path(__file__).parents[2] / "mcp_module"
"""The module's folder as it is written into a project."""

_MOST_BYTES = 1_000_000
_ID = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_COMMAND = re.compile(r"[A-Za-z0-9_./-]{1,64}")
_ENTRY_POINT = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_LONGEST = 4_000
"""Characters of the longest text in a manifest: every prompt contains it."""


@frozen
class ModuleCommand:
    """A command in a manifest."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    response: Mapping[str, Any]


@frozen
class Manifest:
    """The description of a module by itself."""

    id: str
    version: str
    name: str
    entrypoint: str
    schema_version: str
    commands: tuple[ModuleCommand, ...]

    @property
    def is_python(self) -> bool:
        """Returns whether the entry point has Python's form, `package.module:function`."""
        return _ENTRY_POINT.fullmatch(self.entrypoint) is not None

    def command(self, name: str) -> ModuleCommand | None:
        """Returns the command of that name, or None."""
        return next((command for command in self.commands if command.name == name), None)


def parse(text: bytes | str) -> Manifest:
    """Returns the manifest in a file's text. Raises `Invalid`."""
    try:
        data = loads(text, limit=_MOST_BYTES)
    except DataError as error:
        raise Invalid(f"the manifest can't be read as JSON: {error}") from None
    if not isinstance(data, dict):
        raise Invalid("the manifest is not a JSON object")
    commands = data.get("commands")
    if not isinstance(commands, list) or not commands:
        raise Invalid("`commands` in the manifest must be a list with a command")
    manifest = Manifest(
        id=_text(data, "id", _ID),
        version=_text(data, "version"),
        name=_text(data, "name"),
        entrypoint=_text(data, "entrypoint"),
        schema_version=_text(data, "schema_version"),
        commands=tuple(map(_command, commands)),
    )
    if len({command.name for command in manifest.commands}) < len(manifest.commands):
        raise Invalid("two commands in the manifest have the same name")
    return manifest


def _command(data: Any) -> ModuleCommand:
    if not isinstance(data, dict):
        raise Invalid("a command in the manifest is not a JSON object")
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
        raise Invalid(f"`{key}` in the manifest contains characters that are not allowed")
    return value


def _schema(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    if not isinstance(value, dict) or value.get("type") != "object":
        raise Invalid(f"`{key}` in the manifest must be the JSON Schema of an object")
    return value


@frozen
class InstalledModule:
    """The files of the module's folder."""

    id: str
    folder: str
    written: Annotated[tuple[str, ...], Out("Files that were written, within the folder")]
    unchanged: Annotated[tuple[str, ...], Out("Files that existed already")]


@frozen
class FoundModule:
    """A manifest in `.mcp/modules/`."""

    path: Path
    file: str
    """Relative to the scanned root, with `/`."""
    manifest: Manifest | None
    """None if it can't be read."""
    reason: str | None = None
    """The reason why it does not run, or None."""


def read_manifest(path: Path) -> Manifest:
    """Returns the manifest in a file. Raises `Invalid` and `StorageFailed`."""
    try:
        return parse(disk.look(path, limit=_MOST_BYTES)[0])
    except OSError as error:
        raise failure("read", path, error) from error


def packaged() -> Manifest:
    """Returns our own manifest."""
    return read_manifest(PACKAGED / MANIFEST)


def install(root: Path, *, force: bool = False) -> InstalledModule:
    """Writes our module's folder below `root`; existing identical files are not changed.

    Raises `Conflict`, with nothing written, if a file was changed (unless `force`), and
    `StorageFailed`.
    """
    if not root.is_dir():
        raise Invalid(f"`{root}` is not a folder", hint="create it first, or name another one")
    module = packaged().id
    folder = f"{MODULES}/{module}"
    paths = sorted(PACKAGED.rglob("*"))
    names = [path.relative_to(PACKAGED).as_posix() for path in paths if path.is_file()]
    contents = {name: disk.read(PACKAGED / name) for name in names if "__pycache__" not in name}
    present = {name: files.content(files.safe_path(root, f"{folder}/{name}")) for name in contents}
    changed = [name for name, data in contents.items() if present[name] not in (None, data)]
    if changed and not force:
        raise Conflict(
            f"`{root / folder}` holds files that differ: {', '.join(changed)}",
            hint="nothing was written; `--force` replaces them",
        )
    written = [name for name, data in contents.items() if present[name] != data]
    for name in written:
        old = present[name]
        path = files.safe_path(root, f"{folder}/{name}")
        if old is None:
            files.write_new(path, contents[name])
        else:
            files.replace(path, contents[name], expect=files.digest(old))
    return InstalledModule(
        id=module,
        folder=str(root / folder),
        written=tuple(written),
        unchanged=tuple(name for name in contents if name not in written),
    )


def find(root: Path, *, allow: Collection[str] = ()) -> tuple[FoundModule, ...]:
    """Returns every module below `root`, ours first, with the reason of each that does not run.

    Ours runs if its manifest is the packaged one, any other if its entry point is in `allow`. Of
    two modules with the same command only the first runs.
    """
    ours = packaged()
    modules = [_read(root, file, ours, allow) for file in _manifests(root)]
    modules.sort(key=lambda module: (module.manifest != ours, module.file))
    taken: set[str] = set()
    for number, module in enumerate(modules):
        if module.manifest is None or module.reason:
            continue
        names = {command.name for command in module.manifest.commands}
        if duplicates := sorted(names & taken):
            modules[number] = replace(module, reason=f"another module has {', '.join(duplicates)}")
        else:
            taken |= names
    return tuple(modules)


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


def _read(root: Path, file: str, ours: Manifest, allow: Collection[str]) -> FoundModule:
    manifest = None
    try:
        manifest = read_manifest(files.safe_path(root, file))
        reason = None
        if not manifest.is_python:
            reason = f"its entry point `{manifest.entrypoint}` is not Python's"
        elif manifest != ours and manifest.entrypoint not in allow:
            code = (
                f"its entry point `{manifest.entrypoint}` is other code, which is not allowed here"
            )
            stale = Hint(
                "its manifest is not the one that mind writes; ",
                Command("module install", force=True),
                " does",
            )
            reason = stale if manifest.entrypoint == ours.entrypoint else code
    except MindError as error:
        reason = error.message
    return FoundModule(path=root / file, file=file, manifest=manifest, reason=reason)
