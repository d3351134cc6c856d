"""What came from somebody else and nobody here has approved: a first look."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from mimo.domain.memory import Record
from mimo.errors import MindError
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import overview
from mimo.store import touches
from mimo.store.repository import Repository

NEWEST = 5


@frozen
class Arrivals:
    """What nobody here has approved."""

    records: tuple[Record, ...]
    """Newest first."""
    authors: Mapping[str, int]
    """Who last committed how many of the files, the most first."""
    procedures: tuple[str, ...]
    """Names of all that could be run once it is approved."""
    policy: bool
    """Whether a policy came along, which can only narrow what is permitted."""
    yours: int
    """How many files the history attributes to the user's own address, which proves nothing."""

    @property
    def files(self) -> int:
        """Returns how many files hold them."""
        return len({record.place.path for record in self.records})

    @property
    def by_type(self) -> dict[str, int]:
        """Returns how many there are of each type, the most first."""
        return dict(Counter(record.memory.type.value for record in self.records).most_common())

    @property
    def newest(self) -> Sequence[Record]:
        """Returns those to look at first."""
        return self.records[:NEWEST]


def arrivals(mind: Mind) -> Arrivals | None:
    """Returns what nobody here has approved; None where there is nothing."""
    known, trusted = overview.everything(mind), mind.trust.checker()
    records = tuple(one for one in known if not trusted(one.place.digest))
    procedures = tuple(name for name, path in _procedures(mind.folder) if _is_new(mind, path))
    if not records and not procedures:
        return None
    policy = mind.folder / "policy.yaml"
    return Arrivals(
        records=records,
        authors=_authors(mind, {record.place.path for record in records}),
        procedures=procedures,
        policy=policy.is_file() and _is_new(mind, policy),
        yours=len({one.place.digest for one in records} & mind.trust.by_own_address()),
    )


def _authors(mind: Mind, paths: set[str]) -> dict[str, int]:
    repository = Repository(mind.project.root)
    try:
        last = touches.last_touches(repository) if repository.is_there() else {}
    except MindError:
        return {}
    found = Counter(last[path].author for path in paths if path in last)
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _procedures(folder: Path) -> list[tuple[str, Path]]:
    return [(path.stem, path) for path in sorted((folder / "procedures").glob("*.md"))]


def _is_new(mind: Mind, path: Path) -> bool:
    relative = path.relative_to(mind.project.root).as_posix()
    return not mind.trust.approved(mind.store.digest(relative))
