"""Putting in and taking out are inverses on any document, however it is written."""

import json
import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mimo.features.clients import edits, json_file
from mimo.features.clients.edits import Entry, Format, Hook, put_in, take_out

NAMES = st.text("abcdefgh", min_size=1, max_size=4)
GAPS = st.sampled_from(["", " ", "\n", "\n  ", "\t", " // note\n", " /* note */ ", "\r\n"])
SCALARS = st.none() | st.booleans() | st.integers(-9, 99) | st.text(max_size=6)
DATA = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
)
EDITS = (
    Entry(path=("mcpServers", "mind"), value={"command": "mind", "args": ["mcp"]}),
    Hook(path=("hooks", "Start"), value={"hooks": [{"command": "mind hook codex"}]}),
    Hook(path=("hooks", "Stop"), value={"command": "mind hook codex"}),
)


@st.composite
def written(draw: st.DrawFn, data: Any) -> str:
    """Returns data as some person could write it: blanks, comments and commas anywhere."""

    def gap() -> str:
        return draw(GAPS)

    def write(value: Any) -> str:
        if not isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=draw(st.booleans()))
        named = value.items() if isinstance(value, dict) else ((None, one) for one in value)
        parts = [
            (f"{json.dumps(key)}{gap()}:{gap()}" if key is not None else "") + write(one)
            for key, one in named
        ]
        trailing: bool = draw(st.booleans())
        last = "," if parts and trailing else ""
        inside = ",".join(f"{gap()}{part}{gap()}" for part in parts) + last + gap()
        return f"{{{inside}}}" if isinstance(value, dict) else f"[{inside}]"

    return gap() + write(data) + gap()


@st.composite
def documents(draw: st.DrawFn) -> str:
    data: dict[str, Any] = draw(st.dictionaries(NAMES, DATA, max_size=3))
    if draw(st.booleans()):
        data["mcpServers"] = draw(st.dictionaries(NAMES, DATA, max_size=2))
    if draw(st.booleans()):
        hooks = {event: draw(st.lists(DATA, max_size=2)) for event in ("Start", "Stop")}
        data["hooks"] = {event: items for event, items in hooks.items() if draw(st.booleans())}
    return draw(written(data))


def comments(text: str) -> int:
    return text.count("note")


@given(documents())
def test_taking_out_what_was_put_in_leaves_the_document(text: str) -> None:
    after = put_in(Format.JSON, text, EDITS)
    left = take_out(Format.JSON, after, EDITS, original=text)

    assert json_file.load(left) == json_file.load(text)
    assert comments(left) == comments(after) == comments(text)
    assert put_in(Format.JSON, after, EDITS) == after


@given(documents())
def test_every_byte_is_as_before_where_a_container_had_something_in_it(text: str) -> None:
    data = json_file.load(text)
    full = [edit for edit in EDITS if edits.at(data, edit.path[: -1 if edit is EDITS[0] else 2])]
    after = put_in(Format.JSON, text, full)

    assert take_out(Format.JSON, after, full, original=text) == text


@given(documents())
def test_other_entries_never_change(text: str) -> None:
    before, after = (
        json_file.load(text),
        json_file.load(put_in(Format.JSON, text, EDITS)),
    )
    del after["mcpServers"]["mind"]
    for event in ("Start", "Stop"):
        after["hooks"][event].pop()
        before.setdefault("hooks", {}).setdefault(event, [])
    before.setdefault("mcpServers", {})

    assert after == before


LINES = st.lists(
    st.sampled_from(
        ["# note", "", "a = 1", 'b = "[x]" # c', "c = [\n  1, # one\n]", "d = '''\n[e]\n'''"]
    ),
    unique=True,
    max_size=5,
)
HEADS = st.lists(st.sampled_from(["[x]", "[mcp_servers.docs]", "[[y]]"]), unique=True, max_size=3)


@given(top=LINES, rest=st.lists(st.tuples(HEADS, LINES), max_size=1))
def test_a_toml_document_is_as_before(top: list[str], rest: list[Any]) -> None:
    lines = list(top)
    for heads, below in rest:
        for head in heads:
            lines += [head, *below]
    text = "".join(f"{line}\n" for line in lines)
    tomllib.loads(text)
    entry = Entry(path=("mcp_servers", "mind"), value={"command": "mind", "args": ["mcp", "[x"]})
    after = put_in(Format.TOML, text, [entry])

    assert put_in(Format.TOML, after, [entry]) == after
    left = take_out(Format.TOML, after, [entry], original=None)
    assert left == text or not text.strip()
