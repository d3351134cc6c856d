"""`mind mcp --http --repository` and `--commit`: writes of users become commits."""

import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from mcp.client import Client

from mimo.errors import Invalid
from mimo.extensions.team import tokens
from mimo.extensions.team.publishing import working_copy
from mimo.project.init import init
from tests.conftest import NOW, git
from tests.extensions.team.over_http import Served, served
from tests.extensions.team.test_http import INITIALIZE, hosting_of, inside
from tests.extensions.team.test_team import USERS, bearer, called, text_of
from tests.kit import repository, script
from tests.sample_procedures import text


def show(repository: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(repository), *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def made(path: Path) -> Path:
    """Makes a bare repository, and returns its path."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(path)], check=True)
    return path


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    return made(tmp_path / "shop.git")


@pytest.fixture
def users(tmp_path: Path) -> Path:
    tokens.write(tmp_path / "tokens.toml", USERS)
    return tmp_path / "tokens.toml"


class Hosted(NamedTuple):
    """A bare repository that a server hosts, and the server's working copy."""

    bare: Path
    copy: Path
    server: Served

    def asked(self, name: str, talk: Callable[[Client], Awaitable[Any]]) -> Any:
        """Returns what a user gets from the project of the repository."""
        return self.server.asked("auto", talk, f"/{self.bare.stem}", headers=bearer(name))

    def stored(self, name: str, text: str) -> Any:
        """Returns the answer to a user who stores a text."""

        async def talk(client: Client) -> Any:
            return await called(client, "memory", operation="store", content=text)

        result = self.asked(name, talk)
        assert not result.is_error, text_of(result)
        return result


@pytest.fixture(scope="module")
def unused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Iterator[Hosted]]:
    """The repositories of a server that no test has used yet: one for each test."""
    folder = tmp_path_factory.mktemp("repositories")
    bares = [made(folder / f"shop{number}.git") for number in range(8)]
    tokens.write(folder / "tokens.toml", USERS)
    options = [word for bare in bares for word in ("--repository", str(bare))]
    home = folder / "home"
    with served(home, "--tokens", str(folder / "tokens.toml"), *options) as server:
        yield iter([Hosted(bare, home / "served" / bare.stem, server) for bare in bares])


@pytest.fixture
def shop(unused: Iterator[Hosted]) -> Hosted:
    return next(unused)


def committed(tmp_path: Path) -> Path:
    """Returns the root of a project whose files are committed, of the home beside it."""
    root = tmp_path / "shop"
    root.mkdir()
    repository(root)
    init(root, tmp_path / "home", now=NOW)
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    return root


def cloned(bare: Path, to: Path) -> Path:
    subprocess.run(["git", "clone", "-q", str(bare), str(to)], check=True)
    return to


def test_a_write_becomes_a_commit_of_its_user_in_the_bare_repository(
    tmp_path: Path, shop: Hosted
) -> None:
    result = shop.stored("ana", "Deploys need a signed tag")

    assert "notice" not in text_of(result)
    log = show(shop.bare, "log", "-1", "--format=%an|%ae|%cn|%s", "main")
    assert log == "ana|ana@example.org|mind|memory: remembered fact: Deploys need a signed tag"
    trailers = show(shop.bare, "log", "-1", "--format=%(trailers)", "main")
    assert trailers.splitlines()[-1] == "Mind-Reviewed: no"
    files = show(shop.bare, "show", "--name-only", "--format=", "main").splitlines()
    assert [path.split("/")[1] for path in files if path.endswith(".md")].count("facts") == 1
    copy = shop.copy
    assert show(copy, "status", "--porcelain") == ""

    async def titles(client: Any) -> Any:
        return await called(client, "mind_list", limit=100)

    async def reads(client: Any) -> Any:
        return await called(client, "mind_search", query="signed tag")

    assert "Deploys need a signed tag" in text_of(shop.asked("rita", titles))
    answer = shop.asked("bob", reads)
    assert "untrusted" not in text_of(answer)
    assert show(shop.bare, "rev-list", "--count", "main") == "2"


def test_commits_of_others_are_merged_and_not_trusted(tmp_path: Path, shop: Hosted) -> None:
    shop.stored("ana", "Deploys need a signed tag")
    other = tmp_path / "other"
    cloned(shop.bare, other)
    fact = next((other / ".mind/facts").glob("*.md"))
    text = fact.read_text(encoding="utf-8").replace("deploys_need", "the_cache_holds")
    new = fact.with_name("fact_the_cache_holds_ten_minutes_20261121_aaaaaa.md")
    text = text.replace("Deploys need a signed tag", "The cache holds ten minutes")
    text = text.replace(fact.stem, new.stem)
    new.write_text(text, encoding="utf-8")
    git(other, "add", ".")
    git(other, "commit", "-q", "-m", "by hand")
    git(other, "push", "-q")

    shop.stored("bob", "The menu is printed on Mondays")

    subjects = show(shop.bare, "log", "--format=%s", "main")
    assert "by hand" in subjects
    assert "The menu is printed" in subjects

    async def search(client: Any) -> Any:
        return await called(client, "mind_search", query="cache holds ten minutes")

    assert "untrusted" in text_of(shop.asked("ana", search))


def test_two_servers_lose_no_memory_and_keep_both_changes(
    tmp_path: Path, users: Path, shop: Hosted
) -> None:
    id = shop.stored("ana", "The build takes nine minutes").structured_content["id"]
    options = ["--tokens", str(users), "--repository", str(shop.bare)]
    (tmp_path / "second").mkdir()
    with served(tmp_path / "second/home", *options) as second:

        async def work(running: Served, name: str, tag: str) -> None:
            async with running.client("auto", f"/{shop.bare.stem}", headers=bearer(name)) as client:
                for number in range(3):
                    text = f"Fact {number} of {name} is kept"
                    result = await called(client, "memory", operation="store", content=text)
                    assert not result.is_error, text_of(result)
                for number in range(3):
                    edited = await called(client, "mind_edit", id=id, add_tags=[f"{tag}{number}"])
                    assert not edited.is_error, text_of(edited)
                    # The other server may push first again and again; a later push has it all.
                    assert "not committed" not in text_of(edited)

        async def both() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(work, shop.server, "ana", "left")
                tasks.start_soon(work, shop.server, "adam", "middle")
                tasks.start_soon(work, second, "bob", "right")

        anyio.run(both)
        shop.stored("ana", "The last one")
        shop._replace(server=second).stored("bob", "The very last one")

    clone = tmp_path / "clone"
    cloned(shop.bare, clone)
    texts = "\n".join(path.read_text("utf-8") for path in (clone / ".mind/facts").glob("*.md"))
    for name in ("ana", "adam", "bob"):
        for number in range(3):
            assert f"Fact {number} of {name} is kept" in texts
    edited = next((clone / ".mind/facts").glob(f"{id}*")).read_text("utf-8")
    tags = [f"{tag}{number}" for tag in ("left", "middle", "right") for number in range(3)]
    assert all(tag in edited for tag in tags), edited
    assert "<<<<" not in texts


def test_a_push_that_fails_keeps_the_commit_and_is_repeated(tmp_path: Path, shop: Hosted) -> None:
    hook = script(shop.bare / "hooks/pre-receive", "#!/bin/sh\necho closed >&2\nexit 1\n")

    result = shop.stored("ana", "Deploys need a signed tag")

    assert "committed, but not pushed" in text_of(result)
    copy = shop.copy
    assert show(copy, "log", "-1", "--format=%an") == "ana"
    hook.unlink()
    assert "notice" not in text_of(shop.stored("bob", "The menu is printed on Mondays"))
    assert show(shop.bare, "log", "-2", "--format=%an", "main").splitlines() == ["bob", "ana"]


def test_an_edit_here_survives_a_removal_elsewhere(tmp_path: Path, shop: Hosted) -> None:
    id = shop.stored("ana", "The build takes nine minutes").structured_content["id"]
    other = tmp_path / "other"
    cloned(shop.bare, other)
    git(other, "rm", "-q", f".mind/facts/{id}.md")
    git(other, "commit", "-q", "-m", "removed")
    git(other, "push", "-q")

    async def edit(client: Any) -> Any:
        return await called(client, "mind_edit", id=id, add_tags=["slow"])

    result = shop.asked("bob", edit)

    if not result.is_error:  # The removal may have been merged before the edit.
        assert "slow" in show(shop.bare, "show", f"main:.mind/facts/{id}.md")
    assert "removed" in show(shop.bare, "log", "--format=%s", "main")


def test_with_commit_only_the_files_of_the_call_are_committed(tmp_path: Path, users: Path) -> None:
    home, root = tmp_path / "home", committed(tmp_path)
    (root / "code.py").write_text("pass\n", encoding="utf-8")
    (root / ".mind/facts").mkdir(exist_ok=True)
    (root / ".mind/facts/draft.md").write_text("---\nid: draft\n---\nDraft\n", encoding="utf-8")
    git(root, "add", "code.py")

    with served(home, "--tokens", str(users), "--commit") as server:
        shop = Hosted(root, root, server)
        git(root, "checkout", "-q", "--detach")
        answer = text_of(shop.stored("ana", "Deploys need two reviews"))
        assert "stored, but not committed: HEAD is detached" in answer
        git(root, "checkout", "-q", "main")
        shop.stored("ana", "Deploys need a signed tag")

    assert show(root, "log", "-1", "--format=%an <%ae>") == "ana <ana@example.org>"
    names = show(root, "show", "--name-only", "--format=").splitlines()
    assert not {"code.py", ".mind/facts/draft.md"} & set(names)
    assert len([name for name in names if name.startswith(".mind/facts/")]) == 2
    assert "A  code.py" in show(root, "status", "--porcelain")


def test_a_commit_that_failed_keeps_its_author(tmp_path: Path, users: Path) -> None:
    home, root = tmp_path / "home", committed(tmp_path)

    def stored_detached(shop: Hosted, text: str) -> str:
        git(root, "checkout", "-q", "--detach")
        result = shop.stored("ana", text)
        git(root, "checkout", "-q", "main")
        assert "stored, but not committed" in text_of(result)
        return str(result.structured_content["id"])

    with served(home, "--tokens", str(users), "--commit") as server:
        shop = Hosted(root, root, server)
        id = stored_detached(shop, "Deploys need two reviews")

        async def edit(client: Any) -> Any:
            return await called(client, "mind_edit", id=id, add_tags=["slow"])

        assert not shop.asked("bob", edit).is_error
        log = show(root, "log", "--format=%an", "--", f".mind/facts/{id}.md").splitlines()
        assert log == ["bob", "ana"]
        id = stored_detached(shop, "The build takes nine minutes")

    with served(home, "--tokens", str(users), "--commit") as server:  # Another process.
        Hosted(root, root, server).stored("bob", "The menu is printed on Mondays")

    assert show(root, "log", "-1", "--format=%an", "--", f".mind/facts/{id}.md") == "ana"
    assert not show(root, "status", "--porcelain")


@pytest.mark.attack("calls that wait")
def test_a_run_that_waits_holds_up_no_writer_and_commits_for_its_user(shop: Hosted) -> None:
    states = """\
initial_state: agree
states:
  agree:
    action: {module: step, function: ask, args: [{question: "Store?"}]}
    transitions: [{event: "yes", target: store}]
  store:
    action: {module: mind, function: mind_add, args: [{content: Tea is at four}]}
    transitions: [{event: success, target: done}]
  done: {}
"""

    async def talk(client: Any) -> Any:
        await called(client, "register_procedure", text=text("tea", states))
        done: list[Any] = []

        async def run() -> None:
            done.append(await called(client, "run_procedure", name="tea", timeout=60_000))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            while not (await status(client))["question"]:
                await anyio.sleep(0.05)
            await called(client, "mind_add", content="Deploys need a signed tag")
            await called(client, "send_event", execution_id="latest", event="yes")
        return done[0]

    async def status(client: Any) -> Any:
        seen = await called(client, "procedure_status", execution_id="latest")
        return {"question": None, **(seen.structured_content or {})}

    done = shop.asked("ana", talk)

    assert done.structured_content["status"] == "completed"
    assert "notice" not in text_of(done)
    log = show(shop.bare, "log", "-2", "--format=%an|%s", "main").splitlines()
    assert log == [
        "ana|memory: remembered fact: Tea is at four",
        "ana|memory: remembered fact: Deploys need a signed tag",
    ]


def test_the_answer_to_an_async_run_states_that_it_is_not_committed(shop: Hosted) -> None:
    states = "initial_state: a\nstates:\n  a: {}\n"

    async def talk(client: Any) -> Any:
        await called(client, "register_procedure", text=text("later", states))
        return await called(client, "run_procedure", name="later", **{"async": True})

    done = shop.asked("ana", talk)
    assert "notice: what this run writes is not committed" in text_of(done)


def test_a_folder_that_is_not_a_bare_repository_is_refused(tmp_path: Path, users: Path) -> None:
    options = ["--tokens", str(users), "--repository", str(tmp_path)]
    with (
        pytest.raises(AssertionError, match="is not a bare git repository"),
        served(tmp_path / "home", *options),
    ):
        pass


def test_the_working_copy_may_be_in_the_home_that_is_the_default(
    tmp_path: Path, bare: Path
) -> None:
    home = tmp_path / ".mind"

    root = working_copy(home, bare, now=NOW)

    assert root == home / "served/shop"
    assert show(bare, "log", "-1", "--format=%s", "main") == "Set up the memory of mind"
    (root / ".mind/facts").mkdir()
    for folder in (root / ".mind/facts", home / "other"):
        folder.mkdir(exist_ok=True)
        with pytest.raises(Invalid, match=r"is in a `\.mind/`"):
            init(folder, home, now=NOW)


def test_a_project_that_a_commit_took_away_returns_with_the_next_commit(
    tmp_path: Path, bare: Path
) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    root = working_copy(home, bare, now=NOW)
    cloned(bare, other)
    git(other, "rm", "-q", ".mind/config.toml")
    git(other, "commit", "-q", "-m", "removed")
    git(other, "push", "-q")
    hosting, gate = hosting_of(home, idle=0.3, copies=[root])
    params = {"name": "memory", "arguments": {"operation": "store", "content": "Tag each deploy"}}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}

    async def ask() -> tuple[str, str]:
        async with hosting.running(), inside(gate) as client:

            async def store() -> str:
                opened = await client.post("/mcp/shop", json=INITIALIZE)
                session = {"mcp-session-id": opened.headers.get("mcp-session-id", "none")}
                return (await client.post("/mcp/shop", json=call, headers=session)).text

            before = await store()
            with anyio.fail_after(20):
                while hosting.is_open(root):
                    await anyio.sleep(0.05)
            git(other, "revert", "--no-edit", "HEAD")
            git(other, "push", "-q")
            return before, await store()

    before, after = anyio.run(ask)

    assert "is not a project yet" in before
    assert "stored: true" in after
    assert "Tag each deploy" in show(bare, "log", "-1", "--format=%s", "main")


def test_documents_are_ingested_and_changes_undone_in_a_served_repository(
    tmp_path: Path, shop: Hosted
) -> None:
    other = tmp_path / "other"
    cloned(shop.bare, other)
    (other / "README.md").write_text("# Readme\n\nThe frobnicator is blue.\n", encoding="utf-8")
    git(other, "add", ".")
    git(other, "commit", "-q", "-m", "by hand")
    git(other, "push", "-q")
    id = shop.stored("ana", "Deploys need a signed tag").structured_content["id"]

    async def work(client: Any) -> list[Any]:
        return [
            await called(client, "ingest", path="README.md"),
            await called(client, "mind_rm", id=id),
            await called(client, "mind_undo"),
        ]

    results = shop.asked("bob", work)

    assert [text_of(result) for result in results if result.is_error] == []
    assert "frobnicator" in show(shop.bare, "grep", "frobnicator", "main", "--", ".mind/sources")
    assert "signed tag" in show(shop.bare, "show", f"main:.mind/facts/{id}.md")
