"""After any change to any file of `.mind/.index/`, the next answers are those of a fresh index.

If SQLite reports the damage, they are so wholly. A bit that changes in a row that is not shown, and
that SQLite does not notice, may change the order of an answer, or leave a memory out; but what an
answer shows of a memory is always what is in its file.

`DAMAGES=1000 pytest tests/properties/test_damage.py -s` tries more, and prints what happened.
"""

import os
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.data.files import safe_name
from mimo.errors import MindError
from mimo.features.notes.reading import list_, show
from mimo.features.search.commands import search
from mimo.features.search.recall import recall_memory
from mimo.index.catalog import open_catalog
from mimo.index.embedding.encoder import Encoder
from mimo.memory.model import Filter, Problem, Record
from mimo.operations import refresh
from mimo.project import projects

TRIALS = int(os.environ.get("DAMAGES", "60"))
AT_ONCE = 20
PAGE = 4096

QUERIES = ("limits of the interface", "who decides about tea", "rare words", "cold beverage")
WORDS = ("tea", "limit", "interface", "decision", "word")

Damage = Callable[[Path, random.Random], object]

_vectors: dict[str, bytes] = {}


@pytest.fixture(autouse=True)
def _texts_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The storage is the subject here; encoding the same texts again would only cost time."""
    encode_many = Encoder.encode_many

    def remembered(self: Encoder, texts: Sequence[str]) -> list[bytes]:
        new = [text for text in dict.fromkeys(texts) if text not in _vectors]
        _vectors.update(zip(new, encode_many(self, new), strict=True))
        return [_vectors[text] for text in texts]

    monkeypatch.setattr(Encoder, "encode_many", remembered)


def write(call: Call, numbers: Sequence[int], ending: str = "") -> None:
    for number in numbers:
        text = f"Memory {number} says the {WORDS[number % 5]} of team {number * 7 % 13}{ending}\n"
        (call.mind.folder / "facts" / f"n{number}.md").write_text(text)


class World:
    """A project with 37 memories, and copies of its index: closed, left open, and earlier.

    A search makes the encoder's vectors of so few short texts at once, if they are lost.
    """

    def __init__(self, call: Call, aside: Path) -> None:
        self.call, self.index, self._aside = call, call.mind.folder / ".index", aside
        (call.mind.folder / "facts").mkdir(exist_ok=True)
        (call.mind.folder / "MEMORY.md").write_text("## Gotchas\n- Tea stains the interface\n")
        write(call, range(30))
        answers(call)
        call.mind.close()
        self._save("earlier")
        write(call, range(25, 36), " of the year")
        call = Call(call.mind.reopened())
        answers(call)
        self._save("left open")
        call.mind.close()
        self._save("closed")
        self.expected = answers(Call(call.mind.reopened()))
        self.records = records(call)

    def _save(self, name: str) -> None:
        shutil.copytree(self.index, self._aside / name)

    def restore(self, name: str) -> None:
        shutil.rmtree(self.index)
        shutil.copytree(self._aside / name, self.index)

    def files(self) -> list[Path]:
        return sorted(path for path in self.index.rglob("*") if path.is_file())

    def earlier(self, path: Path) -> Path:
        return self._aside / "earlier" / path.relative_to(self.index)


def answers(call: Call) -> list[object]:
    """Returns the answers of a process that is opened now."""
    call = Call(call.mind.reopened())
    try:
        matches: list[object] = [search(call, query).results for query in QUERIES]
        recalled = recall_memory(call, QUERIES[0])
        counted = call.mind.index.count(Filter())
        return [*matches, recalled, list_(call).memories, details(call), counted]
    finally:
        call.mind.close()


def details(call: Call) -> object:
    """Returns a memory with its links; the error if it is left out."""
    try:
        return show(call, id="n3")
    except MindError as error:
        return error.code


def records(call: Call) -> dict[str, Record]:
    """Returns the memories by id, as they are in their files."""
    every: dict[str, Record] = {}
    for path in call.mind.store.stamps():
        parsed = call.mind.store.read(path)
        assert not isinstance(parsed, Problem)
        every |= {record.memory.id: record for record in parsed}
    return every


def shown(call: Call) -> Iterator[Record]:
    """Yields the memories that the answers of a process show."""
    from mimo.operations import finding, searching

    call = Call(call.mind.reopened())
    try:
        for query in QUERIES:
            yield from (
                hit.record for hit in searching.search(call, query, finding.EVERYTHING).hits
            )
        yield from finding.listing(call).records
    finally:
        call.mind.close()


def place(data: bytearray, chance: random.Random) -> int:
    return chance.randrange(len(data)) if data else 0


def changed(change: Callable[[bytearray, random.Random], object]) -> Damage:
    def damage(path: Path, chance: random.Random) -> None:
        data = bytearray(path.read_bytes())
        if data:
            change(data, chance)
        path.write_bytes(data)

    damage.__name__ = change.__name__
    return damage


def bit(data: bytearray, chance: random.Random) -> None:
    data[place(data, chance)] ^= 1 << chance.randrange(8)


def noise(data: bytearray, chance: random.Random) -> None:
    start = place(data, chance)
    data[start : start + 16] = chance.randbytes(len(data[start : start + 16]))


def page(data: bytearray, chance: random.Random) -> None:
    start = place(data, chance) // PAGE * PAGE
    some = len(data[start : start + PAGE])
    data[start : start + PAGE] = chance.choice([bytes(some), chance.randbytes(some)])


def pages_swapped(data: bytearray, chance: random.Random) -> None:
    start, end = sorted(place(data, chance) // PAGE * PAGE for _ in range(2))
    first, second = data[start : start + PAGE], data[end : end + PAGE]
    if len(first) == len(second):
        data[start : start + PAGE], data[end : end + PAGE] = second, first


def cut(data: bytearray, chance: random.Random) -> None:
    del data[place(data, chance) :]


def noise_everywhere(data: bytearray, chance: random.Random) -> None:
    data[:] = chance.randbytes(len(data))


def removed(path: Path, _: random.Random) -> None:
    path.unlink()


def folder(path: Path, _: random.Random) -> None:
    path.unlink()
    path.mkdir()
    (path / "file").touch()


def link(path: Path, chance: random.Random) -> None:
    target = path.rename(path.with_name(f"{path.name}.moved"))
    path.symlink_to(chance.choice([target, Path("/nowhere")]))


def swapped(path: Path, chance: random.Random) -> None:
    other = chance.choice(sorted(each for each in path.parent.iterdir() if each.is_file()))
    data = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(data)


ROWS = (
    "DROP TABLE words",
    "UPDATE memories SET content = 'Memory 0 says nothing' WHERE id = 'n0'",
    "UPDATE memories SET created = created + 1",
    "UPDATE memories SET rest = '{'",
    "DELETE FROM memories WHERE id > 'n2'",
)


def rows(path: Path, chance: random.Random) -> None:
    """Changes a database as SQLite does, and another file beside it by a bit."""
    if path.suffix != ".db" or not path.name.startswith("index-"):
        changed(bit)(path, chance)
        return
    with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as sql, sql:
        sql.execute(chance.choice(ROWS))


BYTES = [changed(change) for change in (bit, noise, page, pages_swapped, cut, noise_everywhere)]
DAMAGES: list[Damage] = [*BYTES, removed, folder, link, swapped, rows]


def damage(world: World, seed: int) -> str:
    """Damages a file, or several, and returns a description."""
    chance = random.Random(seed)
    state = chance.choice(["closed", "left open"])
    world.restore(state)
    done = []
    for path in chance.sample(world.files(), chance.choice([1, 1, 1, 2])):
        earlier = world.earlier(path)
        change = chance.choice([*DAMAGES, None] if earlier.exists() else DAMAGES)
        if path.is_symlink() or not path.exists():
            continue
        if change is None:
            shutil.copy(earlier, path)
        else:
            change(path, chance)
        done.append(f"{change.__name__ if change else 'earlier'} {path.name}")
    return f"{seed}: {state}, {', '.join(done)}"


@pytest.fixture
def world(call: Call, tmp_path: Path) -> World:
    return World(call, tmp_path / "aside")


@pytest.mark.attack("damaged index stops or misleads a search")
@pytest.mark.parametrize("first", range(0, TRIALS, AT_ONCE))
def test_answers_after_any_damage_are_those_of_a_fresh_index(
    world: World, first: int, record_property: Callable[[str, object], None]
) -> None:
    happened: Counter[str] = Counter()
    for seed in range(first, first + AT_ONCE):
        what = damage(world, seed)
        before = identity(world)
        if seed % 4 == 0:
            hook(world)
        if seed % 2:
            for record in shown(world.call):
                assert record == world.records[record.memory.id], what
        now = answers(world.call)
        is_equal = now == world.expected
        is_replaced = identity(world) != before
        # Of two damaged files, SQLite may report one alone.
        assert is_equal or not is_replaced or what.count(",") > 1, what
        happened["equal" if is_equal else f"other order: {what.partition(', ')[2]}"] += 1
        happened["made again" if is_replaced else "not noticed, or harmless"] += 1
        for record in shown(world.call):
            assert record == world.records[record.memory.id], what
        assert answers(world.call) == now, what
    record_property("tried", sum(happened.values()))
    print(*happened.items(), sep="\n")  # noqa: T201


def identity(world: World) -> tuple[Any, ...]:
    """Returns which files of databases there are."""
    with suppress(OSError):
        return tuple((p.name, os.lstat(p).st_ino) for p in sorted(world.index.glob("index*.db")))
    return ()


def hook(world: World) -> None:
    """Reads as hooks do: a note is that of its file, and nothing fails but with mind's errors."""
    owner = projects.known_owner(world.call.mind.home)
    assert owner
    with (
        suppress(MindError),
        open_catalog(world.index, owner, lambda _: True, world.call.mind.project.root) as catalog,
    ):
        for note in catalog.facts(5) if catalog else ():
            assert note.text == world.records[note.id].memory.content


def test_changed_file_is_read_again(world: World) -> None:

    path = safe_name(world.call.mind.project.root, ".mind/facts/n3.md")
    assert path
    call = Call(world.call.mind.reopened())
    refresh.refresh(call)
    record = call.mind.index.get("n3")
    assert record == world.records["n3"]
    (world.call.mind.folder / "facts" / "n3.md").write_text("Something else\n")
    assert refresh.reread(call, [record])
    again = call.mind.index.get("n3")
    assert again
    assert not refresh.reread(call, [again])
    call.mind.close()
