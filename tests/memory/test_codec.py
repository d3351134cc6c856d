"""Reading files as memories: headers of all kinds, and broken ones."""

import string
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import yaml

from mimo.errors import Invalid
from mimo.memory.codec import front_matter
from mimo.memory.codec.file import Parsed, header_fault, is_misread, parse, render
from mimo.memory.codec.splice import splice
from mimo.memory.model import Kind, Link, Outcome, Problem, Section

LATER = datetime(2027, 1, 1, tzinfo=UTC)


def read(text, path="docs/a.md"):
    data = text if isinstance(text, bytes) else text.encode()
    parsed = parse(data, path=path, modified=LATER)
    assert isinstance(parsed, Parsed), parsed
    return parsed


def memory_of(text, path="docs/a.md"):
    return read(text, path).memory


def problem_of(text):
    data = text if isinstance(text, bytes) else text.encode()
    problem = parse(data, path="docs/a.md", modified=LATER)
    assert isinstance(problem, Problem), problem
    return problem


OURS = """\
---
id: decision_auth_strategy_20261120_k3v7mq
type: decision
title: Use JWT with refresh tokens
topic: auth_strategy
tags: [auth, security]
importance: 0.7
confidence: 0.7
outcome: FAILED
created: 2026-11-20T17:40:00Z
by: claude-code
links:
  - {to: decision_auth_strategy_20260301_p2w9xa, type: supersedes}
---
Use JWT with refresh tokens, 15 minutes and 30 days.

## Reasoning
Sessions do not scale.
"""


def test_every_field_is_read_from_a_file_of_mind():
    parsed = read(OURS, ".mind/decisions/decision_auth_strategy_20261120_k3v7mq.md")
    memory = parsed.memory
    assert parsed.owned
    assert parsed.line == 15
    assert (memory.type, memory.topic, memory.outcome) == (
        Kind.DECISION,
        "auth_strategy",
        Outcome.FAILED,
    )
    assert memory.tags == ("auth", "security")
    assert memory.created == datetime(2026, 11, 20, 17, 40, tzinfo=UTC)
    assert memory.content == "Use JWT with refresh tokens, 15 minutes and 30 days."
    assert memory.sections == {Section.REASONING: "Sessions do not scale."}
    supersedes = Link(to="decision_auth_strategy_20260301_p2w9xa", type="supersedes")
    assert memory.links == (supersedes,)
    assert memory.extra == {}


def test_a_plain_file_has_id_type_and_date_of_its_path_and_title_of_its_text():
    memory = memory_of("Intro\n\n# The title #\n\ntext\n", ".mind/insights/cache.md")
    assert (memory.id, memory.type, memory.title) == ("cache", Kind.INSIGHT, "The title")
    assert memory.created == LATER
    assert memory.content == "Intro\n\n# The title #\n\ntext"


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("Title\n=====\ntext", "Title"),
        ("Title\n---\ntext", "Title"),
        ("## Opening\ntext", "Opening"),
        ("text\n\n## A part\n", None),
        ("```\n# no\n```\n# Yes", "Yes"),
        ("~~~~\n# no\n~~~\n# no\n~~~~\n", None),
        ("<!--\n# no\n-->\n# Yes", "Yes"),
        ("#hashtag\ntext", None),
        ("# \ntext", None),
        ("    # code\ntext", None),
        ("# [Tea](https://example.org/a_(b)) <!-- x -->", "Tea"),
        ("# ![logo](a.png) Tea [![Build](b.svg)](https://ci)", "Tea"),
        ("# ![logo](a.png)\n\n# Tea", "Tea"),
        ("# See [[tea|the tea]] and [[cup]]", "See the tea and cup"),
        ("# Fix #42 in C #", "Fix #42 in C"),
        ("# Tea and cups {#tea}", "Tea and cups"),
    ],
)
def test_the_title_is_the_heading_that_names_the_whole(body, title):
    assert read(body, ".mind/a.md").memory.title == title


@pytest.mark.parametrize(
    ("path", "heading", "title"),
    [
        ("daily/2024-05-01.md", "Log", "2024-05-01: Log"),
        ("journals/2024_05_01.md", "Tagebuch", "2024_05_01: Tagebuch"),
        ("daily/2024-05-01.md", "Daily Notes:", "2024-05-01: Daily Notes:"),
        ("proj/ship-it.md", "Tasks", "ship it: Tasks"),
        ("daily/2024-05-01.md", "Shipped the API", "Shipped the API"),
        ("daily/2024-05-01.md", "Dentist", "Dentist"),
        ("daily/2024-05-01.md", "2024-05-01", "2024-05-01"),
        ("202405011200.md", "Tea", "Tea"),
        ("2024-05-01-launch.md", "Launch", "Launch"),
        ("notes/notes.md", "Notes", "Notes"),
        (".mind/facts/2024-05-01.md", "Log", "Log"),
    ],
)
def test_a_heading_that_each_note_has_is_a_title_with_the_name_of_the_file(path, heading, title):
    body = f"# {heading}\n\ntext"
    memory = read(body, path).memory
    assert memory.title == title
    after = replace(memory, tags=("a",))
    assert b"title" not in splice(body.encode(), memory, after, path=path)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Fix #42 in C # and more", "Fix #42 in C # and more"),
        ("2024 #1", "2024 #1"),
        ("Tea #1  # a comment", "Tea #1"),
        ("Tea  # a comment", "Tea"),
        ('"Tea" # a comment', "Tea"),
        ("Guide: how to start", "Guide: how to start"),
        ("@ana", "@ana"),
        ("`code` first", "`code` first"),
        ("%d rows", "%d rows"),
        ("{{title}}", "{{title}}"),
        ("'it's mine'", "it's mine"),
        ("[WIP] Tea", "[WIP] Tea"),
        ("#42 is fixed", "#42 is fixed"),
    ],
)
def test_a_title_in_the_header_is_what_is_written(title, expected):
    text = f"---\ntitle: {title}\ntags: [a]\n---\ntext"
    parsed = parse(text.encode(), path=".mind/a.md", modified=LATER, lenient=True)

    assert isinstance(parsed, Parsed)
    assert (parsed.memory.title, parsed.memory.tags, parsed.line) == (expected, ("a",), 5)


def test_the_key_of_a_title_has_any_case():
    assert memory_of("---\nTitle: Tea\n---\nx").title == "Tea"


@pytest.mark.parametrize("mark", "\x0b \x0c \x1c \x85 \u2028 \u2029".split(" "))
def test_no_key_of_a_broken_header_hides_behind_a_mark(mark):
    text = f"---\ntitle: a: b{mark}type: decision\nx: @\n---\ntext"
    parsed = parse(text.encode(), path=".mind/a.md", modified=LATER, lenient=True)

    assert isinstance(parsed, Parsed)
    assert parsed.memory.type is Kind.FACT


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("---\ntitle: a\n\ntext", "---\ntitle: a\n\ntext"),
        (f"---\ntitle: a\nb: {'x' * 70_000}\n---\ntext", None),
        ("---\ntitle: [a\n? b\n  - c\nno key\n\tx: y\n---\ntext", "text"),
        ("+++\ntitle = a b\ntags = ['x']\n+++\ntext", "text"),
    ],
)
def test_the_text_of_a_broken_header_is_read(text, content):
    parsed = parse(text.encode(), path=".mind/a.md", modified=LATER, lenient=True)

    assert isinstance(parsed, Parsed)
    assert parsed.memory.content == content or (content is None and parsed.memory.content == text)
    assert header_fault(text.encode())
    assert isinstance(parse(text.encode(), path=".mind/a.md", modified=LATER), Problem)


@pytest.mark.parametrize(
    ("value", "day"),
    [
        ("1709337600", "2024-03-02"), ("1709337600000", "2024-03-02"), ("2024.03.02", "2024-03-02"),
        ("Sat, 02 Mar 2024 10:00:00 +0100", "2024-03-02"), ("March 2nd, 2024", "2024-03-02"),
        ("2 Mar 2024", "2024-03-02"), ("March 2024", None), ("02 Mar", None), ("2024-02-30", None),
        ("Foo 2, 2024", None), ("12", None), ("02.03.2024", "2024-03-02"), ("02/03/2024", None),
        ("Saturday, March 2nd 2024, 11:59:00 pm", "2024-03-02"), ("2. März 2024", "2024-03-02"),
        ("March 2, 2024 12:10 AM", "2024-03-02"), ("2 de marzo de 2024", "2024-03-02"),
        ("1er août 2024", "2024-08-01"), ("2024년 3월 2일", "2024-03-02"),
        ("2024年3月2日", "2024-03-02"), ("2024. 3. 2.", "2024-03-02"),
        ("'[[March 2nd, 2024]]'", "2024-03-02"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("key", ["created", "date", "Date", "created_at", "date created"])
def test_a_date_is_read_in_the_forms_of_other_programs(key, value, day):
    memory = memory_of(f"---\n{key}: {value}\n---\nx")
    assert f"{memory.created:%Y-%m-%d}" == (day or "2027-01-01")
    assert any(is_misread(name, memory.extra[name], is_ours=False) for name in memory.extra) == (
        day is None
    )


def test_foreign_keys_are_understood_and_the_rest_is_kept():
    text = (
        "---\ntype: post\ndate: 2024-03-01 10:00:00 +0900\ntags: '#a, #b c'\n"
        "aliases: [x]\nsummary: s\nstatus: accepted\n---\n# T\n"
    )
    memory = memory_of(text)
    assert memory.type is Kind.FACT
    assert memory.created == datetime(2024, 3, 1, 1, tzinfo=UTC)
    assert memory.tags == ("a", "b c")
    assert memory.status == "accepted"
    assert memory.extra == {
        "type": "post",
        "date": "2024-03-01 10:00:00 +0900",
        "aliases": ["x"],
        "summary": "s",
    }


@pytest.mark.parametrize(
    ("written", "hour"),
    [
        ("2026-11-20", 0),
        ("2026/11/20", 0),
        ("2026-11-20 17:40", 17),
        ("2026-11-20T17:40:00.5", 17),
        ("2026-11-20T17:40:00Z", 17),
        ("2026-11-20T17:40:00+02:00", 15),
        ("2026-11-20 17:40:00 -0500", 22),
    ],
)
@pytest.mark.parametrize("key", ["created", "created_at", "date"])
def test_dates_are_read_as_people_write_them(key, written, hour):
    created = memory_of(f"---\n{key}: {written}\n---\nx").created
    assert (created.date().isoformat(), created.hour) == ("2026-11-20", hour)


@pytest.mark.parametrize("written", ["2024-13-45", "soon", "[1]", "0001-01-01T00:00:00+14:00"])
def test_an_invalid_date_falls_back_to_that_of_the_file(written):
    memory = memory_of(f"---\ncreated: {written}\n---\nx")
    assert memory.created == LATER
    assert "created" in memory.extra


@pytest.mark.parametrize(
    "line",
    ["importance: 7", "confidence: high", "outcome: maybe", "protected: perhaps", "tags: {a: b}",
     "title: [a]", "links: [{href: x}]", "links: ['https://example.org']", "id: a/b", "id: 한국어"],
)  # fmt: skip
def test_a_value_without_a_meaning_is_kept_as_an_unknown_key(line):
    """The header of another tool may use our keys for other things; the file stays readable."""
    memory = memory_of(f"---\n{line}\n---\n# T\n")
    assert list(memory.extra) == [line.split(":")[0]]
    assert (memory.importance, memory.confidence, memory.title) == (0.5, None, "T")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("no", "no"),
        ("NO", "NO"),
        ("on", "on"),
        ("0123", "0123"),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("1.10", "1.10"),
        ("1e3", "1e3"),
        ("0x1f", "0x1f"),
        (".inf", ".inf"),
        ("2024-01-01", "2024-01-01"),
        ("=", "="),
        ("9" * 4301, "9" * 4301),
        ("12", 12),
        ("-1.5", -1.5),
        ("true", True),
        ("~", None),
        ("*.ts, **/*.py", "*.ts, **/*.py"),
        ("**/*  # why", "**/*"),
    ],
)
def test_plain_values_are_read_as_in_json(written, meant):
    value = memory_of(f"---\nkey: {written}\n---\nx").extra["key"]
    assert value == meant
    assert type(value) is type(meant)


@pytest.mark.parametrize("mark", [*string.punctuation, "\xa0", "\u2028", "あ"])
def test_other_readers_of_yaml_read_what_is_written(mark):
    for text in (
        f"a{mark}",
        f"a{mark}b",
        f"a {mark} b",
        f"{mark}a",
        mark,
        f"a{mark} b",
        f"a {mark}b",
    ):
        for value in (text, [text, text], {text: [text]}):
            written = front_matter.entry("key", value)
            assert yaml.safe_load(written) == {"key": value}


@pytest.mark.parametrize("key", ["content", "handler", "yes", "12", "a b", "\ue000x"])
def test_a_key_may_have_any_name(key):
    assert memory_of(f"---\n{key}: 1\n---\nx").extra == {key: 1}


@pytest.mark.parametrize(
    ("header", "line", "reason"),
    [
        ("a: &x 1", 2, "anchors"),
        ("a: 1\nb: *x", 3, "aliases"),
        ("a: !!python/object:os.system x", 2, "tags"),
        ("a: !!timestamp x", 2, "tags"),
        ("a: !mine x", 2, "tags"),
        ("a: {<<: {b: 1}}", 2, "merge"),
        ("a: 1\nb: 2\na: 3", 4, "twice"),
        ("a: 1\n\tb: 2", 3, "tab"),
        ("a: 1\nb: Fix: the thing", 3, "quotes"),
        ("a: @me", 2, "quotes"),
        ("a: 'open", 3, "quote"),
        ("a: [1", 3, "bracket"),
        ("a: 1\nb: \x01", 3, "control characters"),
        ("k: 1\n? [a, b]\n: 1", 3, "key"),
        ("a: " + "[" * 500, 2, "nested"),  # Newer parsers refuse 1,000 by themselves.
        ("a: " + "{b: " * 6 + "1" + "}" * 6, 2, "nested"),
        ("\n".join(f"k{n}: 1" for n in range(201)), 202, "keys"),
        ("a: x\n" * 20_000, 1, "64 KiB"),
        ("{{ a }}: 1", 2, "key"),
    ],
)
def test_a_header_outside_the_rules_is_reported_with_its_line(header, line, reason):
    """A bomb must cost nothing, and a typing error must be problem at once by who made it."""
    problem = problem_of(f"---\n{header}\n---\ntext\n")
    assert reason in problem.reason
    assert problem.line == line


@pytest.mark.parametrize(
    "bomb",
    [
        "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 9)),
        "a: &a {k: v}\n" + "".join(f"b{n}: {{<<: [*a, *a]}}\n" for n in range(20)),
    ],
)
def test_an_alias_bomb_is_refused_at_its_first_anchor(bomb):
    assert problem_of(f"---\n{bomb}---\n").line == 2


@pytest.mark.attack("repeated text takes quadratic time")
@pytest.mark.parametrize("line", ["-  " * 1_000 + "x", "-" + " \t" * 15_000 + "x"])
def test_no_header_takes_long(line):
    problem_of(f"---\nnotes:\n{line}\n---\nx\n")


@pytest.mark.attack("repeated text takes quadratic time")
def test_no_heading_takes_long():
    assert memory_of("# " + " " * 500_000 + "\rx\n").title == "a"


def test_six_levels_and_two_hundred_keys_are_allowed():
    deep = "a: {b: {c: {d: {e: {f: 1}}}}}"
    assert memory_of(f"---\n{deep}\n---\nx").extra["a"]
    many = "".join(f"k{n}: 1\n" for n in range(200))
    assert len(memory_of(f"---\n{many}---\nx").extra) == 200


@pytest.mark.parametrize(
    "text",
    [
        "---\nhello\n---\nmore\n",
        "---\n- a\n- b\n---\nmore\n",
        "---\n\nSome prose: with a colon\nand: more: of it\n\n---\nmore\n",
        "---\n# A heading\n---\nmore\n",
        "---\nprose without an end\n",
        "---",
        "----\na: 1\n----\nmore\n",
        "text\n---\na: 1\n---\n",
        "+++\nprose\n+++\n",
    ],
)
def test_a_file_that_begins_with_a_rule_loses_nothing(text):
    memory = memory_of(text)
    assert memory.content == text.strip("\n")
    assert memory.extra == {}


def test_an_unclosed_header_is_reported():
    assert "not closed" in problem_of("---\ntitle: x\n\ntext\n").reason
    assert "not closed" in problem_of("+++\ntitle = 'x'\n\ntext\n").reason


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("close", ["---", "---  ", "..."])
def test_a_header_is_read_with_any_line_ends_mark_and_fence(end, bom, close):
    text = end.join(["---\t", "title: T", close, "", "one", "  two", ""])
    parsed = read(bom + text)
    assert parsed.memory.title == "T"
    assert parsed.memory.content == "one\n  two"
    assert parsed.line == 5


def test_a_block_scalar_at_the_end_of_a_header_keeps_its_last_line_end():
    assert memory_of("---\na: |\n  b\n---\nx").extra == {"a": "b\n"}


def test_a_toml_header_is_read():
    text = "+++\ntitle = 'T'\ndate = 2024-01-02\ntags = ['a']\n[extra]\nat = 12:00:00\n+++\nx\n"
    memory = memory_of(text)
    assert (memory.title, memory.tags) == ("T", ("a",))
    assert memory.created == datetime(2024, 1, 2, tzinfo=UTC)
    assert memory.extra == {"date": "2024-01-02", "extra": {"at": "12:00:00"}}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_broken_toml_header_is_reported_with_its_line(end):
    problem = problem_of(end.join(["+++", "title = 'T'", "date = ", "+++", "x"]))
    assert problem.line == 3
    assert "at line" not in problem.reason


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        (b"", None, "empty"),
        (b"\xef\xbb\xbf \n", None, "empty"),
        (b"a\nb\xff\n", 2, "not UTF-8"),
        ("text".encode("utf-16"), 1, "UTF-16"),
        (b"a\nb\0c", 2, "binary"),
        (b"x" * (1024 * 1024 + 1), None, "too large"),
    ],
)
def test_a_file_that_is_not_text_is_reported(data, line, reason):
    problem = problem_of(data)
    assert problem.line == line
    assert reason in problem.reason


def test_references_in_the_text_are_links_and_those_in_code_are_not():
    text = (
        "See [[one]], [[two|the second]], [[Three words#part]] and [[one]].\n"
        "`[[code]]` ``[[more` code]]`` ![[image.png]] [[ -f file ]]\n\n```\n[[fenced]]\n```\n"
    )
    assert memory_of(text).links == (Link(to="one"), Link(to="two"), Link(to="Three words"))


def test_code_in_a_quotation_ends_with_it():
    text = "> ```\n> [[code]]\n\n[[one]]\n\n```\n> ```\n[[code]]\n```\n\n# T\n"
    memory = memory_of(text)

    assert memory.links == (Link(to="one"),)
    assert memory.title == "T"


def test_links_of_an_obsidian_header_are_links():
    memory = memory_of('---\nlinks: ["[[One]]", "[[Two|second]]"]\n---\nx')
    assert memory.links == (Link(to="One"), Link(to="Two"))


def test_only_files_of_mind_have_sections():
    text = "# T\n\n## Outcome\n\n\\## Outcome\nIt went well.\n"
    assert memory_of(text).sections == {}
    assert memory_of(text).content == text.strip()
    header = "---\nid: a\ntype: fact\n---\n"
    inside, outside = read(header + text, ".mind/facts/a.md"), read(header + text, "docs/a.md")
    assert inside.memory.sections == {Section.OUTCOME: "## Outcome\nIt went well."}
    assert not outside.owned
    assert outside.memory.sections == {}


def test_a_second_section_of_one_name_is_kept_as_text():
    text = "---\nid: a\ntype: fact\n---\nx\n\n## Outcome\none\n\n## Outcome\ntwo\n"
    sections = memory_of(text, ".mind/facts/a.md").sections
    assert sections == {Section.OUTCOME: "one\n\n## Outcome\ntwo"}


CONFLICT = "<<<<<<< HEAD\nrocket\n=======\nrelease\n>>>>>>> theirs\n"
DIFF3 = CONFLICT.replace("=======", "||||||| base\nold\n=======")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("<<<<<<< HEAD\n---\nid: a\n=======\n---\nid: b\n>>>>>>> theirs\n---\ntext\n", 1),
        (f"---\nid: a\n---\nDeploy:\n{CONFLICT}", 5),
        (f"---\r\nid: a\r\n---\r\n{DIFF3}".replace("\n", "\r\n").replace("\r\r", "\r"), 4),
        (f"---\nid: a\n{CONFLICT}---\nx\n", 3),
        ("---\nid: a\n<<<<<<< A\ntags: [b]\n=======\ntags: [c]\n>>>>>>> B\n---\nx\n", 3),
        ("<<<<<<< A\n```sh\na\n=======\n```sh\nb\n>>>>>>> B\n```\n", 1),
        (f"```\ncode\n```\n{CONFLICT}", 4),
        (f"text\n{CONFLICT}".translate({60: "<<", 61: "==", 62: ">>"}), 2),
        ("x\n<<<<<<<<<<< A\n<<<<<<<<< B\n===========\n>>>>>>>>>>> C\n", 2),
        ("x\n<<<<<<< 1 of 1\n%%%%%%% diff from: a\n-x\n+y\n+++++++ b\nz\n>>>>>>> 1 of 1 ends\n", 2),
        ("<<<<<<< Conflict\n+++++++ one\na\n------- base\nb\n+++++++ two\nc\n>>>>>>> ends\n", 1),
    ],
)
def test_a_file_with_a_merge_conflict_is_a_problem(text, line):
    problem = problem_of(text)
    assert (problem.line, "conflict" in problem.reason) == (line, True)


@pytest.mark.parametrize(
    "text",
    [
        f"Git writes:\n```\n{CONFLICT}```\n",
        f"~~~ text\n{DIFF3}~~~\n",
        f"<!--\n{CONFLICT}-->\nx\n",
        "".join(f"    {line}\n" for line in CONFLICT.splitlines()),
        "The first marker is\n<<<<<<< HEAD\nand the last is\n>>>>>>> theirs\n",
        f"<<<<<<< HEAD\nis the first marker:\n```\n{CONFLICT}```\n",
        "Title\n=======\n>>>>>>> quoted\n",
    ],
)
def test_a_text_about_merge_conflicts_is_read(text):
    header = "---\nid: a\ntype: fact\n---\n"
    memory = memory_of(header + text, ".mind/facts/a.md")
    assert "<<<<<<<" in memory.content or ">>>>>>>" in memory.content
    assert memory_of(render(memory), ".mind/facts/a.md") == memory


def test_markers_of_many_lengths_are_read_once():
    """Markdown of others may be as large as it likes, and is read by each command."""
    markers = "".join(f"{'<' * size} a\n" for size in range(7, 1200))
    text = f"x\n{markers}{'a' * 3}\n" + "a\n" * 120_000

    assert memory_of(text).content.startswith("x\n<<<<<<< a")


def test_no_merge_conflict_is_written():
    with pytest.raises(Invalid, match="merge conflict") as raised:
        render(replace(memory_of("x"), content=f"Deploy:\n{CONFLICT}"))
    assert "code fence" in raised.value.hint
