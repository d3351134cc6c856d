"""The log of the hooks: a line each, and never too much of it."""

from datetime import UTC, datetime
from pathlib import Path

from mimo.features.hooks import scene

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)


def test_each_thing_is_one_line(tmp_path: Path) -> None:
    scene.note(tmp_path, NOW, "failed:\nfor\ta reason " + "x" * 1000)
    scene.note(tmp_path, NOW, "again")

    first, second = scene.path_of(tmp_path).read_text(encoding="utf-8").splitlines()
    assert first.startswith("2026-11-20T15:30:00Z failed: for a reason xxx")
    assert len(first) < 450
    assert second == "2026-11-20T15:30:00Z again"


def test_the_oldest_lines_go_when_it_grows(tmp_path: Path) -> None:
    path = scene.path_of(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"old line\n" * 40_000)
    scene.note(tmp_path, NOW, "new")

    lines = path.read_text(encoding="utf-8").splitlines()
    assert path.stat().st_size <= scene.MOST_BYTES
    assert (lines[0], lines[-1]) == ("old line", "2026-11-20T15:30:00Z new")


def test_where_it_can_t_be_written_nothing_fails(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file", encoding="utf-8")
    scene.note(tmp_path, NOW, "lost")

    assert (tmp_path / "logs").read_text(encoding="utf-8") == "a file"
