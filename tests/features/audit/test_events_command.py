"""`mind events`: the log as text and as JSON."""

import json
from collections.abc import Iterator

import pytest

from mimo.cli.main import main
from mimo.mind import Mind
from mimo.surroundings import Timer


@pytest.fixture
def written(mind: Mind) -> Mind:
    """A memory whose log has two kinds of events."""
    mind.tell("mimo.procedure.start", {"count": 1}, name="ship", version="1.0")
    mind.tell("mimo.ingest.file", {"chunks": 3, "file_size": 120}, path="docs/a b.md", why=None)
    mind.tell("mimo.procedure.complete", {"duration_ms": 5}, name="ship", status="completed")
    return mind


def run(mind: Mind, *argv: str) -> int:
    return main(list(argv), open=lambda _: mind)


@pytest.mark.req("000-27")
def test_events_are_shown_oldest_first(written: Mind, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(written, "events") == 0

    assert capsys.readouterr().out.splitlines() == [
        "2026-11-20 15:30:00  mimo.procedure.start  count=1  name=ship  version=1.0",
        "2026-11-20 15:30:00  mimo.ingest.file  chunks=3  file_size=120  path=docs/a b.md",
        "2026-11-20 15:30:00  mimo.procedure.complete  duration_ms=5  name=ship  status=completed",
    ]


def test_events_are_filtered_by_the_start_of_their_name(
    written: Mind, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(written, "events", "mimo.procedure", "--limit", "1", "--json") == 0

    (only,) = json.loads(capsys.readouterr().out)["events"]
    assert only == {
        "name": "mimo.procedure.complete",
        "time": "2026-11-20T15:30:00Z",
        "measurements": {"duration_ms": 5},
        "metadata": {"name": "ship", "status": "completed"},
    }


def test_an_empty_log_is_reported(mind: Mind, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(mind, "events") == 0
    assert capsys.readouterr().out == (
        "no events yet; changes of memories, `mind ingest` and procedures write them\n"
    )


def test_control_characters_of_an_event_are_escaped(
    mind: Mind, capsys: pytest.CaptureFixture[str]
) -> None:
    mind.tell("mimo.test", {}, said="\x1b[2Jgone\nmimo.forged")

    assert run(mind, "events") == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert len(out.splitlines()) == 1


@pytest.mark.parametrize("as_json", [False, True])
def test_following_continues_until_it_is_interrupted(
    written: Mind, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    def later() -> Iterator[None]:
        written.tell("mimo.ingest.other", {"count": 4})
        yield
        written.tell("mimo.procedure.start", {"count": 5}, name="more")
        yield

    coming = later()

    def sleep(_: float) -> None:
        if next(coming, "over") == "over":
            raise KeyboardInterrupt

    written.timer = Timer(sleep=sleep)
    json_ = ["--json"] if as_json else []
    assert run(written, "events", "mimo.procedure", "--follow", "--limit", "1", *json_) == 130

    lines = capsys.readouterr().out.splitlines()
    if as_json:
        assert [json.loads(line)["metadata"]["name"] for line in lines] == ["ship", "more"]
    else:
        assert [line.partition("name=")[2].split("  ")[0] for line in lines] == ["ship", "more"]
