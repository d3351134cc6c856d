"""Each format's memories become mind's: texts, times, tags, links and origin."""

import json
import re
import shutil
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mimo.errors import Invalid, LaterFormat
from mimo.features.importing import sources
from mimo.features.importing.drafts import Draft, resolved
from mimo.features.importing.formats import reader, recognised
from mimo.memory.codec.document import references
from mimo.memory.model import Kind, Memory, Outcome, Section
from tests.kit import put

SAMPLES = Path(__file__).parent / "samples"
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
    def test_claude_mem(self, tmp_path):
        path = database(tmp_path / "c.db", (SAMPLES / "claude-mem.sql").read_text("utf-8"))

        imported = memories(path, "claude-mem")

        decision = imported["Retry payments three times"]
        assert (decision.type, decision.tags) == (Kind.DECISION, ("payments", "retry"))
        assert decision.created == datetime(2026, 1, 9, 9, 13, 20, tzinfo=UTC)
        assert "- The first wait is 200 ms" in decision.content
        assert "one request in a thousand" in decision.content
        assert re.fullmatch("claude-mem:observation/[0-9a-f]{12}", decision.source or "")
        assert decision.extra["files_modified"] == ["src/retry.py"]
        assert imported["Double charge fixed"].type is Kind.ACTION
        assert "409 means that the key is known" in imported["Checkout retries"].content

    def test_summaries_of_claude_mem_are_private(self, tmp_path):
        path = database(tmp_path / "c.db", (SAMPLES / "claude-mem.sql").read_text("utf-8"))

        assert {draft.group: draft.private for draft in drafts(path)} == {
            "observations": False, "summaries": True,
        }  # fmt: skip

    def test_mcp_memory_service(self, tmp_path):
        sql = (SAMPLES / "mcp-memory-service.sql").read_text("utf-8")
        hashes = re.findall(r"'([0-9a-f]{64})'", sql)
        more = f"""
            INSERT INTO memory_graph VALUES
              ('{hashes[0]}', '{hashes[1]}', 0.5, '["causal"]', NULL, 1, 'causes'),
              ('{hashes[1]}', '{hashes[0]}', 0.9, '["semantic"]', NULL, 1, 'related');
            INSERT INTO memories (content_hash, content, deleted_at) VALUES ('x', 'old', 5);
        """
        path = database(tmp_path / "m.db", sql + more)

        first, second, deleted = drafts(path)

        assert first.tags == ("staging", "ops")
        assert first.extra["mcp_source"] == "runbook"
        assert [(link.to, link.type, link.confidence) for link in first.links] == [
            (hashes[1], "causes", 0.5)
        ]
        assert (second.type, second.extra["author"]) == (Kind.DECISION, "ana")
        assert second.links == ()
        assert str(first.created).startswith("2026-11-23")
        assert deleted.skipped == "it was deleted there"

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
    def test_the_graph_of_the_reference_server(self):
        imported = memories(SAMPLES / "memory.jsonl", "mcp-memory")

        assert (
            imported["Ana"].content == "- Owns the payment service\n- Prefers small pull requests"
        )
        assert imported["Ana"].extra == {"entity_type": "person", "undated": True}
        assert links(imported["Ana"], imported) == {("maintains", "payment-service")}
        assert imported["empty one"].content == "empty one"

    def test_older_names_of_its_fields_and_broken_relations(self, tmp_path):
        path = tmp_path / "m.jsonl"
        path.write_text(
            '{"type":"entity","entityName":"A","observations":["x"]}\n'
            '{"type":"relation","from_id":"A","to_id":"B","relation_type":"isPartOf"}\n'
            '{"type":"relation","from":"Gone","to":"A","relationType":"uses"}\n'
            '{"type":"relation","from":"A"}\n',
            encoding="utf-8",
        )

        imported = resolved(drafts(path), "mcp-memory", {}, now=NOW).items

        assert [item.skipped is None for item in imported] == [True, False, False]
        assert imported[0].memory is not None
        assert imported[0].memory.extra["unresolved_links"] == ["is_part_of B"]

    @pytest.mark.parametrize(
        ("observations", "content"),
        [
            ("hello", "- hello"), (["a", 1, None, {"b": "ü"}], '- a\n- 1\n- {"b": "ü"}'),
            (None, "A"), (5, None), ({"a": 1}, None), (True, None),
        ],
    )  # fmt: skip
    def test_observations_are_a_text_or_a_list(self, tmp_path, observations, content):
        path = tmp_path / "m.jsonl"
        entity = {"type": "entity", "name": "A", "observations": observations}
        path.write_text(json.dumps(entity), encoding="utf-8")

        (item,) = resolved(drafts(path), "mcp-memory", {}, now=NOW).items

        assert (item.memory and item.memory.content) == content
        assert (item.skipped is None) == (content is not None)

    def test_an_entity_in_two_lines_keeps_the_observations_of_both(self, tmp_path):
        path = tmp_path / "m.jsonl"
        parts = [["likes tea", "likes tea"], ["likes tea", "never deploys on Friday"]]
        entities = [{"type": "entity", "name": "Ann", "observations": part} for part in parts]
        path.write_text("\n".join(map(json.dumps, entities)), encoding="utf-8")

        (draft,) = drafts(path)

        assert draft.content == "- likes tea\n- likes tea\n- never deploys on Friday"

    @pytest.mark.parametrize("relations", [7, "no", [3], {"from": 1}, True])
    def test_relations_of_another_type_are_skipped(self, tmp_path, relations):
        graph = {"entities": [{"name": "A", "observations": ["b"]}], "relations": relations}
        path = tmp_path / "m.json"
        path.write_text(json.dumps(graph), encoding="utf-8")

        items = resolved(drafts(path), "mcp-memory", {}, now=NOW).items

        assert [item.skipped for item in items] == [
            None, "it is neither an entity nor a relation"
        ]  # fmt: skip

    @pytest.mark.parametrize("envelope", [lambda rows: rows, lambda rows: {"results": rows}])
    def test_mem0(self, tmp_path, envelope):
        rows = [
            {"id": "7f", "memory": "Prefers pytest", "user_id": "ana", "categories": ["tools"],
             "metadata": {"k": "v"}, "hash": None, "created_at": "2025-03-01T10:00:00-07:00",
             "updated_at": None, "score": 0.3},
            {"id": "80", "memory": None},
        ]  # fmt: skip
        path = tmp_path / "m.json"
        path.write_text(json.dumps(envelope(rows)), encoding="utf-8")

        first, second = drafts(path)

        assert (first.content, first.tags) == ("Prefers pytest", ("tools",))
        assert first.created == datetime(2025, 3, 1, 17, tzinfo=UTC)
        assert first.extra == {"user_id": "ana", "metadata": {"k": "v"}}
        assert second.skipped == "it has no text"

    def test_other_fields_of_entities_and_relations_are_kept(self, tmp_path):
        rows = [
            {"type": "entity", "name": "Ana", "entityType": "person", "observations": ["Owns it"],
             "createdAt": "2026-01-02T03:04:05Z", "tags": ["team"], "metadata": {"room": 4},
             "notes": "x" * 300, "id": "Ana"},
            {"type": "relation", "from": "Ana", "to": "Pay", "relationType": "maintains",
             "since": "2025"},
            {"type": "relation", "from": "Ana", "to": "Bob", "relationType": "pays",
             "private": True},
            {"type": "entity", "name": "Pay", "observations": []},
        ]  # fmt: skip
        path = tmp_path / "m.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

        ana, _, relation = drafts(path)

        assert (ana.created, ana.tags) == (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), ("team",))
        assert ana.content == f"- Owns it\n\n### Notes\n\n{'x' * 300}"
        assert ana.extra == {
            "entity_type": "person",
            "metadata": {"room": 4},
            "relation_details": [{"relation": "maintains", "to": "Pay", "since": "2025"}],
        }
        assert [link.to for link in ana.links] == ["Pay"]
        assert relation.skipped == "it is a private relation"

    def test_other_fields_of_an_entry_of_jrnl_are_kept(self, tmp_path):
        entry = {"date": "2026-01-02", "time": "09:00", "title": "A @Tea", "body": "",
                 "tags": ["@tea", "@work"], "uuid": "7f", "place": "x" * 300}  # fmt: skip
        path = tmp_path / "j.json"
        path.write_text(json.dumps({"tags": {}, "entries": [entry]}), encoding="utf-8")

        (draft,) = drafts(path)

        assert (draft.tags, draft.extra) == (("Tea", "work"), {"uuid": "7f"})
        assert draft.content.endswith(f"### Place\n\n{'x' * 300}")

    def test_a_text_before_the_first_entry_of_jrnl_is_listed(self, tmp_path):
        path = tmp_path / "j.txt"
        path.write_text("\ufeffMy journal\n[2026-01-02 09:00] A\n", encoding="utf-8")

        beginning, entry = drafts(path, "jrnl")

        assert "not an entry" in (beginning.skipped or "")
        assert entry.title == "A"

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

    def test_memories_that_mem0_returns(self):
        imported = memories(SAMPLES / "mem0.json", "mem0")

        limit = imported["The API limit is 50 requests a second"]
        assert limit.created.date().isoformat() == "2026-11-23"
        assert limit.extra["user_id"] == "ana"
        assert imported["I prefer pytest over unittest"].extra["metadata"] == {"category": "tools"}

    def test_both_forms_of_a_journal_of_jrnl_are_the_same_memories(self):
        by_json = memories(SAMPLES / "jrnl" / "journal.json", "jrnl")
        by_text = memories(SAMPLES / "jrnl" / "journal.txt", "jrnl")

        assert by_json == by_text
        first, second = by_json.values()
        assert first.title == "Chose SQLite for the cache."
        assert first.tags == ("ana", "cache")
        assert first.created == datetime(2026, 3, 2, 14, 5, tzinfo=UTC)
        assert second.content.endswith("- next: cache layers @deploy")


class TestConversations:
    @staticmethod
    def node(
        id: str, parent: str | None, role: str, text: str, **metadata: object
    ) -> dict[str, object]:
        message = {
            "author": {"role": role},
            "content": {"content_type": "text", "parts": [text]},
            "metadata": metadata,
        }
        return {id: {"id": id, "parent": parent, "message": message, "children": []}}

    def test_chatgpt_keeps_what_the_user_wrote_on_the_current_branch(self, tmp_path):
        mapping = {
            "root": {"id": "root", "parent": None, "message": None, "children": ["a"]},
            **self.node("h", "root", "user", "hidden", is_visually_hidden_from_conversation=True),
            **self.node("a", "h", "user", "How do I cache?"),
            **self.node("b", "a", "assistant", "With SQLite."),
            **self.node("old", "b", "user", "An abandoned question"),
            **self.node("new", "b", "user", "We use Redis already."),
        }
        path = tmp_path / "conversations.json"
        conversation = {"title": "Caching", "create_time": 1767950000.5, "id": "c1",
                        "current_node": "new", "mapping": mapping}  # fmt: skip
        path.write_text(json.dumps([conversation, {"title": "Empty", "mapping": {}}]), "utf-8")

        first, second = drafts(path, "chatgpt")

        assert first.content == "How do I cache?\n\n---\n\nWe use Redis already."
        assert (first.key, first.title, first.private) == ("c1", "Caching", True)
        assert (first.type, first.created and first.created.year) == (Kind.CONTEXT, 2026)
        assert second.skipped == "it has no words of the user"

    def test_an_export_in_several_files_is_read_whole(self, tmp_path):
        for number in range(2):
            mapping = self.node("a", None, "user", f"question {number}")
            conversation = {"id": f"c{number}", "mapping": mapping, "current_node": "a"}
            path = tmp_path / "chats" / f"conversations-00{number}.json"
            write(path.parent, {path.name: json.dumps([conversation])})

        contents = [draft.content for draft in drafts(tmp_path / "chats")]

        assert contents == ["question 0", "question 1"]

    def test_a_circle_of_messages_ends(self, tmp_path):
        path = tmp_path / "conversations.json"
        mapping = {**self.node("a", "b", "user", "x"), **self.node("b", "a", "user", "y")}
        path.write_text(json.dumps([{"id": "1", "mapping": mapping, "current_node": "a"}]), "utf-8")

        assert drafts(path)[0].content == "y\n\n---\n\nx"

    def test_chatgpt_keeps_what_the_user_spoke(self, tmp_path):
        spoken = {"content_type": "audio_transcription", "text": "We deploy on Tuesday"}
        audio = {"content_type": "audio_asset_pointer", "asset_pointer": "x", "text": "no"}
        content = {"content_type": "multimodal_text", "parts": [spoken, audio, "ok"]}
        node = {"a": {"message": {"author": {"role": "user"}, "content": content}}}
        path = tmp_path / "conversations.json"
        path.write_text(json.dumps([{"id": "1", "mapping": node, "current_node": "a"}]), "utf-8")

        assert drafts(path)[0].content == "We deploy on Tuesday\n\nok"

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

    def test_claude_exports_have_conversations_and_documents_of_projects(self, tmp_path):
        write(
            tmp_path / "export",
            {
                "conversations.json": json.dumps([
                    {"uuid": "u1", "name": "Cache", "created_at": "2026-01-02T03:04:05Z",
                     "chat_messages": [
                         {"sender": "human", "text": "",
                         "content": [{"type": "text", "text": "Hi"}]},
                         {"sender": "assistant", "text": "Hello"}]},
                ]),
                "projects.json": json.dumps([
                    {"uuid": "p1", "name": "Shop", "prompt_template": "Be brief",
                     "created_at": "2026-01-01T00:00:00Z",
                     "docs": [{"uuid": "d1", "filename": "api.md", "content": "50 a second"}]},
                ]),
            },
        )  # fmt: skip

        imported = memories(tmp_path / "export", "claude-chats")

        assert imported["Cache"].content == "Hi"
        assert (imported["api.md"].content, imported["api.md"].topic) == ("50 a second", "Shop")
        assert imported["instructions"].content == "Be brief"
        assert all(draft.private for draft in drafts(tmp_path / "export"))


NOTES = (
    "obsidian", "basic-memory", "okf", "nb", "claude-memory",
)  # fmt: skip


class TestNotes:
    def test_obsidian(self, tmp_path):
        folder = write(
            tmp_path / "Vault",
            {
                ".obsidian/app.json": "{}",
                "Tea.md": "---\ntags: [drinks]\naliases: [Cha]\ncreated: 2025-04-05\n"
                'made in: ["[[Pots]]"]\n'
                "rating: 5\n---\nSee [[Pots#Iron|the pot]], [[Nowhere]], ![[leaf.png]] #hot/black\n"
                "`[[Pots]]`\n\n```\n[[Pots]]\n#notag\n```\n",
                "kit/Pots.md": "# Pots\n\nFor [[cha]] and [text](../Tea.md).",
                "empty.md": "",
            },
        )

        with sources.opened(folder) as source:
            result = resolved(list(reader("obsidian")(source)), "obsidian", {}, now=NOW)

        tea, pots = (item.memory for item in result.items if item.memory)
        assert [item.skipped for item in result.items if item.skipped] == ["the file is empty"]
        assert tea.tags == ("drinks", "hot/black")
        assert tea.created == datetime(2025, 4, 5, tzinfo=UTC)
        assert tea.extra == {"aliases": ["Cha"], "rating": 5}
        assert f"See [[{pots.id}#Iron|the pot]], [[Nowhere]], ![[leaf.png]]" in tea.content
        assert tea.content.count("[[Pots]]") == 2
        assert f"For [[{tea.id}|cha]]" in pots.content
        assert pots.extra == {"undated": True}
        assert [link.to for link in pots.links] == [tea.id]
        assert ("made_in", pots.id) in [(link.type, link.to) for link in tea.links]
        assert result.unresolved == 1

    def test_properties_without_a_meaning_are_kept(self, tmp_path):
        header = "title: [a]\ncreated: long ago\ntags: {a: b}\nid: 7\nsource: a book"
        folder = write(
            tmp_path / "Vault", {".obsidian/x": "", "tea.md": f"---\n{header}\n---\nGreen"}
        )

        (tea,) = memories(folder, "obsidian").values()

        assert tea.title == "tea"
        assert tea.source == "obsidian:Vault/tea.md"
        assert tea.extra == {
            "obsidian_id": 7, "obsidian_source": "a book", "obsidian_title": ["a"],
            "obsidian_created": "long ago", "obsidian_tags": {"a": "b"}, "undated": True,
        }  # fmt: skip

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

    def test_a_note_that_is_marked_private_stays_private(self, tmp_path):
        folder = write(
            tmp_path / "Vault",
            {".obsidian/x": "", "a.md": "---\nprivate: true\n---\nA", "b.md": "B"},
        )

        assert [draft.private for draft in drafts(folder)] == [True, False]

    def test_basic_memory(self):
        imported = memories(SAMPLES / "basic-memory", "basic-memory")

        retries, keys = imported["Payment retries"], imported["Idempotency keys"]
        assert retries.tags == ("payments", "reliability")
        assert "- [decision] Retry three times with exponential backoff" in retries.content
        assert ("depends_on", "Idempotency keys") in links(retries, imported)
        assert ("part_of", "Payment retries") in links(keys, imported)
        assert keys.tags == ("payments", "ttl")
        assert keys.extra["permalink"] == "demo/design/idempotency-keys"
        assert keys.extra["basic_memory_type"] == "guide"

    def test_nb(self, tmp_path):
        folder = tmp_path / "nb"
        shutil.copytree(SAMPLES / "nb", folder)

        imported = memories(folder, "nb")

        assert imported["Rollback"].tags == ("ops",)
        todo = imported["Measure the queue"]
        assert (todo.type, todo.status, todo.tags) == (Kind.PLAN, "open", ("ops",))
        assert todo.created == datetime(2026, 11, 23, 16, 51, 3, tzinfo=UTC)

    def test_files_of_nb_that_are_not_markdown_are_listed(self, tmp_path):
        folder = write(
            tmp_path / "home", {".index": "", "a.md": "# A", "b.org": "* B", "c.txt": "C"}
        )

        note, *others = drafts(folder)

        assert note.title == "A"
        assert [other.key for other in others] == ["home/b.org", "home/c.txt"]
        assert all("not Markdown" in (other.skipped or "") for other in others)

    def test_okf(self, tmp_path):
        folder = write(
            tmp_path / "bundle",
            {
                "index.md": '---\nokf_version: "0.2"\n---\n* [Orders](tables/orders.md)',
                "log.md": "# Log\n\n## 2026-01-01\n* **Creation**: x",
                "tables/orders.md": "---\ntype: BigQuery Table\ntitle: Orders\n"
                "description: One row per order.\ntags: [sales]\nstatus: deprecated\n"
                "generated: { by: agent/1, at: 2026-05-28T14:30:00Z }\n---\n"
                "# Schema\n\nJoined with [customers](/tables/customers.md).",
                "tables/customers.md": "---\ntype: BigQuery Table\n---\n# Customers",
            },
        )

        imported = memories(folder, "okf")

        orders = imported["Orders"]
        assert orders.content.startswith("One row per order.\n\n# Schema")
        assert orders.created == datetime(2026, 5, 28, 14, 30, tzinfo=UTC)
        assert (orders.status, orders.tags) == ("deprecated", ("sales",))
        assert orders.extra["okf_type"] == "BigQuery Table"
        assert orders.extra["generated"]["by"] == "agent/1"
        assert links(orders, imported) == {("relates_to", "Customers")}

    def test_a_bundle_without_a_version_is_recognised_by_its_keys(self, tmp_path):
        concept = "---\ntype: Metric\nresource: https://example.com/x\n---\n# Revenue"
        folder = write(tmp_path / "bundle", {"index.md": "# All", "m/revenue.md": concept})

        assert [*memories(folder, "okf")] == ["Revenue"]

    def test_both_generations_of_claudes_memory(self, tmp_path):
        folder = write(
            tmp_path / "memory",
            {
                "MEMORY.md": "# Memory\n\n- [Small PRs](small-prs.md) - keep them small\n"
                "- Run the linter first\n",
                "old.md": "---\nname: Deploy window\ndescription: When to deploy\n"
                "type: project\n---\nOnly on Tuesdays.",
                "small-prs.md": "---\nname: small-prs\ndescription: Keep pull requests small\n"
                "metadata:\n  type: feedback\nmodified: 2026-02-03T04:05:06Z\n---\n"
                "Keep them small, see [[Deploy window]].\n\n**Why:** reviews",
            },
        )

        imported = memories(folder, "claude-memory")

        old, new = imported["Deploy window"], imported["small-prs"]
        assert (old.type, old.extra["claude_type"]) == (Kind.FACT, "project")
        assert old.content == "When to deploy\n\nOnly on Tuesdays."
        assert (new.type, new.extra["claude_type"]) == (Kind.INSIGHT, "feedback")
        assert new.created == datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
        assert f"[[{old.id}|Deploy window]]" in new.content
        assert "Run the linter first" in imported
        assert len(imported) == 3

    def test_rules_are_the_items_of_lists(self, tmp_path):
        folder = write(
            tmp_path,
            {
                "CLAUDE.md": "# Shop\n\nAn introduction.\nOf two lines.\n\n## Style\n\n"
                "- Use uv\n  - never pip\n\n  ```sh\n  - not a rule\n  ```\n* Short names\n\n"
                "```\n- code\n```\n\n"
                "<!-- MIND:CONTEXT sha=0123456789ab -->\n- ours\n<!-- MIND:END -->\n"
                "### Tests\n1. Run them\n@docs/more.md\n",
            },
        )

        imported = drafts(folder / "CLAUDE.md")

        kept = [(draft.topic, draft.content) for draft in imported if not draft.skipped]
        assert kept == [
            ("Style", "Use uv\n- never pip\n\n```sh\n- not a rule\n```"),
            ("Style", "Short names"),
            ("Tests", "Run them"),
        ]
        assert [draft.group for draft in imported if draft.skipped] == ["paragraphs"] * 2
        assert "ours" not in str(imported)

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

    @pytest.mark.parametrize("link", ["[Pots](kit/Pots.markdown#iron)", "[[kit/Pots]]"])
    def test_a_link_to_a_file_with_the_long_ending(self, tmp_path, link):
        notes = {"kit/Pots.markdown": "Iron", "kit.md": "Other", "x.md": link}
        folder = write(tmp_path / "V", {".obsidian/x": "", **notes})

        of = memories(folder, "obsidian")
        assert f"[[{of['Pots'].id}|" in of["x"].content or ("relates_to", "Pots") in links(
            of["x"], of
        )

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
        "header",
        ["a: [b", 'a: "b": c', "private: true\nprivate: false", "a: b: \0", "b:\n  c\n d: e: f"],
    )
    def test_another_broken_header_is_a_reason(self, tmp_path, header):
        folder = write(tmp_path / "V", {".obsidian/x": "", "a.md": f"---\n{header}\n---\nA"})

        (draft,) = drafts(folder)

        assert draft.skipped

    def test_a_topic_of_claude_without_quotes_arrives_once(self, tmp_path):
        topic = "---\nname: tabs\ndescription: Use tabs: never spaces\n---\nIn Go."
        folder = write(tmp_path / "memory", {"MEMORY.md": "- [Tabs](tabs.md)", "tabs.md": topic})

        assert [draft.content for draft in drafts(folder)] == ["Use tabs: never spaces\n\nIn Go."]

    def test_the_entry_of_a_topic_that_is_skipped_is_a_fact(self, tmp_path):
        index = "- [A](a.md) — one\n- [B](b.md) — two\n- [C](c.md)\n- [D](d.md) and [A](a.md)\n"
        folder = write(
            tmp_path / "memory",
            {
                "MEMORY.md": index + "- [D](d.md)\n- 1,200 more files in this folder\n",
                "a.md": "---\na: [b\n---\nA",
                "b.md": "---\nPrivate: yes\na: [b\n---\nB",
                "d.md": "D",
            },
        )
        (folder / "c.md").symlink_to(folder / "d.md")

        read = [(draft.content, draft.private) for draft in drafts(folder) if not draft.skipped]

        assert read == [
            ("D", False),
            ("[A](a.md) — one", False),
            ("[B](b.md) — two", True),
            ("[C](c.md)", True),
            ("[D](d.md) and [A](a.md)", False),
        ]

    def test_an_entry_of_the_index_whose_title_has_brackets_is_its_topic(self, tmp_path):
        index = "- [Title with \\[brackets\\] & \\<tags\\>](a.md) — Line\n- a rule\n"
        folder = write(tmp_path / "memory", {"MEMORY.md": index, "a.md": "# A"})

        assert [draft.content for draft in drafts(folder)] == ["# A", "a rule"]


class TestDecisionRecords:
    MADR = (
        "---\nstatus: accepted\ndate: 2025-06-07\ndecision-makers: [ana, ben]\n---\n"
        "# Use PostgreSQL\n\n## Context and Problem Statement\n\nWe need one database.\n\n"
        "## Considered Options\n\n* SQLite\n* PostgreSQL\n\n## Decision Outcome\n\n"
        'Chosen option: "PostgreSQL", because all know it.\n\n### Consequences\n\n'
        "* Good, because backups exist\n"
    )
    MADR_2 = (
        "# ADR-0002: Use UUIDs\n\n* Status: superseded by [ADR-0003](0003-use-ulids.md)\n"
        "* Deciders: ana\n* Date: 2024-01-02\n\n## Decision Outcome\n\nUUID v4.\n"
    )
    NYGARD = (
        "# 3. Use ULIDs\n\nDate: 2025-02-03\n\n## Status\n\nAccepted\n\n"
        "Supersedes [2. Use UUIDs](0002-use-uuids.md)\n\n## Context\n\nThey sort.\n\n"
        "## Decision\n\nULIDs.\n\n## Consequences\n\nA library.\n"
    )

    @pytest.fixture
    def imported(self, tmp_path):
        folder = write(
            tmp_path / "adr",
            {"0001-use-postgresql.md": self.MADR, "0002-use-uuids.md": self.MADR_2,
             "0003-use-ulids.md": self.NYGARD},
        )  # fmt: skip
        return memories(folder, "adr")

    def test_madr(self, imported):
        record = imported["Use PostgreSQL"]

        assert (record.type, record.topic, record.status) == (
            Kind.DECISION, "Use PostgreSQL", "accepted",
        )  # fmt: skip
        assert record.created == datetime(2025, 6, 7, tzinfo=UTC)
        assert record.content.startswith('Chosen option: "PostgreSQL"')
        assert "* Good, because backups exist" in record.content
        assert (
            "### Context and Problem Statement\n\nWe need one database."
            in (record.sections[Section.REASONING])
        )
        assert record.extra["decision-makers"] == ["ana", "ben"]

    def test_superseding_is_a_link_of_the_newer_record_whichever_states_it(self, imported):
        assert links(imported["Use ULIDs"], imported) == {("supersedes", "Use UUIDs")}
        assert imported["Use UUIDs"].links == ()
        assert imported["Use UUIDs"].status == "superseded by ADR-0003"
        assert imported["Use UUIDs"].content == "Status: superseded by ADR-0003\n\nUUID v4."
        assert imported["Use UUIDs"].created == datetime(2024, 1, 2, tzinfo=UTC)

    def test_nygard(self, imported):
        record = imported["Use ULIDs"]

        assert record.content == "ULIDs."
        assert record.sections[Section.REASONING] == (
            "### Context\n\nThey sort.\n\n### Consequences\n\nA library."
        )
        assert record.created == datetime(2025, 2, 3, tzinfo=UTC)

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

    def test_a_numbered_record_needs_no_status(self, tmp_path):
        folder = write(tmp_path / "adr", {"0007-use-uv.md": "# 7. Use uv\n\nIt is fast."})

        (draft,) = drafts(folder, "adr")

        assert (draft.title, draft.content) == ("Use uv", "Use uv")
        assert draft.sections == {Section.REASONING: "It is fast."}

    def test_the_other_ending_of_markdown_is_read(self, tmp_path):
        folder = write(tmp_path / "adr", {"0001-a.markdown": "# A\n\n## Status\n\nAccepted\n"})

        assert [draft.title for draft in drafts(folder)] == ["A"]

    def test_other_files_are_skipped(self, tmp_path):
        files = {"0001-x.md": self.MADR, "README.md": "# Records", "index.md": "# Index"}
        folder = write(tmp_path / "adr", files)

        assert [draft.skipped is None for draft in drafts(folder, "adr")] == [True, False]


class TestLinksOfVaults:
    @staticmethod
    def vault(folder: Path, files: dict[str, str]) -> dict[str, Memory]:
        return memories(write(folder / "V", {".obsidian/x": "", **files}), "obsidian")

    def test_a_link_in_a_table_stays_in_its_cell(self, tmp_path):
        table = "| a | b |\n|---|:-:|\n| [[Tea]] | [[Tea\\|green]] |\n"
        table += "| [[Tea#Top\\|x]] | [[No\\|y]] |\n\na | [[Tea|b]]\n"
        read = self.vault(tmp_path, {"Tea.md": "Leaves", "Table.md": table})
        tea = read["Tea"].id

        assert read["Table"].content.split("\n")[2:] == [
            f"| [[{tea}\\|Tea]] | [[{tea}\\|green]] |",
            f"| [[{tea}#Top\\|x]] | [[No\\|y]] |",
            "",
            f"a | [[{tea}|b]]",
        ]
        assert references(read["Table"].content) == (tea, "No")

    def test_a_file_name_is_surer_than_a_title_and_a_title_than_an_alias(self, tmp_path):
        files = {
            "A.md": "---\naliases: [Tea, Chai]\n---\nAll drinks.",
            "B.md": "---\ntitle: Chai\naliases: [Tea]\n---\nWith milk.",
            "Tea.md": "Leaves.",
            "Z.md": "[[Tea]] and [[Chai]]",
        }
        read = self.vault(tmp_path, files)

        assert read["Z"].content == (f"[[{read['Tea'].id}|Tea]] and [[{read['Chai'].id}|Chai]]")


class TestRules:
    def test_rules_between_parts_are_not_items(self, tmp_path):
        text = "- one\n\n* * *\n\n- - -\n***\n- two\n---\n- three\n  * * *\n  more\n"
        (tmp_path / "CLAUDE.md").write_text(text, encoding="utf-8")

        read = drafts(tmp_path / "CLAUDE.md")

        assert [draft.content for draft in read] == ["one", "two", "three\n* * *\nmore"]

    def test_underlined_headings_are_topics(self, tmp_path):
        text = "Rules\n=====\n\nBuild\n-----\n- one\n\nTest ##\n-------\n\n- two\n"
        (tmp_path / "CLAUDE.md").write_text(text, encoding="utf-8")

        read = drafts(tmp_path / "CLAUDE.md")

        assert [(draft.topic, draft.content) for draft in read] == [
            ("Build", "one"),
            ("Test ##", "two"),
        ]


HEAD = {"kind": "mind", "format": 1, "project": "shop"}
MEMORY = {
    "kind": "memory", "id": "decision_auth", "type": "decision", "topic": "auth",
    "created": "2026-01-01T00:00:00Z", "content": "Use JWT", "outcome": "SUCCESS",
    "source": "a talk", "links": [{"to": "x", "type": "supersedes"}],
    "sections": {"Reasoning": "It is simple"}, "private": True,
}  # fmt: skip


class TestOwnExports:
    @staticmethod
    def export(path: Path, *lines: object) -> Path:
        path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        return path

    def test_a_memory_is_the_same_again(self, tmp_path):
        path = self.export(tmp_path / "x.jsonl", HEAD, MEMORY, {"kind": "end", "memories": 1})

        (draft,) = drafts(path)

        assert draft.private
        memory = draft.whole
        assert memory is not None
        assert (memory.id, memory.source, memory.outcome) == (
            "decision_auth", "a talk", Outcome.SUCCESS,
        )  # fmt: skip
        assert memory.sections == {Section.REASONING: "It is simple"}
        assert resolved([draft], "mind", {}, now=NOW).items[0].memory == memory

    @pytest.mark.parametrize(
        "mark", [{"private": "yes"}, {"private": 1}, {"Private": True}, {"extra": {"private": "y"}}]
    )
    def test_an_unclear_mark_is_private(self, tmp_path, mark):
        shared = {**MEMORY, "id": "decision_b", "private": False}
        marked = {**shared, "id": "decision_a", **mark}
        end = {"kind": "end", "memories": 2}

        read = drafts(self.export(tmp_path / "x.jsonl", HEAD, marked, shared, end))

        assert [draft.private for draft in read] == [True, False]

    def test_a_file_that_was_cut_is_refused(self, tmp_path):
        path = self.export(tmp_path / "x.jsonl", HEAD, MEMORY)

        with pytest.raises(Invalid, match="not complete"):
            drafts(path)

    @pytest.mark.parametrize("name", [".", "facts", "facts/a.md"])
    def test_a_store_of_a_later_format_is_refused(self, tmp_path, name):
        memory = "---\nid: fact_a\ntype: fact\ncreated: 2026-01-01\n---\nA\n"
        store = write(tmp_path / ".mind", {"config.toml": "format = 99", "facts/a.md": memory})

        with pytest.raises(LaterFormat, match="has format 99"):
            drafts(store / name, "mind")
        write(store, {"config.toml": "format = 1"})
        assert [draft.key for draft in drafts(store / name, "mind")] == ["fact_a"]

    def test_a_later_format_is_refused(self, tmp_path):
        path = self.export(tmp_path / "x.jsonl", {**HEAD, "format": 2})

        with pytest.raises(Invalid, match="has format 2"):
            drafts(path)


HOSTILE = {
    "adr": [
        "# x\n\n- status: x" + "<!--" * 60_000 + "\n\n## Decision\nx\n",
        "# x\n\n## Status\n\n[x](" + "a" * 200_000 + "\n",
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


def test_the_notes_that_mind_keeps_are_not_rules(tmp_path):
    note = tmp_path / "CLAUDE.md"
    own = "<!-- MIND:CONTEXT v1 -->\n- not this\n<!-- MIND:END -->\n"
    note.write_text(f"- one\n\n{own}\n- two\n\n{own}<!-- MIND:CONTEXT\n-->\n- three\n")

    with sources.opened(note) as source:
        drafts = list(reader("claude-md")(source))

    assert [draft.content for draft in drafts if draft.group == "rules"] == ["one", "two", "three"]
