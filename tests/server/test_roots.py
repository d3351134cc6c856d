"""A server that was started outside of any project, and the roots of its client."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp_types import ListRootsResult, Root
from pydantic import FileUrl

from mimo.call import Call
from mimo.server.roots import folders_of
from tests import kit

pytestmark = pytest.mark.filterwarnings("ignore:The roots capability is deprecated")


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    return folder


class Roots:
    """A client's roots, which are counted each time it lists them."""

    def __init__(self, *folders: Path) -> None:
        self.folders: Iterable[Path] = folders
        self.asked = 0

    async def __call__(self, _: Any) -> ListRootsResult:
        self.asked += 1
        uris = [folder.as_uri() for folder in self.folders]
        return ListRootsResult(roots=[Root(uri=FileUrl(uri)) for uri in uris])


async def path_of(client: Client) -> str | None:
    result = await client.call_tool("mind_status", {})
    content: Any = result.structured_content
    project = content.get("current_project") if content else None
    return project["path"] if project else None


async def store(client: Client, content: str) -> Any:
    return await client.call_tool("memory", {"operation": "store", "content": content})


def test_a_call_works_on_the_project_among_the_roots(
    project: Path, outside: Path, era: Any
) -> None:
    inside = project / "src/caf\xe9 1"
    inside.mkdir(parents=True)
    roots = Roots(outside, inside)

    async def talk(client: Client) -> list[Any]:
        tools = await client.list_tools()
        answers = [await store(client, f"The menu is printed on day {day}") for day in "12"]
        return [len(tools.tools), *answers, await path_of(client)]

    count, *answers, path = kit.over_pipe(outside, talk, era=era, list_roots=roots)

    assert count > 10
    assert [answer.is_error for answer in answers] == [False, False], answers
    assert path == str(project)
    assert len(list((project / ".mind/facts").glob("*.md"))) == 2
    assert roots.asked == 1


def test_resources_and_prompts_are_those_of_the_roots(
    project: Path, outside: Path, call: Call, era: Any
) -> None:
    note = project / ".mind/facts/menu.md"
    note.parent.mkdir(exist_ok=True)
    note.write_text("The menu is printed on Mondays\n", encoding="utf-8")

    async def read(client: Client) -> str:
        context = await client.read_resource("mind://context")
        return str(getattr(context.contents[0], "text", ""))

    async def prompt(client: Client) -> str:
        prompts = await client.list_prompts()
        first = await client.get_prompt(prompts.prompts[0].name, {})
        return first.messages[0].model_dump_json()

    for question in (read, prompt):
        answer = kit.over_pipe(outside, question, era=era, list_roots=Roots(project))
        assert "Mondays" in answer


def test_roots_without_a_project_are_outside_until_one_has_a_memory(
    project: Path, outside: Path, era: Any
) -> None:
    later = outside / "later"
    later.mkdir()

    async def talk(client: Client) -> tuple[Any, Any]:
        before = await store(client, "The menu is printed on Mondays")
        (later / ".mind").mkdir()
        (later / ".mind/config.toml").write_text("", encoding="utf-8")
        return before, await store(client, "The menu is printed on Mondays")

    before, after = kit.over_pipe(outside, talk, era=era, list_roots=Roots(later))

    assert before.is_error
    assert "there is no project here" in before.content[0].text
    assert not after.is_error, after.content
    assert list((later / ".mind/facts").glob("*.md"))


def test_a_server_in_a_project_or_with_a_named_one_does_not_ask(
    project: Path, outside: Path, era: Any
) -> None:
    roots = Roots(outside)

    assert kit.over_pipe(project, path_of, era=era, list_roots=roots) == str(project)
    named = kit.over_pipe(outside, path_of, "--project", str(project), era=era, list_roots=roots)
    assert named == str(project)
    of_client = kit.over_pipe(
        outside, path_of, era=era, list_roots=roots, CLAUDE_PROJECT_DIR=str(project)
    )
    assert of_client == str(project)
    assert roots.asked == 0


def test_changed_roots_are_another_project(project: Path, outside: Path) -> None:
    other = outside / "other"
    (other / ".mind").mkdir(parents=True)
    (other / ".mind/config.toml").write_text("", encoding="utf-8")
    roots = Roots(project)

    async def talk(client: Client) -> list[str | None]:
        paths = [await path_of(client)]
        for folders in ((other, project), ()):
            roots.folders = folders
            await client.session.send_roots_list_changed()
            paths.append(await path_of(client))
        return paths

    paths = kit.over_pipe(outside, talk, era="legacy", list_roots=roots)

    assert paths == [str(project), str(other), None]


def test_a_root_that_is_refused_is_an_error_unless_another_is_a_project(
    project: Path, outside: Path, era: Any
) -> None:
    broken = outside / "broken"
    (broken / ".mind/facts").mkdir(parents=True)
    (broken / ".mind/facts/a.md").write_text("A\n", encoding="utf-8")

    async def talk(client: Client) -> Any:
        return await store(client, "The menu is printed on Mondays")

    refused = kit.over_pipe(outside, talk, era=era, list_roots=Roots(broken))
    assert "is not a project yet" in refused.content[0].text

    stored = kit.over_pipe(outside, talk, era=era, list_roots=Roots(broken, project))
    assert not stored.is_error
    assert list((project / ".mind/facts").glob("*.md"))


def test_a_client_without_roots_hears_that_there_is_no_project(outside: Path, era: Any) -> None:
    async def talk(client: Client) -> Any:
        return await store(client, "The menu is printed on Mondays")

    answer = kit.over_pipe(outside, talk, era=era)

    assert answer.is_error
    assert "there is no project here" in json.dumps(answer.model_dump(mode="json"))


@pytest.mark.parametrize(
    ("uri", "folder"),
    [
        ("file:///shop/caf%C3%A9%20%231", "/shop/caf\xe9 #1"),
        ("file://localhost/shop", "/shop"),
        ("file://elsewhere/shop", None),
        ("file:///shop%00", None),
        ("file:shop", None),
    ],
)
def test_only_roots_on_this_machine_are_folders(uri: str, folder: str | None) -> None:
    root: Any = Root.model_construct(uri=uri)

    assert folders_of([root]) == ([Path(folder)] if folder else [])
