"""Attempts to get past the guard: odd names, cursors, files and clocks. None may succeed."""

import json
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.call import Call, Caller, Surface
from mimo.call.spec import to_json
from mimo.call.table import all_commands
from mimo.errors import Denied, Invalid, MindError, RateLimited
from mimo.guard.policy import FILE
from mimo.memory.ids import covers
from mimo.mind import Mind
from mimo.operations.invoke import invoke
from mimo.project.trust import Trust
from tests.conftest import Clock

pytestmark = pytest.mark.attack("policy bypass")

TOOLS = all_commands().tools()
CALLER = Caller(surface=Surface.MCP, name="an agent")

SECRET = "the launch code is 4711"
ALLOWED = ("session", "agent", "public")

OPEN = """\
tool_permissions:
  putMemory: {allowed_namespaces: ["*"]}
  listMemory: {allowed_namespaces: ["*"]}
"""


def call_tool(call: Call, tool: str, **arguments: Any) -> Any:
    """Returns what a tool answers, as an MCP client gets it."""
    return to_json(invoke(TOOLS[tool][0], call.by(CALLER), arguments))


def forward(call: Call) -> None:
    """Lets a second pass, so that no limit is what refuses the next call."""
    assert isinstance(call.mind.clock, Clock)
    call.mind.clock.forward(seconds=1)


@pytest.fixture
def guarded(call: Call) -> Call:
    """A memory with something that the policy keeps to itself."""
    path = call.mind.project.root / FILE
    path.write_text(OPEN, encoding="utf-8")
    for namespace in ("vault.codes", "public.news", "sessionevil", "agentx.y"):
        call_tool(call, "putMemory", namespace=namespace, key="hidden", value=SECRET)
    path.unlink()
    call.mind.trust.approve_removal(FILE)
    return call


def paths_of(call: Call) -> Iterator[Path]:
    """Yields the files in and around the project, except those that count or record calls."""
    root = call.mind.project.root.parent
    for path in sorted(root.rglob("*")):
        counts = path.name.startswith(("limits-", "values.lock", "index-owner", "audit."))
        parts = path.relative_to(root).parts
        if path.is_file() and not counts and {"audit", ".index"}.isdisjoint(parts):
            yield path


def files_of(call: Call) -> dict[Path, bytes]:
    """Returns the contents of these files."""
    return {path: path.read_bytes() for path in paths_of(call)}


def looks_like(word: str) -> Iterator[str]:
    """Yields texts that a person, a file system or a decoder might take for a namespace."""
    yield from (word, f"{word}evil", f"{word}evil.a", f"x{word}.a", f"{word.upper()}.a")
    yield from (f"{word.title()}.a", f"{word}.", f".{word}", f".{word}.a", f"{word}..a")
    for odd in ("/", "\\", "%2e", "%2E", "%2f", "%252e", "\u2024", "\uff0e", "\u3002", ":", "*"):
        yield f"{word}{odd}a"
        yield f"{word}.{odd}a"
    for odd in (
        "\n",
        "\r",
        "\r\n",
        "\0",
        "\t",
        " ",
        "\x1b[2K",
        "\u2028",
        "\u200b",
        "\u202e",
        "\ufeff",
    ):
        yield f"{word}.a{odd}"
        yield f"{odd}{word}.a"
        yield f"{word}{odd}.a"
    for odd in ("../", "..", "./", "a/../../", "..\\", "%2e%2e/", "....//", "~/", "//"):
        yield f"{word}.{odd}vault.codes"
        yield f"{word}.a/{odd}vault.codes"
    yield from (f"{word}.*", "*", f"{word}.**", f"{word}.?", f"{word}.[a]", f"{word}.a" * 30)
    yield word.replace("e", "\u0435") + ".a"
    yield word.replace("a", "\u0430").replace("s", "\u0455") + ".a"
    yield word.replace("s", "\u017f").replace("i", "\u0131") + ".a"
    yield "".join(chr(ord(letter) + 0xFEE0) for letter in word) + ".a"


@pytest.mark.parametrize(
    ("tool", "word"), list(product(("listMemory", "getMemory", "putMemory"), ALLOWED))
)
@pytest.mark.req("002-34", "002-35", "002-36", "002-63")
def test_no_odd_name_is_taken_for_one_that_is_permitted(
    guarded: Call, tool: str, word: str
) -> None:
    """Each is refused before anything is read or written."""
    before = files_of(guarded)
    more: dict[str, Any] = {} if tool == "listMemory" else {"key": "hidden"}
    more |= {"value": 1} if tool == "putMemory" else {}
    names = [name for name in looks_like(word) if name != f"{word}.a"]

    assert len(names) > 80
    for name in names:
        with pytest.raises((Denied, Invalid)) as caught:
            call_tool(guarded, tool, namespace=name, **more)
        assert SECRET not in json.dumps(caught.value.wire())
    assert files_of(guarded) == before


KEYS = [
    *("..", ".", "...", "", "../hidden", "..\\hidden", "a/b", "/etc/passwd", "a\0", "hidden\n"),
    *("hidden\r\n", "%2e%2e", "hidden.md/", "h\u0456dden", "hid\u200bden", "hidden ", " hidden"),
    *(
        "../../vault.codes/hidden",
        "a" * 201,
        "hid*en",
        "~",
        "~/x",
        "hidden~1",
        "con:",
        "\uff0e\uff0e",
    ),
    *("$(id)", "`id`", "';--", "\x1b]0;x\x07", "null\0byte", "\ud800"),
]


@pytest.mark.parametrize("tool", ["getMemory", "putMemory"])
@pytest.mark.req("002-36", "002-63")
def test_no_odd_key_leads_anywhere(guarded: Call, tool: str) -> None:
    before = files_of(guarded)
    more = {"value": None} if tool == "putMemory" else {}

    for key in KEYS:
        with pytest.raises(Invalid):
            call_tool(guarded, tool, namespace="agent.a", key=key, **more)
    assert files_of(guarded) == before


@given(st.text(max_size=30), st.text(max_size=20), st.sampled_from(["listMemory", "getMemory"]))
@pytest.mark.req("002-36", "002-63")
def test_whatever_the_name_only_what_is_permitted_is_read(
    guarded: Call, namespace: str, key: str, tool: str
) -> None:
    forward(guarded)
    arguments = {"namespace": namespace} | ({"key": key} if tool == "getMemory" else {})
    try:
        answer = call_tool(guarded, tool, **arguments)
    except MindError as error:
        answer = error.wire()
    else:
        assert any(covers(f"{word}.*", namespace) for word in ALLOWED)
    assert SECRET not in json.dumps(answer)


@given(st.from_regex(r"(session|agent)\.?[a-zA-Z._%/-]{0,12}", fullmatch=True))
@pytest.mark.req("002-35", "002-36", "002-63")
def test_whatever_the_name_only_what_is_permitted_is_written(guarded: Call, namespace: str) -> None:
    forward(guarded)
    before = list(paths_of(guarded))
    try:
        call_tool(guarded, "putMemory", namespace=namespace, key="k", value=1)
    except (Denied, Invalid):
        assert list(paths_of(guarded)) == before
    else:
        assert covers("session.*", namespace) or covers("agent.*", namespace)


@pytest.fixture
def listed(call: Call) -> tuple[Call, str]:
    """A memory with many keys, and the cursor of the second page."""
    for number in range(6):
        for namespace in ("agent.a", "agent.b"):
            call_tool(call, "putMemory", namespace=namespace, key=f"key{number}", value=number)
    return call, call_tool(call, "listMemory", namespace="agent.a", prefix="k", limit=2)["cursor"]


def forged(cursor: str) -> Iterator[str]:
    """Yields texts that are like a cursor and are not the one."""
    for number in range(len(cursor)):
        other = "A" if cursor[number] != "A" else "B"
        yield cursor[:number] + other + cursor[number + 1 :]
        yield cursor[:number]
    yield from ("0", "2", "-1", "key1", "null", "e30", "=" * 8, cursor + "A", cursor + "\n")
    yield from (cursor[::-1], cursor.upper(), "A" * 500, "../..", " " + cursor, "é")


@pytest.mark.req("002-08", "002-36", "002-63")
def test_a_cursor_is_good_for_its_own_listing_and_nothing_else(listed: tuple[Call, str]) -> None:
    call, cursor = listed
    attempts: list[dict[str, str]] = [
        {"namespace": "agent.b", "prefix": "k", "cursor": cursor},
        {"namespace": "agent.a", "cursor": cursor},
        {"namespace": "agent.a", "prefix": "ke", "cursor": cursor},
        *(
            {"namespace": "agent.a", "prefix": "k", "cursor": text}
            # The last letter holds bits that no byte uses.
            for text in forged(cursor)
            if text[:-1] != cursor[:-1] and text
        ),
    ]
    assert len(attempts) > 60
    for attempt in attempts:
        forward(call)
        with pytest.raises(Invalid) as caught:
            call_tool(call, "listMemory", **attempt)
        assert caught.value.details["field"] == "cursor"
    good = call_tool(call, "listMemory", namespace="agent.a", prefix="k", limit=2, cursor=cursor)
    assert good["keys"] == ["key2", "key3"]


WIDE = 'tool_permissions: {putMemory: {allowed_namespaces: ["*"], operations: [write]}}\n'
POLICIES = [
    WIDE.replace("allowed_namespaces", "Allowed_Namespaces"),
    WIDE.replace('"*"', '"public*"'),
    WIDE.replace('"*"', '"public.*\\n"'),
    WIDE.replace('"*"', '"../public"'),
    WIDE.replace('"*"', "null"),
    WIDE.replace('["*"]', '"*"'),
    WIDE.replace('["*"]', "{x: 1}"),
    WIDE.replace("[write]", "[WRITE]"),
    WIDE.replace("[write]", "[write, admin]"),
    WIDE.replace("tool_permissions:", "tool_permissions: &a"),
    WIDE + WIDE,
    WIDE + "---\n" + WIDE,
    WIDE + "tool_permission: {}\n",
    WIDE + "allow_all: true\n",
    WIDE + "pii: allow\n",
    "<<: *x\n" + WIDE,
    "!!python/object/apply:os.system ['id']\n",
    "[" * 500,
    WIDE.replace("{putMemory", "{putMemory: {}, put_Memory: {}, PUTMEMORY"),
    WIDE.replace(" ", "\u00a0"),
    "a: " + "{a: " * 50 + "1" + "}" * 50 + "\n",
    "x" * 100_000,
    "\x00" + WIDE,
]


@pytest.mark.req("002-36", "002-63")
def test_a_policy_that_is_not_understood_opens_nothing(call: Call) -> None:
    for text in POLICIES:
        (call.mind.project.root / FILE).write_text(text, encoding="utf-8")
        for namespace in ("public.a", "agent.a"):
            with pytest.raises(Denied):
                call_tool(call, "putMemory", namespace=namespace, key="k", value=1)


def test_what_a_clone_brings_along_is_not_taken_for_ours(call: Call, tmp_path: Path) -> None:
    """Its policy can only narrow, and its local databases are not opened."""
    local = call.mind.project.root / ".mind" / ".local"
    call_tool(call, "putMemory", namespace="session.a", key="k", value=SECRET)
    call.mind.close()
    (call.mind.project.root / FILE).write_text(OPEN, encoding="utf-8")
    Trust(call.mind.home, call.mind.project.root).forget()

    stranger = Call(
        Mind(home=tmp_path / "other", project=call.mind.project, clock=call.mind.clock, environ={})
    )
    assert list(local.glob("values-*.db"))
    assert call_tool(stranger, "listMemory", namespace="session.a")["total"] == 0
    with pytest.raises(Denied):
        call_tool(stranger, "putMemory", namespace="public.a", key="k", value=1)


@pytest.mark.parametrize("where", ["values", "values/agent.a", "values/agent.a/k.md", ".local"])
@pytest.mark.attack("symbolic link")
def test_nothing_is_read_or_written_through_a_link(call: Call, tmp_path: Path, where: str) -> None:
    outside = tmp_path / "outside"
    (outside / "agent.a").mkdir(parents=True)
    target = outside / "k.md"
    target.write_text("---\nvalue: 1\n---\n", encoding="utf-8")
    link = call.mind.project.root / ".mind" / where
    link.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(link, ignore_errors=True)  # `.local` holds the mark of who trusts the project
    link.symlink_to(target if where.endswith(".md") else outside)
    before = files_of(call)

    attempts: list[tuple[str, dict[str, Any]]] = [("getMemory", {}), ("putMemory", {"value": 2})]
    for tool, more in attempts:
        with pytest.raises(MindError) as caught:
            call_tool(call, tool, namespace="agent.a", key="k", **more)
        assert caught.value.code == "STORAGE_ERROR"
    assert files_of(call) == before


@pytest.mark.parametrize("jump", [-3600, -86_400 * 365, 0])
@pytest.mark.req("002-49", "002-63")
def test_neither_other_spellings_nor_another_clock_give_more_calls(
    call: Call, clock: Clock, jump: int
) -> None:
    done = 0
    for number in range(120):
        try:
            call_tool(call, "getMemory", namespace=f"agent.n{number % 7}", key=f"k{number}")
        except RateLimited:
            clock.forward(seconds=jump)
        except MindError:
            done += 1
    assert done == 50
