"""A sample of `make damage`: damaged files of the index, and the answers afterwards."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bench.damage.damages import CLOSED, PAGE, damaged, points
from tests.bench.torture.figures import version

RUN = """
import json, random, sys
from pathlib import Path
from tests.bench.damage import store
from tests.bench.damage.damages import CACHED, CLOSED, LENGTHS, LIVE, OPEN, STALE, points
from tests.bench.damage.examination import Examination

examination = Examination(Path(sys.argv[1]))
every = list(points(examination.states, examination.earlier))
results = {}
draw = random.Random(7)
mapped = [p for p in every if p.state == LIVE and p.name[-5:] == ".rows" and p.kind in LENGTHS]
past = [point for point in every if point.name.startswith("past/")]
cached = [point for point in every if point.state == CACHED]
lost = next(p for p in every if p.state == CLOSED and p.name == "meanings.db" and p.kind == "empty")
for point in (lost, draw.choice(every), *map(draw.choice, (mapped, past, cached))):
    results[repr(point)] = examination.try_(point).failures
stale = [point for point in every if point.name == "index.db" and point.kind == STALE]
seen, blind = [], []
for point in [point for point in stale if point.state in (CLOSED, OPEN)][10:12]:
    seen += examination.try_(point).failures
    blind += examination.try_(point, blind=True).failures

opened = next(point for point in stale if point.state == OPEN)
examination._put_back_for(opened)
examination._damage(opened)
before = examination._files()
examination._is_detected(opened)
stays_open = before == examination._files()

ask, misled = store.ask, []

def misleading(scratch, questions):
    ((name, answer),) = ask(scratch, questions).items()
    if "kettle" in answer and not misled:
        misled.append(name)
        answer = answer.replace("kettle", "pot")
    return {name: answer}

store.ask = misleading
healed = examination.try_(lost).failures
store.ask = ask

from mimo.features.edges import storage

class Same(bytes):
    __hash__ = None
    def __eq__(self, other):
        return True

def damage(point):
    path = examination.scratch.tree / point.file
    path.write_bytes(path.read_bytes().replace(b"charged twice", b"charged again"))

edges = next(point for point in every if point.name == "edges.json" and point.state == LIVE)
examination._damage = damage
seen += examination.try_(edges).failures
storage._head = Same
unchecked = examination.try_(edges).failures
print(json.dumps([results, seen, blind, stays_open, healed, unchecked]))
"""


@pytest.mark.attack("damaged index stops or misleads a search")
def test_damage_misleads_no_answer_and_would_be_noticed(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Damage misleads no answer, and an examination notices answers that mislead.

    Without the checksums of pages, an earlier version of some pages misleads; without that of the
    cache of pitfalls, its damage does. One wrong answer is noticed, also if later ones are right.
    """
    environ = {name: value for name, value in os.environ.items() if "COVERAGE" not in name}
    command = [sys.executable, "-X", "utf8", "-c", RUN, str(tmp_path)]
    top = Path(__file__).parents[2]
    run = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        cwd=top,
        env={**environ, "MIND_BACKGROUND": "off"},
    )
    assert run.returncode == 0, run.stderr
    results, seen, blind, stays_open, healed, unchecked = json.loads(run.stdout)
    assert {point: failures for point, failures in results.items() if failures} == {}
    assert seen == []
    assert any("instead of" in failure for failure in blind)
    assert stays_open
    assert any("pot" in failure for failure in healed)
    assert any("charged again" in failure for failure in unchecked)
    record_property("tried", len(results) + 2)


@pytest.mark.parametrize(
    ("data", "places"),
    [
        (b"a" * PAGE, []),
        (b"a" * PAGE + b"b" * 100, []),
        (b"a" * 2 * PAGE + b"b" * 100, []),
        (b"a" * PAGE + b"b" * PAGE + b"c" * 100, [0, 1]),
    ],
)
def test_only_pages_that_differ_are_swapped(data: bytes, places: list[int]) -> None:
    swapped = [
        point for point in points({CLOSED: {"index.db": data}}, {}) if point.kind == "pages swapped"
    ]
    assert [point.at for point in swapped] == places
    assert all(damaged(point, data, {}) != data for point in swapped)


@pytest.mark.parametrize(
    "changed",
    [
        "mimo/mind.py",
        "mimo/starter/edge.md",
        "tests/bench/stores.py",
        "tests/bench/torture/scratch.py",
        "tests/sample_procedures.py",
        "tests/mama_databases.py",
    ],
)
def test_points_tried_by_other_code_are_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    for name in ("tests/sample_procedures.py", "tests/mama_databases.py", changed):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    before = version()
    assert version() == before
    (tmp_path / changed).write_text("changed")
    assert version() != before
