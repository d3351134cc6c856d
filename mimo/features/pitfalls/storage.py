"""The files that edges are read from, and those that show a project's technologies.

Global edges are Markdown files in the user's `$MIND_HOME/edges/`, with a cache of them.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from pathlib import Path

from mimo.data import disk, files
from mimo.data.loads import loads_or_none
from mimo.data.locks import lock
from mimo.data.state import StateFile
from mimo.errors import StorageFailed
from mimo.features.pitfalls.edge import (
    DETECTED,
    FRAMEWORKS,
    MARKERS,
    PACKAGES,
    Detection,
    Edge,
    Severity,
    edge_of,
    tech,
)
from mimo.frozen import replace
from mimo.memory.model import Kind, Memory, Place, Problem, Record
from mimo.project.walk import is_markdown, stamp_of
from mimo.text.clean import compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = "edges"
STARTER = Path(__file__).parents[2] / "starter"
"""Well-known edges that come with the package, in the same format."""

_FORMAT = 7
CACHE = f"cache/edges-{_FORMAT}.json"
"""The edges as they were read; the number is that of their fields."""
_SETTLED_NS = 2_000_000_000
"""A file that was just written may change again without a new stamp."""


def read_all(home: Path) -> tuple[list[Edge], list[Problem]]:
    """Returns the edges, sorted by their files, and the files that can't be read as one.

    Edges are cached with the stamps of their files: parsing is slow, and hooks wait for it.
    """
    try:
        names = _names(home / FOLDER)
    except OSError as error:
        return [], [_problem(FOLDER, error)]
    cached = _CACHE.read(home, CACHE) or {}
    used: dict[str, tuple[list[int], Edge]] = {}
    edges: list[Edge] = []
    problems: list[Problem] = []
    read_ns = time.time_ns()
    for name in names:
        path = home / FOLDER / name
        try:
            stamp = stamp_of(path.lstat())
            if (row := cached.get(name)) and row[0] == list(stamp):
                used[name], edge = row, row[1]
            elif isinstance(record := _read(path, f"{FOLDER}/{name}"), Problem):
                problems.append(record)
                continue
            else:
                edge = edge_in(record)
                if read_ns - max(stamp.mtime_ns, stamp.ctime_ns) > _SETTLED_NS:
                    used[name] = list(stamp), edge
        except OSError as error:
            problems.append(_problem(f"{FOLDER}/{name}", error))
            continue
        edges.append(edge._replace(file=str(path)))
    if used != cached:
        with suppress(StorageFailed, OSError):
            rows = {name: (stamp, edge._asdict()) for name, (stamp, edge) in used.items()}
            _CACHE.write(home, CACHE, rows)
            for name in ("edges", *(f"edges-{number}" for number in range(_FORMAT))):
                (home / "cache" / f"{name}.json").unlink(missing_ok=True)  # Of earlier versions.
    return edges, problems


def create(home: Path, memory: Memory) -> Record:
    """Writes a new edge and returns it as it will be read. The caller holds the lock.

    Raises `Conflict` if its id has a file, `Invalid`, and `StorageFailed`.
    """
    from mimo.memory import codec

    return _write(home, memory, codec.render(memory))


def adopt(home: Path, record: Record) -> Record:
    """Copies the file of a starter edge. The caller holds the lock."""
    return _write(home, record.memory, disk.read(STARTER / Path(record.place.path).name))


def locked(home: Path) -> AbstractContextManager[None]:
    """Returns the lock under which edges are compared and written."""
    return lock(home / FOLDER / ".lock")


def starter() -> list[Record]:
    """Returns the edges that come with the package, sorted by their files."""
    entries = (_read(STARTER / name, f"starter/{name}") for name in _names(STARTER))
    return [record for record in entries if isinstance(record, Record)]


def edge_in(record: Record) -> Edge:
    """Returns the edge in a memory, with the path of its file as in the record."""
    memory, place = record.memory, record.place
    edge = edge_of(memory.id, memory.heading, memory.content, memory.extra)
    return edge._replace(
        file=place.path,
        line=place.line,
        type=memory.type.value,
        created=memory.created.isoformat(),
    )


def _names(folder: Path) -> list[str]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        return sorted(e.name for e in entries if is_markdown(e.name) and e.name[0] != ".")
    return []


def _problem(path: str, error: OSError) -> Problem:
    return Problem(path=path, line=None, reason=(error.strerror or str(error)).lower())


def _write(home: Path, memory: Memory, data: bytes) -> Record:
    path = f"{FOLDER}/{memory.id}.md"
    files.write_new(home / path, data)
    written = _parsed(data, path, memory.created)
    if isinstance(written, Problem):
        raise StorageFailed(f"`{path}` can't be read: {written.reason}")
    return written


def _read(file: Path, path: str) -> Record | Problem:
    from mimo.memory.codec.document import MAX_FILE_BYTES

    data, status = disk.look(file, limit=MAX_FILE_BYTES)
    return _parsed(data, path, disk.moment(status.st_mtime))


def _parsed(data: bytes, path: str, modified: datetime) -> Record | Problem:
    from mimo.memory import codec

    # Parsed like a file of the store, whose folder determines the type.
    name = f".mind/edges/{Path(path).name}"
    document = codec.parse(data, path=name, modified=modified, lenient=True)
    if isinstance(document, Problem):
        return replace(document, path=path)
    memory = document.memory
    if memory.type is not Kind.EDGE:
        return Problem(path=path, line=None, reason=f"its type is {memory.type}, not edge")
    place = Place(path=path, line=document.line, digest=files.digest(data), owned=document.owned)
    return Record(memory=memory, place=place)


def _rows(data: Any) -> dict[str, tuple[list[int], Edge]]:
    """Returns the stamp and the edge of each file in the data of the cache."""
    return {name: (stamp, _edge(**fields)) for name, (stamp, fields) in data.items()}


def _edge(**fields: Any) -> Edge:
    edge = Edge(**fields)
    return edge._replace(
        detection=Detection(*map(tuple, edge.detection)),
        stack_tags=tuple(edge.stack_tags),
        names=tuple(edge.names),
        severity=Severity(edge.severity),
    )


_CACHE = StateFile(_rows)


# The technologies of a project.


_MOST_BYTES = 1_000_000


def stack_of(root: Path) -> tuple[str, ...]:
    """Returns the technologies that the usual files at the project's root name."""
    return tuple(dict.fromkeys(_detected(root)))


def _detected(root: Path) -> Iterator[str]:
    yield from (
        technology
        for technology, names in MARKERS.items()
        if any((root / name).is_file() for name in names.split())
    )
    if (root / "supabase").is_dir():
        yield "supabase"
    packages = _packages(_start_of(root / "package.json"))
    for technology, name in PACKAGES.items():
        # Next.js includes React.
        if name in packages and not (name == "react" and "next" in packages):
            yield technology
    text = _start_of(root / "pyproject.toml") + _start_of(root / "requirements.txt")
    for name in FRAMEWORKS:
        if re.search(rf"\b{name}\b", text, re.IGNORECASE):
            yield name


_DEPENDENCY = (
    r"(?m)(?:^[ \t]*(?:gem )?|(?<=[\"'/>:]))[\"']?([A-Za-z][\w.-]*[A-Za-z0-9])"
    r"(?=[ \t]*(?:[\"'<>=!~;,:@\[ /]|$))"
)
"""A name at the start of a line, of a quoted text, or after a slash, colon or tag."""
_MOST_FILES = 20
"""The number of manifests of one kind that are read."""
_MANIFESTS = (
    "pyproject.toml",
    "requirements.txt",
    "Pipfile",
    "Cargo.toml",
    "go.mod",
    "Gemfile",
    "composer.json",
    "pom.xml",
    "build.gradle*",
    "platformio.ini",
    "pubspec.yaml",
    "mix.exs",
    "Package.swift",
    "requirements/*.txt",
    "*.csproj",
    "src/*/*.csproj",
)


def dependencies(root: Path) -> tuple[str, ...]:
    """Returns the words in the project's manifests that may name a dependency, as `tech` does.

    Those that `stack_of` knows are left out: it decides on them.
    """
    paths = (path for pattern in _MANIFESTS for path in sorted(root.glob(pattern))[:_MOST_FILES])
    texts = "\n".join(map(_start_of, paths))
    names = [*compiled(_DEPENDENCY).findall(texts), *_packages(_start_of(root / "package.json"))]
    names += [part for name in names if name[0] == "@" for part in name[1:].split("/")]
    return tuple(dict.fromkeys(name for name in map(tech, names) if name not in DETECTED))


def _packages(text: str) -> set[str]:
    """Returns the dependencies in a `package.json`; none if it can't be read."""
    package = loads_or_none(text)
    fields = package if isinstance(package, dict) else {}
    parts = (fields.get(key) for key in ("dependencies", "devDependencies"))
    return {name for part in parts if isinstance(part, dict) for name in part}


def _start_of(path: Path) -> str:
    """Returns the start of a file's text; empty if there is none."""
    try:
        return disk.start(path, _MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
