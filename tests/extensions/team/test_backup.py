"""docs/team-backup.md: its commands, run on a server that is lost and restored."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from mcp.client import Client

from mimo.extensions.team import tokens
from tests.extensions.team.over_http import Served, served
from tests.extensions.team.test_repository import made
from tests.extensions.team.test_team import USERS, bearer, called, text_of

PAGE = Path(__file__).parents[3] / "docs/team-backup.md"
BACKUP, RESTORE, CHECK = re.findall(r"\n```\n(.*?)\n```\n", PAGE.read_text("utf-8"), re.DOTALL)


def run(folder: Path, commands: str) -> str:
    """Runs commands of the page as the user whose home is in a folder; returns their output."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    mind = programs / "mind"
    mind.write_text(f'#!/bin/sh\nexec {sys.executable} -m mimo "$@"\n', encoding="utf-8")
    mind.chmod(0o755)
    done = subprocess.run(
        ["sh", "-e", "-c", commands.replace("/srv", str(folder / "srv"))],
        cwd=folder,
        env={
            "HOME": str(folder / "home"),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(sys.path),
            "MIND_BACKGROUND": "off",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


async def stored(client: Client) -> None:
    for text, private in (("Deploys need a tag", False), ("Ana is away in May", True)):
        result = await called(client, "mind_add", text=text, private=private)
        assert not result.is_error, text_of(result)


async def listed(client: Client) -> Any:
    return text_of(await called(client, "mind_list"))


async def added(client: Client) -> Any:
    return text_of(await called(client, "mind_add", text="Restored servers push again"))


def test_a_server_that_is_lost_is_restored_from_its_backup(tmp_path: Path) -> None:
    home, git = tmp_path / "home/.mind", tmp_path / "srv/git"
    git.mkdir(parents=True)
    home.mkdir(parents=True)
    bare = made(git / "shop.git")
    tokens.write(home / "tokens.toml", USERS)
    options = ("--tokens", str(home / "tokens.toml"), "--repository", str(bare))

    def asked(server: Served, ask: Any) -> Any:
        return server.asked("auto", ask, "/shop", headers=bearer("ana"))

    with served(home, *options, folder=tmp_path) as server:
        asked(server, stored)
        assert server.stop()[0] == 143
    commits = subprocess.check_output(["git", "-C", str(bare), "rev-parse", "main"])
    run(tmp_path, BACKUP)
    shutil.rmtree(tmp_path / "home")
    shutil.rmtree(tmp_path / "srv")
    for folder in ("home", "srv"):
        (tmp_path / folder).mkdir()

    run(tmp_path, RESTORE)

    assert "ana@example.org" in run(tmp_path, CHECK)
    assert subprocess.check_output(["git", "-C", str(bare), "rev-parse", "main"]) == commits
    with served(home, *options, folder=tmp_path) as server:
        text = asked(server, listed)
        assert "Deploys need a tag" in text
        assert "Ana is away in May" in text
        assert "not pushed" not in asked(server, added)
    log = subprocess.check_output(
        ["git", "-C", str(bare), "log", "--format=%an", "main"], text=True
    )
    assert log.splitlines()[0] == "ana"
