"""The approvals of versions up to 1.1, which had lists of digests for each project.

`$MIND_HOME/trust/` has a folder for each project, named by its key:

`approved`   digests of approved texts, one on each line; an interrupted write leaves a torn line
`approved-…` the earlier ones, sorted, if the first line of `approved` names this file
`reviewed`, `committed`, `signed`, `followed`   the digests of the texts with these states
`state.json` whether later changes are followed; missing if the user ended all approvals
`git.json`   the last answers of git
`made`       the checkpoints that were saved here, each with its branch
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from mimo import disk
from mimo.data.loads import loads
from mimo.frozen import NamedTuple
from mimo.text.clean import compiled

_NAMES_LIST = f"{'0' * 24}{b'list'.hex()}"
"""The start of the first line of `approved` if it names a sorted list by 32 random digits."""
_MOST_BYTES = 1_000_000_000


class EarlierProject(NamedTuple):
    """The approvals of a project."""

    key: str
    checkpoints: Mapping[str, str | None] = {}
    """The branch of each checkpoint, if it is known."""
    texts: Mapping[str, set[str]] = {}
    """The digests of the texts with each state."""
    follow: bool | None = None
    """True if later changes are followed; None if the user ended all approvals."""
    answers: str | None = None
    """The last answers of git, as JSON; None outside git."""
    folder: str = ""


def read_all(folder: Path) -> Iterator[EarlierProject]:
    """Yields the approvals of each project; those of damaged lists are left out.

    Raises `OSError` if a file can't be read.
    """
    for path in sorted(folder.glob("[0-9a-f]" * 64)):
        project = EarlierProject(path.name, _checkpoints(path))
        with suppress(ValueError, TypeError, KeyError):  # Its texts are in the review again.
            project = _with_texts(project, path)
        yield project


def _checkpoints(folder: Path) -> dict[str, str | None]:
    lines = (_content(folder / "made") or b"").decode("utf-8", "replace").split("\n")[:-1]
    parts = (line.partition("\t") for line in lines)
    return {id: branch or None for id, tab, branch in parts if tab}


def _with_texts(project: EarlierProject, folder: Path) -> EarlierProject:
    """Returns a project with its texts. Raises `ValueError`, `TypeError` and `KeyError`."""
    if (data := _content(folder / "state.json")) is None:
        return project
    state, answers = loads(data), _content(folder / "git.json")
    follow, in_git = state["follow"], state["git"]
    if not isinstance(follow, bool) or state.get("format", 1) != 1:
        raise ValueError(folder)
    if in_git and answers is None:  # Every commit would count as new.
        raise ValueError(folder)
    names = ("reviewed", "committed", "signed", "followed")
    texts = {name: _lines(folder / name) for name in names}
    approved = _lines(folder / "approved")
    for name in [line for line in approved if line.startswith(_NAMES_LIST)]:
        approved.remove(name)
        approved |= _lines(folder / f"approved-{name.removeprefix(_NAMES_LIST)}", is_optional=False)
    texts |= {"approved": approved, "reviewed": texts["reviewed"] & approved}
    return project._replace(
        texts=texts,
        follow=follow,
        answers=answers.decode() if in_git and answers else None,
        folder=str(state["path"]),
    )


def _lines(path: Path, *, is_optional: bool = True) -> set[str]:
    """Returns the digests in a list. Raises `ValueError` if a whole line is not a digest."""
    data = _content(path)
    if data is None and not is_optional:
        raise ValueError(path)
    lines = (data or b"").decode("ascii").split("\n")[:-1]
    if not all(map(compiled("[0-9a-f]{64}").fullmatch, lines)):
        raise ValueError(path)
    return set(lines)


def _content(path: Path) -> bytes | None:
    """Returns the content of a file; None if it is missing. Raises `OSError`."""
    try:
        return disk.read(path, limit=_MOST_BYTES)
    except FileNotFoundError:
        return None
