"""Properties of the codec for every memory and every file."""

import re
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from mimo.memory.codec import front_matter
from mimo.memory.codec.file import KEYS, Parsed, normal, parse, render
from mimo.memory.codec.splice import splice
from mimo.memory.model import Kind, Link, Memory, Outcome, Problem, Section, Version

LATER = datetime(2027, 1, 1, tzinfo=UTC)
PATH = ".mind/decisions/x.md"

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
SPICE = st.sampled_from(
    ["## Outcome", "\\## Outcome", "## Competing: x", "\\## Competing: x",
     "## Reasoning \r", "# Title", "---", "+++", "```", "[[a b]]",
     "`[[no]]`", "\r\n", "\n", "- x", "key: value", "<!--", "-->", "Title\n===", "  ", "\ufeff",
     "null", "0.70", "no", "*x", "&x", "!x", "#", "{", "[", "'", '"', ": ", " #", "\u2028", "\x85"]
)  # fmt: skip
TEXT = st.lists(st.one_of(SPICE, st.text(CHARACTERS, max_size=8)), max_size=4).map("".join)
PROSE = st.lists(st.one_of(SPICE, TEXT), max_size=4).map("\n".join)
UNIT = st.floats(0, 1).map(lambda number: round(number, 4))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(-1e9, 1e9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
LINKS = st.builds(
    Link,
    to=TEXT,
    type=TEXT,
    given=st.none() | TEXT,
    confidence=st.none() | UNIT,
    by=st.none() | TEXT,
)
OPTIONAL = st.none() | TEXT
SECTIONS = st.dictionaries(st.sampled_from(Section), PROSE, max_size=4)
FIELD = st.sampled_from(["confidence", "the text", "the section Outcome", "x y"])
VERSIONS = st.lists(st.builds(Version, field=FIELD, text=PROSE), max_size=2).map(tuple)
EXTRA = st.dictionaries(TEXT.filter(lambda key: key not in KEYS), JSON, max_size=3)
FIELDS = {
    "type": st.sampled_from(Kind),
    "content": PROSE,
    "created": st.datetimes(timezones=st.just(UTC)),
    "title": OPTIONAL,
    "topic": OPTIONAL,
    "tags": st.lists(TEXT, max_size=4).map(tuple),
    "importance": UNIT,
    "confidence": st.none() | UNIT,
    "outcome": st.none() | st.sampled_from(Outcome),
    "category": OPTIONAL,
    "source": OPTIONAL,
    "status": OPTIONAL,
    "by": OPTIONAL,
    "protected": st.none() | st.booleans(),
    "links": st.lists(LINKS, max_size=3).map(tuple),
    "sections": SECTIONS,
    "competing": VERSIONS,
    "extra": EXTRA,
}
IDS = st.from_regex(r"[A-Za-z0-9_.-]{1,40}", fullmatch=True)
MEMORIES = st.builds(Memory, id=IDS, **FIELDS)
BLANKS = st.sampled_from(["", " ", "  # why", "\t"])
VALUES = st.sampled_from(
    ["plain", '"quoted: it"', "'single'", "[a, 'b']", "12", "2024-01-01", "", "|\n  two\n  lines",
     "\n- a\n-   b # why", "\n  k: v\n  l: [1]",
     ">-\n  folded\n\n  text", '"over\n  lines"', "true"]
)  # fmt: skip


def read(data, path=PATH):
    parsed = parse(data, path=path, modified=LATER)
    assert isinstance(parsed, Parsed), parsed
    return parsed


@given(MEMORIES)
def test_a_rendered_memory_reads_back_as_itself(memory):
    parsed = read(render(memory))
    assert parsed.memory == normal(memory)
    assert parsed.owned
    assert normal(parsed.memory) == parsed.memory


@given(MEMORIES)
def test_content_is_kept_except_for_blank_lines_around_it(memory):
    lines = memory.content.split("\n")
    while lines and not lines[0].strip(" \t\r"):
        lines.pop(0)
    while lines and not lines[-1].strip(" \t\r"):
        lines.pop()
    assert read(render(memory)).memory.content == "\n".join(lines)


@given(MEMORIES)
def test_an_edit_of_nothing_changes_no_byte(memory):
    data = render(memory)
    before = read(data).memory
    assert splice(data, before, before, path=PATH) == data


@given(MEMORIES, st.data())
def test_an_edited_file_reads_as_the_edited_memory(memory, data):
    original = render(memory)
    before = read(original).memory
    chosen = data.draw(st.sets(st.sampled_from(sorted(FIELDS)), max_size=3))
    after = replace(before, **{name: data.draw(FIELDS[name], label=name) for name in chosen})
    changed = splice(original, before, after, path=PATH)
    assert read(changed).memory == normal(after)


def test_versions_in_another_order_are_written_again() -> None:
    first, second = (
        Version(field="outcome", text="SUCCESS"),
        Version(field="confidence", text="0.4"),
    )
    made = datetime(2026, 11, 20, tzinfo=UTC)
    memory = Memory(
        id="x", type=Kind.DECISION, content="Use JWT", created=made, competing=(first, second)
    )
    original = render(memory)
    before = read(original).memory
    for wanted in ((second, first), (second,), (first,), (), (replace(second, text=""), first)):
        after = replace(before, competing=wanted)
        assert read(splice(original, before, after, path=PATH)).memory.competing == wanted


@st.composite
def foreign_files(draw):
    """Files as people write them: comments, blank lines, any quoting, CRLF, a byte order mark."""
    keys = draw(
        st.lists(
            st.sampled_from(["title", "tags", "date", "status", "author", "summary", "x y"]),
            unique=True,
        )
    )
    lines = []
    for key in keys:
        value = draw(VALUES)
        lines += [draw(st.sampled_from(["# a comment", "", None])), f"{key}: {value}"]
    header = "".join(f"{line}\n" for line in lines if line is not None)
    body = draw(PROSE.map(lambda text: text.replace("\r", ""))) + draw(st.sampled_from(["", "\n"]))
    fenced = f"---\n{header}---\n" if keys else ""
    text = fenced + "some words\n" + body
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return ("\ufeff" if draw(st.booleans()) else "").encode() + text.encode()


@given(foreign_files(), st.data())
def test_an_edit_keeps_every_other_line_of_a_foreign_file(original, data):
    """Design: comments, order, quoting, unknown keys, CRLF, BOM and the last line's end survive."""
    path = "docs/notes/a.md"
    before = read(original, path).memory
    assert splice(original, before, before, path=path) == original
    names = ["importance", "outcome", "status", "topic", "tags", "protected", "by", "links"]
    name = data.draw(st.sampled_from(names))
    after = replace(before, **{name: data.draw(FIELDS[name], label=name)})
    changed = splice(original, before, after, path=path)
    assert normal(read(changed, path).memory) == normal(after)
    old = original.split(b"\n")
    left = iter(changed.split(b"\n"))
    first_of_key = re.compile(rb"\xef?\xbb?\xbf?%s:" % name.encode())
    kept = _without_key(old, first_of_key)
    assert all(any(line == other for other in left) for line in kept), (kept, changed)


def _without_key(lines, pattern):
    """Returns the lines but those of one header key (and a byte order mark's line)."""
    kept, inside = [], False
    for number, line in enumerate(lines):
        if pattern.match(line):
            inside = True
            continue
        if inside and (line.startswith((b" ", b"-", b"\r")) or not line) and line.strip() != b"---":
            continue
        inside = False
        if number or not line.startswith(b"\xef\xbb\xbf"):
            kept.append(line)
    return kept


PLAIN = st.text(st.sampled_from("aZ9_é한 .,:/()+@%;!?='-#[]{}\"&*|>\\~`\t\r"), max_size=12)
LINES = st.lists(st.tuples(st.sampled_from(["a", "b", "_c1"]), PLAIN), max_size=4)


LINK = "\n  - {{to: {0}, type: {0}}}"


@given(
    LINES,
    st.sampled_from([" {}", ' "{}"', " [{}]", LINK, f"{LINK}{LINK[:-2]}, confidence: 1.0}}}}"]),
)
@settings(max_examples=400)
def test_plain_headers_mean_the_same_without_a_parser(pairs, form):
    """The short way may be taken only where the long one gives the same."""
    text = "".join(f"{key}:{form.format(value)}\n" for key, value in pairs)
    data = front_matter.load_flat(text)
    if data is not None:
        assert data == front_matter.read(text).data


@given(st.binary(max_size=200))
def test_no_bytes_make_reading_fail(data):
    assert isinstance(parse(data, path="a.md", modified=LATER), Parsed | Problem)


@given(st.text(CHARACTERS, max_size=200))
@settings(max_examples=300)
def test_no_header_makes_reading_fail(text):
    for fence in ("---", "+++"):
        data = f"{fence}\n{text}\n{fence}\nbody\n".encode()
        result = parse(data, path="a.md", modified=LATER)
        if isinstance(result, Problem):
            assert result.reason
            assert result.line is not None
            assert 1 <= result.line <= data.count(b"\n") + 1
