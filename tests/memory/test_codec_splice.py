"""Edits in place: the written changes, and the bytes that must not change."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as some

from mimo.errors import Invalid
from mimo.memory.codec.file import Parsed, normal, parse, render
from mimo.memory.codec.splice import splice
from mimo.memory.model import Kind, Link, Memory, Outcome, Section

LATER = datetime(2027, 1, 1, tzinfo=UTC)
ADR = "docs/decisions/0001.md"
OWN = ".mind/facts/a.md"

FOREIGN = """\
---
# Decided in the spring
status:   "proposed"   # ask Kim
deciders: [Kim,  'Lee']
tags:
  - one   # first
  -   "two"
date: 2024-01-02

summary: >
  folded
  text

---
# Use git

Text.
"""


def read(data, path):
    parsed = parse(data, path=path, modified=LATER)
    assert isinstance(parsed, Parsed), parsed
    return parsed.memory


def edited(text, path=ADR, **changes):
    data = text if isinstance(text, bytes) else text.encode()
    before = read(data, path)
    after = replace(before, **changes)
    changed = splice(data, before, after, path=path)
    assert normal(read(changed, path)) == normal(after)
    return changed.decode()


def test_a_value_is_replaced_and_its_comment_stays():
    changed = edited(FOREIGN, status="accepted")
    assert changed == FOREIGN.replace('"proposed"', "accepted")


def test_a_tag_is_added_in_the_style_of_the_list():
    changed = edited(FOREIGN, tags=("one", "two", "three"))
    assert changed == FOREIGN.replace('  -   "two"\n', '  -   "two"\n  - three\n')


def test_a_list_over_several_lines_stays_one():
    changed = edited(FOREIGN, tags=("four",))
    assert changed == FOREIGN.replace('  - one   # first\n  -   "two"\n', "  - four\n")


def test_a_key_is_removed_with_all_its_lines():
    changed = edited(FOREIGN, tags=(), extra={"date": "2024-01-02", "deciders": ["Kim", "Lee"]})
    assert changed == FOREIGN.replace('tags:\n  - one   # first\n  -   "two"\n', "").replace(
        "summary: >\n  folded\n  text\n", ""
    )


def test_a_new_key_is_inserted_in_the_fixed_order():
    changed = edited(FOREIGN, outcome=Outcome.FAILED, importance=0.9)
    expected = FOREIGN.replace('"two"\n', '"two"\nimportance: 0.9\noutcome: FAILED\n')
    assert changed == expected


def test_a_new_foreign_key_is_appended():
    memory = read(FOREIGN.encode(), ADR)
    changed = edited(FOREIGN, extra={**memory.extra, "x": [1, {"a": "b: c"}]})
    assert changed == FOREIGN.replace("\n---\n# Use", '\nx: [1, {a: "b: c"}]\n---\n# Use')


def test_line_ends_and_the_byte_order_mark_survive():
    text = "\ufeff" + FOREIGN.replace("\n", "\r\n").rstrip()
    changed = edited(text, importance=0.9, status="x")
    expected = text.replace('"proposed"', "x").replace('"two"\r\n', '"two"\r\nimportance: 0.9\r\n')
    assert changed == expected


def test_a_file_without_a_header_gets_one():
    assert edited("# T\r\n\r\nx", status="done") == "---\r\nstatus: done\r\n---\r\n# T\r\n\r\nx"
    assert edited("---\nrule\n---\n", topic="t") == "---\ntopic: t\n---\n---\nrule\n---\n"
    assert edited("\ufeffx\n", topic="t") == "\ufeff---\ntopic: t\n---\nx\n"


@pytest.mark.parametrize(
    "text",
    ["---\n\nA rule\n", "---\nA title\n---\nx\n", "---\n# A title\n---\nx\n", "+++\nplus\n", "x"],
)
def test_a_header_that_an_edit_empties_is_removed(text):
    assert edited(edited(text, topic="t"), topic=None) == text


def test_an_empty_header_stays_above_a_text_that_looks_like_one():
    text = "---\ntopic: t\n---\n---\na: b\n---\nx\n"
    assert edited(text, topic=None) == text.replace("topic: t\n", "")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("one\ntwo\nthree\n", "one\nTWO\nthree\n"),
        ("one\r\ntwo\nthree\n", "one\r\nTWO\r\nthree\n"),
        ("one\ntwo\r\nthree", "one\nTWO\nthree"),
        ("one\r\ntwo\r\nthree\n", "one\r\nTWO\r\nthree\n"),
    ],
)
def test_unchanged_lines_keep_their_ends(body, expected):
    head = "---\r\nstatus: done\r\n---\r\n"
    assert edited(head + body, content="one\nTWO\nthree") == head + expected


def test_the_last_line_without_an_end_gets_one_if_others_follow():
    text = "---\r\nid: a\r\ntype: fact\r\n---\r\none"
    changed = edited(text, OWN, sections={Section.REASONING: "why"})
    assert changed == f"{text}\r\n\r\n## Reasoning\r\nwhy"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", "status: x\n"),
        ("status:\n", "status: x\n"),
        ("status:   # why\n", "status: x   # why\n"),
        ("status: |\n  a\n  b\n\nz: 1\n", "status: x\n\nz: 1\n"),
        ("status: 'a\n  b'  # c\n", "status: x  # c\n"),
        ("status: [a,\n  b]\n", "status: x\n"),
        ("status: # why\n  a: b\nz: 1\n", "status: x # why\nz: 1\n"),
        ('"status" : a\n', '"status" : x\n'),
        ("  status: a\n  z: 1\n", "  status: x\n  z: 1\n"),
        ("  z: 1\n", "  z: 1\n  status: x\n"),
        ("? status\n: a\n", "? status\n: x\n"),
        ("{z: 1, status: a}\n", "z: 1\nstatus: x\n"),
        ("globs: **/*.ts\nstatus: *.a\n", "globs: **/*.ts\nstatus: x\n"),
    ],
)
def test_values_in_every_notation_are_replaced(header, expected):
    assert edited(f"---\n{header}---\nbody", status="x") == f"---\n{expected}---\nbody"


def test_a_key_with_a_comment_before_its_colon_is_never_changed():
    text = b"---\n? status # or: state\n: a\n---\nx"
    before = read(text, ADR)
    with pytest.raises(Invalid, match="status") as raised:
        splice(text, before, replace(before, status="b"), path=ADR)
    assert raised.value.hint == "edit it by hand"


@pytest.mark.parametrize(
    ("header", "changes"),
    [
        ("links:\n  - {too: b}\n  - c", {"links": (Link(to="d", type="refines"),)}),
        ("tags: {a: 1}", {"tags": ("b",)}),
    ],
)
def test_a_list_that_can_not_be_read_is_never_replaced(header, changes):
    text = f"---\n{header}\n---\nx".encode()
    before = read(text, ADR)
    with pytest.raises(Invalid, match="can't be read"):
        splice(text, before, replace(before, **changes), path=ADR)
    assert header in edited(text, status="a")


def test_the_last_key_beside_a_comment_stays_without_a_value():
    """Comments alone between two rules would read as headings."""
    assert edited("---\n# why\nstatus: a\n---\nx", status=None) == (
        "---\n# why\nstatus: null\n---\nx"
    )
    assert edited("---\nstatus: a\n---\nx", status=None) == "x"


def test_links_can_be_reordered():
    first, second = Link(to="b", type="refines"), Link(to="c", type="refines")
    text = edited("---\nid: a\ntype: fact\n---\nx\n", OWN, links=(first, second))
    assert edited(text, OWN, links=(second, first)).index("to: c") < text.index("to: c")


def test_links_are_added_one_a_line():
    text = "---\nid: a\ntype: fact\n---\nSee [[b]].\n"
    first = edited(text, OWN, links=(Link(to="c", type="refines"), Link(to="b")))
    added = "links:\n  - {to: c, type: refines}\n"
    assert first == text.replace("---\nSee", f"{added}---\nSee")
    second = edited(first, OWN, links=(Link(to="c", type="refines"), Link(to="d", type="refines")))
    assert second == first.replace(added, f"{added}  - {{to: d, type: refines}}\n")


@pytest.mark.parametrize(
    ("header", "changes", "expected"),
    [
        (
            "links:\n  - b  # why\n",
            {"links": (Link(to="b"), Link(to="c", type="refines"))},
            "links:\n  - b  # why\n  - {to: c, type: refines}\n",
        ),
        (
            'links:\n- "[[b]]"  # why\n- to: c  # other\n  type: refines\n',
            {"links": (Link(to="b"),)},
            'links:\n- "[[b]]"  # why\n',
        ),
        (
            "links:\n  - b  # why\n  - c\n",
            {"links": (Link(to="b", by="kim"), Link(to="c"))},
            "links:\n  - {to: b, type: relates_to, by: kim}  # why\n  - c\n",
        ),
        (
            "links:  # sorted\n",
            {"links": (Link(to="b", type="refines"),)},
            "links:  # sorted\n  - {to: b, type: refines}\n",
        ),
        (
            "links: []  # none\n",
            {"links": (Link(to="b", type="refines"),)},
            "links: [{to: b, type: refines}]  # none\n",
        ),
        (
            "links: [b, {to: c}]  # x\n",
            {"links": (Link(to="b", type="refines"), Link(to="c"))},
            "links: [{to: b, type: refines}, {to: c}]  # x\n",
        ),
        ("tags: ['a',b, c]  # x\n", {"tags": ("a", "c", "d")}, "tags: ['a', c, d]  # x\n"),
        ("tags: [\n  a,  # x\n  b  # y\n]\n", {"tags": ("b",)}, "tags: [\n  b  # y\n]\n"),
        (
            "tags: [\n  a,  # x\n  b  # y\n]\n",
            {"tags": ("a", "b", "c d")},
            "tags: [\n  a,  # x\n  b,  # y\n  c d,\n]\n",
        ),
        ("tags:\n  # x\n  - a  # y\n", {"tags": ()}, "tags:\n  # x\n"),
        (
            "tags:\n  -  # x\n    a\n  -\n",
            {"tags": ("a", "b")},
            "tags:\n  -  # x\n    a\n  - b\n  -\n",
        ),
        ("tags: |  # x\n  a, b\n", {"tags": ("a",)}, "tags: [a]  # x\n"),
        ("tags:\n  - a\n  # x\n", {"status": "t"}, "tags:\n  - a\n  # x\nstatus: t\n"),
        ("# x\nstatus: t\n", {"tags": ("a",)}, "tags: [a]\n# x\nstatus: t\n"),
        (
            "links:\n  - b\ntags: [c]\n",
            {"links": (Link(to="b"), Link(to="d")), "topic": "t"},
            "links:\n  - b\n  - {to: d, type: relates_to}\ntopic: t\ntags: [c]\n",
        ),
        (
            "links:\n  - b  # x\n  - c\n  - d\n",
            {"links": (Link(to="c"), Link(to="d"), Link(to="b", by="kim"))},
            "links:\n  - c\n  - d\n  - {to: b, type: relates_to, by: kim}  # x\n",
        ),
        ("my: ['a',]  # x\n", {"extra": {"my": []}}, "my: []  # x\n"),
        ("my:  # x\n  # y\n  - a\n", {"extra": {"my": []}}, "my: []  # x\n  # y\n"),
        ("my:  # x\n  - a\nz: 1\n", {"extra": {"z": 1}}, "z: 1\n"),
    ],
)
def test_comments_stay_beside_their_items(header, changes, expected):
    assert edited(f"---\n{header}---\nx\n", **changes) == f"---\n{expected}---\nx\n"


def test_a_list_is_never_removed_with_a_comment_beside_another_line():
    text = b"---\nid: a\ntags: [\n  # x\n  b ]\n---\nx"
    before = read(text, ADR)
    with pytest.raises(Invalid, match="`tags` can't be changed"):
        splice(text, before, replace(before, tags=()), path=ADR)


def test_links_to_one_target_are_changed_in_their_order():
    links = [Link(to=to, type=f"type {n}") for n, to in enumerate("bcdb")]
    text = edited("---\nid: a\ntype: fact\n---\nx\n", OWN, links=tuple(links))
    changed = edited(text, OWN, links=tuple(replace(link, by="kim") for link in links))
    assert changed == text.replace("}", ", by: kim}")


NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")
NOTATIONS = {
    "tags": ("{}", "'{}'", '"#{}"', '"{}"'),
    "links": ("{}", '"[[{}]]"', "{{to: {}, type: relates_to}}", "{{ to: '{}' }}"),
}


@some.composite
def lists(draw):
    """Returns the lines of a list, and for each item its name, its own line and its comments."""
    key = draw(some.sampled_from(("tags", "links")))
    names = draw(some.lists(some.sampled_from(NAMES), min_size=1, unique=True))
    dash = draw(some.sampled_from(("- ", "  - ", "    -   ", "")))
    lines, items = [], []
    for name in names:
        above = draw(some.lists(some.just(f"  # above {name}"), max_size=2))
        own = dash + draw(some.sampled_from(NOTATIONS[key])).format(name)
        own = own if dash else f"  {own}{draw(some.sampled_from(('', ','))) or ','}"
        beside = draw(some.sampled_from(("", f"  # beside {name}")))
        lines += [*draw(some.sampled_from(((), ("",)))), *above, own + beside]
        items.append((name, own, beside, above))
    head = draw(some.sampled_from(("", "  # beside the key")))
    if dash:
        return key, [f"{key}:{head}", *lines], items
    if draw(some.booleans()):
        beside = items[-1][2]
        lines[-1] = lines[-1].removesuffix(beside).removesuffix(",") + beside
    return key, [f"{key}: [{head}", *lines, "]"], items


@given(
    lists(),
    some.lists(some.sampled_from((*NAMES, "new", "x, y")), unique=True),
    some.sampled_from(("\n", "\r\n")),
)
def test_every_other_line_and_comment_stays_in_its_place(written, wanted, newline):
    key, listed, items = written
    if key == "links":
        wanted = [name for name in wanted if name != "x, y"]
    before = ["# top", "id: a", "type: fact", "# about the list", *listed]
    after = ["# below", "other: [1,  2] # why", "odd:   'x'"]
    text = "\n".join(["---", *before, *after, "---", "x", ""]).replace("\n", newline)
    values = tuple(wanted if key == "tags" else (Link(to=name) for name in wanted))
    changed = edited(text.encode(), OWN, **{key: values})
    assert changed.count(newline) == changed.count("\n")
    lines = changed.replace(newline, "\n").split("\n")
    assert [line for line in lines if line in after] == after
    kept = [line for line in before[:4] if line in lines]
    assert kept == before[:4]
    for name, own, beside, above in items:
        at = next((n for n, line in enumerate(lines) if line.startswith(own.rstrip(","))), None)
        assert (at is not None) == (name in wanted)
        if at is None:
            assert not any(beside and beside in line for line in lines)
            assert [line for line in lines if line in above] == above
        else:
            assert lines[at].rstrip(",").replace(",  #", "  #") == (
                own.rstrip(",").replace(",  #", "  #") + beside
            )
            assert lines[at - len(above) : at] == above
    if wanted:
        assert listed[0] in lines


def test_title_is_written_only_if_it_differs_from_the_heading():
    text = "---\nid: a\ntype: fact\n---\n# Old\n"
    assert edited(text, OWN, title="Other") == text.replace("fact\n", "fact\ntitle: Other\n")
    assert edited(text, OWN, title="New", content="# New") == text.replace("Old", "New")


OWNED = """\
---
id: a
type: fact
---

one
two
three

## Outcome

It broke.


"""


def test_only_the_lines_of_the_text_that_differ_are_written():
    assert edited(OWNED, OWN, content="one\n2\nthree") == OWNED.replace("two", "2")
    assert edited(OWNED, OWN, content="") == OWNED.replace("one\ntwo\nthree\n", "")


def test_sections_are_changed_added_and_removed():
    outcome = Section.OUTCOME
    assert edited(OWNED, OWN, sections={outcome: "Fine."}) == OWNED.replace("It broke.", "Fine.")
    assert "## Outcome" not in edited(OWNED, OWN, sections={})
    both = edited(OWNED, OWN, sections={Section.REASONING: "So.", outcome: "It broke."})
    assert both == OWNED.replace("## Outcome", "## Reasoning\nSo.\n\n## Outcome")
    last = edited(OWNED, OWN, sections={outcome: "It broke.", Section.NEXT_STEPS: "- a"})
    assert last == OWNED.replace("It broke.\n", "It broke.\n\n## Next steps\n- a\n")


def test_a_section_of_a_file_without_a_last_line_end_begins_on_its_own_line():
    text = "---\nid: a\ntype: fact\n---\nx"
    changed = edited(text, OWN, sections={Section.OUTCOME: "y"})
    assert changed.startswith(f"{text}\n\n## Outcome\ny")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_file_that_ends_with_its_header_gets_a_text(end):
    text = f"---{end}id: a{end}type: fact{end}---"
    assert edited(text, OWN, content="x").startswith(f"{text}{end}x")
    assert edited(text, OWN, sections={Section.OUTCOME: "y"}).startswith(f"{text}{end}## Outcome")
    assert edited(text, OWN, topic="t").endswith("---")


def test_heading_in_a_text_is_escaped_and_read_back():
    changed = edited(OWNED, OWN, content="## Outcome\n\\## Outcome\n## Outcomes")
    assert "\n\\## Outcome\n\\\\## Outcome\n## Outcomes\n" in changed


def test_section_is_never_added_to_a_foreign_file():
    before = read(FOREIGN.encode(), ADR)
    with pytest.raises(Invalid):
        splice(FOREIGN.encode(), before, replace(before, sections={Section.OUTCOME: "x"}), path=ADR)


def test_the_text_of_a_foreign_file_can_be_edited():
    changed = edited(FOREIGN, content="# Use git\n\n## Outcome\nText.")
    assert changed == FOREIGN.replace("Text.", "## Outcome\nText.")


TOML = """\
+++
# why
title = "T"   # c
tags = [
  "a",
]
date = 2024-01-02

[extra]
status = "inner"
+++
x
"""


def test_a_toml_header_is_edited_in_place():
    changed = edited(TOML, status="don\u00e9", tags=("a", "b"), importance=0.9)
    assert changed == TOML.replace('  "a",\n', '  "a",\n  "b",\n').replace(
        "\n[extra]", 'importance = 0.9\nstatus = "don\u00e9"\n\n[extra]'
    )
    assert edited(TOML, tags=()) == TOML.replace('tags = [\n  "a",\n]\n', "")
    assert edited(TOML.replace("\n", "\r\n"), topic="t").count("\r\n") == TOML.count("\n") + 1


def test_a_toml_list_of_another_program_is_removed_with_its_comments():
    text = "+++\na = 1\nmy = [ # x\n  2,\n]\n+++\nx"
    assert edited(text, extra={"a": 1}) == "+++\na = 1\n+++\nx"


def test_a_toml_header_takes_every_kind_of_value_except_null():
    plain = "+++\ntitle = 'T'\n+++\nx"
    then = datetime(2026, 1, 1, tzinfo=UTC)
    changed = edited(plain, extra={"a b": {"c": [1.5, True, "\x7f"]}}, created=then)
    added = 'created = 2026-01-01T00:00:00Z\n"a b" = {c = [1.5, true, "\\u007f"]}\n'
    assert changed == plain.replace("'T'\n", f"'T'\n{added}")
    before = read(plain.encode(), ADR)
    with pytest.raises(Invalid, match="TOML"):
        splice(plain.encode(), before, replace(before, extra={"a": None}), path=ADR)


def test_a_toml_table_is_never_replaced():
    for table in ("[status]", "[[status]]"):
        text = f"+++\n{table}\na = 1\n+++\nx".encode()
        before = read(text, ADR)
        with pytest.raises(Invalid, match="table"):
            splice(text, before, replace(before, status="b"), path=ADR)


def test_a_header_that_would_grow_beyond_the_limits_is_refused():
    text = ("---\n" + "".join(f"k{n}: 1\n" for n in range(200)) + "---\nx").encode()
    before = read(text, ADR)
    with pytest.raises(Invalid, match="200"):
        splice(text, before, replace(before, topic="t"), path=ADR)


def test_a_file_that_cant_be_read_is_never_edited():
    memory = Memory(id="a", type=Kind.FACT, content="x", created=LATER)
    with pytest.raises(Invalid):
        splice(b"---\na: [\n---\n", memory, memory, path=ADR)


def test_an_edit_that_would_read_differently_is_refused():
    """`[[b]]` in the text makes a link that no header can take away, but sections can't hide."""
    text = b"---\nid: a\n---\n## Outcome\nx\n"
    before = read(text, OWN)
    with pytest.raises(Invalid, match="read differently"):
        splice(text, before, replace(before, type=Kind.PLAN), path=OWN)


def memory(**changes):
    return replace(Memory(id="a", type=Kind.FACT, content="x", created=LATER), **changes)


def test_a_new_file_has_no_defaults_and_no_nulls():
    assert render(memory()) == b"---\nid: a\ntype: fact\ncreated: 2027-01-01T00:00:00Z\n---\nx\n"


def test_a_new_file_reads_well_and_in_the_fixed_order():
    full = memory(
        title="Use: JWT",
        topic="auth",
        tags=("a", "no", "x, y"),
        importance=0.7,
        confidence=0.0,
        outcome=Outcome.PARTIAL,
        status="active",
        category="c",
        source="https://example.org/a",
        protected=False,
        by="claude-code",
        links=(Link(to="b", type="refines", given="build on", confidence=1.0, by="kim"),),
        sections={Section.NEXT_STEPS: "- y", Section.REASONING: "z"},
        extra={"aliases": ["1", "two words"], "k": None},
    )
    assert render(full).decode() == (
        '---\nid: a\ntype: fact\ntitle: "Use: JWT"\ntopic: auth\ntags: [a, "no", "x, y"]\n'
        "importance: 0.7\nconfidence: 0.0\noutcome: PARTIAL\nstatus: active\ncategory: c\n"
        "source: https://example.org/a\nprotected: false\ncreated: 2027-01-01T00:00:00Z\n"
        "by: claude-code\nlinks:\n"
        "  - {to: b, type: refines, as: build on, confidence: 1.0, by: kim}\n"
        'aliases: ["1", two words]\nk: null\n---\nx\n\n## Reasoning\nz\n\n## Next steps\n- y\n'
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"content": "a\0b"},
        {"content": "\ud800"},
        {"extra": {"a": float("nan")}},
        {"extra": {"a": float("inf")}},
        {"extra": {"a": {1: 2}}},
        {"extra": {"a": object()}},
        {"extra": {"a": [[[[[[1]]]]]]}},
        {"extra": {"k" * 1100: 1}},
        {"extra": {f"k{n}": 1 for n in range(201)}},
        {"title": "x" * 70_000},
        {"content": "x" * 1024 * 1024},
    ],
)
def test_text_that_a_file_cant_hold_is_refused_before_it_is_written(changes):
    with pytest.raises(Invalid):
        render(memory(**changes))
