"""Properties of every merge: it loses nothing, is the same in both orders and readable."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from mimo.memory.codec import front_matter
from mimo.memory.codec.file import Parsed, normal, parse, render
from mimo.memory.codec.splice import splice
from mimo.memory.merge import Merged, section_name
from mimo.memory.merge import merge as merge_or_none
from mimo.memory.model import Section
from tests.properties.test_codec_properties import FIELDS, MEMORIES, PATH, PROSE, TEXT

LATER = datetime(2027, 1, 1, tzinfo=UTC)
CHANGED = sorted(FIELDS.keys() - {"competing"})
SCALARS = ("importance", "confidence", "outcome", "status", "category", "protected", "topic")


def merge(base, ours, theirs, path):
    merged = merge_or_none(base, ours, theirs, path=path)
    assert isinstance(merged, Merged)
    return merged


def read(data, path=PATH):
    parsed = parse(data, path=path, modified=LATER)
    assert isinstance(parsed, Parsed), parsed
    return parsed.memory


@st.composite
def branches(draw, names=CHANGED, number=2):
    """A file, and its versions on several branches that changed some fields each."""
    base = draw(MEMORIES.map(lambda memory: replace(memory, extra={})))
    original = render(base)
    before = read(original)
    sides = []
    for _ in range(number):
        chosen = draw(st.sets(st.sampled_from(names), max_size=4))
        drawn = {name: draw(FIELDS[name], label=name) for name in sorted(chosen)}
        sides.append(splice(original, before, replace(before, **drawn), path=PATH))
    return original, *sides


def versions(memory, name):
    return {version.text for version in memory.competing if version.field == name}


@given(branches())
def test_a_merge_is_the_same_in_both_orders_and_can_always_be_read(files):
    base, ours, theirs = files
    merged = merge(base, ours, theirs, path=PATH)

    assert merged == merge(base, theirs, ours, path=PATH)
    read(merged.data)


@given(branches())
def test_no_changed_field_is_lost(files):
    """It is the current value or a competing version."""
    base, *sides = files
    before, result = read(base), read(merge(base, sides[0], sides[1], path=PATH).data)
    for side in map(read, sides):
        for name in SCALARS:
            value = getattr(side, name)
            if value in (getattr(before, name), None) or (name == "importance" and value == 0.5):
                continue
            shown = front_matter.flow(value.value if name == "outcome" else value)
            assert value == getattr(result, name) or shown in versions(result, name)
        assert set(side.tags) - set(before.tags) <= set(result.tags)
        assert set(side.links) - set(before.links) <= {*result.links, *side_links(result)}


def side_links(result):
    """Returns the links in versions of a text, which count as text until one is chosen."""
    from mimo.memory.codec.file import body_links

    return [link for version in result.competing for link in body_links(version.text, {})]


@given(branches())
def test_every_line_of_a_branch_is_kept(files):
    base, *sides = files
    before, result = read(base), read(merge(base, sides[0], sides[1], path=PATH).data)
    for side in map(read, sides):
        texts = [("the text", side.content, before.content, result.content)]
        texts += [
            (section_name(s), *(memory.sections.get(s, "") for memory in (side, before, result)))
            for s in Section
        ]
        for name, mine, old, new in texts:
            written = {line for line in mine.split("\n") if line.strip(" \t\r")}
            kept = {line for text in (new, *versions(result, name)) for line in text.split("\n")}
            assert written - set(old.split("\n")) <= kept


@given(branches())
def test_the_file_of_the_only_changed_branch_is_taken(files):
    base, ours, _ = files
    assert merge(base, ours, base, path=PATH).data == ours
    assert merge(base, ours, ours, path=PATH).data == ours


@given(MEMORIES, MEMORIES)
def test_two_files_without_an_ancestor_are_both_kept(first, second):
    ours, theirs = render(replace(first, id="one")), render(replace(second, id="one"))
    merged = merge(b"", ours, theirs, path=PATH)

    assert merged == merge(b"", theirs, ours, path=PATH)
    result = read(merged.data)
    for side in (normal(first), normal(second)):
        assert set(side.tags) <= set(result.tags)
        kept = (result.content, *versions(result, "the text"))
        assert side.content in kept or not side.content


def in_all_orders(base, *sides):
    """Returns the results of the merges of branches one after the other, in every order."""
    results = []
    for order in permutations(sides):
        result = base
        for side in order:
            result = merge(base, result, side, path=PATH).data
        results.append(result)
    return results


@given(branches(names=[name for name in CHANGED if name not in ("content", "sections")], number=3))
def test_three_branches_merge_to_the_same_in_any_order(files):
    assert len(set(in_all_orders(*files))) == 1


@st.composite
def edited_lines(draw, places):
    """A text, and three versions of it that replaced or removed lines, some of them the same."""
    memory = replace(draw(MEMORIES), id="x", content="", sections={}, competing=(), links=())
    sides = []
    for name in "abc":
        edits = draw(
            st.dictionaries(st.sampled_from(places), st.sampled_from(["same", name, None]))
        )
        lines = [edits.get(number, f"line {number}") for number in range(7)]
        sides.append("\n".join(f"{number} {line}" for number, line in enumerate(lines) if line))
    texts = ["\n".join(f"{number} line {number}" for number in range(7)), *sides]
    return [render(replace(memory, content=text)) for text in texts]


@given(edited_lines([1]) | edited_lines([2, 3]))
def test_texts_that_conflict_in_one_place_are_the_same_in_any_order(files):
    assert len(set(in_all_orders(*files))) == 1


@given(edited_lines(range(7)))
def test_no_line_is_lost_in_any_order(files):
    """The lines of competing texts may be combined differently."""
    base, *sides = [set(read(file).content.split("\n")) for file in files]
    kept = set.union(*sides) - {line for side in sides for line in base - side}
    for result in map(read, in_all_orders(*files)):
        texts = [result.content, *versions(result, "the text")]
        assert kept <= {line for text in texts for line in text.split("\n")}


@given(branches())
def test_merging_a_side_again_changes_nothing(files):
    base, *sides = files
    merged = merge(base, sides[0], sides[1], path=PATH)
    for side in sides:
        assert merge(base, merged.data, side, path=PATH).data == merged.data


@given(st.lists(TEXT, max_size=3), PROSE, PROSE, PROSE)
def test_a_handwritten_file_is_merged(keys, base, ours, theirs):
    """It has no header, and any text."""
    path = ".mind/notes/x.md"
    files = [f"# A note\n\n{text}\n".encode() for text in (base, ours, theirs)]
    merged = merge_or_none(*files, path=path)

    if merged is not None:
        assert merged == merge(files[0], files[2], files[1], path=path)
        assert isinstance(parse(merged.data, path=path, modified=LATER), Parsed)
