"""An ingested file that changed or vanished is not answered as current."""

from pathlib import Path

import pytest

from mimo.call import Call, Caller, Surface
from mimo.features import ingest
from mimo.features.daemon.process import Loop
from mimo.mind import Mind
from mimo.operations import freshness, overview
from mimo.operations.freshness import State
from mimo.server import resources
from tests.kit import do, from_shell


@pytest.fixture
def guide(call: Call, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ingested file."""
    path = call.mind.project.root / "guide.md"
    path.write_text("# Deploying\n\nRun make deploy on Fridays.\n", "utf-8")
    monkeypatch.chdir(call.mind.project.root)
    do(call, "ingest", path="guide.md", tags=["howto"])
    return path


def listed(call: Call) -> Path:
    """Returns the list of the files that were ingested."""
    (path,) = (call.mind.folder / ".local").glob("ingested-*.json")
    return path


def states(call: Call) -> list[State]:
    return [check.state for check in freshness.checked(call, overview.everything(call))]


def answered(call: Call) -> str | None:
    return do(call, "search", query="make deploy").results[0].stale  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def _unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mimo.project.watch.changes", lambda *_, **__: iter(()))


@pytest.mark.attack("local state planted by a clone")
def test_a_planted_list_is_no_list(call: Call, guide: Path) -> None:
    rows = '{"guide.md": [Infinity, 1, "x"]}'
    listed(call).write_text(rows, "utf-8")
    assert states(call) == [State.CURRENT]


@pytest.mark.attack("local state planted by a clone")
@pytest.mark.parametrize("name", ["ingested.json", f"ingested-{'0' * 12}.json"])
def test_files_of_a_planted_list_are_not_ingested(call: Call, guide: Path, name: str) -> None:
    """The author of a clone knows the chunks, but not the user's file of that name."""
    own = listed(call)
    own.rename(own.with_name(name))
    guide.write_text("The plan that is not shared\n", "utf-8")
    assert ingest.update_changed(call) is None


def test_an_unchanged_file_is_not_read_again(
    call: Call, guide: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> bytes:
        raise AssertionError

    monkeypatch.setattr("mimo.project.sandbox.Sandbox.read", read)
    assert answered(call) is None


@pytest.mark.attack("cloned source reads outside the project")
@pytest.mark.attack("path out of the sandbox")
def test_a_cloned_source_can_not_ask_for_files_outside(call: Call, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("A password, perhaps.\n", "utf-8")
    do(call, "ingest", path=str(secret))
    assert states(call) == [State.CURRENT]
    secret.write_text("Another one.\n", "utf-8")
    assert states(call) == [State.CHANGED]
    call = from_shell(call, "claude-code")
    assert states(call) == [State.UNKNOWN]
    call = from_shell(call, None)
    listed(call).unlink()
    assert states(call) == [State.UNKNOWN]


@pytest.mark.attack("path out of the sandbox")
def test_with_a_sandbox_no_file_outside_is_read(call: Call, guide: Path) -> None:
    guide.write_text("Changed.\n" * 3, "utf-8")
    call.mind.environ = {"SANDBOX_DIR": str(call.mind.project.root / "docs")}
    assert states(call) == [State.UNKNOWN]


def test_the_daemon_ingests_changes_again_and_approves_nothing(call: Call, guide: Path) -> None:
    call.mind.trust.follow(follow=False)
    loop = Loop(Mind(home=call.mind.home, project=None, clock=call.mind.clock, environ={}))
    loop.update_projects()
    loop.check()
    assert [row.command for row in do(call, "undo", list=True).changes] == ["ingest"]
    guide.write_text("# Deploying\n\nNever run make deploy by hand.\n", "utf-8")
    loop.check()
    loop.end()
    loop.run()

    assert states(call) == [State.CURRENT]
    (record,) = overview.everything(call)
    assert "by hand" in record.memory.content
    assert not call.mind.trust.trusted(record.place.approval)
    do(call, "undo")
    assert states(call) == [State.CHANGED]


def test_a_stale_resource_has_a_warning(call: Call, guide: Path) -> None:
    guide.write_text("# Deploying\n\nNever run make deploy by hand.\n", "utf-8")
    uri = f"mind://memory/{overview.everything(call)[0].memory.id}"
    text = resources.read(call.by(Caller(surface=Surface.MCP, name="claude-code")), uri).text
    assert text.startswith("<!-- stale: `guide.md` changed after it was ingested")
