"""What was ingested comes back byte for byte, whatever it holds."""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from mimo.memory.chunking import chunks, source
from mimo.memory.chunking import source as codec
from mimo.memory.chunking.model import Chunk, Chunking, Strategy
from mimo.memory.chunking.source import Source
from mimo.memory.model import Kind

NOW = datetime(2026, 11, 20, tzinfo=UTC)
PATH = ".mind/sources/source_x.md"
SOURCE = Source(
    id="source_x",
    type=Kind.FACT,
    path="x.md",
    sha256="0" * 64,
    chunking=Chunking(strategy=Strategy.WHOLE),
    total=1,
    created=NOW,
)

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
SPICE = st.sampled_from(
    ["<!-- chunk 1 lines 1-2 -->", "\\<!-- chunk 1 lines 1-2 -->", "\\\\<!-- chunk", "<!--chunk",
     "  <!-- CHUNK x", "\t\\<!-- chunk -->", "---", "---\nid: x\n---\n", "\n", "\n\n\n", "\r\n",
     "\r", "\ufeff", "\u2028", "\\", "<!-- ", "-->", "chun\u212a", "{\n"]
)  # fmt: skip
TEXT = st.lists(SPICE | st.text(CHARACTERS, max_size=12), max_size=12).map("".join)
HEADING = (
    st.lists(st.sampled_from(["-", "--", "\u203a", "\\", "-->", "<!--", ">", "a b", "`x`"]))
    .map("".join)
    .map(str.strip)
    .filter(bool)
)
CHUNKS = st.lists(
    st.builds(
        lambda text, path: Chunk(text, 3, 5, tuple(path)), TEXT, st.lists(HEADING, max_size=3)
    ),
    min_size=1,
    max_size=5,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)


def parsed(data):
    found = codec.parse(data, path=PATH, modified=NOW)
    assert isinstance(found, list), found
    return found


@given(TEXT)
def test_escaping_has_an_exact_inverse(text):
    assert source.unescape(source.escape(text)) == text


@given(CHUNKS, st.dictionaries(TEXT, JSON, max_size=3))
def test_every_chunk_comes_back_as_it_was(made, metadata):
    data = codec.render(replace(SOURCE, total=len(made), metadata=metadata), made)
    found = parsed(data)
    assert [one.memory.content for one in found] == [one.text for one in made]
    assert [tuple(one.memory.extra.get("heading_path", ())) for one in found] == [
        one.path for one in made
    ]
    header = codec.header_of(data, path=PATH)
    assert header is not None
    assert header.metadata == metadata


@given(CHUNKS)
def test_the_line_of_a_chunk_is_where_its_text_begins(made):
    data = codec.render(SOURCE, made)
    lines = data.decode().split("\n")
    for one in parsed(data):
        assert source.unescape(lines[one.line - 1]) == one.memory.content.split("\n")[0]
        assert lines[one.line - 2].startswith("<!-- chunk ")


@given(CHUNKS, st.data())
def test_removing_chunks_in_any_order_leaves_the_others_as_they_are(made, data):
    left = dict(enumerate(made, 1))
    file: bytes | None = codec.render(SOURCE, made)
    for number in data.draw(st.permutations(list(left))):
        del left[number]
        assert file is not None
        file = codec.without(file, number)
        if file is None:
            break
        found = parsed(file)
        assert {one.number: one.memory.content for one in found} == {
            number: chunk.text for number, chunk in left.items()
        }
    assert (file is None) == (not left)


@given(TEXT, st.sampled_from(["a.md", "a.txt", "a.json"]))
def test_a_text_survives_being_cut_and_kept(text, name):
    strategy = {"md": Strategy.MARKDOWN, "txt": Strategy.PARAGRAPHS, "json": Strategy.WHOLE}
    chunking = Chunking(strategy=strategy[name.partition(".")[2]])
    made = chunks(text, chunking, name)
    if made:
        found = parsed(codec.render(replace(SOURCE, chunking=chunking), made))
        assert [one.memory.content for one in found] == [one.text for one in made]
