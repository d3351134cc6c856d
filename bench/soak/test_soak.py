"""The short form of the long runs, and the faults that they must notice."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.soak import daemon, mix, runs, server
from bench.soak.mix import Requests
from bench.soak.process import Cost, Usage, usage
from bench.soak.runs import NOT_JUDGED, Part
from bench.stores import MIND, run
from bench.stores import project as made

PART = Part(
    counts=(1_000,),
    p50=100.0,
    p95=150.0,
    cpu=10.0,
    cost=Cost(resident_kb=90_000, cpu_seconds=10.0, threads=10, descriptors=50, children=0),
    usage=Usage(of_index=7_000_000, vectors=3_000_000, ahead=4_700_000, logs=10_000, rest=600_000),
)


linux = pytest.mark.skipif(sys.platform != "linux", reason="figures of processes are from /proc")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the runs."""
    monkeypatch.setattr(daemon, "PARTS", 2)
    monkeypatch.setattr(daemon, "WAIT_SECONDS", 3.0)
    monkeypatch.setattr(daemon, "END_SECONDS", 1.0)


@linux
@pytest.mark.usefixtures("short")
def test_the_daemon_indexes_each_burst(tmp_path: Path) -> None:
    soak = daemon.Soak(tmp_path, projects=2)
    soak.run(20, minutes=5, fills=False)
    assert soak.failures == []
    assert len(soak.parts) == 2
    for part in soak.parts:
        bursts, _, commits = part.counts
        assert commits >= bursts == 10


@linux
@pytest.mark.usefixtures("short")
def test_a_stopped_daemon_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bursts = 0
    change = daemon.Project.burst

    def burst(project: daemon.Project) -> int:
        nonlocal bursts
        bursts += 1
        if bursts == 5:
            pid = json.loads((tmp_path / "home" / "daemon.json").read_text())["pid"]
            os.kill(pid, signal.SIGSTOP)
        return change(project)

    monkeypatch.setattr(daemon.Project, "burst", burst)
    soak = daemon.Soak(tmp_path, projects=1)
    soak.run(40, minutes=5, fills=False)
    assert "was not indexed in time" in soak.failures[0]
    assert "status -9" in soak.failures[1]


@linux
@pytest.mark.usefixtures("short")
def test_a_daemon_that_does_not_see_changes_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "true")
    monkeypatch.setenv("WATCHFILES_POLL_DELAY_MS", "3600000")
    soak = daemon.Soak(tmp_path, projects=1)
    soak.run(40, minutes=5)
    assert "`fact_filling.md` was not indexed in time" in soak.failures[0]


@pytest.fixture
def short_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the runs of the servers."""
    monkeypatch.setattr(server, "PARTS", 2)
    monkeypatch.setattr(server, "fill", lambda *_: 10_000_000)
    monkeypatch.setattr(mix, "_OF_EACH", 1)
    monkeypatch.setattr(mix, "_OF_LARGE", 1)


@linux
@pytest.mark.usefixtures("short_servers")
@pytest.mark.parametrize("kind", ["stdio", "http"])
def test_a_server_answers_all_requests(tmp_path: Path, kind: str) -> None:
    run = server.soak(kind, tmp_path, 80, minutes=5)
    assert run.failures == []
    assert [result for _, result in run.outcomes if "unexpected" in result] == []
    assert [part.counts for part in run.parts] == [(40,), (40,)]


@linux
@pytest.mark.usefixtures("short_servers")
@pytest.mark.parametrize("kind", ["stdio", "http"])
def test_a_crash_of_a_server_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    part, once = server.Run.part, Requests.once

    def noted(run: server.Run, *arguments: Any) -> bool:
        def killing(own: Requests) -> Any:
            if own.number > 50:
                run.process.kill()
                run.process.wait()
            return once(own)

        monkeypatch.setattr(Requests, "once", killing)
        return part(run, *arguments)

    monkeypatch.setattr(server.Run, "part", noted)
    run = server.soak(kind, tmp_path, 2_000, minutes=5)
    assert "a client failed" in run.faults()[0]
    assert "it ended by itself, with status -9" in run.faults()


def test_only_complete_runs_are_judged() -> None:
    assert runs.verdict([], parts=10, of=10) == "Nothing grew."
    assert runs.verdict([], parts=7, of=10) == "Nothing grew in 7 of 10 parts."
    assert runs.verdict([], parts=1, of=10) == NOT_JUDGED
    assert runs.verdict(["a crash"], parts=1, of=10) == "Grew or failed: a crash"


def test_differences_of_the_index_are_noticed(tmp_path: Path) -> None:
    environ = os.environ | {"MIND_HOME": str(tmp_path / "home")}
    root = made(tmp_path / "shop", environ, 3)
    run([*MIND, "index"], root, environ)
    project = daemon.Project(root, seed=1)
    project.open()
    assert project.differences() == []
    facts = root / ".mind" / "facts"
    (facts / "fact_note_0.md").unlink()
    (facts / "fact_note_1.md").write_text("changed", encoding="utf-8")
    (facts / "fact_note_9.md").write_text("new", encoding="utf-8")
    assert project.differences() == ["fact_note_0.md", "fact_note_1.md", "fact_note_9.md"]
    project.close()


def test_nothing_grew() -> None:
    assert runs.growth([PART, PART], vectors=3_000_000) == []


@pytest.mark.parametrize(
    ("last", "fault"),
    [
        (PART._replace(p50=201.0), "p50 grew"),
        (PART._replace(p95=301.0), "p95 grew"),
        (PART._replace(cpu=13.0), "CPU grew"),
        (PART._replace(cost=PART.cost._replace(resident_kb=100_000)), "resident grew"),
        (PART._replace(cost=PART.cost._replace(threads=15)), "threads grew"),
        (PART._replace(cost=PART.cost._replace(descriptors=55)), "descriptors grew"),
        (PART._replace(usage=PART.usage._replace(of_index=8_000_000)), "index grew"),
        (PART._replace(usage=PART.usage._replace(rest=800_000)), "files grew"),
        (PART._replace(usage=PART.usage._replace(vectors=3_400_000)), "vectors have"),
        (PART._replace(usage=PART.usage._replace(ahead=9_000_000)), "ahead have"),
        (PART._replace(usage=PART.usage._replace(logs=121_000_000)), "logs have"),
    ],
)
def test_growth_is_noticed(last: Part, fault: str) -> None:
    (message,) = runs.growth([PART, last], vectors=3_000_000)
    assert fault in message


def test_usage_separates_the_files_of_the_index(tmp_path: Path) -> None:
    sizes = {
        "shop/.mind/.index/index-v17.db": 11,
        "shop/.mind/.index/index-v17.db-wal": 200,
        "shop/.mind/.index/vectors.db": 3_000,
        "shop/.mind/.index/vectors-12.rows": 4_000,
        "shop/.mind/.index/vectors.db-wal": 100,
        "home/audit/audit.jsonl": 30_000,
        "home/logs/daemon.log": 20_000,
        "shop/.mind/facts/a.md": 600_000,
    }
    for name, size in sizes.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(bytes(size))
    assert usage(tmp_path) == Usage(11, vectors=7_000, ahead=200, logs=50_000, rest=600_000)


def growing(file: Path, most: int) -> Callable[[str], None]:
    """Returns a function that adds a byte for each text, and starts again at the most."""

    def index(_: str) -> None:
        size = file.stat().st_size if file.exists() else 0
        file.write_bytes(bytes(size + 1 if size < most else 1))

    return index


def test_vectors_are_filled_until_some_are_removed(tmp_path: Path) -> None:
    file = tmp_path / ".index" / "vectors.db"
    file.parent.mkdir()
    assert runs.fill(tmp_path, growing(file, most=9)) == 9


def test_vectors_that_pile_up_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_TEXTS", 5)
    file = tmp_path / ".index" / "vectors.db"
    file.parent.mkdir()
    with pytest.raises(SystemExit, match="after 5 texts, no vectors"):
        runs.fill(tmp_path, growing(file, most=9))
