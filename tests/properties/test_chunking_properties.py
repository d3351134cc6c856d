"""Properties of the chunks of any text, by any strategy."""

from unicodedata import east_asian_width

from hypothesis import example, given
from hypothesis import strategies as st

from mimo.frozen import replace
from mimo.memory.chunking import _WIDE, Chunking, Strategy, chunks, layout_of

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
SPICE = st.sampled_from(
    ["# One", "## Two\n", "\n\n", "\r\n", "\r", "```", "~~~\n", "- item\n", "    code\n",
     "Title\n===", "> quote", "---", "e.g. ", "3.11. ", "。", "! ", "? ", '"""', "def f():\n",
     "{\n", "}\n", "\t", "class A:\n", "| a | b |\n|---|---|\n", "<div>\n", "[a]: b\n",
     "e\u0301", "\ufeff", "\u2028"]
)  # fmt: skip
TEXT = st.lists(SPICE | st.text(CHARACTERS, max_size=30), max_size=30).map("".join)
STRATEGIES = st.sampled_from([strategy for strategy in Strategy if strategy is not Strategy.AUTO])
NAMES = st.sampled_from(["a.md", "a.txt", "a.py", "a.go", "a"])


@st.composite
def chunkings(draw):
    size = draw(st.none() | st.integers(1, 200))
    overlap = draw(st.integers(0, (size or 100) - 1))
    number = draw(st.integers(1, 5))
    return Chunking(
        strategy=draw(STRATEGIES), chunk_size=size, overlap=overlap, lines_per_chunk=number
    )


def _has_enough(text):
    """Returns whether a text has ten characters, of which a wide one counts as several."""
    wide = sum(east_asian_width(character) in "WF" for character in text)
    return len(text) + (_WIDE - 1) * wide >= 10


@given(TEXT, chunkings(), NAMES)
def test_every_chunk_is_in_the_text_on_its_lines(text, chunking, name):
    lines = text.split("\n")
    last = 0
    for chunk in chunks(text, chunking, name):
        assert 1 <= chunk.first_line <= chunk.last_line <= len(lines)
        assert chunk.text in "\n".join(lines[chunk.first_line - 1 : chunk.last_line]) + "\n"
        assert _has_enough(chunk.text.strip())
        assert chunk.first_line >= last
        last = chunk.first_line


@given(TEXT, NAMES, STRATEGIES, st.integers(1, 50))
def test_only_white_space_is_between_the_parts(text, name, strategy, number):
    chunking = Chunking(strategy=strategy, lines_per_chunk=number)
    end = 0
    for part in layout_of(text, chunking, name).parts:
        assert not text[end : part.start].strip()
        assert part.start <= part.end
        end = part.end
    assert not text[end:].strip()


@given(TEXT, st.integers(20, 200), st.integers(0, 10), NAMES)
def test_a_chunk_of_prose_or_code_exceeds_the_size_only_by_a_short_piece(text, size, overlap, name):
    for strategy in (Strategy.PARAGRAPHS, Strategy.SENTENCES, Strategy.LINES):
        chunking = Chunking(strategy=strategy, chunk_size=size, overlap=overlap)
        for chunk in chunks(text, chunking, name):
            assert len("".join(chunk.text.split())) <= size + 2 * 9


@given(TEXT, NAMES, STRATEGIES, st.integers(1, 200), st.integers(0, 199), st.integers(1, 5))
@example("The quick brown fox jumps over the lazy dog, twice a day.", "a", "paragraphs", 5, 0, 1)
@example("The quick brown fox jumps over the lazy dog, twice a day.", "a", "paragraphs", 10, 0, 1)
@example("# One! ! 0", "a.md", "sentences", 1, 0, 1)
def test_chunks_of_any_size_have_all_text_except_short_parts(
    text, name, strategy, size, overlap, lines
):
    chunking = Chunking(
        strategy=Strategy(strategy), chunk_size=size, overlap=0, lines_per_chunk=lines
    )
    layout = layout_of(text, chunking, name)
    parts = [text[part.start : part.end].strip() for part in layout.parts]
    if layout.packs:  # Short parts share a chunk with others.
        parts = [text[layout.parts[0].start : layout.parts[-1].end]] if parts else []
    expected = "".join("".join(part.split()) for part in parts if _has_enough(part.strip()))

    plain = chunks(text, chunking, name)

    assert "".join("".join(chunk.text.split()) for chunk in plain) == expected
    shared = chunks(text, replace(chunking, chunk_size=size + overlap, overlap=overlap), name)
    if size >= 10:
        assert len(shared) == len(plain)
        ends = zip(shared, plain, strict=True)
        assert all(chunk.text.endswith(end.text) for chunk, end in ends)
