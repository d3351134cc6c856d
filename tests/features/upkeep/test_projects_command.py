"""`mind projects` and `mind list --all-projects`."""

import json
import shutil
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.call.spec import to_json
from mimo.cli.main import main
from mimo.errors import AmbiguousId, Invalid, NotFound
from mimo.features.notes.commands import add
from mimo.features.notes.reading import list_
from mimo.features.upkeep.registry import forget
from mimo.features.upkeep.registry import list_ as projects_of
from mimo.memory.model import Kind, Sort
from mimo.mind import Mind
from mimo.project import projects
from mimo.project.init import init
from tests.calls import acting_as, from_shell
from tests.conftest import NOW


@pytest.fixture
def blog(call: Call, tmp_path: Path) -> Call:
    """Another registered project, with a private memory and a shared one."""
    projects.register(call.mind.home, call.mind.project, now=NOW)
    root = tmp_path / "blog"
    root.mkdir()
    init(root, call.mind.home, now=NOW)
    opened = Call(
        Mind(
            home=call.mind.home,
            project=projects.explicit(root, call.mind.home),
            clock=call.mind.clock,
            environ={},
        )
    )
    add(opened, "posts are in Markdown", importance=0.9)
    add(opened, "the next title", private=True)
    return opened


def test_each_project_has_its_name_path_and_number_of_memories(call: Call, blog: Call) -> None:
    add(call, "tea is hot")

    here, other = projects_of(call).projects

    assert (here.path, here.memories, here.here) == (str(call.mind.project.root), 1, True)
    assert (other.name, other.path) == ("blog", str(blog.mind.project.root))
    assert (other.memories, other.missing, other.here) == (2, False, False)
    agent = acting_as(call, "codex")
    agent = from_shell(agent, "codex")
    assert projects_of(agent).projects[1].memories == 1


def test_a_missing_project_is_forgotten_and_others_stay(call: Call, blog: Call) -> None:
    shutil.rmtree(blog.mind.project.root)
    assert [row.missing for row in projects_of(call).projects] == [False, True]
    assert projects_of(call).notice is None

    done = forget(call)

    assert (done.projects, done.missing) == ((str(blog.mind.project.root),), True)
    assert [row.path for row in projects_of(call).projects] == [str(call.mind.project.root)]
    assert forget(call).projects == ()


@pytest.mark.parametrize("by", ["name", "path"])
def test_a_named_project_is_forgotten_and_its_files_stay(call: Call, blog: Call, by: str) -> None:
    forget(call, blog.mind.project.name if by == "name" else str(blog.mind.project.root))

    assert len(projects_of(call).projects) == 1
    assert list_(blog).total == 2
    with pytest.raises(NotFound, match="no project `blog`"):
        forget(call, "blog")


def test_a_name_of_two_projects_is_ambiguous(call: Call, blog: Call, tmp_path: Path) -> None:
    (twin := tmp_path / "old" / "blog").mkdir(parents=True)
    init(twin, call.mind.home, now=NOW)

    with pytest.raises(AmbiguousId) as caught:
        forget(call, "blog")
    assert str(twin) in caught.value.hint
    assert len(projects_of(call).projects) == 3


def test_a_list_of_all_projects_is_one_list(call: Call, blog: Call) -> None:
    add(call, "tea is hot", importance=0.7)

    rows = list_(call, all_projects=True)

    assert {(row.project, row.title) for row in rows.memories} == {
        (call.mind.project.name, "tea is hot"),
        ("blog", "posts are in Markdown"),
    }
    by_importance = list_(call, all_projects=True, sort=Sort.IMPORTANCE)
    assert [row.importance for row in by_importance.memories] == [0.9, 0.7]
    second = list_(call, all_projects=True, sort=Sort.IMPORTANCE, limit=1, offset=1)
    assert ([row.title for row in second.memories], second.total) == (["tea is hot"], 2)


def test_a_row_of_another_project_does_not_name_a_private_memory(call: Call, blog: Call) -> None:
    """Its id has words of its title."""
    shared = add(blog, "Use mariadb", type=Kind.DECISION)
    claim = "decision_acquire_acme_corp_20261103_abcdef"
    path = blog.mind.folder / "private" / "decisions" / f"{claim}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"---\nid: {claim}\ntype: decision\ncreated: 2026-11-03T08:00:00Z\n"
        f"links:\n  - {{to: {shared.id}, type: supersedes}}\n---\nBuy it\n",
        encoding="utf-8",
    )
    own = {row.id: row.warning or "" for row in list_(blog).memories}
    assert "abcdef" in own[shared.id]

    rows = list_(call, all_projects=True).memories

    assert shared.id in [row.id for row in rows]
    assert "abcdef" not in json.dumps(to_json(list(rows)))


def test_private_memories_of_other_projects_are_listed_to_people_only(
    call: Call, blog: Call
) -> None:
    def titles(reader: Call) -> list[str]:
        return [row.title for row in list_(reader, all_projects=True, private=True).memories]

    agent = acting_as(call, "codex")
    agent = from_shell(agent, "codex")
    assert titles(agent) == []
    assert titles(call) == ["the next title"]


def test_a_list_of_all_projects_is_of_the_present(call: Call) -> None:
    with pytest.raises(Invalid, match="present memories"):
        list_(call, all_projects=True, at="HEAD")


def test_an_empty_name_forgets_no_project(
    call: Call, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(call.mind.project.root)

    assert main(["projects", "forget", ""], open=lambda _: call.mind) == 1
    assert "no project `` is registered" in capsys.readouterr().err


def test_projects_are_printed_with_their_state(
    call: Call, blog: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(blog.mind.project.root)

    assert main(["projects"], open=lambda _: call.mind) == 0
    out, err = capsys.readouterr()
    headers, here, other = [line.split() for line in out.splitlines()]
    assert headers == ["project", "memories", "path", "state"]
    assert here == [call.mind.project.name, "0", str(call.mind.project.root), "here"]
    assert other == ["blog", "?", str(blog.mind.project.root), "missing"]
    assert "`mind projects forget`" in err
    assert "`mind init` in the new folder" in err
    assert main(["projects", "forget", "--json"], open=lambda _: call.mind) == 0
    assert json.loads(capsys.readouterr().out)["projects"] == [str(blog.mind.project.root)]
