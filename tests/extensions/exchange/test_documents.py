"""Each format is what its readers expect, and no text of a memory becomes a part of its syntax."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mimo.extensions.exchange import documents, madr
from mimo.extensions.exchange.documents import CLAUDE_BYTES, CLAUDE_LINES, File, file_names, literal
from mimo.extensions.exchange.lines import LINKS, Exported, Target, without_additions, without_links
from mimo.frozen import replace
from mimo.memory.codec.file import Parsed, normal, parse
from mimo.memory.ids import is_id
from mimo.memory.model import Kind, Link, Memory, Outcome, Section
from tests.conftest import NOW
from tests.properties.test_codec_properties import MEMORIES, TEXT

OLD = Memory(
    id="decision_auth_x2d4rt",
    type=Kind.DECISION,
    content="Keep sessions in Redis",
    created=NOW - timedelta(days=9),
    by="claude-code",
    outcome=Outcome.FAILED,
    sections={Section.OUTCOME: "- 2026-11-12 FAILED: they were lost on a restart"},
)
NEW = Memory(
    id="decision_auth_k3v7mq",
    type=Kind.DECISION,
    content="Use JWT with refresh tokens\n\n# Lifetimes\n\nA day.\n\n```\n# no heading\n```",
    created=NOW,
    topic="auth",
    tags=("api",),
    source="docs/auth.md",
    links=(Link(to=OLD.id, type="supersedes"), Link(to="nowhere")),
    sections={Section.REASONING: "No session store is needed."},
)
FACT = Memory(id="fact_staging_w8h3rb", type=Kind.FACT, content="Reset at night", created=NOW)
SHOP = (
    Exported(OLD, successor=NEW.id, is_past=True),
    Exported(NEW, targets={OLD.id: Target(OLD.id, OLD.type, OLD.heading)}),
    Exported(FACT, path=f".mind/facts/{FACT.id}.md"),
)


def in_folders(*memories: Exported) -> dict[str, str]:
    return file_names((f"{item.memory.type.folder}/", item.memory.id) for item in memories)


def texts(files: Iterator[File]) -> dict[str, str]:
    return {file.name: file.data.decode() for file in files}


def header_of(text: str) -> dict[str, Any]:
    match = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    assert match
    data = yaml.safe_load(match[1])
    assert isinstance(data, dict)
    return data


@given(MEMORIES, st.booleans())
def test_a_markdown_file_reads_back_as_the_memory(memory, untrusted):
    stored = normal(memory)
    exported = Exported(stored, untrusted=untrusted)
    first, *_ = documents.markdown([exported], in_folders(exported), "shop")
    path = f".mind/{stored.type.folder}/x.md"
    parsed = parse(without_links(first.data), path=path, modified=NOW)
    assert isinstance(parsed, Parsed)
    assert without_additions(parsed.memory) == stored


def test_a_markdown_file_that_a_checkout_converted_reads_back() -> None:
    _, file, *_ = documents.markdown(SHOP, in_folders(*SHOP), "shop")
    data = without_links(file.data.replace(b"\n", b"\r\n"))
    parsed = parse(data, path=".mind/decisions/x.md", modified=NOW)
    assert isinstance(parsed, Parsed)
    assert (parsed.memory.sections, parsed.memory.links) == (NEW.sections, NEW.links)


def test_links_in_a_text_lead_to_the_exported_files() -> None:
    text = (
        "See [a](sub/b.md#top), [[B]], [[b|it]], `[[B]]`, [c](/notes/sub/b.md), [x](x.md), "
        "[[Nowhere]]\n[web](https://a.b/sub/b.md) ![[B]]\n| [[B#top]] |\n```\n[a](sub/b.md)\n```"
    )
    links = (Link(to="B"), Link(to="b"), Link(to="Nowhere"))
    target = Target("notes.sub.b", Kind.FACT, "B")
    first = replace(FACT, id="notes.a", content=text, links=links)
    exported = Exported(first, path=".mind/notes/a.md", targets={"B": target, "b": target})
    names = {"notes.a": "facts/notes.a.md", "notes.sub.b": "facts/notes.sub.b.md"}
    places = {".mind/notes/a.md": "notes.a", ".mind/notes/sub/b.md": "notes.sub.b"}

    files = texts(documents.markdown([exported], names, "shop", places))
    body = files["facts/notes.a.md"].partition("---\n")[2].partition("---\n")[2]
    assert body.partition(f"\n{LINKS}")[0] == (
        "See [a](../facts/notes.sub.b.md#top), [[notes.sub.b|B]], [[notes.sub.b|it]], `[[B]]`, "
        "[c](../facts/notes.sub.b.md), [x](x.md), [[Nowhere]]\n"
        "[web](https://a.b/sub/b.md) ![[notes.sub.b|B]]\n| [[notes.sub.b#top\\|B]] |\n"
        "```\n[a](sub/b.md)\n```\n"
    )
    assert "links:" not in files["facts/notes.a.md"].partition("\n---\n")[0]

    # A link by title to a file that mind named stays, as imports read it.
    places = {".mind/facts/notes.sub.b.md": "notes.sub.b"}
    files = texts(documents.markdown([exported], names, "shop", places))
    assert "[[B]]" in files["facts/notes.a.md"]


def test_a_short_id_in_a_text_becomes_the_name_of_the_exported_file() -> None:
    id = "fact_b_20260101_abc234"
    text = "[[abc234]] ![[abc234#top]] [[ABC234^a|it]] `[[abc234]]`"
    target = Target(id, Kind.FACT, "B")
    memory = replace(FACT, id="a", content=text, links=(Link(to="abc234"),))
    targets = {"abc234": target, "ABC234": target}
    exported = Exported(memory, path=".mind/facts/a.md", targets=targets)
    names = {"a": "facts/a.md", id: f"facts/{id}.md"}

    files = texts(documents.markdown([exported], names, "shop", {f".mind/facts/{id}.md": id}))

    rewritten = f"[[{id}|abc234]] ![[{id}#top|abc234]] [[{id}^a|it]] `[[abc234]]`"
    assert rewritten in files["facts/a.md"]
    assert f"relates_to [[{id}]] ([B]" in files["facts/a.md"]


def test_a_text_with_the_line_of_the_links_is_kept() -> None:
    memory = Memory(id="x", type=Kind.FACT, content="a\n<!-- mind: links -->\n\nb", created=NOW)
    first, _ = documents.markdown([Exported(memory)], {"x": "x.md"}, "shop")
    parsed = parse(without_links(first.data), path=".mind/facts/x.md", modified=NOW)
    assert isinstance(parsed, Parsed)
    assert parsed.memory.content == memory.content


def test_markdown_links_lead_to_the_files() -> None:
    names = in_folders(*SHOP)
    files = texts(documents.markdown(SHOP, names, "shop"))
    text = files[names[NEW.id]]
    assert f"- supersedes [[{OLD.id}]] ([Keep sessions in Redis](../{names[OLD.id]}))" in text
    assert "- relates_to nowhere" in text
    for link in re.findall(r"\]\(([^)]+)\)", files["index.md"]):
        assert link in files
    assert header_of(text)["aliases"] == [NEW.heading]


IDS = st.from_regex(r"[A-Za-z0-9_.-]{1,128}", fullmatch=True)
DEVICES = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{n}" for port in ("com", "lpt") for n in range(10)),
}


@given(
    st.lists(
        IDS | st.sampled_from(["con", "CON.x", "nul", "index", "LOG", "..", ".x", "a", "A"]),
        unique=True,
    )
)
def test_file_names_suit_every_file_system(ids):
    names = file_names(("facts/", id) for id in ids)
    assert len({name.casefold() for name in names.values()}) == len(ids)
    for id, name in names.items():
        stem = name.removeprefix("facts/")
        assert is_id(id)
        assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*\.md", stem)
        assert stem.split(".")[0].casefold() not in DEVICES
        assert stem.casefold() not in ("index.md", "log.md", "memory.md")
        assert len(stem.encode()) <= 255


HOSTILE = (
    "](http://evil) [x](javascript:alert(1))",
    "<script>alert(1)</script>",
    "a\n## Heading\n- [item](x)",
    "--> <!-- x",
    "\x1b]52;c;x\x07 \u202e `code` **bold** ```",
    "../../etc/passwd\0",
    "![image](http://evil/x.png)",
)


@pytest.mark.attack("hostile text in an output")
@pytest.mark.parametrize("title", HOSTILE)
def test_a_title_is_text_in_every_index(title: str) -> None:
    from markdown_it import MarkdownIt

    text = title.replace("\0", "")  # A file can't hold one, except escaped in its header.
    memory = Memory(id="fact_x", type=Kind.FACT, content=text, created=NOW, title=title)
    decision = Memory(id="dec_x", type=Kind.DECISION, content=text, created=NOW, title=title)
    hostile = (Exported(memory, path=".mind/facts/fact_x.md"), Exported(decision, path="y.md"))
    names = in_folders(*hostile)
    indexes = [
        texts(documents.markdown(hostile, names, title))["index.md"],
        b"".join(documents.llms(hostile, title)).decode(),
        texts(documents.okf(hostile, names, title))["facts/index.md"],
        texts(documents.claude(hostile, names, user=False))["MEMORY.md"],
        texts(madr.records(hostile, title))["index.md"],
    ]
    expected = {"facts/fact_x.md", "decisions/dec_x.md", ".mind/facts/fact_x.md", "y.md"}
    expected |= {"fact_x.md", *texts(madr.records(hostile, title))}
    for text in indexes:
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text)
        tokens = MarkdownIt("commonmark").parse(text)
        inline = [child for token in tokens for child in token.children or ()]
        assert not any(
            "html" in token.type or token.type == "image" for token in (*tokens, *inline)
        )
        links = {str(child.attrs["href"]) for child in inline if child.type == "link_open"}
        assert links <= expected
        headings = sum(token.type == "heading_open" for token in tokens)
        assert headings <= 3


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("~/x takes ~5 s", "~/x takes ~5 s"),
        ("~x~ and ~~y~~", r"~x\~ and \~\~y\~\~"),
        ("HEAD~1 to HEAD~2", r"HEAD\~1 to HEAD\~2"),
        ("<https://x.example>", r"\<https://x.example\>"),
        ("[WIP]: do it", r"\[WIP\]: do it"),
    ],
)
def test_literal_text_escapes_marks_that_can_have_an_effect(text, line):
    assert literal(text) == line


@given(TEXT)
def test_literal_text_is_one_line(text):
    assert len(literal(text).splitlines()) <= 1


def test_decisions_become_numbered_records() -> None:
    files = texts(madr.records(SHOP, "shop"))
    assert list(files) == [
        "0001-keep-sessions-in-redis.md",
        "0002-use-jwt-with-refresh-tokens.md",
        "index.md",
    ]
    old, new, _ = files.values()
    assert header_of(old) == {"status": "superseded by ADR-0002", "date": "2026-11-11"}
    assert "* Bad, because they were lost on a restart" in old
    assert header_of(new) == {"status": "accepted", "date": "2026-11-20"}
    headings = [line for line in new.splitlines() if re.match("#+ ", line)]
    assert headings == [
        "# Use JWT with refresh tokens",
        "## Context and Problem Statement",
        "## Considered Options",
        "## Decision Outcome",
        "#### Lifetimes",
        "# no heading",
        "## More Information",
    ]
    assert 'Chosen option: "Use JWT with refresh tokens", because:\n\nNo session store' in new
    assert "* supersedes [ADR-0001](0001-keep-sessions-in-redis.md)" in new


@pytest.mark.parametrize(
    ("content", "printed"),
    [
        ("Use Postgres 16.", "Use Postgres 16."),
        ("Use Postgres.", ""),
        ("Use Postgres. It is stable.", "It is stable."),
        ("# Use Postgres\n\nIt is stable.", "It is stable."),
    ],
)
def test_a_record_repeats_its_title_only_as_a_part_of_a_longer_text(content, printed):
    memory = Memory(id="d", type=Kind.DECISION, title="Use Postgres", content=content, created=NOW)
    record = texts(madr.records([Exported(memory)], "shop"))["0001-use-postgres.md"]
    outcome = record.partition('"Use Postgres".')[2].partition("## More")[0]
    assert outcome.strip() == printed


def test_a_decision_that_is_a_record_stays_as_it_is() -> None:
    text = (
        "# Use JWT\n\n## Context and Problem Statement\n\nWhich tokens?\n\n"
        "## Considered Options\n\n* JWT\n* PASETO\n\n## Decision Outcome\n\nChosen option: JWT"
    )
    memory = Memory(id="d", type=Kind.DECISION, content=text, created=NOW, status="Rejected")
    record = texts(madr.records([Exported(memory)], "shop"))["0001-use-jwt.md"]
    assert text in record
    assert header_of(record)["status"] == "rejected"


def test_a_record_of_a_title_without_letters_has_a_name() -> None:
    memory = Memory(id="d", type=Kind.DECISION, content="../로그인", created=NOW)
    assert list(texts(madr.records([Exported(memory)], "x"))) == ["0001-decision.md", "index.md"]


def okf_problems(files: dict[str, str]) -> Iterator[str]:
    """Yields what violates the conformance rules of OKF 0.2 (its sections 11, 8, 7, 6 and 5)."""
    for name, text in files.items():
        is_index = name.rpartition("/")[2] == "index.md"
        for problem in index_problems(name, text) if is_index else concept_problems(text):
            yield f"{name}: {problem}"
        for target in re.findall(r"\]\(/([^)]+)\)", text):
            if target not in files:
                yield f"{name}: no {target}"


def index_problems(name: str, text: str) -> Iterator[str]:
    body = text
    if name == "index.md":
        body = text.removeprefix('---\nokf_version: "0.2"\n---\n')
        if body == text:
            yield "version"
    for line in body.splitlines():
        if line and not re.match(r"# |\* \[.*\]\([^)]+\)", line):
            yield line


def concept_problems(text: str) -> Iterator[str]:
    header = header_of(text)
    shapes = {
        "type": (header.get("type"), r"[A-Z].*"),
        "status": (header.get("status"), "draft|stable|deprecated"),
        "actor": (header["generated"]["by"], r"(?:human|process):.+|[\w.-]+/.+"),
        "time": (header["generated"]["at"], r"\d{4}-\d\d-\d\dT[\d:.]+Z"),
    }
    for name, (value, shape) in shapes.items():
        if not isinstance(value, str) or not re.fullmatch(shape, value):
            yield name
    if not all(source.get("resource") for source in header.get("sources", [])):
        yield "source"


def test_an_okf_bundle_is_conformant() -> None:
    names = in_folders(*SHOP)
    files = texts(documents.okf(SHOP, names, "shop"))
    assert list(okf_problems(files)) == []
    old, new = header_of(files[names[OLD.id]]), header_of(files[names[NEW.id]])
    assert (old["status"], old["generated"]["by"]) == ("deprecated", "process:claude-code")
    assert (new["status"], new["sources"]) == ("stable", [{"resource": "docs/auth.md"}])
    assert f"* supersedes [Keep sessions in Redis](/{names[OLD.id]})" in files[names[NEW.id]]


@given(st.lists(MEMORIES, max_size=3, unique_by=lambda memory: memory.id))
def test_any_okf_bundle_has_typed_concepts(memories):
    exported = [Exported(normal(memory)) for memory in memories]
    files = texts(documents.okf(exported, in_folders(*exported), "shop"))
    concepts = [text for name, text in files.items() if not name.endswith("index.md")]
    assert len(concepts) == len(memories)
    assert all(header_of(text)["type"] for text in concepts)


def test_claude_gets_current_memories_and_an_index_that_it_reads_whole() -> None:
    files = texts(documents.claude(SHOP, in_folders(*SHOP), user=False))
    assert len(files) == 3
    topic = next(iter(files.values()))
    assert header_of(topic)["metadata"] == {"type": "project"}
    assert "**Why:** No session store is needed." in topic
    many = [
        Exported(
            Memory(id=f"fact_{n}", type=Kind.FACT, content=f"Note {n} " + "한글 " * 60, created=NOW)
        )
        for n in range(400)
    ]
    index = texts(documents.claude(many, in_folders(*many), user=True))["MEMORY.md"]
    lines = index.splitlines()
    assert len(lines) <= CLAUDE_LINES
    assert len(index.encode()) <= CLAUDE_BYTES
    more = re.fullmatch(r"- (\d+) more files in this folder", lines[-1])
    assert more
    assert int(more[1]) + len(lines) - 1 == 400


def test_the_knowledge_graph_has_entities_then_relations() -> None:
    rows = [json.loads(line) for line in documents.knowledge_graph(SHOP)]
    entities = [row for row in rows if row["type"] == "entity"]
    relations = rows[len(entities) :]
    assert [row["name"] for row in entities] == [OLD.id, NEW.id, FACT.id]
    assert all(row["entityType"] and row["observations"] for row in entities)
    assert relations == [
        {"type": "relation", "from": NEW.id, "to": OLD.id, "relationType": "supersedes"}
    ]


def test_llms_txt_lists_superseded_memories_as_optional() -> None:
    text = b"".join(documents.llms(SHOP, "shop")).decode()
    assert text.startswith("# shop\n\n> The memory of shop: 2 memories, ")
    main, _, optional = text.partition("## Optional\n")
    assert f"](.mind/facts/{FACT.id}.md)" in main
    assert "Keep sessions in Redis" in optional
    assert "Keep sessions in Redis" not in main
    assert "(superseded, FAILED)" in optional
