"""`mind graph` as it reads in a pipe, on a terminal, and in a pull request."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.cli.main import main
from mimo.memory.ids import handle_of
from mimo.rendering.terminal import TerminalScreen

Say = Callable[..., str]
JWT, KEYS, CODE, OLD = map(handle_of, ("jwt", "keys", "code", "old"))

Write = Callable[..., Path]


@pytest.fixture
def say(call: Call, capsys: pytest.CaptureFixture[str]) -> Say:
    """Runs a command and returns all that it prints."""

    def run(*words: str, status: int = 0) -> str:
        assert main(words, open=lambda _: call.mind) == status
        out, err = capsys.readouterr()
        return out + err

    return run


@pytest.fixture
def write(call: Call) -> Write:
    """Writes a memory's file by hand; links are `type:target`."""

    def make(id: str, title: str, *links: str, day: int = 1, more: str = "") -> Path:
        path = call.mind.folder / "decisions" / f"{id}.md"
        path.parent.mkdir(exist_ok=True)
        rows = [link.partition(":") for link in links]
        listed = "".join(f"  - {{to: {to}, type: {kind}}}\n" for kind, _, to in rows)
        header = f"id: {id}\ntype: decision\ncreated: 2026-11-{day:02}T08:00:00Z\n{more}"
        header += f"links:\n{listed}" if listed else ""
        path.write_text(f"---\n{header}---\n# {title}\n\nText\n", encoding="utf-8")
        return path

    return make


@pytest.fixture
def linked(write: Write, say: Say) -> None:
    """Five decisions with all that can be between them."""
    write("old", "Use sessions", day=1)
    write("jwt", "Use JWT", "supersedes:old", "refines:jwt", day=2)
    write("keys", "Rotate keys", "builds_on:jwt", "debates:jwt", day=3, more="outcome: FAILED\n")
    write("code", "Rotate in code", "implements:keys", "relates_to:old", "follows:gone", day=4)
    write("apart", "Nothing to do with it", day=5)
    say("trust", "--follow")


@pytest.mark.req("004-53")
def test_the_links_around_a_memory_are_a_tree(linked: None, say: Say) -> None:
    output = say("graph", "jwt")

    assert output == (
        f"{JWT}  Use JWT  dec 2w\n"
        f"├─ ← builds_on, ← debates  {KEYS}  Rotate keys  dec 2w  FAILED\n"
        f"│  └─ ← implements  {CODE}  Rotate in code  dec 2w\n"
        f"│     ├─ relates_to →  {OLD}  (shown elsewhere)\n"
        "│     └─ follows →  gone  missing\n"
        f"└─ supersedes →  {OLD}  Use sessions  dec 2w  superseded by {JWT}\n"
        "\n"
        "4 memories, 6 links\n"
    )


def test_without_an_id_every_group_is_shown_from_its_newest(
    linked: None, write: Write, say: Say
) -> None:
    write("tea", "Serve tea", day=10)
    write("milk", "No milk", "follows:tea", day=9)

    output = say("graph", "--type", "supersedes", "--type", "follows")

    assert output == (
        f"{handle_of('tea')}  Serve tea  dec 10d\n"
        f"└─ ← follows  {handle_of('milk')}  No milk  dec 11d\n"
        "\n"
        f"{CODE}  Rotate in code  dec 2w\n"
        "└─ follows →  gone  missing\n"
        "\n"
        f"{JWT}  Use JWT  dec 2w\n"
        f"└─ supersedes →  {OLD}  Use sessions  dec 2w  superseded by {JWT}\n"
        "\n"
        "5 memories, 3 links\n"
    )
    assert "Nothing to do with it" not in say("graph")


def test_memories_beyond_the_limit_are_reported(linked: None, say: Say) -> None:
    assert "note: 2 are shown, the nearest; `--limit` shows more" in say("graph", "jwt", "-n", "2")
    output = say("graph", "-n", "2")
    assert output.startswith(f"{CODE}  Rotate in code  dec 2w\n")
    assert f"├─ implements →  {KEYS}  Rotate keys  dec 2w  FAILED\n" in output
    assert "note: 2 are shown, the newest and those linked with them; `--limit`" in output
    assert "note" not in say("graph", "-n", "4")


def test_without_links_it_explains_how_to_make_them(write: Write, say: Say) -> None:
    assert say("graph").startswith("no memory is linked with another\nnote: links are made with")
    write("tea", "Serve tea")
    assert "note: links are made with" in say("graph", "tea")


def test_a_type_may_be_given_in_other_words(write: Write, say: Say) -> None:
    write("tea", "Serve tea", "contradicts:milk")
    write("milk", "No milk", "steeped_in:tea")
    say("trust", "--follow")

    assert "2 memories, 1 link" in say("graph", "--type", "conflicts with")
    assert "contradicts" in say("graph", "tea", "--type", "Contradicts")
    assert "2 memories, 1 link" in say("graph", "--type", "steeped_in")


@pytest.mark.parametrize("type", ["steeps", "superseded by", "builds_on"])
def test_a_type_without_links_is_reported(linked: None, write: Write, say: Say, type: str) -> None:
    output = say("graph", "apart", "--type", type)

    note = f"note: there is no link of the type `{type}`; the usual types are supersedes,"
    assert output.count(note) == 1
    if type != "builds_on":
        assert say("graph", "--type", type).startswith("no link of that type\n")


def test_a_depth_without_a_memory_is_refused(linked: None, say: Say) -> None:
    assert "`--depth` is counted from a memory" in say("graph", "--depth", "0", status=2)


@pytest.mark.req("004-51")
def test_a_greater_depth_is_taken_for_the_greatest(write: Write, say: Say) -> None:
    for number in range(8):
        write(f"m{number}", f"Step {number}", f"follows:m{number + 1}")

    assert say("graph", "m0", "--depth", "99") == say("graph", "m0", "--depth", "5")
    assert "6 memories" in say("graph", "m0", "--depth", "99")


def test_a_long_chain_is_shown_whole(write: Write, say: Say) -> None:
    for number in range(600):
        write(f"m{number}", f"Step {number}", f"follows:m{number + 1}", day=1)

    assert "600 memories, 600 links" in say("graph", "--limit", "1000")


def test_it_is_drawn_for_a_pull_request(linked: None, say: Say) -> None:
    output = say("graph", "old", "--depth", "1", "--format", "mermaid")

    assert output.splitlines() == [
        "```mermaid",
        "flowchart LR",
        '  n0["Use sessions<br/>old<br/>decision, 2026-11-01, superseded"]:::superseded',
        '  n1["Rotate in code<br/>code<br/>decision, 2026-11-04"]',
        '  n2["Use JWT<br/>jwt<br/>decision, 2026-11-02"]',
        '  n3["gone<br/>missing"]:::missing',
        '  n1 -->|"relates_to"| n0',
        '  n2 -->|"supersedes"| n0',
        '  n1 -->|"follows"| n3',
        "  classDef superseded stroke-dasharray:4 4,opacity:0.7",
        "  classDef missing stroke-dasharray:1 3,fill:none",
        "```",
    ]
    assert say("graph", "old", "--format", "dot").startswith("digraph memory {\n")


@pytest.mark.attack("private text in shared output")
@pytest.mark.parametrize("format", ["mermaid", "dot"])
def test_a_private_memory_is_labelled_and_only_drawn_if_asked_for(
    linked: None, say: Say, format: str
) -> None:
    say(
        "save",
        "decision",
        "pay",
        "Bob earns 90k",
        "--because",
        "It is so",
        "--private",
        "--link",
        "builds_on:old",
    )

    assert "Bob earns 90k  dec now  private" in say("graph", "old")
    assert '"private": true' in say("graph", "old", "--json")
    assert "Bob earns 90k  now  private" in say("load", "context", "old")
    assert "Bob earns 90k  private" in say("load", "checkpoint")
    drawing = say("graph", "old", "--format", format)
    assert "Bob" not in drawing
    assert "_pay_" not in drawing
    assert "note: left out: 1 private (`--private`)" in drawing
    whole = say("graph", "old", "--format", format, "--private")
    assert "Bob earns 90k" in whole
    assert "left out" not in whole


def test_a_terminal_does_not_break_the_lines_of_a_drawing(
    linked: None, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = say("graph", "--format", "dot")
    narrow = TerminalScreen(colour=True, width=20, height=500)
    monkeypatch.setattr("mimo.rendering.results.screen_for", lambda *_, **__: narrow)

    assert say("graph", "--format", "dot") == plain


def test_an_unknown_id_is_refused(linked: None, say: Say) -> None:
    assert "error: Memory not found: `jwx`\n" in say("graph", "jwx", status=1)
