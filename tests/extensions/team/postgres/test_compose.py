"""`deploy/compose.yaml`: its processes, started directly, serve a team."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, NamedTuple

import httpx2
import psycopg
import pytest
import yaml
from mcp.client import Client

from mimo.extensions.team.http import READY
from tests.conftest import git
from tests.extensions.team.over_http import HURRIED, Served, served
from tests.extensions.team.postgres.conftest import KINDS, USER, Postgres, as_user, made
from tests.kit import repository

ROOT = Path(__file__).parents[4]
COMPOSE = ROOT / "deploy" / "compose.yaml"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - of a container
STOPPED = 143
"""The exit status after SIGTERM."""

HOME, GIT, SECRETS = "/home/mind/.mind", "/srv/git", "/secrets"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load(COMPOSE.read_text("utf-8"))["services"]
    return services


class Team(NamedTuple):
    """The running parts of the compose file, on this machine."""

    folder: Path
    postgres: Postgres
    server: Served
    environ: dict[str, str]

    def mind(self, *words: str, at: Path | None = None, **environ: str) -> str:
        """Returns what a command prints, run as `docker compose exec mind mind` does."""
        done = subprocess.run(
            [sys.executable, "-m", "mimo", *words],
            env={**os.environ, **self.environ, **environ},
            cwd=at or self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def token(self, name: str, *words: str) -> str:
        """Adds a user, and returns the token."""
        printed = self.mind("token", "add", name, "--email", f"{name}@example.org", *words)
        return next(word for word in printed.split() if len(word) >= 32 and "/" not in word)

    def called(self, token: str, tool: str, **arguments: Any) -> tuple[bool, str]:
        """Returns whether a tool failed, and its text, from the SDK's client."""

        async def ask(client: Client) -> Any:
            return await client.call_tool(tool, arguments)

        headers = {"authorization": f"Bearer {token}"}
        result = self.server.asked("auto", ask, "/team", headers=headers)
        return result.is_error, "\n".join(getattr(part, "text", "") for part in result.content)


@pytest.fixture(scope="module")
def team(services: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """Starts the services in the order of the file, with this machine's paths and ports."""
    folder = tmp_path_factory.mktemp("compose")
    for name in ("home", "git", "secrets"):
        (folder / name).mkdir()

    def here(text: str) -> str:
        for path, name in ((HOME, "home"), (GIT, "git"), (SECRETS, "secrets")):
            text = text.replace(path, str(folder / name))
        return text

    def environ(service: str) -> dict[str, str]:
        return {key: here(value) for key, value in services[service]["environment"].items()}

    prepare = services["prepare"]
    (script,) = prepare["command"]
    for _ in range(2):  # A second start changes nothing.
        subprocess.run(
            [*prepare["entrypoint"], script.replace("$$", "$")],
            env={**os.environ, **environ("prepare"), "OWNER": f"{os.getuid()}:{os.getgid()}"},
            check=True,
        )
    given = environ("postgres")
    with made(KINDS[0], "compose") as postgres:
        password = postgres.folder / "password"  # The image reads it as root.
        shutil.copy(given["POSTGRES_PASSWORD_FILE"], password)
        if os.geteuid() == 0:
            shutil.chown(password, USER)
        postgres.make(given["POSTGRES_USER"], "-A", "scram-sha-256", "--pwfile", password)
        postgres.start()
        mine = environ("mind")
        url = mine["MIND_INDEX_URL"].replace("@postgres/", f"@127.0.0.1:{postgres.port}/")
        mine = {**mine, "MIND_INDEX_URL": url, "MIND_HOME": str(folder / "home")}
        admin = url.rpartition("/")[0] + "/postgres"
        passfile = mine["PGPASSFILE"]
        Path(passfile).write_text(Path(passfile).read_text().replace(":mind:mind:", ":*:mind:"))
        with psycopg.connect(admin, passfile=passfile, autocommit=True) as sql:
            sql.execute(f"CREATE DATABASE {given['POSTGRES_DB']}".encode())
        words = [
            here(word).replace("${MIND_HOST:-localhost}", "localhost")
            for word in services["mind"]["command"]
        ]
        words = [word.replace(":6463", ":0") for word in words]
        assert words[0] == "mcp"
        environment: Any = {**mine, "MIND_BACKGROUND": "on"}
        hurried = ("-c", HURRIED)
        with served(folder / "home", *words[1:], program=hurried, **environment) as server:
            server.url = server.url.replace(EVERYWHERE, "127.0.0.1")
            server.base = server.base.replace(EVERYWHERE, "127.0.0.1")
            yield Team(folder, postgres, server, mine)
            assert server.stop()[0] == STOPPED


def test_the_file_holds_no_secret_and_publishes_the_server_on_loopback_only(
    services: dict[str, Any],
) -> None:
    text = COMPOSE.read_text("utf-8")

    assert re.findall(r"POSTGRES_PASSWORD\b|PGPASSWORD|://\w+:\w+@", text) == []
    assert [name for name, each in services.items() if "ports" in each] == ["mind"]
    assert services["mind"]["ports"] == ["127.0.0.1:6463:6463"]
    assert services["mind"]["read_only"]
    assert READY in services["mind"]["healthcheck"]["test"][-1]


def test_the_image_has_the_paths_and_the_extra_that_the_file_names(
    services: dict[str, Any],
) -> None:
    image = (ROOT / "Dockerfile").read_text("utf-8")
    build = services["mind"]["build"]

    assert (COMPOSE.parent / build["context"]).resolve() == ROOT
    assert f"MIND_HOME={HOME}" in image
    assert "ARG EXTRAS=" in image
    assert '".$EXTRAS"' in image
    extras = re.findall(r"\w+", build["args"]["EXTRAS"])
    assert [
        name for name in extras if f"\n{name} = [" not in (ROOT / "pyproject.toml").read_text()
    ] == []
    volumes = yaml.safe_load(COMPOSE.read_text("utf-8"))["volumes"]
    mounted = {each.split(":")[0] for service in services.values() for each in service["volumes"]}
    assert mounted == set(volumes)


def test_two_users_share_a_memory_whose_commits_name_them(team: Team) -> None:
    ana, bob = team.token("ana"), team.token("bob")
    rita = team.token("rita", "--scope", "read")

    failed, _ = team.called(ana, "memory", operation="store", content="Deploy on Tuesdays only")
    assert not failed
    failed, text = team.called(bob, "mind_search", query="when do we deploy")
    assert "Deploy on Tuesdays only" in text
    failed, text = team.called(rita, "memory", operation="store", content="No")
    assert failed
    assert "Access denied" in text
    log = git(team.folder / "git" / "team.git", "log", "-1", "--format=%an <%ae>", "main")
    assert log == "ana <ana@example.org>"


def test_the_organisation_is_searched_with_the_rights_of_the_token(team: Team) -> None:
    shop = team.folder / "shop"
    shop.mkdir()
    own = {"MIND_HOME": str(team.folder / "home-of-shop")}
    repository(shop)
    git(shop, "commit", "-q", "--allow-empty", "-m", "Start")
    team.mind("init", at=shop, **own)
    team.mind("add", "Kafka lost order events when the disk was full", at=shop, **own)
    team.mind("index", "--push", at=shop, **own)
    with psycopg.connect(
        team.environ["MIND_INDEX_URL"], passfile=team.environ["PGPASSFILE"]
    ) as sql:
        sql.execute("CREATE ROLE guests")
    carl, gus = team.token("carl"), team.token("gus", "--role", "guests")

    def answer(token: str) -> str:
        return team.called(token, "mind_search_org", query="kafka order events")[1]

    assert "Kafka lost order events" in answer(carl)
    assert "Kafka lost order events" not in answer(gus)
    team.mind("index", "--reader", "guests", at=shop, **own)
    assert "Kafka lost order events" in answer(gus)


def test_what_users_write_reaches_the_shared_index(team: Team) -> None:
    served_copy = team.folder / "home" / "served" / "team"
    team.mind("index", "--push", "--reader", "everyone", at=served_copy)
    dora = team.token("dora")

    team.called(dora, "memory", operation="store", content="The gateway drops headers over 8 KB")

    def stored() -> bool:
        with psycopg.connect(
            team.environ["MIND_INDEX_URL"], passfile=team.environ["PGPASSFILE"]
        ) as sql:
            query = "SELECT 1 FROM mind.memories WHERE content LIKE %s"
            return bool(sql.execute(query, ("The gateway drops%",)).fetchone())

    _until(stored)
    adam = team.token("adam", "--scope", "admin")

    def metrics() -> str:
        headers = {"authorization": f"Bearer {adam}"}
        return httpx2.get(f"{team.server.base}/metrics", headers=headers, timeout=30).text

    assert "\nmind_shared_index_up 1\n" in metrics()
    _until(lambda: "\nmind_shared_index_behind 0\n" in metrics())


def test_the_database_is_not_ready_while_it_answers_at_its_socket_alone(
    team: Team, services: dict[str, Any]
) -> None:
    """The image makes a new database with such a server, and then starts another one."""
    postgres = team.postgres
    program, *words = services["postgres"]["healthcheck"]["test"][1:]
    environ = {"PGHOST": str(postgres.data), "PGPORT": str(postgres.port)}

    def answers(*options: str) -> bool:
        line = [f"{postgres.bin}/{program}", *options]
        return subprocess.run(line, env=environ, stdout=DEVNULL, check=False).returncode == 0

    assert answers(*words)
    postgres.stop()
    try:
        line = [f"{postgres.bin}/postgres", "-D", f"{postgres.data}", "-p", f"{postgres.port}"]
        alone = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={postgres.data}"]
        with subprocess.Popen([*line, *alone], stderr=DEVNULL, **as_user()) as server:
            while not answers():
                assert server.poll() is None
            assert not answers(*words)
            server.send_signal(signal.SIGINT)
    finally:
        postgres.start()


def test_without_the_database_the_server_stays_ready_and_answers_from_its_projects(
    team: Team, services: dict[str, Any]
) -> None:
    words = [sys.executable, *services["mind"]["healthcheck"]["test"][2:]]
    check = [word.replace("http://127.0.0.1:6463", team.server.base) for word in words]
    emma = team.token("emma")
    assert subprocess.run(check, check=False).returncode == 0
    assert httpx2.get(f"{team.server.base}{READY}").json() == {"status": "ready", "failed": []}

    team.postgres.stop()
    try:
        team.called(emma, "memory", operation="store", content="Backups are restored quarterly")
        failed, text = team.called(emma, "mind_search_org", query="restore backups")
        assert not failed
        assert "Backups are restored quarterly" in text
        assert "can't be used" in text
        assert subprocess.run(check, check=False).returncode == 0
        _until(lambda: httpx2.get(f"{team.server.base}{READY}").json()["failed"] == ["index"])
    finally:
        team.postgres.start()
    _until(lambda: httpx2.get(f"{team.server.base}{READY}").json()["failed"] == [])

    def works() -> bool:
        answer = team.called(emma, "mind_search_org", query="restore backups")
        return "can't be used" not in answer[1]

    _until(works)


def _until(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it did not happen within a minute")
