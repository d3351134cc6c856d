"""`mind projects` and `mind list --all-projects`."""

import json
import shutil
from pathlib import Path

import pytest

from mimo.cli.main import main
from mimo.commands.spec import to_json
from mimo.errors import AmbiguousId, Invalid, NotFound
from mimo.features.notes.commands import add
from mimo.features.notes.reading import list_
from mimo.features.upkeep.registry import forget
from mimo.features.upkeep.registry import list_ as projects_of
from mimo.memory.model import Kind, Sort
from mimo.mind import Mind
from mimo.store import projects
from mimo.store.init import init
from tests.conftest import NOW


@pytest.fixture
def blog(mind: Mind, tmp_path: Path) -> Mind:
    """Another registered project, with a private memory and a shared one."""
    projects.register(mind.home, mind.project, now=NOW)
    root = tmp_path / "blog"
    root.mkdir()
    init(root, mind.home, now=NOW)
    opened = Mind(
        home=mind.home,
        project=projects.explicit(root, mind.home),
        clock=mind.clock,
        environ={},
    )
    add(opened, "posts are in Markdown", importance=0.9)
    add(opened, "the next title", private=True)
    return opened


def test_each_project_has_its_name_path_and_number_of_memories(mind: Mind, blog: Mind) -> None:
    add(mind, "tea is hot")

    here, other = projects_of(mind).projects

    assert (here.path, here.memories, here.here) == (str(mind.project.root), 1, True)
    assert (other.name, other.path) == ("blog", str(blog.project.root))
    assert (other.memories, other.missing, other.here) == (2, False, False)
    agent = mind.acting_as("codex")
    agent.agent = "codex"
    assert projects_of(agent).projects[1].memories == 1


def test_a_missing_project_is_forgotten_and_others_stay(mind: Mind, blog: Mind) -> None:
    shutil.rmtree(blog.project.root)
    assert [row.missing for row in projects_of(mind).projects] == [False, True]
    assert projects_of(mind).notice is None

    done = forget(mind)

    assert (done.projects, done.missing) == ((str(blog.project.root),), True)
    assert [row.path for row in projects_of(mind).projects] == [str(mind.project.root)]
    assert forget(mind).projects == ()


@pytest.mark.parametrize("by", ["name", "path"])
def test_a_named_project_is_forgotten_and_its_files_stay(mind: Mind, blog: Mind, by: str) -> None:
    forget(mind, blog.project.name if by == "name" else str(blog.project.root))

    assert len(projects_of(mind).projects) == 1
    assert list_(blog).total == 2
    with pytest.raises(NotFound, match="no project `blog`"):
        forget(mind, "blog")


def test_a_name_of_two_projects_is_ambiguous(mind: Mind, blog: Mind, tmp_path: Path) -> None:
    (twin := tmp_path / "old" / "blog").mkdir(parents=True)
    init(twin, mind.home, now=NOW)

    with pytest.raises(AmbiguousId) as caught:
        forget(mind, "blog")
    assert str(twin) in caught.value.hint
    assert len(projects_of(mind).projects) == 3


def test_a_list_of_all_projects_is_one_list(mind: Mind, blog: Mind) -> None:
    add(mind, "tea is hot", importance=0.7)

    rows = list_(mind, all_projects=True)

    assert {(row.project, row.title) for row in rows.memories} == {
        (mind.project.name, "tea is hot"),
        ("blog", "posts are in Markdown"),
    }
    by_importance = list_(mind, all_projects=True, sort=Sort.IMPORTANCE)
    assert [row.importance for row in by_importance.memories] == [0.9, 0.7]
    second = list_(mind, all_projects=True, sort=Sort.IMPORTANCE, limit=1, offset=1)
    assert ([row.title for row in second.memories], second.total) == (["tea is hot"], 2)


def test_a_row_of_another_project_does_not_name_a_private_memory(mind: Mind, blog: Mind) -> None:
    """Its id has words of its title."""
    shared = add(blog, "Use mariadb", type=Kind.DECISION)
    claim = "decision_acquire_acme_corp_20261103_abcdef"
    path = blog.folder / "private" / "decisions" / f"{claim}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"---\nid: {claim}\ntype: decision\ncreated: 2026-11-03T08:00:00Z\n"
        f"links:\n  - {{to: {shared.id}, type: supersedes}}\n---\nBuy it\n",
        encoding="utf-8",
    )
    own = {row.id: row.warning or "" for row in list_(blog).memories}
    assert "abcdef" in own[shared.id]

    rows = list_(mind, all_projects=True).memories

    assert shared.id in [row.id for row in rows]
    assert "abcdef" not in json.dumps(to_json(list(rows)))


def test_private_memories_of_other_projects_are_listed_to_people_only(
    mind: Mind, blog: Mind
) -> None:
    def titles(reader: Mind) -> list[str]:
        return [row.title for row in list_(reader, all_projects=True, private=True).memories]

    agent = mind.acting_as("codex")
    agent.agent = "codex"
    assert titles(agent) == []
    assert titles(mind) == ["the next title"]


def test_a_list_of_all_projects_is_of_the_present(mind: Mind) -> None:
    with pytest.raises(Invalid, match="present memories"):
        list_(mind, all_projects=True, at="HEAD")


def test_an_empty_name_forgets_no_project(
    mind: Mind, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(mind.project.root)

    assert main(["projects", "forget", ""], open=lambda _: mind) == 1
    assert "no project `` is registered" in capsys.readouterr().err


def test_projects_are_printed_with_their_state(
    mind: Mind, blog: Mind, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(blog.project.root)

    assert main(["projects"], open=lambda _: mind) == 0
    out, err = capsys.readouterr()
    headers, here, other = [line.split() for line in out.splitlines()]
    assert headers == ["project", "memories", "path", "state"]
    assert here == [mind.project.name, "0", str(mind.project.root), "here"]
    assert other == ["blog", "?", str(blog.project.root), "missing"]
    assert "`mind projects forget`" in err
    assert "`mind init` in the new folder" in err
    assert main(["projects", "forget", "--json"], open=lambda _: mind) == 0
    assert json.loads(capsys.readouterr().out)["projects"] == [str(blog.project.root)]
