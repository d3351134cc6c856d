"""The projects of a shared index: neither a fork nor another set-up has the rights of a project."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from mimo.call import Call
from mimo.data.files import SETTINGS
from mimo.errors import Denied, Invalid
from mimo.extensions.team import sharing
from mimo.extensions.team.publishing import working_copy
from mimo.features.notes.commands import add
from mimo.features.search.commands import search
from mimo.features.upkeep.checks import doctor
from mimo.features.upkeep.indexing import index
from mimo.mind import Mind
from mimo.project.trust import Trust
from tests.conftest import NOW, git
from tests.extensions.team.postgres.conftest import ORG, Open, Postgres
from tests.extensions.team.test_repository import made, show

MANY = 50


class Server:
    """A team's server, which has one role in the database for all repositories."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.home = folder, folder / "home-server"
        self._environ = {"MIND_HOME": str(self.home), "MIND_INDEX_URL": url}
        self._minds: list[Mind] = []

    def serve(self, name: str) -> Call:
        """Returns the project of a bare repository, as `mind mcp --http --repository` sets it up.

        An earlier project of the same name is opened again, as by the server's next start.
        """
        bare = self.folder / f"{name}.git"
        root = working_copy(self.home, bare if bare.exists() else made(bare), now=NOW)
        self._minds.append(Mind.open(root, environ=self._environ, clock=lambda: NOW))
        return Call(self._minds[-1])

    def fork(self, name: str, copy: str) -> Call:
        git(self.folder, "clone", "-q", "--bare", f"{name}.git", f"{copy}.git")
        return self.serve(copy)

    def close(self) -> None:
        for mind in self._minds:
            mind.close()


@pytest.fixture
def server(tmp_path: Path, postgres: Postgres, database: str, ann: None) -> Iterator[Server]:
    postgres.roles("server")
    with closing(Server(tmp_path, postgres.url(database, "server"))) as opened:
        yield opened


def titles(call: Call, query: str = "kafka") -> list[str]:
    return sorted(row.title for row in search(call, query, scope=ORG).results)


def settings(call: Call) -> Path:
    return call.mind.folder / "config.toml"


def id_of(call: Call) -> str:
    return str(call.mind.config.values["id"])


def renewed(call: Call) -> Call:
    """Returns the project with a new id, as its operator decides."""
    lines = settings(call).read_text("utf-8").splitlines(keepends=True)
    settings(call).write_text("".join(line for line in lines if not line.startswith("id =")))
    call = call.on(call.mind.reopened())
    assert doctor(call, fix=True).healthy
    return call.on(call.mind.reopened())


def test_repositories_that_are_set_up_at_once_are_projects_of_their_own(
    server: Server, opened: Open, postgres: Postgres, database: str
) -> None:
    with ThreadPoolExecutor(8) as pool:
        served = list(pool.map(server.serve, [f"shop{number}" for number in range(MANY)]))
    roots = {show(call.mind.project.root, "rev-list", "--max-parents=0", "HEAD") for call in served}
    assert len(roots) == MANY
    for number, call in enumerate(served):
        add(call, f"Kafka is what shop {number} uses")
        index(call, push=True)
    reader = opened("ben", "billing")
    assert titles(reader) == []

    index(served[7], readers=("everyone",))

    assert titles(reader) == ["Kafka is what shop 7 uses"]
    with psycopg.connect(postgres.url(database)) as sql:
        assert sql.execute("SELECT count(*) FROM mind.projects").fetchone() == (MANY,)


def test_a_fork_has_no_rights_in_the_project_that_its_id_names(
    server: Server, opened: Open, postgres: Postgres, database: str
) -> None:
    shop, reader = server.serve("shop"), opened("ben", "billing")
    add(shop, "Kafka is the secret of the shop")
    index(shop, push=True)
    fork = server.fork("shop", "fork")
    add(fork, "Kafka is open source")
    assert id_of(fork) == id_of(shop)

    for attempt in ({"push": True}, {"readers": ("everyone",)}, {"writers": ("ben",)}):
        with pytest.raises(Denied, match="has the id of `shop`, a project of another repository"):
            index(fork, **attempt)
    with pytest.raises(Invalid, match="this project is not in the shared index"):
        index(fork, withdraw=True)
    with pytest.raises(Invalid, match="this project is not in the shared index"):
        index(fork, revoke=("server",))
    assert sharing.pushed_here(fork) is None
    assert titles(reader) == []

    fork = renewed(fork)
    index(fork, push=True, readers=("everyone",))
    assert titles(reader) == ["Kafka is open source"]
    index(shop, readers=("ben",))
    assert titles(reader) == ["Kafka is open source", "Kafka is the secret of the shop"]
    index(shop, withdraw=True)
    assert titles(reader) == ["Kafka is open source"]


def test_a_fork_does_not_bring_back_a_withdrawn_project(server: Server) -> None:
    shop = server.serve("shop")
    index(shop, push=True)
    index(shop, withdraw=True)
    with pytest.raises(Denied, match="a project of another repository"):
        index(server.fork("shop", "fork"), push=True)
    with sharing.server_of(shop).session() as sql:
        assert sql.execute("SELECT withdrawn FROM mind.projects").fetchone() == (True,)


def test_the_operator_may_join_a_second_repository(server: Server, opened: Open) -> None:
    shop, reader = server.serve("shop"), opened("ben", "billing")
    index(shop, push=True, readers=("everyone",))
    mirror = server.fork("shop", "mirror")
    add(mirror, "Kafka is what we use")

    index(mirror, push=True, join=True)
    add(mirror, "Kafka keeps a week")
    sharing.push_if_behind(mirror)  # The decision stays.

    assert titles(reader) == ["Kafka is what we use", "Kafka keeps a week"]


def test_an_id_that_a_push_changes_has_no_rights_until_the_operator_decides(
    server: Server, opened: Open
) -> None:
    shop, secret, reader = server.serve("shop"), server.serve("secret"), opened("ben", "billing")
    add(shop, "Kafka is what we use")
    add(secret, "Kafka is the secret")
    index(shop, push=True, readers=("everyone",))
    index(secret, push=True)
    text = settings(shop).read_text("utf-8")
    settings(shop).write_text(text.replace(id_of(shop), id_of(secret)), "utf-8")
    add(shop, "Kafka was replaced by NATS")
    shop = shop.on(shop.mind.reopened())

    changed = "the id in `.mind/config.toml` is not that of the project that was pushed from here"
    with pytest.raises(Invalid, match=changed):
        sharing.push_if_behind(shop)
    with pytest.raises(Invalid, match=changed):
        index(shop, readers=("everyone",))
    with pytest.raises(Invalid, match="this project is not in the shared index"):
        index(shop, withdraw=True)
    assert changed in str(doctor(shop).checks)
    assert titles(reader) == ["Kafka is what we use"]

    settings(shop).write_text(text, "utf-8")
    sharing.push_if_behind(shop.on(shop.mind.reopened()))
    assert titles(reader) == ["Kafka is what we use", "Kafka was replaced by NATS"]

    shop = renewed(shop)
    with pytest.raises(Invalid, match=changed):
        index(shop, push=True)
    index(shop, push=True, join=True)
    assert titles(reader) == []  # It is another project, whose readers are named again.


def test_a_project_without_an_id_gets_one_before_it_is_pushed(opened: Open) -> None:
    shop = opened("ana", "shop")
    settings(shop).write_text("format = 1\n", "utf-8")
    Trust(shop.mind.home, shop.mind.project.root).approve_file(SETTINGS)
    shop = shop.on(shop.mind.reopened())
    with pytest.raises(Invalid, match="this project has no id") as refused:
        index(shop, push=True)
    assert str(refused.value.hint) == "`mind doctor --fix` gives it one"
    assert "this project has no id" in str(doctor(shop).checks)

    shop = renewed(shop)

    assert index(shop, push=True).shared
    assert "this project has no id" not in str(doctor(shop).checks)


def test_the_address_of_a_repository_is_pinned(opened: Open) -> None:
    shop = opened("ana", "shop")
    root = shop.mind.project.root
    index(shop, push=True)
    git(root, "remote", "add", "origin", "git@example.org:team/shop.git")
    index(shop, push=True)  # A remote for what had none.
    git(root, "remote", "set-url", "origin", "https://ana:token@example.org/team/shop/")
    index(shop, push=True)
    git(root, "remote", "set-url", "origin", "https://example.org/eve/shop.git")
    with pytest.raises(Denied, match="a project of another repository"):
        index(shop, push=True)
    index(shop, push=True, join=True)
    index(shop, push=True)


def test_a_copied_folder_is_another_repository(opened: Open) -> None:
    shop = opened("ana", "shop")
    root = shop.mind.project.root
    index(shop, push=True)
    shop.mind.close()
    shutil.copytree(root, root.with_name("copy"), symlinks=True)
    copied = opened("ana", "copy")
    with pytest.raises(Denied, match="a project of another repository"):
        index(copied, push=True)
    index(copied, push=True, join=True)
    index(copied, push=True)
