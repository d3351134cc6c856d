"""An ingested file that changed or vanished is not answered as current."""

import shutil
from pathlib import Path

import pytest

from mimo.call import Call, Caller, Surface
from mimo.call.table import all_commands
from mimo.errors import NotFound
from mimo.features import ingest, review
from mimo.features.daemon.process import Loop
from mimo.features.review import Waiting
from mimo.features.upkeep import checks
from mimo.mind import Mind
from mimo.operations import freshness, overview
from mimo.operations.freshness import State
from mimo.server import resources
from tests.kit import do, from_shell

COMMANDS = all_commands()


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


def test_a_current_file_has_no_warning(call: Call, guide: Path) -> None:
    assert answered(call) is None
    assert states(call) == [State.CURRENT]
    assert Waiting.OUTDATED not in review.count(call)
    assert [check.verdict for check in checks.examine(call) if check.name == "sources"] == ["ok"]


def test_a_changed_file_is_reported_everywhere(call: Call, guide: Path) -> None:
    guide.write_text("# Deploying\n\nNever run make deploy by hand.\n", "utf-8")

    assert answered(call) == (
        "`guide.md` changed after it was ingested: `mind ingest guide.md --update`"
    )
    row = do(call, "search recent").results[0]
    assert row.stale == answered(call) == do(call, "show", id=row.id).stale
    assert do(call, "list").memories[0].stale == row.stale
    assert do(call, "memory list").memories[0].stale == row.stale
    assert do(call, "memory search", query="make deploy").results[0].stale == row.stale
    note = row.stale.partition(": ")[0]
    assert f"(Out of date: {note}.)" in do(call, "recall", query="make deploy").summary
    assert do(call, "status").current_project.waiting == {"outdated": 1}
    (item,) = do(call, "review", kinds=["outdated"]).items
    assert (item.title, item.actions[0]) == ("guide.md", "mind ingest guide.md --update")
    assert [check.verdict for check in checks.examine(call) if check.name == "sources"] == [
        "warning"
    ]


def test_update_ingests_what_changed_as_it_was_before(call: Call, guide: Path) -> None:
    guide.write_text("# Deploying\n\nNever run make deploy by hand.\n", "utf-8")
    (updated,) = do(call, "ingest", path=".", update=True).files

    assert (updated.path, updated.replaced, updated.skipped) == ("guide.md", 1, None)
    assert answered(call) is None
    results = do(call, "search", query="make deploy").results[0]
    assert ("by hand" in results.content, results.tags) == (True, ("howto",))
    (again,) = do(call, "ingest", path="guide.md", update=True).files
    assert again.already_ingested
    with pytest.raises(NotFound, match="no ingested file"):
        do(call, "ingest", path="other.md", update=True)


def test_a_missing_file_is_reported_with_the_remedy(call: Call, guide: Path) -> None:
    guide.unlink()
    source = overview.everything(call)[0].parent
    assert answered(call) == f"`guide.md` no longer exists: `mind rm {source}`"
    (item,) = do(call, "review", kinds=["outdated"]).items
    assert item.actions == (f"mind rm {source}", f"mind review keep {source} --kind outdated")
    (row,) = do(call, "ingest", path=".", update=True).files
    assert row.skipped == "`guide.md` no longer exists"
    assert states(call) == [State.MISSING]
    do(call, "rm", id=source)
    assert states(call) == []


def test_in_a_clone_a_file_that_was_never_here_is_unknown(call: Call, guide: Path) -> None:
    listed(call).unlink()
    assert states(call) == [State.CURRENT]
    text = guide.read_text("utf-8")
    guide.unlink()
    assert states(call) == [State.UNKNOWN]
    assert answered(call) is None
    guide.write_text(text + "More.\n", "utf-8")
    assert states(call) == [State.CHANGED]


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


def test_a_touched_file_with_the_same_text_is_current(call: Call, guide: Path) -> None:
    data = guide.read_bytes()
    guide.unlink()
    guide.write_bytes(data)
    assert states(call) == [State.CURRENT]


def test_an_unchanged_file_is_not_read_again(
    call: Call, guide: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> bytes:
        raise AssertionError

    monkeypatch.setattr("mimo.project.sandbox.Sandbox.read", read)
    assert answered(call) is None


def test_folders_are_updated_file_by_file(call: Call, guide: Path) -> None:
    docs = call.mind.project.root / "docs"
    docs.mkdir()
    for name in ("a", "b", "c"):
        (docs / f"{name}.md").write_text(f"# Page {name}\n\nThe text of {name}.\n", "utf-8")
    do(call, "ingest", path="docs")
    (docs / "a.md").write_text("# Page a\n\nAnother text.\n", "utf-8")
    shutil.move(docs / "b.md", docs / "moved.md")
    rows = {row.path: row for row in do(call, "ingest", path="docs", update=True).files}

    assert set(rows) == {"docs/a.md", "docs/b.md", "docs/c.md"}
    assert rows["docs/a.md"].replaced == 1
    assert rows["docs/b.md"].skipped
    assert rows["docs/c.md"].already_ingested


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


def test_an_undone_update_is_stale_again(call: Call, guide: Path) -> None:
    guide.write_text("# Deploying\n\nNever run make deploy by hand.\n", "utf-8")
    do(call, "ingest", path=".", update=True)
    do(call, "undo")
    assert states(call) == [State.CHANGED]


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
    assert not call.mind.trust.trusted(record.place.digest)
    do(call, "undo")
    assert states(call) == [State.CHANGED]


def test_a_stale_resource_has_a_warning(call: Call, guide: Path) -> None:
    guide.write_text("# Deploying\n\nNever run make deploy by hand.\n", "utf-8")
    uri = f"mind://memory/{overview.everything(call)[0].memory.id}"
    text = resources.read(call.by(Caller(surface=Surface.MCP, name="claude-code")), uri).text
    assert text.startswith("<!-- stale: `guide.md` changed after it was ingested")
