"""A whole log -> memories with their lines, days and ids."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.memory import log
from mimo.memory.log import read_day
from mimo.memory.model import Kind, Problem, Section
from mimo.project.init import LOG

READ = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)
BLAME = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)

WHOLE = """\
<!-- MEMORY.md of the shop -->
# shop

## Project State
- Goal: Ship the checkout
- Stack: sveltekit, supabase
- Blocked: the payment contract

## Gotchas
- Safari drops cookies after 7 days → use first-party auth
- a 10s-limit holds at https://x.example/a-b -> poll it
- `p->next` may be null -- check it first
- uploads time out - use chunks
- the port 8080 is taken
  - on CI, too

---

## Session Log

## 2026-11-20 | Login works again | mood: relieved
**Decided:** Use JWT over sessions because nothing is shared
- Problem: the redirect is lost
  on preview
- [x] Bug: the mail is sent twice
- Decided: two queues
  - because: one of them stalls

> Decided: a quotation of another author

```
Decided: what code says
```
<!-- Decided: what a comment says -->
Free text is nobody's memory.
Next: write the expiry test

## Dec 12
TIL the build is cached
"""


def parsed(text, dates=None):
    result = log.parse(
        text.encode(), path=".mind/MEMORY.md", digest="d", modified=READ, dates=dates or dict
    )
    assert not isinstance(result, Problem)
    return result


@pytest.mark.attack("memory that its mask makes unreachable")
def test_no_id_of_a_line_holds_a_secret():
    token = "shp" + "at_" + "0123456789abcdef" * 2
    (record,) = parsed(f"## 2026-11-20\n\n**Decided:** {token} because x\n")
    assert re.fullmatch("decision_[0-9a-f]{8}", record.memory.id)


@pytest.mark.req("003-09")
def test_every_part_of_a_log_becomes_memories_with_their_lines():
    rows = [(r.place.line, r.memory.type.value, r.memory.title) for r in parsed(WHOLE)]

    assert rows == [
        (5, "context", "Goal: Ship the checkout"),
        (6, "context", "Stack: sveltekit, supabase"),
        (7, "issue", "Blocked: the payment contract"),
        (10, "edge", "Safari drops cookies after 7 days"),
        (11, "edge", "a 10s-limit holds at https://x.example/a-b"),
        (12, "edge", "`p->next` may be null"),
        (13, "edge", "uploads time out"),
        (14, "edge", "the port 8080 is taken"),
        (21, "context", "Login works again"),
        (22, "decision", "Use JWT over sessions"),
        (23, "issue", "the redirect is lost on preview"),
        (25, "issue", "the mail is sent twice"),
        (26, "decision", "two queues"),
        (36, "plan", "write the expiry test"),
        (39, "insight", "the build is cached"),
    ]


def test_parts_of_a_line_are_in_its_fields():
    by_line = {record.place.line: record for record in parsed(WHOLE)}

    assert by_line[6].memory.tags == ("sveltekit", "supabase")
    assert by_line[7].memory.status == "blocked"
    assert by_line[10].memory.extra == {"workaround": "use first-party auth"}
    assert by_line[12].memory.extra == {"workaround": "check it first"}
    assert by_line[14].memory.content == "the port 8080 is taken\n- on CI, too"
    assert by_line[21].memory.extra == {"mood": "relieved"}
    assert by_line[22].memory.sections == {Section.REASONING: "nothing is shared"}
    assert by_line[22].memory.extra == {"alternatives": ["sessions"]}
    assert by_line[25].memory.status == "resolved"
    assert by_line[26].memory.sections == {Section.REASONING: "one of them stalls"}
    assert all(not record.place.owned for record in by_line.values())


@pytest.mark.req("003-11")
def test_the_day_comes_from_the_heading_above_or_else_from_git():
    by_line = {r.place.line: r.memory.created for r in parsed(WHOLE, lambda: {
        "- Stack: sveltekit, supabase": BLAME
    })}  # fmt: skip

    assert by_line[22] == datetime(2026, 11, 20, tzinfo=UTC)
    assert by_line[39] == datetime(2025, 12, 12, tzinfo=UTC)
    assert by_line[6] == BLAME
    assert by_line[10] == READ


@pytest.mark.parametrize(
    ("heading", "day"),
    [
        ("2026-11-20", (2026, 11, 20)),
        ("December 12, 2024", (2024, 12, 12)),
        ("Dec 12, 2024", (2024, 12, 12)),
        ("12 December 2024", (2024, 12, 12)),
        ("Nov 19", (2026, 11, 19)),
        ("Dec 12", (2025, 12, 12)),
        ("12/31/2024", (2024, 12, 31)),
        ("May 3rd", (2026, 5, 3)),
        ("Feb 29", (2024, 2, 29)),
    ],
)
def test_headings_are_read_as_days(heading, day):
    year, month, number = day

    assert read_day(heading, read_at=READ) == datetime(year, month, number, tzinfo=UTC)


@pytest.mark.parametrize(
    "heading", ["Session Log", "2026-13-40", "31/12/2024", "Decisions 12", "\u017fept 5", ""]
)
def test_other_headings_are_not_days(heading):
    assert read_day(heading, read_at=READ) is None


def test_an_id_does_not_change_with_other_lines_or_a_ticked_box():
    before = {r.memory.title: r.memory.id for r in parsed("- [ ] Bug: mail is lost\nTIL a thing\n")}
    after = {
        r.memory.title: r.memory.id
        for r in parsed("## 2026-01-01\nDecided: another\n\n- [x] Bug: mail is lost\n")
    }

    assert before["mail is lost"] == after["mail is lost"]
    assert before["mail is lost"].startswith("issue_mail_is_lost_")


def test_lines_below_a_deeply_nested_list_are_read():
    nested = "".join(f"{'  ' * depth}- item {depth}\n" for depth in range(20))

    (record,) = parsed(f"{nested}\n## 2026-11-20\n\n- decided: Kafka over RabbitMQ\n")
    assert record.memory.title == "Kafka over RabbitMQ"


def test_two_equal_lines_are_two_memories():
    ids = [r.memory.id for r in parsed("- Decided: use tea\n- Decided: use tea\n")]

    assert len(set(ids)) == 2


@pytest.mark.parametrize("text", [LOG, "", "# Memory\n\n---\n", "<!-- Decided: x -->\n# y\n"])
def test_a_new_log_has_no_memory(text):
    assert log.is_empty(text)
    assert parsed(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "#tea: we picked green tea\n",
        "> ```\n\n- Decided: use tea\n",
        "    <!-- one\n\n- Decided: use tea\n",
    ],
)
def test_a_log_that_begins_like_a_new_one_is_read(text):
    assert len(parsed(f"# Log\n\n{text}")) == 1


def test_placeholders_of_the_state_are_ignored():
    state = "- Goal: (describe your goal)\n- Stack: (add your stack)\n- Blocked: None\n"

    assert parsed(f"## Project State\n{state}") == ()


def test_a_line_right_below_a_quotation_does_not_belong_to_it():
    text = "## 2026-11-20\n> Decided: theirs\nDecided: ours\n- > Decided: theirs\n  > too\n"

    assert [record.memory.title for record in parsed(text)] == ["ours"]


def test_a_state_in_another_section_is_ignored():
    assert parsed("## 2026-01-01\n- Goal: to win\n") == ()


def test_two_statements_in_a_list_item_are_two_memories():
    rows = [r.memory.type for r in parsed("- Decided: use tea\n  Problem: it is cold\n")]

    assert rows == [Kind.DECISION, Kind.ISSUE]


def test_line_ends_and_a_byte_order_mark_do_not_matter():
    data = "\ufeff## Gotchas\r\n- tea is hot → wait\r\n".encode()
    result = log.parse(data, path="p", digest="d", modified=READ, dates=dict)

    assert not isinstance(result, Problem)
    assert [(r.place.line, r.memory.title) for r in result] == [(2, "tea is hot")]


def test_a_log_that_is_not_text_is_a_problem_with_its_line():
    result = log.parse(b"# a\nb\n\xff\n", path="p", digest="d", modified=READ, dates=dict)

    assert result == Problem(path="p", line=3, reason="it is not text in UTF-8")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", None),
        ("one\n\n```\ntwo\n", 3),
        ("```\none\n```\n~~~\n```\n", 4),
        ("one\r\n<!-- two\r\n\r\nthree", 2),
        ("<?: {one}\n", 1),
        ("<script>\n", 1),
        ("<div>\none\n", None),
        ("- one\n  ```\n  two\n", None),
        ("> ```\n", None),
        ("one <!-- two\n", None),
    ],
)
def test_a_line_that_hides_all_later_ones_is_found(text, line):
    later = "\n\n- Decided: Zig over C\n"

    assert log.unclosed(text) == line
    assert len(parsed(text + later)) == (line is None)


def test_a_log_with_a_merge_conflict_is_a_problem():
    data = b"# a\n<<<<<<< HEAD\n- DECISION: a\n=======\n- DECISION: b\n>>>>>>> theirs\n"
    result = log.parse(data, path="p", digest="d", modified=READ, dates=dict)

    assert isinstance(result, Problem)
    assert (result.line, "conflict" in result.reason) == (2, True)


@pytest.mark.attack("repeated text takes quadratic time")
def test_a_log_that_takes_long_to_read_is_a_problem():
    text = ">" * 99 + "a\n" + "b\n" * 20_000
    result = log.parse(text.encode(), path="p", digest="d", modified=READ, dates=dict)

    assert isinstance(result, Problem)
    assert "take too long to read" in result.reason
    assert log.unclosed(text) is None


PIECES = st.sampled_from(
    ["## 2026-11-20", "## Gotchas", "## Project State", "# x", "- ", "  ", "> ", "```", "\n", "\n",
     "Decided: a thing", "**Bug:** it", " because", " → ", "- Goal: x", "<!--", "-->", "| ", "[x] ",
     "\t", "\r\n", "\0", "é", "because: y", "KEY: ", "Next: do"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40).map("".join))
def test_each_memory_of_any_log_has_a_line_and_an_id_of_its_own(text):
    result = parsed(text)

    ids = [record.memory.id for record in result]
    numbers = [record.place.line for record in result]
    assert len(set(ids)) == len(ids)
    assert numbers == sorted(numbers)
    assert all(1 <= number <= text.count("\n") + text.count("\r") + 1 for number in numbers)
    assert all(len(record.memory.title or "") >= 3 for record in result)
