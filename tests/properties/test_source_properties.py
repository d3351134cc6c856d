"""Ingested text is restored byte for byte, for any content."""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from mimo.memory import sources
from mimo.memory.chunking import Chunk, Chunking, Strategy, chunks
from mimo.memory.model import Kind
from mimo.memory.sources import Source

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
    marked = sources.parse(data, path=PATH, modified=NOW)
    assert isinstance(marked, list), marked
    return marked


@given(TEXT)
def test_escaping_has_an_exact_inverse(text):
    assert sources.unescape(sources.escape(text)) == text


@given(CHUNKS, st.dictionaries(TEXT, JSON, max_size=3))
def test_every_chunk_is_restored_with_its_headings_and_metadata(made, metadata):
    data = sources.render(replace(SOURCE, total=len(made), metadata=metadata), made)
    marked = parsed(data)
    assert [chunk.memory.content for chunk in marked] == [chunk.text for chunk in made]
    assert [tuple(chunk.memory.extra.get("heading_path", ())) for chunk in marked] == [
        chunk.path for chunk in made
    ]
    header = sources.header_of(data, path=PATH)
    assert header is not None
    assert header.metadata == metadata


@given(CHUNKS)
def test_a_chunk_names_the_line_on_which_its_text_begins(made):
    data = sources.render(SOURCE, made)
    lines = data.decode().split("\n")
    for chunk in parsed(data):
        assert sources.unescape(lines[chunk.line - 1]) == chunk.memory.content.split("\n")[0]
        assert lines[chunk.line - 2].startswith("<!-- chunk ")


@given(CHUNKS, st.data())
def test_removing_chunks_in_any_order_leaves_the_others_as_they_are(made, data):
    left = dict(enumerate(made, 1))
    file: bytes | None = sources.render(SOURCE, made)
    for number in data.draw(st.permutations(list(left))):
        del left[number]
        assert file is not None
        file = sources.without(file, number)
        if file is None:
            break
        marked = parsed(file)
        assert {chunk.number: chunk.memory.content for chunk in marked} == {
            number: chunk.text for number, chunk in left.items()
        }
    assert (file is None) == (not left)


@given(TEXT, st.sampled_from(["a.md", "a.txt", "a.json"]))
def test_chunks_of_a_text_are_restored_from_their_file(text, name):
    strategy = {"md": Strategy.MARKDOWN, "txt": Strategy.PARAGRAPHS, "json": Strategy.WHOLE}
    chunking = Chunking(strategy=strategy[name.partition(".")[2]])
    made = chunks(text, chunking, name)
    if made:
        marked = parsed(sources.render(replace(SOURCE, chunking=chunking), made))
        assert [chunk.memory.content for chunk in marked] == [chunk.text for chunk in made]
