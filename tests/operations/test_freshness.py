"""An ingested file that changed or vanished is not answered as current."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from mimo.commands import all_commands
from mimo.commands.invoke import Caller, invoke
from mimo.commands.spec import Surface
from mimo.errors import NotFound
from mimo.features import ingest, review
from mimo.features.daemon.process import Loop
from mimo.features.review import Waiting
from mimo.features.upkeep import checks
from mimo.mind import Mind
from mimo.operations import freshness, overview
from mimo.operations.freshness import State
from mimo.server import resources

COMMANDS = all_commands()


def run(mind: Mind, path: str, by: str | None = None, /, **arguments: object) -> Any:
    surface = Surface.MCP if by else Surface.CLI
    return invoke(COMMANDS.at(path), mind, Caller(surface=surface, name=by), arguments)


@pytest.fixture
def guide(mind: Mind, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ingested file."""
    path = mind.project.root / "guide.md"
    path.write_text("# Deploying\n\nRun make deploy on Fridays.\n", "utf-8")
    monkeypatch.chdir(mind.project.root)
    run(mind, "ingest", path="guide.md", tags=["howto"])
    return path


def listed(mind: Mind) -> Path:
    """Returns the list of the files that were ingested."""
    (path,) = (mind.folder / ".local").glob("ingested-*.json")
    return path


def states(mind: Mind) -> list[State]:
    return [check.state for check in freshness.checked(mind, overview.everything(mind))]


def answered(mind: Mind) -> str | None:
    return run(mind, "search", query="make deploy").results[0].stale  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def _unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mimo.store.watch.changes", lambda *_, **__: iter(()))


def test_a_current_file_has_no_warning(mind: Mind, guide: Path) -> None:
    assert answered(mind) is None
    assert states(mind) == [State.CURRENT]
    assert Waiting.OUTDATED not in review.count(mind)
    assert [check.verdict for check in checks.examine(mind) if check.name == "sources"] == ["ok"]


def test_a_changed_file_is_reported_everywhere(mind: Mind, guide: Path) -> None:
    guide.write_text("# Deploying\n\nNever run make deploy by hand.\n", "utf-8")

    assert answered(mind) == (
        "`guide.md` changed after it was ingested: `mind ingest --update guide.md`"
    )
    row = run(mind, "search recent").results[0]
    assert row.stale == answered(mind) == run(mind, "show", id=row.id).stale
    assert run(mind, "list").memories[0].stale == row.stale
    assert run(mind, "memory list").memories[0].stale == row.stale
    assert run(mind, "memory search", query="make deploy").results[0].stale == row.stale
    note = row.stale.partition(": ")[0]
    assert f"(Out of date: {note}.)" in run(mind, "recall", query="make deploy").summary
    assert run(mind, "status").current_project.waiting == {"outdated": 1}
    (item,) = run(mind, "review", kinds=["outdated"]).items
    assert (item.title, item.actions[0]) == ("guide.md", "mind ingest --update guide.md")
    assert [check.verdict for check in checks.examine(mind) if check.name == "sources"] == [
        "warning"
    ]


def test_update_ingests_what_changed_as_it_was_before(mind: Mind, guide: Path) -> None:
    guide.write_text("# Deploying\n\nNever run make deploy by hand.\n", "utf-8")
    (updated,) = run(mind, "ingest", path=".", update=True).files

    assert (updated.path, updated.replaced, updated.skipped) == ("guide.md", 1, None)
    assert answered(mind) is None
    results = run(mind, "search", query="make deploy").results[0]
    assert ("by hand" in results.content, results.tags) == (True, ("howto",))
    (again,) = run(mind, "ingest", path="guide.md", update=True).files
    assert again.already_ingested
    with pytest.raises(NotFound, match="no ingested file"):
        run(mind, "ingest", path="other.md", update=True)


def test_a_missing_file_is_reported_with_the_remedy(mind: Mind, guide: Path) -> None:
    guide.unlink()
    source = overview.everything(mind)[0].parent
    assert answered(mind) == f"`guide.md` no longer exists: `mind rm {source}`"
    (item,) = run(mind, "review", kinds=["outdated"]).items
    assert item.actions == (f"mind rm {source}", f"mind review keep {source} --kind outdated")
    (row,) = run(mind, "ingest", path=".", update=True).files
    assert row.skipped == "`guide.md` no longer exists"
    assert states(mind) == [State.MISSING]
    run(mind, "rm", id=source)
    assert states(mind) == []


def test_in_a_clone_a_file_that_was_never_here_is_unknown(mind: Mind, guide: Path) -> None:
    listed(mind).unlink()
    assert states(mind) == [State.CURRENT]
    text = guide.read_text("utf-8")
    guide.unlink()
    assert states(mind) == [State.UNKNOWN]
    assert answered(mind) is None
    guide.write_text(text + "More.\n", "utf-8")
    assert states(mind) == [State.CHANGED]


@pytest.mark.attack("local state planted by a clone")
def test_a_planted_list_is_no_list(mind: Mind, guide: Path) -> None:
    rows = '{"guide.md": [Infinity, 1, "x"]}'
    listed(mind).write_text(rows, "utf-8")
    assert states(mind) == [State.CURRENT]


@pytest.mark.attack("local state planted by a clone")
@pytest.mark.parametrize("name", ["ingested.json", f"ingested-{'0' * 12}.json"])
def test_files_of_a_planted_list_are_not_ingested(mind: Mind, guide: Path, name: str) -> None:
    """The author of a clone knows the chunks, but not the user's file of that name."""
    own = listed(mind)
    own.rename(own.with_name(name))
    guide.write_text("The plan that is not shared\n", "utf-8")
    assert ingest.update_changed(mind) is None


def test_a_touched_file_with_the_same_text_is_current(mind: Mind, guide: Path) -> None:
    data = guide.read_bytes()
    guide.unlink()
    guide.write_bytes(data)
    assert states(mind) == [State.CURRENT]


def test_an_unchanged_file_is_not_read_again(
    mind: Mind, guide: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> bytes:
        raise AssertionError

    monkeypatch.setattr("mimo.store.sandbox.Sandbox.read", read)
    assert answered(mind) is None


def test_folders_are_updated_file_by_file(mind: Mind, guide: Path) -> None:
    docs = mind.project.root / "docs"
    docs.mkdir()
    for name in ("a", "b", "c"):
        (docs / f"{name}.md").write_text(f"# Page {name}\n\nThe text of {name}.\n", "utf-8")
    run(mind, "ingest", path="docs")
    (docs / "a.md").write_text("# Page a\n\nAnother text.\n", "utf-8")
    shutil.move(docs / "b.md", docs / "moved.md")
    rows = {row.path: row for row in run(mind, "ingest", path="docs", update=True).files}

    assert set(rows) == {"docs/a.md", "docs/b.md", "docs/c.md"}
    assert rows["docs/a.md"].replaced == 1
    assert rows["docs/b.md"].skipped
    assert rows["docs/c.md"].already_ingested


@pytest.mark.attack("cloned source reads outside the project")
@pytest.mark.attack("path out of the sandbox")
def test_a_cloned_source_can_not_ask_for_files_outside(mind: Mind, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("A password, perhaps.\n", "utf-8")
    run(mind, "ingest", path=str(secret))
    assert states(mind) == [State.CURRENT]
    secret.write_text("Another one.\n", "utf-8")
    assert states(mind) == [State.CHANGED]
    mind.agent = "claude-code"
    assert states(mind) == [State.UNKNOWN]
    mind.agent = None
    listed(mind).unlink()
    assert states(mind) == [State.UNKNOWN]


@pytest.mark.attack("path out of the sandbox")
def test_with_a_sandbox_no_file_outside_is_read(mind: Mind, guide: Path) -> None:
    guide.write_text("Changed.\n" * 3, "utf-8")
    mind.environ = {"SANDBOX_DIR": str(mind.project.root / "docs")}
    assert states(mind) == [State.UNKNOWN]


def test_an_undone_update_is_stale_again(mind: Mind, guide: Path) -> None:
    guide.write_text("# Deploying\n\nNever run make deploy by hand.\n", "utf-8")
    run(mind, "ingest", path=".", update=True)
    run(mind, "undo")
    assert states(mind) == [State.CHANGED]


def test_the_daemon_ingests_changes_again_and_approves_nothing(mind: Mind, guide: Path) -> None:
    mind.trust.follow(follow=False)
    loop = Loop(Mind(home=mind.home, project=None, clock=mind.clock, environ={}))
    loop.update_projects()
    loop.check()
    assert [row.command for row in run(mind, "undo", list=True).changes] == ["ingest"]
    guide.write_text("# Deploying\n\nNever run make deploy by hand.\n", "utf-8")
    loop.check()
    loop.end()
    loop.run()

    assert states(mind) == [State.CURRENT]
    (record,) = overview.everything(mind)
    assert "by hand" in record.memory.content
    assert not mind.trust.trusted(record.place.digest)
    run(mind, "undo")
    assert states(mind) == [State.CHANGED]


def test_a_stale_resource_has_a_warning(mind: Mind, guide: Path) -> None:
    guide.write_text("# Deploying\n\nNever run make deploy by hand.\n", "utf-8")
    uri = f"mind://memory/{overview.everything(mind)[0].memory.id}"
    text = resources.read(mind, Caller(surface=Surface.MCP, name="claude-code"), uri).text
    assert text.startswith("<!-- stale: `guide.md` changed after it was ingested")
