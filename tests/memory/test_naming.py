"""The names of memories, and the memory that a link means."""

from datetime import UTC, datetime

import pytest

from mimo.index.documents import document
from mimo.memory.codec.document import references, title
from mimo.memory.model import Kind, Memory, Place, Record
from mimo.memory.naming import Named, Names, Rank, aliases, is_named, key_of, words_of


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("./Tea  Time.MD", "tea time"),
        ("../a/b.markdown", "a/b"),
        ("Project___Plan%20B", "project/plan b"),
        ("Cafe\u0301", "caf\u00e9"),
        ("v1.2", "v1.2"),
        ("notes/\udcff.md", "notes/?"),
        ("/", ""),
    ],
)
def test_spellings_of_a_name_have_one_key(name: str, key: str) -> None:
    assert key_of(name) == key


def test_the_words_of_a_file_are_its_title() -> None:
    paths = ["docs/0001-use_git.md", "2026-11-20.md", "a b-c.MD", "-.md", "Plan%2FB.md"]
    assert [*map(words_of, paths)] == ["0001 use git", "2026-11-20", "a b-c", "-", "Plan/B"]
    paths = ["202403020000 Tea.md", f"My page {'0a' * 16}.md", "202403020000.md"]
    assert [*map(words_of, paths)] == ["Tea", "My page", "202403020000"]


def test_the_nearest_file_is_meant_and_several_equally_near_ones_are_all_named() -> None:
    paths = ["a/b/tea.md", "a/c/tea.md", "tea.md", "a/c/d/other.md"]
    named = [Named(Rank.FILE, key_of(path), path, path) for path in paths]
    names = Names([*named, Named(Rank.TITLE, "tea", "titled", "a/c/x.md")])

    assert names.meant("Tea", "a/c/x.md") == ["a/c/tea.md"]
    assert names.meant("b/tea.md", "a/c/x.md") == ["a/b/tea.md"]
    assert names.meant("tea", "a/x.md") == ["a/b/tea.md", "a/c/tea.md", "tea.md"]
    assert names.meant("ea") == names.meant("x/tea") == []
    unapproved = [each._replace(is_approved=False) for each in named]
    assert Names([*unapproved, Named(Rank.ALIAS, "tea", "alias")]).meant("tea") == ["alias"]


def test_thousands_of_files_of_one_name_are_resolved_in_time() -> None:
    paths = [f"a/{number}/tea.md" for number in range(10_000)]
    names = Names([Named(Rank.FILE, key_of(path), path, path) for path in paths])

    assert [names.meant("tea", path) for path in paths] == [[path] for path in paths]
    assert [names.meant(path) for path in paths] == [[path] for path in paths]
    tied = [len(names.meant("tea", f"b/{number}/x.md")) for number in range(10_000)]
    assert set(tied) == {20}


def test_properties_of_logseq_give_the_title_and_aliases() -> None:
    text = "title:: Tea time\nalias:: [[Chai]], #oolong\n\nmore\nalias:: no"
    assert (title(text), aliases({"alias": 7}, text)) == ("Tea time", ["7", "Chai", "oolong"])
    assert title("std::string x\n# Head") == "Head"


def test_links_of_dendron_name_the_label_first() -> None:
    text = "[[here|a.b#c]] [[d]] [[x|dendron://vault/e]] [[f#g|h]] [[top|#head]]"
    assert references(text) == ("here", "d", "e", "f", "top")
    assert references(text, is_swapped=True) == ("a.b", "d", "e", "h", "top")


@pytest.mark.parametrize(("parent", "has_alias"), [(None, True), ("source_tea", False)])
def test_an_alias_names_a_memory_and_not_a_part_of_an_ingested_file(
    parent: str | None, has_alias: bool
) -> None:
    day = datetime(2026, 11, 20, tzinfo=UTC)
    memory = Memory(id="a", type=Kind.FACT, created=day, title="Tea", content="alias:: Chai")
    place = Place(path=".mind/facts/a.md", line=1, digest="0" * 64)
    record = Record(memory=memory, place=place, parent=parent)

    assert is_named(record, "tea")
    assert is_named(record, "chai") is ("chai" in document(record).names) is has_alias
