"""`mind events`: the log as text and as JSON."""

import json
from collections.abc import Iterator

import pytest

from mimo.call import Call
from mimo.cli.main import main
from mimo.surroundings import Timer


@pytest.fixture
def written(call: Call) -> Call:
    """A memory whose log has two kinds of events."""
    call.mind.tell("mimo.procedure.start", {"count": 1}, name="ship", version="1.0")
    call.mind.tell(
        "mimo.ingest.file", {"chunks": 3, "file_size": 120}, path="docs/a b.md", why=None
    )
    call.mind.tell("mimo.procedure.complete", {"duration_ms": 5}, name="ship", status="completed")
    return call


def run(call: Call, *argv: str) -> int:
    return main(list(argv), open=lambda _: call.mind)


def test_an_empty_log_is_reported(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(call, "events") == 0
    assert capsys.readouterr().out == (
        "no events yet; changes of memories, `mind ingest` and procedures write them\n"
    )


def test_control_characters_of_an_event_are_escaped(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    call.mind.tell("mimo.test", {}, said="\x1b[2Jgone\nmimo.forged")

    assert run(call, "events") == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert len(out.splitlines()) == 1


@pytest.mark.parametrize("as_json", [False, True])
def test_following_continues_until_it_is_interrupted(
    written: Call, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    def later() -> Iterator[None]:
        written.mind.tell("mimo.ingest.other", {"count": 4})
        yield
        written.mind.tell("mimo.procedure.start", {"count": 5}, name="more")
        yield

    coming = later()

    def sleep(_: float) -> None:
        if next(coming, "over") == "over":
            raise KeyboardInterrupt

    written.mind.timer = Timer(sleep=sleep)
    json_ = ["--json"] if as_json else []
    assert run(written, "events", "mimo.procedure", "--follow", "--limit", "1", *json_) == 130

    lines = capsys.readouterr().out.splitlines()
    if as_json:
        assert [json.loads(line)["metadata"]["name"] for line in lines] == ["ship", "more"]
    else:
        assert [line.partition("name=")[2].split("  ")[0] for line in lines] == ["ship", "more"]
