"""A sample of `make damage`: damaged files of the index, and the answers afterwards."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

RUN = """
import json, random, sys
from pathlib import Path
from tests.bench.damage.damages import CACHED, CLOSED, LENGTHS, LIVE, OPEN, STALE, points
from tests.bench.damage.examination import Examination

examination = Examination(Path(sys.argv[1]))
every = list(points(examination.states, examination.earlier))
results = {}
draw = random.Random(7)
mapped = [p for p in every if p.state == LIVE and p.name[-5:] == ".rows" and p.kind in LENGTHS]
past = [point for point in every if point.name.startswith("past/")]
cached = [point for point in every if point.state == CACHED]
for point in (*draw.sample(every, 4), *map(draw.choice, (mapped, past, cached))):
    results[repr(point)] = examination.try_(point).failures
stale = [point for point in every if point.name == "index.db" and point.kind == STALE]
seen, blind = [], []
for point in [point for point in stale if point.state in (CLOSED, OPEN)][10:12]:
    seen += examination.try_(point).failures
    blind += examination.try_(point, blind=True).failures
print(json.dumps([results, seen, blind]))
"""


@pytest.mark.attack("damaged index stops or misleads a search")
def test_damage_misleads_no_answer_and_would_be_noticed(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Without the checksums of pages, an earlier version of some pages misleads."""
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
    results, seen, blind = json.loads(run.stdout)
    assert {point: failures for point, failures in results.items() if failures} == {}
    assert seen == []
    assert any("instead of" in failure for failure in blind)
    record_property("tried", len(results) + 2)
