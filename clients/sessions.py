"""A session of a real client with mind, and the evidence that it leaves."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from clients.model import REMINDER, Call, Model, serving
from clients.recipes import Place, Recipe
from mimo.extensions.sessions.model import Progress, Role
from mimo.extensions.sessions.readers import CLIENTS, reader_of

AT_START = "Send uploads in parts of 50 MB"
"""A decision, which is given at the start of a session."""
WITH_PROMPT = "The nightly backup of the warehouse writes to the bucket in Lisbon."
"""A part of a document, which is given with a prompt that it concerns."""
PROMPT = "Where does the nightly backup of the warehouse write to?"
EDGE = "Frobnication of a whole folder loses its last file"
"""A known edge, at which the first edit with the pattern is stopped, and the second is not."""
PATTERN = "frobnicate_all"
RECORDED = "Retry an upload three times"
"""The decision that the model records when it is asked."""

_SECONDS = 180


@dataclass
class Evidence:
    """The observations of one run; each is True only if the run showed it."""

    version: str = ""
    installed: bool = False
    listed: tuple[str, ...] = ()
    """The tools of mind that the model was given."""
    called: bool = False
    """True if the result of a search came back to the model."""
    start: bool = False
    """True if the notes of the start came to the model."""
    prompt: bool = False
    """True if the notes for the prompt came to the model."""
    stopped: bool = False
    """True if the model read of the edge when it wrote the pattern, and could then repeat it."""
    asked: int = 0
    """Number of times that the hook asked to record the session."""
    recorded: bool = False
    """True if the model read that, recorded a decision, and it is stored."""
    quiet: bool = False
    """True if a session without mind on the PATH wrote a file, and reported no hook."""
    restored: bool = False
    """True if the files and folders are as they were before the installation."""
    hooks: tuple[str, ...] = ()
    """The events that reached mind, as its log has them."""
    problems: list[str] = field(default_factory=list)


@dataclass
class Session:
    """A client in folders of its own."""

    recipe: Recipe
    place: Place
    bin: Path
    """The folder with the client's program."""
    has_mind: bool = True
    """False if mind is not on the PATH."""

    def surroundings(self) -> dict[str, Any]:
        """Returns the folder, environment and input of a program, as from a small shell."""
        environ = {
            "HOME": str(self.place.home),
            "PATH": os.pathsep.join(
                (
                    *((str(Path(sys.executable).parent),) if self.has_mind else ()),
                    *(str(self.bin), _folder_of("node"), os.defpath),
                )
            ),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            **self.recipe.environ(self.place),
        }
        return {"cwd": self.place.project, "env": environ, "stdin": subprocess.DEVNULL}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs a program in the project."""
        return subprocess.run(
            words,
            **self.surroundings(),
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
        )

    def mind(self, *words: str) -> str:
        """Runs mind and returns its output. Raises `AssertionError` with its errors."""
        done = self.run("mind", *words)
        assert done.returncode == 0, f"mind {' '.join(words)}: {done.stderr}{done.stdout}"
        return done.stdout


def _folder_of(program: str) -> str:
    return str(Path(shutil.which(program) or program).parent)


def observe(recipe: Recipe, bin: Path, base: Path, scope: str) -> Evidence:
    """Installs mind into a client, runs a session of it, and removes mind again."""
    evidence = Evidence()
    model = Model(
        calls=(
            Call("mind_search", {"query": "uploads proxy"}),
            *(recipe.edit(base / "project" / "a.py", f"{PATTERN}()\n") for _ in range(2)),
            recipe.edit(base / "project" / "b.py", "x = 1\n"),
        ),
        search=recipe.search,
        when_asked=Call(
            "save_decision",
            {"topic": "retries", "decision": RECORDED, "reasoning": "The proxy drops some"},
        ),
    )
    with serving(model):
        place = Place(base / "home", base / "project", model.address)
        session = Session(recipe, place, bin)
        prepare(session, evidence)
        before = _tree(session)
        install = ("install", recipe.client, "--scope", scope)
        session.mind(*install)
        evidence.installed = _tree(session) != before
        session.mind("uninstall", *install[1:])
        evidence.restored = _tree(session) == before
        session.mind(*install)
        installed = _tree(session)
        added = {path for path, data in installed.items() if before.get(path) != data}
        folders = {path for path, data in installed.items() if data is None} - before.keys()
        done = send(session, model)
        (base / "output.txt").write_text(f"{done.returncode}\n{done.stdout}\n{done.stderr}")
        _read(evidence, model, session)
        evidence.quiet = _is_quiet_without_mind(session, model)
        session.mind("uninstall", *install[1:])
        after = _tree(session)
        left = sorted(path for path in added if after.get(path) != before.get(path))
        left += [
            folder
            for folder in sorted(folders & after.keys())
            if not any(path.startswith(f"{folder}/") for path in after)
        ]
        for name in recipe.rewrites:
            file = place.home / name
            left += [name] if file.is_file() and '"mind"' in file.read_text() else []
        evidence.restored &= not left
        evidence.problems += [f"left behind: {path}" for path in left]
    evidence.problems += model.problems
    if not model.requests:
        evidence.problems.append(f"the model was not asked: {done.stderr[-400:]}")
    (base / "requests.json").write_text(
        json.dumps([request.body for request in model.requests], indent=1)
    )
    return evidence


def send(session: Session, model: Model, prompt: str = PROMPT) -> subprocess.CompletedProcess[str]:
    """Sends a prompt, and ends the processes that the client left running."""
    recipe, port = session.recipe, str(_free_port())
    words = [word.replace("{port}", port) for word in (*recipe.words, prompt)]
    if not recipe.serve:
        done = session.run(recipe.program, *words)
    else:
        serve = [recipe.program, *(word.replace("{port}", port) for word in recipe.serve)]
        with subprocess.Popen(serve, **session.surroundings(), stdout=subprocess.DEVNULL) as server:
            _wait_for(int(port))
            done = session.run(recipe.program, *words)
            _wait_until_quiet(model)
            server.terminate()
    daemon = session.place.home / recipe.daemon
    if recipe.daemon and daemon.exists():
        os.kill(json.loads(daemon.read_text())["pid"], signal.SIGTERM)
    return done


def _is_quiet_without_mind(session: Session, model: Model) -> bool:
    """Returns whether the session of a colleague without mind works, with the installed files."""
    file = session.place.project / "c.py"
    calls, model.calls = model.calls, (session.recipe.edit(file, "x = 1\n"),)
    search, model.search = model.search, None
    requests = len(model.requests)
    done = send(replace(session, has_mind=False), model)
    output = f"{done.stdout}{done.stderr}"
    (session.place.home.parent / "output-without-mind.txt").write_text(output)
    model.calls, model.search = calls, search
    del model.requests[requests:]
    failed = re.search(r"hook[^\n]*(?:fail|error|not found|denied|127)", output, re.IGNORECASE)
    return file.exists() and failed is None


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _wait_for(port: int) -> None:
    for _ in range(100):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.2)


def _wait_until_quiet(model: Model) -> None:
    """Waits until the model was not asked for some seconds."""
    before = -1
    while before != (before := len(model.requests)):
        time.sleep(5)


def prepare(session: Session, evidence: Evidence) -> None:
    """Makes a project with a memory, and the client's own settings."""
    place, recipe = session.place, session.recipe
    place.home.mkdir(parents=True)
    place.project.mkdir()
    session.run("git", "init", "--quiet")
    session.mind("init")
    session.mind("add", "--type", "decision", f"{AT_START}, because the proxy cuts longer ones")
    document = place.project / "backup.md"
    document.write_text(f"# Backups\n\n{WITH_PROMPT}\n")
    session.mind("ingest", "backup.md")
    about = ("--description", "It stops early", "--workaround", "Frobnicate each file")
    match = ("--code", PATTERN, "--severity", "critical")
    session.mind("edges", "add", "--project", "--title", EDGE, *about, *match)
    session.mind("config", "hook.capture", "on")
    session.mind("status")
    for path, text in recipe.files(place).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if words := recipe.before(place):
        session.run(recipe.program, *words)
    output = session.run(recipe.program, "--version").stdout
    numbers = [word.rstrip(".") for word in output.split() if word[0].isdigit()]
    evidence.version = numbers[0] if numbers else output.strip()


def _tree(session: Session) -> Mapping[str, bytes | None]:
    """Returns the content of all files, and None for each folder.

    The files of mind and git are left out, and those that the client itself changes all the time.
    """
    tree: dict[str, bytes | None] = {}
    left_out = {".mind", ".git", *session.recipe.rewrites}
    for root in (session.place.home, session.place.project):
        for path in root.rglob("*"):
            if not left_out & set(path.relative_to(root).parts) and not path.is_symlink():
                data = path.read_bytes() if path.is_file() else None
                tree[str(path.relative_to(root.parent))] = data
    return tree


def _read(evidence: Evidence, model: Model, session: Session) -> None:
    """Reads the requests of the client, the log of hooks, and the memory."""
    tools = {name for request in model.requests for name in request.tools if "mind" in name}
    evidence.listed = tuple(sorted(name.replace("\0", ".") for name in tools))
    evidence.called = any(
        AT_START in result for request in model.requests for result in request.results
    )
    first = next((request for request in model.requests if request.tools), None)
    if first:
        evidence.start = "mind-context" in first.text and AT_START in first.text
        evidence.prompt = "mind-context" in first.text and WITH_PROMPT in first.text
    stopped = any(EDGE in result for request in model.requests for result in request.results)
    evidence.stopped = stopped and (session.place.project / "a.py").exists()
    log = session.place.home / ".mind" / "logs" / "hook.log"
    lines = log.read_text().splitlines() if log.exists() else []
    evidence.hooks = tuple(dict.fromkeys(line.split(":")[2].split()[-1] for line in lines))
    evidence.asked = sum("asked the agent" in line for line in lines)
    read = any(REMINDER in request.text for request in model.requests)
    evidence.recorded = read and RECORDED in session.mind("list")
    evidence.problems += _unread(session)


def _unread(session: Session) -> Iterator[str]:
    """Yields the differences between the session that was run and its transcript as mind reads it.

    The prompt is the only text of the user, and all records have a known shape.
    """
    client, place = session.recipe.client, session.place
    if client not in CLIENTS:
        return
    reader = reader_of(client)
    sources = reader.sources(session.surroundings()["env"], place.home)
    parts = [part for source in sources for part in reader.read(source, Progress())]
    turns = [turn for part in parts for turn in part.turns]
    prompts = [turn.text for turn in turns if turn.role is Role.USER]
    if prompts != [PROMPT]:
        yield f"the transcript has the prompts {prompts}"
    edited = {Path(file).name for turn in turns for file in turn.files}
    if not {"a.py", "b.py"} <= edited:
        yield f"the transcript has the edited files {sorted(edited)}"
    if unknown := sum(part.unknown for part in parts):
        yield f"{unknown} of {sum(part.records for part in parts)} records have no known shape"
    if any(Path(part.facts.cwd) != place.project for part in parts):
        yield f"the transcript has the folders {sorted({part.facts.cwd for part in parts})}"
