"""Stores of released versions are opened by this one, and those of later versions are refused."""

import json
import re
import sqlite3
import tarfile
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call, Caller, Surface
from mimo.call.spec import Effect, Shape, Spec
from mimo.call.table import all_commands
from mimo.config import FORMAT
from mimo.data import files
from mimo.errors import LaterFormat
from mimo.features import ingest, values
from mimo.features.daemon.process import Loop
from mimo.features.pitfalls import storage
from mimo.frozen import NamedTuple
from mimo.index import schema
from mimo.memory.approval import approval_of
from mimo.mind import Mind
from mimo.operations.invoke import invoke
from mimo.project import projects
from scripts.store_fixture import LATER, READS, STORES, mind
from tests.kit import is_of_core, repository

VERSIONS = sorted(path.name.removesuffix(".tar.xz") for path in STORES.glob("*.tar.xz"))

Store = Callable[[str], Path]

KEY = re.compile(r"-[0-9a-f]{16}\.db$")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    def extracted(version: str) -> Path:
        with tarfile.open(STORES / f"{version}.tar.xz") as archive:
            archive.extractall(tmp_path, filter="data")
        return tmp_path

    return extracted


UNSTABLE = ("records", "relevance", "next", "started_at", "updated_at")
"""The number of records, to which each call adds one, scores, which versions fit again, and fields
that the first answers had not.
"""


def lasting(answer: Any) -> Any:
    """Returns an answer without what changes; which matches are weak stays."""
    if isinstance(answer, list):
        return [lasting(item) for item in answer]
    if not isinstance(answer, dict):
        return answer
    return {key: lasting(value) for key, value in answer.items() if key not in UNSTABLE}


def is_installed(words: Sequence[str]) -> bool:
    return words[0] in all_commands().below("")


def recorded(top: Path) -> list[Any]:
    """Returns lines of installed commands, each with the answer of the version of the store."""
    lines = json.loads((top / "answers.json").read_text("utf-8"))
    return [line for line in lines if is_installed(line[0])]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("index", ["its index", "no index"])
def test_a_store_of_a_released_version_gives_the_same_answers(
    store: Store, version: str, index: str
) -> None:
    top = store(version)
    if index == "no index":
        for path in (top / "shop/.mind/.index").iterdir():
            path.unlink()

    for words, answer in recorded(top):
        assert lasting(mind(top, LATER, *words)) == lasting(answer), words


@pytest.mark.parametrize("version", VERSIONS)
def test_a_store_of_a_released_version_can_be_changed(store: Store, version: str) -> None:
    top, now = store(version), LATER + timedelta(days=1)
    before = {row["id"] for row in mind(top, now, "list")["memories"]}
    mind(top, now, "evolve", "supersede", "auth", "Use passkeys", "--because", "No password")
    added = mind(top, now, "add", "Biscuits are in the tin")["id"]
    mind(top, now, "edit", added, "--content", "Biscuits are in the jar")
    mind(top, now, "undo")

    after = mind(top, now, "list")["memories"]
    texts = {row["id"]: row["title"] for row in after}
    assert texts[added] == "Biscuits are in the tin"
    assert "Use passkeys" in texts.values()
    assert before - set(texts) == set()
    assert mind(top, now, "audit", "verify")["whole"]
    assert {row["trust"] for row in after} == {"trusted"}


CACHES = {".index", "cache"}
LOGS = {"audit.jsonl", "accesses.log", "events.jsonl"}
STATE_OF_CALLS = re.compile(r"limits-\w+\.db|heads/\w{32}|trust\.db(-journal)?|.+\.lock")
"""Files that every call may write: counters, the heads of the audit, imported approvals, locks."""
MOVED = "home/.mind/trust-earlier", "home/.mind/trust"


def bytes_below(top: Path) -> dict[str, bytes]:
    """Returns all files of a store except caches, each with its bytes."""
    return {
        path.relative_to(top).as_posix(): path.read_bytes()
        for path in sorted(top.rglob("*"))
        if path.is_file() and CACHES.isdisjoint(path.parts)
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_opening_a_store_of_a_released_version_changes_no_text_and_no_decision(
    store: Store, version: str
) -> None:
    top = store(version)
    original = bytes_below(top)
    reads = filter(is_installed, READS)
    for words in (*reads, ("status",), ("review",), ("doctor",), ("index", "--rebuild")):
        mind(top, LATER, *words)
    present = {path.replace(*MOVED, 1): data for path, data in bytes_below(top).items()}

    logs = {path for path in original if Path(path).name in LOGS}
    locks = {path for path in original if path.endswith(".lock")}
    assert logs
    for path in logs:
        assert present[path].startswith(original[path]), path
    kept = original.keys() - logs - locks
    assert {path: present.get(path) for path in kept} == {path: original[path] for path in kept}
    added = present.keys() - original.keys()
    assert {path for path in added if not STATE_OF_CALLS.search(path)} == set()


@pytest.mark.parametrize("version", VERSIONS)
def test_caches_of_a_released_version_are_removed(
    store: Store, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_SETTLED_NS", -1)  # The extracted files count as old ones.
    top = store(version)
    cache = top / "home/.mind/cache"
    cache.mkdir()
    for name in ("edges.json", "edges-0.json"):
        (cache / name).write_text("{}", "utf-8")
    for words in (("list",), ("search", "when is tea served"), ("edges", "list")):
        mind(top, LATER, *words)

    for folder in ("shop/.mind/.index", "home/.mind/memories/.mind/.index"):
        names = {path.name for path in (top / folder).iterdir()} - {".gitignore"}
        names = {name.removesuffix("-wal").removesuffix("-shm") for name in names}
        kinds = {KEY.sub("", name) for name in names} - {"vectors-v2"}
        assert kinds == {f"index-v{schema.FORMAT}"}, folder
    assert [path.name for path in cache.glob("edges*")] == [Path(storage.CACHE).name]


def used(store: Store) -> Path:
    """Returns the folder of a store that this version has used, so that it has its own files."""
    top = store(VERSIONS[-1])
    mind(top, LATER, "list")
    return top


def later_store(top: Path) -> None:
    settings = top / "shop/.mind/config.toml"
    text = settings.read_text("utf-8")
    settings.write_text(text.replace(f"format = {FORMAT}", f"format = {FORMAT + 1}"), "utf-8")


def contents(top: Path) -> dict[Path, bytes]:
    """Returns the files of the project and the home, without those that any call may change."""
    own = {".index", "audit.jsonl", "heads", "accesses.log", "events.jsonl", "lock"}
    return {
        path: path.read_bytes()
        for path in top.rglob("*")
        if path.is_file() and path.suffix != ".lock" and own.isdisjoint(path.parts)
        if not path.name.startswith("limits-")
    }


REFUSED = "this memory has format 2; this mind writes format 1"

NOTE = "format 2 is newer than this mind understands"

ANY_FORMAT = {
    "mind_init": "another folder may be named, whose format it checks",
    "mind_config": "it shows settings; it checks the file that it changes",
    "mind_index": "the index is rebuilt from the files",
    "mind_undo": "it lists changes",
    "mind_edges_add": "an edge of the user is not in the project",
    "mind_edges_starter": "they are not in the project",
    "mind_add_global_edge": "it is not in the project",
    "knowledge": "it answers queries",
    "mind_demo": "it makes a project of its own",
    "mind_install": "a client's settings are not in the store",
    "mind_uninstall": "a client's settings are not in the store",
    "mind_module_install": "a client's files are not in the store",
    "mind_projects_forget": "the registry is in the home",
    "daemon_start": "it serves all projects",
    "daemon_stop": "it serves all projects",
    "daemon_restart": "it serves all projects",
    "daemon_run": "it serves all projects",
}
"""Commands that may run in a store of a later format, each with the reason."""

CHANGING = [
    spec for spec in all_commands().all() if is_of_core(spec) and spec.effect is not Effect.READ
]


def test_commands_that_ignore_the_format_are_known() -> None:
    assert {spec.key for spec in CHANGING if spec.any_format} == ANY_FORMAT.keys()


def sample(shape: Shape) -> Any:
    if shape.choices:
        return shape.choices[0]
    if shape.items:
        return [sample(shape.items)]
    return {"string": "x", "integer": 1, "number": 0.5, "boolean": True, "json": {}}[shape.kind]


WRITING = [
    (
        spec,
        {
            param.name: "agent.build" if param.name == "namespace" else sample(param.shape)
            for param in spec.params
            if param.required
        },
    )
    for spec in CHANGING
    if not spec.any_format
] + [
    (all_commands().at("init"), {}),
    (all_commands().at("config"), {"key": "decay.rate", "value": "0.2"}),
    (all_commands().at("config"), {"key": "decay.rate", "unset": True}),
    (all_commands().at("undo"), {}),
    (all_commands().at("undo"), {"purge": True, "id": "all"}),
    (
        all_commands().at("pitfalls add"),
        {"title": "x", "description": "x", "workaround": "x", "project": True},
    ),
    (all_commands().tools()["knowledge"][0], {"operation": "teach", "text": "x"}),
    (all_commands().at("doctor"), {"fix": True}),
]


@pytest.mark.parametrize(
    ("spec", "arguments"), WRITING, ids=[f"{spec.key} {len(given)}" for spec, given in WRITING]
)
def test_no_command_writes_into_a_project_of_a_later_format(
    store: Store, monkeypatch: pytest.MonkeyPatch, spec: Spec, arguments: dict[str, Any]
) -> None:
    top = used(store)
    later_store(top)
    monkeypatch.chdir(top / "shop")
    before = contents(top)
    surface = Surface.CLI if Surface.CLI in spec.surfaces else Surface.MCP

    with (
        closing(Mind(**opened(top))) as memory,
        pytest.raises(LaterFormat, match=REFUSED) as caught,
    ):
        invoke(spec, Call(memory, Caller(surface=surface)), arguments)

    assert caught.value.hint == "update mind; nothing was changed"
    assert contents(top) == before


def opened(top: Path) -> dict[str, Any]:
    home = top / "home/.mind"
    project = projects.explicit(top / "shop", home)
    return {"home": home, "project": project, "clock": lambda: LATER, "environ": {}}


def test_a_project_of_a_later_format_can_be_read(store: Store) -> None:
    top = used(store)
    later_store(top)

    for words, answer in recorded(top):
        expected = lasting(answer)
        if words[0] == "config":
            expected["warnings"] = [f"TOP/shop/.mind/config.toml: {NOTE}"]
        assert lasting(mind(top, LATER, *words)) == expected, words
    mind(top, LATER, "index", "--rebuild")


def test_the_daemon_and_hooks_write_nothing_into_a_project_of_a_later_format(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    top = used(store)
    mind(top, LATER, "index")  # Its tables may be of an earlier version.
    later_store(top)
    (top / "shop/docs/guide.md").write_text("# Guide\n\nWater cools.\n", "utf-8")
    (top / "shop/CLAUDE.md").unlink()
    listed = top / "shop/.mind/.local/ingested.json"  # Its name is another one since.
    owner = str(projects.known_owner(top / "home/.mind"))
    listed.rename(listed.with_name(f"{files.own_name('ingested', owner)}.json"))
    monkeypatch.chdir(top / "shop")
    before = contents(top)

    with closing(Mind(**opened(top))) as memory:
        with pytest.raises(LaterFormat, match=REFUSED):
            ingest.update_changed(Call(memory))
        loop = Loop(memory)
        loop._projects = {memory.project.root: memory}
        loop.active = {memory.project.root: LATER}
        loop._end_session(memory.project.root)

    assert f"the notes for agents were not written: {REFUSED}" in caplog.text
    assert contents(top) == before


def test_the_memory_for_all_projects_is_not_written_in_a_later_format(store: Store) -> None:
    top = used(store)
    folder = top / "home/.mind/memories/.mind"
    (path,) = folder.rglob("*.md")
    (folder / "config.toml").write_text("format = 2\n", "utf-8")
    before = contents(top)

    for words in (
        ("add", "--user", "Always use uv"),
        ("rm", path.stem),
        ("edit", path.stem, "--add-tag", "js"),
        ("trust", "--user"),
    ):
        with pytest.raises(RuntimeError, match=f"{REFUSED}.*update mind"):
            mind(top, LATER, *words)

    assert contents(top) == before


# Approvals.


def approvals(top: Path) -> sqlite3.Connection:
    return sqlite3.connect(top / "home/.mind/trust.db", isolation_level=None)


def make_later(top: Path) -> None:
    with closing(approvals(top)) as connection:
        connection.execute("ALTER TABLE approval ADD COLUMN more")
        connection.execute("PRAGMA user_version = 3")


def test_a_trust_store_of_a_later_version_trusts_nothing_and_stays(store: Store) -> None:
    top = used(store)
    rows = mind(top, LATER, "list")["memories"]
    make_later(top)
    before = contents(top)

    for words in (
        ("trust",),
        ("trust", "--follow"),
        ("trust", rows[0]["id"]),
        ("untrust",),
        ("untrust", rows[0]["id"]),
        ("add", "Milk goes in first"),
        ("value", "put", "agent.build", "last", "1"),
        ("context", "write"),
        ("config", "context.budget", "5000"),
        ("config", "context.budget", "--unset"),
        ("procedure", "run", "greet", "--context", '{"who": "you"}'),
    ):
        with pytest.raises(RuntimeError, match="has format 3; this mind writes format 2") as caught:
            mind(top, LATER, *words)
        assert "update mind; nothing was changed" in str(caught.value), words
        assert contents(top) == before, words

    after = mind(top, LATER, "list")["memories"]
    assert {row["id"] for row in after} == {row["id"] for row in rows}
    assert {row["trust"] for row in rows} == {"trusted"}
    assert "trusted" not in {row["trust"] for row in after}
    with pytest.raises(RuntimeError, match="update mind"):
        mind(top, LATER, "doctor")
    assert mind(top, LATER, "config", "context.budget")["settings"]
    assert contents(top) == before


def test_no_digest_in_a_trust_store_of_a_later_version_counts(store: Store) -> None:
    top = used(store)
    text = files.digest(b"a text of another author")
    (path,) = (top / "shop/.mind/procedures").glob("*.md")
    procedure = approval_of(f".mind/procedures/{path.name}", path.read_bytes())
    with closing(Mind(**opened(top))) as memory:
        memory.trust.approve([text])
        assert memory.trust.trusted(text)
        assert memory.trust.approved(procedure)
        make_later(top)
        assert not memory.trust.trusted(text)
        assert not memory.trust.approved(procedure)
        assert memory.trust.trusted_digests(100) == frozenset()


def test_approvals_of_a_later_version_stay_when_the_project_becomes_a_repository(
    store: Store,
) -> None:
    top = used(store)
    make_later(top)
    repository(top / "shop")
    before = contents(top)

    with pytest.raises(RuntimeError, match="update mind"):
        mind(top, LATER, "trust")

    assert contents(top) == before


def test_unknown_keys_in_the_header_of_a_value_are_kept(store: Store) -> None:
    top = used(store)
    (path,) = (top / "shop/.mind/values").rglob("*.md")
    path.write_bytes(path.read_bytes().replace(b"---\n", b"---\nowner: [ana, bo]\n", 1))

    for value in ('{"ok": false}', "[1, 2]", '"three"'):
        mind(top, LATER, "value", "put", "agent.build", "last", value)
        assert b"\nowner: [ana, bo]\n" in path.read_bytes(), value
        got = mind(top, LATER, "value", "get", "agent.build", "last")["value"]
        assert got == json.loads(value)


def test_expired_values_stay_in_a_project_of_a_later_format(store: Store) -> None:
    top = used(store)
    for key, seconds in (("soon", "1000"), ("late", "3000")):
        mind(top, LATER, "value", "put", "agent.build", key, "1", "--ttl-seconds", seconds)
    later_store(top)
    before = contents(top)
    then = LATER + timedelta(seconds=2000)

    with pytest.raises(RuntimeError, match="there is no `soon`"):
        mind(top, then, "value", "get", "agent.build", "soon")
    assert mind(top, then, "value", "list", "agent.build")["keys"] == ["last", "late"]
    assert mind(top, LATER - timedelta(days=1), "value", "get", "agent.build", "late")["value"] == 1
    with closing(Mind(**opened(top))) as memory:
        assert values.expire(Call(memory), then) == 0

    assert contents(top) == before


# Every other file: what uses it is refused, the rest works, and it stays.


class Later(NamedTuple):
    spoil: Callable[[Path], object]
    """Makes a file one of a later version."""
    message: str
    refused: tuple[str, ...]
    working: tuple[str, ...] = ()


def replaced(folder: str, pattern: str, old: str, new: str) -> Callable[[Path], object]:
    """Returns a function that changes a text in a file, at its first place."""

    def change(top: Path) -> None:
        (path,) = (top / folder).rglob(pattern)
        path.write_text(path.read_text("utf-8").replace(old, new, 1), "utf-8")

    return change


def later_record(top: Path) -> None:
    with (top / "shop/.mind/.local/audit.jsonl").open("ab") as log:
        log.write(b'{"event":{"n":99},"format":2}\n')


def later_database(top: Path) -> None:
    mind(top, LATER, "value", "put", "agent.build", "soon", "1", "--ttl-seconds", "1000")
    (path,) = (top / "shop/.mind/.local").glob("values-*.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE entries ADD COLUMN more TEXT")
        connection.execute("PRAGMA user_version = 2")


def later_list(top: Path) -> None:
    path = top / "home/.mind/projects.json"
    listed = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({"format": 2, "projects": listed}), "utf-8")


LATER_FILES = {
    "audit log": Later(
        later_record,
        "the audit log has",
        ("add Milk", "value put agent.build last 1", "audit verify"),
        ("list", "audit show"),
    ),
    "value": Later(
        replaced("shop/.mind/values", "*.md", "---\n", "---\nformat: 2\n"),
        "the value has",
        ("value get agent.build last", "value rm agent.build last", "value put agent.build last 1"),
        ("value list agent.build",),
    ),
    "temporary value": Later(
        later_database,
        r"values-\w+.db` has",
        ("value get agent.build soon", "value put agent.build soon 2"),
    ),
    "run": Later(
        replaced("shop/.mind/.local/executions", "journal.jsonl", "{", '{"format": 2, '),
        "journal.jsonl` has",
        ("procedure status latest", "procedure resume latest", "procedure cancel latest"),
    ),
    "projects": Later(later_list, "projects.json` has", ("projects forget shop",), ("init",)),
    "settings": Later(
        lambda top: (top / "home/.mind/config.toml").write_text("format = 2\n"),
        "config.toml` has",
        ("config time.zone UTC", "config --user decay.rate 0.2"),
        ("config time.zone",),
    ),
}


@pytest.mark.parametrize("later", LATER_FILES.values(), ids=LATER_FILES)
def test_a_file_of_a_later_version_is_refused_and_stays(store: Store, later: Later) -> None:
    top = used(store)
    mind(top, LATER, "init")  # Adds lines for git.
    later.spoil(top)
    before = contents(top), sizes(top)

    for words in later.refused:
        message = rf"{later.message} format 2; this mind writes format 1.*update mind"
        with pytest.raises(RuntimeError, match=message):
            mind(top, LATER, *words.split())
    for words in later.working:
        mind(top, LATER, *words.split())

    assert (contents(top), sizes(top)) == before


def sizes(top: Path) -> tuple[int, ...]:
    """Returns the size of the audit log, unless any call adds to it."""
    data = (top / "shop/.mind/.local/audit.jsonl").read_bytes()
    return (len(data),) if data.endswith(b'"format":2}\n') else ()


def test_a_project_is_not_added_to_a_list_of_a_later_version(store: Store) -> None:
    top = used(store)
    later_list(top)
    (notice,) = mind(top, LATER, "init")["notices"]
    assert "has format 2; this mind writes format 1; the project was not added" in notice
