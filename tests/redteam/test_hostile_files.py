"""A file that cannot be read is reported and skipped; every other memory stays in use."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from mimo import rendering
from mimo.cli.main import main
from mimo.data.sqlite import files_of
from mimo.errors import Internal, MindError
from mimo.features.hooks import command as hook
from mimo.features.hooks.related import Prompt
from mimo.index import vectors
from mimo.index.schema import SCHEMA
from mimo.memory import codec, log, sources
from mimo.project.projects import known_owner
from tests import kit
from tests.conftest import NOW
from tests.redteam.hostile import FILES

REPORT = rendering.report
KIND = "small hostile file stops commands"

Record = Callable[[str, object], None]

PLACES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "memories": (
        (
            "shop/.mind/MEMORY.md",
            "shop/.mind/facts/x.md",
            "shop/.mind/edges/x.md",
            "shop/.mind/sources/x.md",
            "shop/.mind/private/facts/y.md",
            "shop/docs/adr.md",
            "shop/code.py",
            "shop/package.json",
            "other/.mind/MEMORY.md",
            "home/memories/facts/x.md",
            "home/edges/x.md",
        ),
        ("status", "doctor", "search limit --scope all", "pitfalls list"),
    ),
    "values and procedures": (
        ("shop/.mind/values/user/x.md", "shop/.mind/procedures/x@1.0.md"),
        ("value list user", "procedure list", "doctor"),
    ),
    "settings": (
        ("shop/.mind/config.toml", "other/.mind/config.toml", "home/config.toml"),
        ("status", "doctor", "search limit --scope all", "config"),
    ),
    "policy": (
        ("shop/.mind/policy.yaml", "other/.mind/policy.yaml"),
        ("status", "policy show", "doctor", "search limit --scope all"),
    ),
    "this machine's own state": (
        ("home/projects.json", "home/trust.db*", "home/audit/*/*", "home/audit/key"),
        ("status", "doctor", "audit verify", "load checkpoint"),
    ),
    "the project's local state": (
        ("shop/.mind/.local/*", "shop/.mind/.local/*/*", "shop/.mind/.gitignore"),
        ("search limit", "events", "metrics", "fading", "value get session b", "procedure status"),
    ),
    "git": (
        ("shop/.git/HEAD", "shop/.git/logs/HEAD", "shop/.git/packed-refs", "other/.git"),
        ("status", "load checkpoint", "search limit --scope all"),
    ),
}


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two projects in use and a home, with something in every place, and a copy of all."""
    world = tmp_path_factory.mktemp("used") / "world"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(world / "user"))
        patch.setenv("MIND_HOME", str(world / "home"))
        for name in ("other", "shop"):
            root = world / name
            root.mkdir(parents=True)
            patch.chdir(root)
            for command in ("init -q -b main .", "commit -q --allow-empty -m x"):
                person = ("-c", "user.name=a", "-c", "user.email=a@example.org")
                subprocess.run(["git", *person, *command.split()], check=True)
            run("init")
        for words in (
            ("add", "The API limit is 50 a second"),
            ("save", "checkpoint", "Login works", "--next-steps", "Write the test"),
            ("value", "put", "user", "a", "1"),
            ("value", "put", "session", "b", "2"),
            ("procedure", "new", "deploy"),
            ("procedure", "run", "deploy"),
            (
                *("edges", "add", "--project", "--title", "Vercel crypto"),
                *("--description", "There is none", "--workaround", "Web Crypto"),
            ),
            ("search", "limit"),
            ("fading",),
            ("events",),
        ):
            run(*words)
    settings = 'format = 1\ninclude = ["docs/*.md"]\ncomments = ["*.py"]\ncommits = 5\n'
    (world / "shop" / ".mind" / "config.toml").write_text(settings)
    shutil.copytree(world, world.with_name("copy"))
    return world


@pytest.fixture
def world(used: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The projects and the home as they were; the working directory is the first project."""
    shutil.rmtree(used)
    shutil.copytree(used.with_name("copy"), used)
    monkeypatch.setenv("HOME", str(used / "user"))
    monkeypatch.setenv("MIND_HOME", str(used / "home"))
    monkeypatch.chdir(used / "shop")
    return used


CACHES = (SCHEMA, vectors.SCHEMA)


def owner(world: Path) -> str:
    return known_owner(world / "home") or ""


def run(*words: str) -> None:
    main(list(words))


@pytest.fixture(autouse=True)
def faults(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The unforeseen errors of all commands."""
    seen: list[str] = []

    def report(error: MindError, **_: bool) -> int:
        if isinstance(error, Internal):
            seen.append(f"{os.environ['TRIED']}: {error.__cause__!r}")
        return 1

    monkeypatch.setenv("TRIED", "a sound file")
    monkeypatch.setattr(rendering, "report", report)
    return seen


def put(world: Path, patterns: Sequence[str], data: bytes) -> None:
    """Writes hostile bytes to every place of a group, also over existing files."""
    for pattern in patterns:
        places = [p for p in world.glob(pattern) if p.is_file()] if "*" in pattern else []
        for place in places or [world / pattern] * ("*" not in pattern):
            if place.is_dir():
                shutil.rmtree(place)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)


@pytest.mark.attack(KIND)
@pytest.mark.parametrize("group", PLACES)
def test_a_hostile_file_never_stops_a_command(
    world: Path,
    group: str,
    faults: list[str],
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
) -> None:
    patterns, commands = PLACES[group]
    assert faults == []
    # The groups take turns: each has half of the files, and each file is in half of the groups.
    every = list(FILES.items())[list(PLACES).index(group) % 2 :: 2]
    for (name, data), command in zip(every, cycle(commands), strict=False):
        put(world, patterns, data)
        monkeypatch.setenv("TRIED", f"{name}, {command}")
        run(*command.split())
    record_property("tried", len(every))
    assert faults == []


@pytest.mark.attack(KIND)
def test_a_hook_ignores_a_hostile_payload(world: Path, record_property: Record) -> None:
    events = [b'{"hook_event_name": "UserPromptSubmit", "cwd": ".", "prompt": %s}']
    for data in FILES.values():
        for payload in (data, *(event % data for event in events)):
            try:
                hook.respond(payload, "", os.environ)
            except ValueError:
                continue
    record_property("tried", 2 * len(FILES))


@pytest.mark.attack(KIND)
def test_a_hostile_commit_message_is_read(record_property: Record) -> None:
    for data in FILES.values():
        body = data.decode("utf-8", "replace") + "\nlearned: x is y"
        memories = log.in_message(body, commit="c" * 40, author="", when=NOW, taken={})
        assert [memory.title for memory in memories][-1:] == ["x is y"]
    record_property("tried", len(FILES))


@pytest.mark.attack(KIND)
def test_a_log_with_carriage_returns_is_read_line_by_line() -> None:
    data = b"- decided: use tea over coffee\rand more\n- learned: cups break"

    records = log.parse(data, path="x", digest="", modified=NOW, dates=dict)

    assert isinstance(records, tuple)
    assert [(record.memory.title, record.place.line) for record in records][-1] == ("cups break", 3)


def steps(work: Callable[[], object]) -> int:
    """Returns how many lines of Python a call runs."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


LINES = (
    "- decided: a over b\n",
    "# MEMORY: decided: a over b\n",
    "learned: x is y\n",
    "[[a]] `b` **c**\n",
    "<!-- chunk 1 lines 1-2 -->\nx\n",
    "## Gotchas\n- a\n  - b\n",
    "> - a: b\n",
)


@pytest.mark.attack("repeated text takes quadratic time")
@pytest.mark.parametrize("line", LINES)
def test_four_times_the_text_takes_four_times_the_work(line: str) -> None:
    def parse(count: int) -> int:
        text = line * count
        data = text.encode()
        readers: list[Callable[[], object]] = [
            lambda: log.parse(data, path="x", digest="", modified=NOW, dates=dict),
            lambda: codec.parse(data, path=".mind/facts/x.md", modified=NOW),
            lambda: sources.parse(data, path=".mind/sources/x.md", modified=NOW),
            lambda: list(log.in_code(text, path="x.py", digest="", modified=NOW)),
            lambda: list(log.in_message(text, commit="", author="", when=NOW, taken={})),
        ]
        return sum(map(steps, readers))

    parse(1)
    assert parse(400) < 6 * parse(100)


@pytest.mark.attack("repeated text takes quadratic time")
def test_no_prompt_takes_long_to_weigh() -> None:
    prompt = Prompt("a test-" + "test-" * 8_000, lambda _: 0, units=1, memories=1)
    assert prompt.weights == {}


@pytest.mark.attack("special file hangs a command")
@pytest.mark.parametrize(
    "place",
    [
        "shop/.mind/.local/accesses.log",
        "shop/.mind/.local/audit.jsonl",
        "shop/.mind/.local/lock",
        "shop/.mind/.local/events.jsonl",
        "shop/.mind/.index/{tables}",
        "shop/.mind/.index/{vectors}",
        "shop/.mind/MEMORY.md",
        "shop/.mind/config.toml",
        "shop/.mind/policy.yaml",
        "shop/.git/HEAD",
        "shop/.git/config",
        "shop/.git/index",
        "shop/package.json",
        "home/config.toml",
        "home/projects.json",
        "home/logs/daemon.log",
    ],
)
def test_a_named_pipe_in_the_place_of_a_file_does_not_hang(
    world: Path, place: str, faults: list[str]
) -> None:
    names = [schema.path(Path(), owner(world)).name for schema in CACHES]
    path = world / place.format(tables=names[0], vectors=names[1])
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    for command in ("status", "search limit", "value get session b", "events", "daemon logs"):
        run(*command.split())
    assert faults == []


@pytest.mark.attack("special file hangs a command")
@pytest.mark.parametrize("sort", ["large", "pipe"])
@pytest.mark.parametrize("folder", ["", ".mind/", ".mind/facts/", "docs/", ".git/info/"])
def test_git_is_not_asked_to_read_a_large_file_of_rules_or_a_pipe(
    world: Path, folder: str, sort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "report", REPORT)
    kit.put(world / "shop" / "docs" / "adr.md", "Use queues.\n")
    path = world / "shop" / folder / ("exclude" if ".git/" in folder else ".gitignore")
    path.unlink(missing_ok=True)
    if sort == "pipe":
        os.mkfifo(path)
    else:
        path.touch()
        os.truncate(path, 10 << 30)
    reason = "is a named pipe" if sort == "pipe" else "is too large: 10,737,418,240 bytes"

    lines = ["ingest docs"] if folder == "docs/" else ["sync", "status", "doctor"]
    answers = [kit.run(None, *line.split(), status=None) for line in lines]

    assert [(ran.out + ran.err).count(f"`{path}` {reason}") for ran in answers] == [1] * len(lines)


@pytest.mark.attack("special file hangs a command")
def test_an_index_whose_place_a_pipe_has_taken_is_made_beside_it(world: Path) -> None:
    for schema in CACHES:
        path = schema.path(world / "shop" / ".mind" / ".index", owner(world))
        for file in files_of(path):
            file.unlink(missing_ok=True)
        os.mkfifo(path)

    ran = kit.run(None, "search", "limit")

    assert "50 a second" in ran.out
    assert ran.err == ""


@pytest.mark.attack("file from the far future stops commands")
@pytest.mark.parametrize("seconds", [10**12, 2**34, -(10**12)])
def test_a_file_with_an_odd_time_is_read(world: Path, faults: list[str], seconds: int) -> None:
    for name in ("facts/x.md", "edges/x.md"):
        os.utime(kit.write(world / "shop", name, "The kettle is odd\n"), (seconds, seconds))
    for _ in range(2):
        assert "The kettle is odd" in kit.run(None, "search", "odd kettle").out
    for command in ("list", "pitfalls list", "review", "status"):
        run(*command.split())
    assert faults == []


@pytest.mark.attack("deep folder stops commands")
def test_a_folder_of_1500_levels_is_walked(world: Path, faults: list[str]) -> None:
    top = world / "shop" / ".mind" / "facts" / "d"
    try:
        os.chdir(top.parent)
        for _ in range(1500):
            os.mkdir("d")  # noqa: PTH102 - a relative path, since the whole one is too long
            os.chdir("d")
        Path("deep.md").write_text("The limit is a deep one\n")
        os.chdir(world / "shop")

        assert "a deep one" in kit.run(None, "search", "deep limit").out
        for command in ("status", "doctor", "scan"):
            run(*command.split())
        assert faults == []
    finally:
        os.chdir(world)
        subprocess.run(["rm", "-rf", top], check=True)  # pytest's own removal recurses


@pytest.mark.attack(KIND)
@pytest.mark.parametrize("owner", ["shop/.mind", "home"])
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        pytest.param("# x\n" * 20_000, "too large: 80,000 bytes, at most 65,536", id="large"),
        pytest.param("a" + ".a" * 20_000 + " = 1\n", "nested too deeply", id="dots"),
    ],
)
def test_doctor_names_settings_that_cost_too_much(
    world: Path, capsys: pytest.CaptureFixture[str], owner: str, settings: str, reason: str
) -> None:
    path = world / owner / "config.toml"
    path.write_text(settings)

    run("doctor", "--json")

    checks = json.loads(capsys.readouterr().out)["checks"]
    messages = [check["message"] for check in checks if check["name"] == "settings"]
    assert any(str(path) in message and reason in message for message in messages)
