"""Each format's memories become mind's: texts, times, tags, links and origin."""

import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mimo.errors import Invalid, LaterFormat
from mimo.features.importing import sources
from mimo.features.importing.drafts import Draft, resolved
from mimo.features.importing.formats import reader, recognised
from mimo.memory import codec
from mimo.memory.model import Memory, Section
from mimo.memory.note import closed_as
from tests.kit import put

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def drafts(path: Path, format: str | None = None) -> list[Draft]:
    with sources.opened(path) as source:
        return list(reader(format or recognised(source))(source))


def memories(path: Path, format: str) -> dict[str, Memory]:
    """Returns the imported memories by title; the format is recognised and as given."""
    with sources.opened(path) as source:
        assert recognised(source) == format
        items = resolved(list(reader(format)(source)), format, {}, now=NOW).items
    assert not [item for item in items if item.skipped]
    return {item.memory.heading: item.memory for item in items if item.memory}


def write(folder: Path, contents: dict[str, str]) -> Path:
    for name, text in contents.items():
        put(folder / name, text)
    return folder


def links(memory: Memory, of: dict[str, Memory]) -> set[tuple[str, str]]:
    titles = {other.id: title for title, other in of.items()}
    return {(link.type, titles.get(link.to, link.to)) for link in memory.links}


def database(path: Path, sql: str) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(sql)
    connection.close()
    return path


class TestDatabases:
    @pytest.mark.attack("private text in git")
    @pytest.mark.parametrize("metadata", ['{"private": true}', '{"Private": "yes", "a": "b"}'])
    def test_a_mark_in_a_row_counts(self, tmp_path, metadata):
        path = database(
            tmp_path / "m.db",
            f"""
            CREATE TABLE memories (content_hash TEXT, content TEXT, metadata TEXT);
            INSERT INTO memories VALUES ('a', 'Bob 90k', '{metadata}'), ('b', 'x', '{{"a": "b"}}');
            CREATE TABLE observations (id INTEGER PRIMARY KEY, title TEXT, metadata TEXT);
            INSERT INTO observations VALUES (1, 'Bob 90k', '{metadata}'), (2, 'x', NULL);
            CREATE TABLE session_summaries (id INTEGER PRIMARY KEY);
            """,
        )

        for format in ("mcp-memory-service", "claude-mem"):
            assert [draft.private for draft in drafts(path, format)] == [True, False]


class TestJson:
    @pytest.mark.parametrize("relations", [7, "no", [3], {"from": 1}, True])
    def test_relations_of_another_type_are_skipped(self, tmp_path, relations):
        graph = {"entities": [{"name": "A", "observations": ["b"]}], "relations": relations}
        path = tmp_path / "m.json"
        path.write_text(json.dumps(graph), encoding="utf-8")

        items = resolved(drafts(path), "mcp-memory", {}, now=NOW).items

        assert [item.skipped for item in items] == [
            None, "it is neither an entity nor a relation"
        ]  # fmt: skip

    @pytest.mark.attack("private text in git")
    @pytest.mark.parametrize("mark", [{"private": True}, {"metadata": {"Private": "yes"}}])
    @pytest.mark.parametrize(
        ("format", "row"),
        [
            ("mem0", {"memory": "Bob 90k"}),
            ("mcp-memory", {"type": "entity", "name": "Bob", "observations": ["90k"]}),
            ("jrnl", {"date": "2026-01-02", "time": "09:00", "title": "Bob 90k"}),
        ],
    )
    def test_a_mark_in_json_counts(self, tmp_path, format, row, mark):
        # A long object is part of the text, not of the header.
        marked = {key: value | {"why": "x" * 300} if key == "metadata" else value
                  for key, value in mark.items()}  # fmt: skip
        rows = [row | marked, row | {"name": "Ana", "private": "no"}]
        path = tmp_path / "m.json"
        data = {"tags": {}, "entries": rows} if format == "jrnl" else rows
        path.write_text(json.dumps(data), encoding="utf-8")

        assert [draft.private for draft in drafts(path, format)] == [True, False]

    @pytest.mark.parametrize("bad", ['{"type": "entity", "name": "Bo', "[1]", "nonsense"])
    @pytest.mark.parametrize("place", [0, 1, 2])
    def test_a_broken_line_is_named_and_the_others_are_imported(self, tmp_path, bad, place):
        lines = [
            '{"type": "entity", "name": "Ana", "observations": ["tea"]}',
            '{"type": "entity", "name": "Ben", "observations": ["oat"]}',
        ]
        lines.insert(place, bad)
        if place == 0 and not bad.startswith("{"):
            lines.insert(0, '{"type": "relation", "from": "Ana", "to": "Ben"}')
            place = 1
        path = tmp_path / "memory.jsonl"
        path.write_text("\n".join(lines), encoding="utf-8")

        read = drafts(path)
        assert [draft.key for draft in read if not draft.skipped] == ["Ana", "Ben"]
        assert [draft.key for draft in read if draft.skipped] == [f"line {place + 1}"]

    def test_a_broken_line_of_an_export_counts_as_a_memory(self, tmp_path):
        memory = (
            '{"kind":"memory","id":"fact_a","type":"fact","created":"2026-01-01","content":"A"}'
        )
        head, end = '{"kind":"mind","format":1,"project":"x"}', '{"kind":"end","memories":2}'
        path = tmp_path / "m.jsonl"
        path.write_text("\n".join([head, memory, '{"kind":"mem', end]), encoding="utf-8")
        assert [draft.key for draft in drafts(path)] == ["fact_a", "line 3"]
        path.write_text("\n".join([head, memory, '{"kind":"mem']), encoding="utf-8")
        with pytest.raises(Invalid, match="not complete"):
            drafts(path)

    def test_lines_of_another_program_are_not_a_format(self, tmp_path):
        path = tmp_path / "m.jsonl"
        path.write_text('{"event": "start"}\n{"event": "end"}\n', encoding="utf-8")
        with pytest.raises(Invalid, match=r"format of .* is not known"):
            drafts(path)
        path.write_text('{\n"entities": [\n{"name": "Ana"}\n]}\n', encoding="utf-8")
        assert [draft.key for draft in drafts(path, "mcp-memory")] == ["Ana"]

    def test_issues_of_beads_are_issues_and_plans(self, tmp_path):
        issues = [
            {"id": "bd-a1", "title": "Login fails", "description": "Since 2.0.", "status": "open",
             "priority": 0, "issue_type": "bug", "created_at": "2025-10-14T12:00:00Z",
             "labels": ["auth"], "comments": [{"author": "ana", "text": "Also on Safari."}]},
            {"id": "bd-b2", "title": "Rotate keys", "status": "closed", "priority": 3,
             "issue_type": "task", "notes": "Daily.", "assignee": "ben",
             "dependencies": [{"issue_id": "bd-b2", "depends_on_id": "bd-a1", "type": "blocks"}]},
            {"id": "bd-c3", "title": "Gone", "status": "tombstone", "issue_type": "task"},
        ]  # fmt: skip
        text = "".join(f"{json.dumps(issue)}\n" for issue in issues)
        folder = write(tmp_path / ".beads", {"issues.jsonl": text, "README.md": "# Beads"})

        bug, task, deleted = drafts(folder)
        assert (bug.type, bug.status, bug.importance, bug.tags) == ("issue", "open", 0.9, ("auth",))
        assert bug.content == "Since 2.0.\n\n**ana:** Also on Safari."
        assert bug.created == datetime(2025, 10, 14, 12, tzinfo=UTC)
        assert (task.type, task.status) == ("plan", "closed")
        assert task.content == "Rotate keys\n\n### Notes\n\nDaily."
        assert task.extra == {"issue_type": "task", "assignee": "ben"}
        assert [(link.type, link.to) for link in task.links] == [("depends_on", "bd-a1")]
        assert deleted.skipped == "it was deleted"

    @pytest.mark.parametrize(
        ("stamp", "hour"),
        [
            ("[2024-03-02 09:05]", 9), ("[2024-03-02 09:05:33 PM]", 21), ("[2024-03-02T09:05]", 9),
            ("[02/03/2024 09:05]", 9), ("[02.03.2024 09:05]", 9), ("[Sat 02 Mar 2024 09:05]", 9),
            ("[Saturday, March 02, 2024 09:05 PM]", 21), ("[2024/03/02 09:05]", 9),
            ("[2024-03-02 Sat 09:05]", 9), ("[2024-03-02]", 0), ("2024-03-02 09:05", 9),
            ("2024-03-02 09:05 PM", 21),
        ],
    )  # fmt: skip
    def test_stamps_of_jrnl_have_the_form_of_its_settings(self, tmp_path, stamp, hour):
        path = tmp_path / "journal.txt"
        path.write_text(f"{stamp} Tea. *\n[x] a box\n\n{stamp} Oat.\n", encoding="utf-8")

        tea, oat = drafts(path)
        minute = 5 if hour else 0
        assert tea.created == datetime(2024, 3, 2, hour, minute, 33 * (":33" in stamp), tzinfo=UTC)
        assert (tea.title, tea.content, oat.title) == ("Tea.", "Tea.\n\n[x] a box", "Oat.")


class TestConversations:
    @pytest.mark.parametrize(
        ("leaf", "expected"),
        [(None, ["one", "new"]), ("old", ["one", "old"]), ("unknown", ["one", "new"])],
    )
    def test_claude_keeps_the_current_branch(self, tmp_path, leaf, expected):
        parents = {"one": "root", "answer": "one", "old": "answer", "new": "answer"}
        chat = {
            "uuid": "u",
            "current_leaf_message_uuid": leaf,
            "chat_messages": [
                {"uuid": id, "parent_message_uuid": parent, "text": id, "created_at": "2026-01-01",
                 "sender": "assistant" if id == "answer" else "human"}
                for id, parent in parents.items()
            ],
        }  # fmt: skip
        path = tmp_path / "conversations.json"
        path.write_text(json.dumps([chat]), encoding="utf-8")

        assert drafts(path)[0].content.split("\n\n---\n\n") == expected


NOTES = (
    "obsidian", "basic-memory", "okf", "nb", "claude-memory",
)  # fmt: skip


class TestNotes:
    @pytest.mark.parametrize("format", [*NOTES, "adr", "claude-md", "mind"])
    @pytest.mark.parametrize(
        ("line", "private"),
        [
            ("private: yes", True),
            ("private: on", True),
            ("private: 1", True),
            ('private: "true"', True),
            ("private: 'Yes'", True),
            ("private: [true]", True),
            ("private: {a: b}", True),
            ("private: who knows", True),
            ("Private: true", True),
            ("PRIVATE: y", True),
            ("private: false\nPrivate: yes", True),
            ("private: false", False),
            ("private: No", False),
            ("private: 'off'", False),
            ("private: 0", False),
            ("private: ''", False),
            ("private:", False),
            ("private: null", False),
            ("Private: FALSE", False),
        ],
    )
    def test_only_a_clear_no_is_shared(self, tmp_path, format, line, private):
        header = f"id: fact_a\ntype: fact\ncreated: 2026-01-01\nstatus: accepted\n{line}"
        text = f"---\n{header}\n---\n- A\n\n## Decision\n\nB\n"
        folder = write(tmp_path / "x", {"0001/CLAUDE.md": text, "0001-a.md": text})

        read = [draft for draft in drafts(folder, format) if not draft.skipped]

        assert read
        assert {draft.private for draft in read} == {private}

    @pytest.mark.parametrize(
        ("text", "private"),
        [
            ("---\nprivate:true\n---\nA", True),
            ("\n---\ntags: [a]\nprivate: true\n---\nA", True),
            ("---\nA\n\n---\nprivate: B", False),
            ("A\n\n---\nprivate: true\n---\n", False),
        ],
    )
    def test_a_mark_in_a_header_that_is_none_for_yaml_counts(self, tmp_path, text, private):
        folder = write(tmp_path / "Vault", {".obsidian/x": "", "a.md": text})

        assert [draft.private for draft in drafts(folder)] == [private]

    def test_a_mark_in_the_metadata_of_a_topic_counts(self, tmp_path):
        header = "name: a\nprivate: false\nmetadata:\n  type: user\n  Private: yes"
        folder = write(tmp_path / "memory", {"MEMORY.md": "", "a.md": f"---\n{header}\n---\nA"})

        assert [draft.private for draft in drafts(folder) if not draft.skipped] == [True]

    @pytest.mark.parametrize(
        ("link", "names"),
        [
            (r"[Use \[x\] and \<y\>](a.md)", ["a"]),
            ("[Use [x] or `y[0]`](a.md)", ["a"]),
            (r"[\\](a.md)", ["a"]),
            ("[ ] [A](a.md) [B](b.md)", ["a", "b"]),
            ("[see [A](a.md)](b.md)", ["a"]),
            (r"\[A](a.md)", []),
            ("![A](a.md)", []),
            ("[A] (a.md)", []),
        ],
    )
    def test_links_whose_text_has_brackets(self, tmp_path, link, names):
        notes = {"a.md": "A", "b.md": "B", "x.md": link}
        folder = write(tmp_path / "V", {".obsidian/x": "", **notes})

        (draft,) = (draft for draft in drafts(folder) if draft.key == "V/x.md")

        assert [link.to for link in draft.links] == [f"V/{name}.md" for name in names]

    def test_a_link_that_names_a_vault_of_dendron_has_the_label_first(self, tmp_path):
        notes = {"cup.md": "# Cup", "root.md": "# Root\n\n[[here|dendron://vault/cup]]"}
        of = memories(write(tmp_path / "V", {".obsidian/x": "", **notes}), "obsidian")

        assert f"[[{of['Cup'].id}|here]]" in of["Root"].content

    @pytest.mark.parametrize(
        ("line", "value"),
        [
            ("description: Use tabs: never spaces", "Use tabs: never spaces"),
            ("description: Tabs:  ", "Tabs:"),
            ("description: Tabs 😀: no", "Tabs 😀: no"),
            ("description: `tabs`: never spaces", "`tabs`: never spaces"),
            ('description: @ana said: né, \\ and "a"', '@ana said: né, \\ and "a"'),
            ("nested:\n  description: Use tabs: always", {"description": "Use tabs: always"}),
        ],
    )
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_a_header_without_quotes_is_read(self, tmp_path, line, value, end):
        text = f"---\nname: a\n{line}\nprivate: yes: sure\n---\na: b: c"
        folder = write(tmp_path / "V", {".obsidian/x": "", "a.md": text})
        (folder / "a.md").write_bytes(text.replace("\n", end).encode())

        (draft,) = drafts(folder)

        assert list(draft.extra.values())[1] == value
        assert (draft.content, draft.private) == ("a: b: c", True)

    @pytest.mark.parametrize(
        ("header", "value"),
        [
            ("a: [b", ["b"]),
            ('a: "b": c', '"b": c'),
            ("a: 1\na: 2", 2),
            ("a:\n  c\n d: e: f", "c d: e: f"),
        ],
    )
    def test_another_broken_header_is_read_by_the_line(self, tmp_path, header, value):
        folder = write(tmp_path / "V", {".obsidian/x": "", "a.md": f"---\n{header}\n---\nA"})

        (draft,) = drafts(folder)

        assert (draft.extra, draft.content, draft.private) == ({"a": value}, "A", False)

    @pytest.mark.attack("private text in git")
    @pytest.mark.parametrize(
        "header",
        ["private: true\nprivate: false", "a: b: c\n- x\n  private: yes", "a: [\nPRIVATE : on"],
    )
    @pytest.mark.parametrize("end", ["---", ""])
    def test_a_mark_in_a_broken_header_counts(self, tmp_path, header, end):
        folder = write(tmp_path / "V", {".obsidian/x": "", "a.md": f"---\n{header}\n{end}\nA"})

        assert [draft.private for draft in drafts(folder)] == [True]

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("---\na: b\n---\nA\0", "binary"),
            ("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n", "git-lfs"),
            ("/annex/objects/SHA256E-s12--4d7a.md\n", "git-annex"),
        ],
    )
    def test_a_file_without_its_text_is_skipped_with_the_reason(self, tmp_path, text, reason):
        folder = write(tmp_path / "V", {".obsidian/x": "", "a.md": text})

        assert [reason in str(draft.skipped) for draft in drafts(folder)] == [True]

    @pytest.mark.parametrize(
        ("name", "header", "created"),
        [
            ("a", "created: 1709337600", "2024-03-02"),
            ("a", "created: 1709337600000", "2024-03-02"),
            ("a", "date created: 2024-03-02", "2024-03-02"),
            ("a", "Date: 2024-03-02", "2024-03-02"),
            ("a", "date: Sat, 02 Mar 2024 00:00:00 +0000", "2024-03-02"),
            ("2024-03-02", "a: b", "2024-03-02"), ("2024_03_02", "date: soon", "2024-03-02"),
            ("2024-03-02-x", "date: 2024-03-03", "2024-03-03"),
            ("2024-3-2-tea", "a: b", "2024-03-02"),
            ("20240302", "a: b", "2024-03-02"), ("202403020000 Tea", "a: b", "2024-03-02"),
            ("20240302000000", "a: b", "2024-03-02"), ("March 2nd, 2024", "a: b", "2024-03-02"),
        ],
    )  # fmt: skip
    def test_dates_are_those_of_documents_read_in_place(self, tmp_path, name, header, created):
        text = f"---\n{header}\n---\nA"
        (draft,) = drafts(write(tmp_path / "V", {".obsidian/x": "", f"{name}.md": text}))
        parsed = codec.parse(text.encode(), path=f"docs/{name}.md", modified=NOW, lenient=True)

        assert draft.created == datetime.fromisoformat(f"{created}T00:00:00Z")
        assert isinstance(parsed, codec.Parsed)
        assert parsed.memory.created == draft.created


def in_place(text):
    """Returns the memory of a record that is read where it is."""
    path = "docs/adr/0005-use-redis.md"
    parsed = codec.parse(text.encode(), path=path, modified=NOW, lenient=True)
    assert isinstance(parsed, codec.Parsed)
    return parsed.memory


class TestDecisionRecords:
    @pytest.mark.parametrize(
        ("status", "expected"),
        [
            ("Accepted, supersedes ADR-0001 and ADR-0002",
             {("supersedes", "A"), ("supersedes", "B")}),
            ("Supersedes [Use Python 2](0001-a.md)", {("supersedes", "A")}),
            ("Supersedes [Use Python 2](../adr/0001-a.md), [B](<0002-b.md#why>)",
             {("supersedes", "A"), ("supersedes", "B")}),
            ("Supersedes [ADR-2](https://example.org/adr)", {("supersedes", "B")}),
            ("Supersedes [1. Old name](0001-old-name.md)", {("supersedes", "A")}),
            ("Supersedes 1. A", {("supersedes", "A")}),
            ("Supersedes: 0002 and 0001", {("supersedes", "A"), ("supersedes", "B")}),
            ("Supersedes our use of Python 2", set()),
            ("Supersedes 2 services", set()),
            ("Supersedes 2.1", set()),
            ("Supersedes [Use Python 2](https://example.org/python)", set()),
            ("Accepted by 2, supersedes ADR-1", {("supersedes", "A")}),
            ("Supersedes ADR-1, amended by ADR-2", {("supersedes", "A")}),
            ("Supersedes ADR-1, amends ADR-2", {("supersedes", "A"), ("amends", "B")}),
            ("Supersedes [What extends ADR-2](0001-a.md)", {("supersedes", "A")}),
        ],
    )  # fmt: skip
    def test_a_status_names_records_by_links_and_numbers(self, tmp_path, status, expected):
        records = {
            f"000{number}-{title.lower()}.md": f"# {number}. {title}\n\n## Status\n\n{given}\n"
            for number, (title, given) in enumerate(
                [("A", "Accepted"), ("B", "Accepted"), ("C", status)], 1
            )
        }
        read = memories(write(tmp_path / "adr", records), "adr")

        assert links(read["C"], read) == expected
        assert read["A"].links == read["B"].links == ()

    @pytest.mark.parametrize(
        "status",
        [
            "Superseded by [B](0002-b.md)",
            "superseded by ADR-0002",
            "Superseded by 2",
            "Superseded by 0002 (B 1)",
        ],
    )
    def test_the_older_record_names_the_newer_one(self, tmp_path, status):
        records = {
            "0001-a.md": f"# 1. A\n\n## Status\n\n{status}\n",
            "0002-b.md": "# 2. B\n\n## Status\n\nAccepted\n",
        }
        read = memories(write(tmp_path / "adr", records), "adr")

        assert (links(read["A"], read), links(read["B"], read)) == (set(), {("supersedes", "A")})

    @pytest.mark.parametrize(
        "head",
        [
            "Status: rejected", "STATUS: REJECTED", "* Status: rejected", "+ Status: rejected",
            "**Status:** Rejected", "**Status**: Rejected", "**Status: Rejected**",
            "**Status**\n\nRejected", "Status: **Rejected**", "- **Status**: Rejected",
            "*Status:* Rejected", "_Status_: Rejected", "__Status:__ Rejected",
            "| | |\n|--|--|\n| **Status** | Rejected |",
            "| Status | Date |\n|---|---|\n| Rejected | |",
            "| Status | Rejected |\n|---|---|\n| Date | |", "Status | Date\n---|---\nRejected | -",
            "> Status: rejected", "> **Status:** rejected  ", "Status\n------\n\nRejected",
            "### Status\n\nRejected", "#### Status: rejected", "# Status\n\nRejected",
            "## State\n\nRejected", "State: Rejected",
            "## Estado\n\nRejected", "**Estado:** Rejected",
            "## Status: Rejected", "## Status ##\n\nRejected", "## 1. Status\n\nRejected",
            "## **Status**\n\nRejected", "## Status\n\n- [ ] Accepted\n- [x] Rejected",
            "## Status\n\n* Rejected", "## Status\n\n> Rejected",
            "## Status\n\n~~Accepted~~ Rejected",
            "Status:\n\nRejected", "**Status** — Rejected", "ADR Status: Rejected",
            "## Metadata\n\n- Status: Rejected", "<b>Status:</b> Rejected<br>",
            "Date: - | Status: Rejected", "## ステータス\n\nRejected",
            "Status\n: Rejected", "![Status: Rejected](x.svg)",
            "![s](https://img.shields.io/badge/status-rejected-red)",
            "<table><tr><td>Status</td><td>Rejected</td></tr></table>",
            "<table>\n<tr>\n<th>Status</th>\n<td>Rejected</td>\n</tr>\n</table>",
            "Status: ![Rejected](https://img.shields.io/badge/x-red)",
            "## Status\n\n[![Rejected](x.svg)](https://example.org)",
            "## Status\n\n[![Status](https://img.shields.io/badge/rejected-red)](y)",
            "Status: [![Rejected](https://example.org/a_(b).svg)](https://example.org)",
            "[![Status](https://img.shields.io/badge/Status-Rejected-red.svg?style=flat)][1]",
            "## Status\n\n[![Rejected][img]][link]", "- Status: [Rejected][1]",
            "[![ADR Status: Rejected](x.svg)](y)", "## Status\n\nStatus: Rejected",
            "## Status\n\n:x: **Rejected**.",
            "## Status\n\nRejected\n\nIt costs too much.", "## Status\nRejected\nIt costs.\n",
        ],
    )  # fmt: skip
    def test_a_status_is_read_however_it_is_written(self, tmp_path, head):
        text = (
            f"# 5. Use Redis\n\n{head}\n\n## Decision\n\nUse it. The job status: accepted by all.\n"
        )
        (draft,) = drafts(write(tmp_path, {"adr/0005-use-redis.md": text}) / "adr", "adr")

        assert (draft.title, str(draft.status).lower()) == ("Use Redis", "rejected")
        assert draft.content.lower().startswith("status: rejected\n\nuse it.")
        memory = in_place(text)
        assert memory.status == draft.status
        assert closed_as(memory.type, memory.status) == "rejected"

    @pytest.mark.parametrize(
        "head",
        [
            "---\ndate: 2024-03-02\n---", "Date: 2024-03-02", "**Date:** 2024-03-02",
            "> **Date:** 2024-03-02", "| Date | 2024-03-02 |", "Date\n----\n\n2024-03-02",
            "### Date\n\n2024-03-02", "**Fecha:** 2024-03-02", "## Metadata\n\n- Date: 2024-03-02",
            "**Status:** Accepted, **Date:** 2024-03-02", "Status: Accepted (2024-03-02)",
            "## Status\n\nVerworfen am 2. März 2024", "Estado: Rechazado el 2 de marzo de 2024",
            "Statut : Rejeté le 2 mars 2024", "Status: Rejeitado em 2 de março de 2024",
            "Stato: Rifiutato il 2 marzo 2024", "Status: Afgewezen op 2 maart 2024",
            "Status: Rejected on March 2nd, 2024", "Date: Saturday, 2 March 2024",
        ],
    )  # fmt: skip
    def test_a_date_is_read_however_it_is_written(self, tmp_path, head):
        text = f"{head}\n\n## Decision\n\nUse it.\n"
        (draft,) = drafts(write(tmp_path, {"adr/0005-use-redis.md": text}) / "adr", "adr")

        assert draft.created == in_place(text).created == datetime(2024, 3, 2, tzinfo=UTC)

    @pytest.mark.parametrize(
        ("line", "status"),
        [
            ("The API answers (status: rejected) for such a card.", None),
            ("(Status: Rejected by the board in May", "Rejected by the board in May"),
        ],
    )
    def test_a_status_within_a_sentence_is_not_that_of_the_record(self, line, status):
        assert in_place(f"# A\n\n## Decision\n\n{line}\n").status == status

    def test_prose_below_a_status_is_a_reason(self, tmp_path):
        text = "# A\n\n## Status\n\nRejected\n\nIt costs:\n\n- time\n\n## Decision\n\nUse it.\n"
        (draft,) = drafts(write(tmp_path, {"adr/0005-a.md": text}) / "adr", "adr")

        assert draft.sections == {Section.REASONING: "### Status\n\nIt costs:\n\n- time"}

    def test_a_record_of_a_day_needs_no_heading_but_its_title(self, tmp_path):
        text = "# Take payments with Adyen\n\n- Status: superseded\n- Date: 2024-07-15\n"
        (draft,) = drafts(write(tmp_path, {"adr/20240715-adyen.md": text}) / "adr", "adr")
        assert draft.status == "superseded"

    def test_a_record_may_be_the_index_of_its_folder(self, tmp_path):
        text = "# Use Redis\n\n## Status\n\n{}\n"
        records = {
            "index.md": "# Decisions\n\n- [5](0005-redis/index.md)\n",
            "0005-redis/index.md": text.format("Superseded by [6](../0006-valkey/README.md)"),
            "0006-valkey/README.md": text.format("Accepted"),
        }
        old, new = drafts(write(tmp_path / "adr", records), "adr")

        assert old.names == ("5", "0005-redis", "Use Redis")
        assert [(link.type, link.to) for link in new.links] == [("supersedes", old.key)]


class TestOwnExports:
    @pytest.mark.parametrize("name", [".", "facts", "facts/a.md"])
    def test_a_store_of_a_later_format_is_refused(self, tmp_path, name):
        memory = "---\nid: fact_a\ntype: fact\ncreated: 2026-01-01\n---\nA\n"
        store = write(tmp_path / ".mind", {"config.toml": "format = 99", "facts/a.md": memory})

        with pytest.raises(LaterFormat, match="has format 99"):
            drafts(store / name, "mind")
        write(store, {"config.toml": "format = 1"})
        assert [draft.key for draft in drafts(store / name, "mind")] == ["fact_a"]


HOSTILE = {
    "adr": [
        "# x\n\n- status: x" + "<!--" * 60_000 + "\n\n## Decision\nx\n",
        "# x\n\n## Status\n\n[x](" + "a" * 200_000 + "\n",
        "# x\n\nStatus" + "(" * 200_000 + "\n\n" + "|-" * 100_000 + "\n" + "~~a" * 60_000 + "\n",
        "# x\n\n## Status\n\nsee" + " 1" * 100_000 + "see" + " " * 100_000 + "\n",
    ],
    "obsidian": [
        "[](" + "a.md#" * 40_000,
        "\\[" * 100_000,
        "[\\[" * 60_000,
        "[" + "[b]" * 60_000,
        "[x [b] " * 40_000,
        "---\na: @" + " " * 60_000 + "x\n---\n",
        "---\na: " + ": b" * 20_000 + "\n---\n",
    ],
    "basic-memory": ["- a" + " " * 200_000, "- a [[" + "a" * 200_000, "[](" + "a.md#" * 40_000],
    "claude-md": ["<!-- MIND:CONTEXT\n" * 20_000],
}
"""Texts of some 200 kB or more, for which a pattern in quadratic time takes minutes or hours."""


@pytest.mark.attack("repeated text takes quadratic time")
@pytest.mark.parametrize(
    ("format", "text"), [(name, text) for name, texts in HOSTILE.items() for text in texts]
)
def test_hostile_notes_are_read_in_linear_time(tmp_path, format, text):
    note = tmp_path / "CLAUDE.md"
    note.write_text(text, encoding="utf-8")

    with sources.opened(note) as source:
        drafts = list(reader(format)(source))

    assert len(drafts) == (format != "claude-md")
