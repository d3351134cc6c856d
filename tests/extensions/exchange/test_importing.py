"""`mind import` opens a source safely, imports it once, and can undo that."""

import json
import os
import sqlite3
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.errors import Denied, Invalid, NoProject, NotFound, StorageFailed
from mimo.features.importing import sources
from mimo.features.importing.commands import Done, Import, import_
from mimo.features.notes.commands import edit
from mimo.features.notes.reading import show
from mimo.features.search.commands import search
from mimo.mind import Mind
from mimo.operations.rows import TrustLabel
from tests import privacy_fakes
from tests.kit import from_shell, put
from tests.privacy_fakes import Draw

GRAPH: list[dict[str, object]] = [
    {"type": "entity", "name": "Ana", "entityType": "person", "observations": ["Owns payments"]},
    {"type": "entity", "name": "Pay", "entityType": "service", "observations": ["In Python"]},
    {"type": "relation", "from": "Ana", "to": "Pay", "relationType": "maintains"},
]


def lines(path: Path, *objects: object) -> Path:
    put(path, "\n".join(map(json.dumps, objects)))
    return path


def write(folder: Path, **contents: str) -> Path:
    for name, text in contents.items():
        put(folder / f"{name.replace('__', '/')}.md", text)
    return folder


def vault(folder: Path, **contents: str) -> Path:
    (folder / ".obsidian").mkdir(parents=True)
    return write(folder, **contents)


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return lines(tmp_path / "other" / "memory.jsonl", *GRAPH)


def written(call: Call) -> dict[str, str]:
    paths = sorted(call.mind.folder.rglob("*.md"))
    return {
        path.relative_to(call.mind.folder).as_posix(): path.read_text("utf-8") for path in paths
    }


def facts(call: Call) -> dict[str, str]:
    return {name: text for name, text in written(call).items() if "/fact_" in name}


def totals(result: Import) -> tuple[int, int, int, int]:
    """Returns the numbers of new, replaced, existing and skipped memories."""
    rows = result.groups
    return (
        sum(row.new for row in rows),
        sum(row.replaced for row in rows),
        sum(row.already_there for row in rows),
        sum(row.skipped for row in rows),
    )


def id_of(call: Call, name: str) -> str:
    (path,) = (path for path in call.mind.folder.rglob("*.md") if name in path.stem)
    return path.stem


def interrupt(call: Call, source: Path) -> None:
    """Imports a source, and is interrupted after the first memory that it replaces."""
    rewrite = type(call.mind.store).rewrite

    def interrupted(*given: Any) -> None:
        rewrite(*given)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(call.mind.store), "rewrite", interrupted)
        with suppress(KeyboardInterrupt):
            import_(call, str(source))


class TestImporting:
    def test_memories_have_their_origin_and_are_not_approved(self, call, graph):
        call.mind.trust.follow(False)
        result = import_(call, str(graph))

        assert (result.done, result.format, result.verified) == (
            Done.IMPORTED, "mcp-memory", True,
        )  # fmt: skip
        ana = show(call, id_of(call, "ana"))
        assert ana.source == "mcp-memory:Ana"
        assert ana.trust is TrustLabel.UNTRUSTED
        assert [(link.to, link.type) for link in ana.links] == [(id_of(call, "pay"), "maintains")]

    def test_a_user_can_approve_what_is_imported(self, call, graph):
        call.mind.trust.follow(False)
        import_(call, str(graph))
        assert show(call, id_of(call, "ana")).trust is TrustLabel.UNTRUSTED

        import_(call, str(graph), trust=True)

        assert show(call, id_of(call, "ana")).trust is TrustLabel.TRUSTED

    @pytest.mark.attack("approval by an agent")
    def test_an_agent_can_not_approve_what_is_imported(self, call, graph):
        call = from_shell(call, "claude-code")

        with pytest.raises(Denied, match="only a person"):
            import_(call, str(graph), trust=True)
        assert import_(call, str(graph)).verified

    def test_a_rollback_does_not_take_the_option_that_approves(self, call, graph):
        import_(call, str(graph))
        before = written(call)

        with pytest.raises(Invalid, match="`rollback` removes texts, and `trust` approves them"):
            import_(call, str(graph), rollback=True, trust=True)
        assert written(call) == before

    def test_an_unknown_date_is_not_made_up(self, call, graph, clock):
        import_(call, str(graph))

        text = next(text for name, text in written(call).items() if "ana" in name)

        assert "undated: true" in text
        assert f"created: {clock.now:%Y-%m-%d}" in text

    @pytest.mark.parametrize("date", ["1998-05-06", "0850-05-06"])
    def test_a_date_before_2000_is_kept(self, call, tmp_path, date):
        notes = vault(tmp_path / "Notes", a=f"---\ncreated: {date}\n---\nA")

        result = import_(call, str(notes))

        assert result.verified
        assert f"created: {date}" in next(iter(facts(call).values()))
        assert not any("no date" in note for note in result.notes)

    def test_a_dry_run_writes_nothing(self, call, graph):
        before = written(call)

        result = import_(call, str(graph), dry_run=True)

        assert written(call) == before
        assert not (call.mind.folder / ".local" / "imports").exists()
        assert (result.done, totals(result)) == (Done.PLANNED, (2, 0, 0, 0))
        assert [row.title for row in result.first] == ["Ana", "Pay"]

    def test_private_memories_stay_out_of_git(self, call, graph):
        import_(call, str(graph), private=True)

        assert all(name.startswith("private/") for name in written(call) if "fact" in name)

    def test_a_memory_with_a_secret_is_skipped_with_the_reason(self, call, tmp_path):
        secret = privacy_fakes.TOKENS["github_token"][0](Draw(9))
        graph = lines(
            tmp_path / "m.jsonl",
            *GRAPH,
            {"type": "entity", "name": "CI", "entityType": "t", "observations": [f"use {secret}"]},
        )

        result = import_(call, str(graph))

        assert totals(result) == (2, 0, 0, 1)
        assert secret not in repr(result) + "".join(written(call).values())

    def test_a_record_with_a_secret_in_its_status_is_skipped(self, call, tmp_path):
        secret = privacy_fakes.TOKENS["github_token"][0](Draw(9))
        record = put(
            tmp_path / "docs" / "0001-use-x.md",
            f"# 1. Use X\n\nStatus: Accepted {secret}\n\n## Decision\n\nUse X.\n",
        )

        result = import_(call, str(record.parent), from_="adr")

        assert totals(result) == (0, 0, 0, 1)
        assert secret not in repr(result) + "".join(written(call).values())

    def test_without_a_project_the_error_names_init(self, home, graph):
        lost = Call(Mind(home=home, project=None, environ={}))

        with pytest.raises(NoProject) as error:
            import_(lost, str(graph))

        assert "mind init" in error.value.hint


class TestSeveralProjects:
    @pytest.fixture
    def database(self, tmp_path: Path) -> Path:
        path = tmp_path / "claude-mem.db"
        with sqlite3.connect(path) as sql:
            sql.execute("CREATE TABLE observations (id, project, type, title)")
            sql.execute("CREATE TABLE session_summaries (id, project)")
            rows = [(1, "shop", "change", "A"), (2, "blog", "change", "B")]
            sql.executemany("INSERT INTO observations VALUES (?, ?, ?, ?)", rows)
        sql.close()
        return path

    def test_memories_of_other_projects_are_not_imported_unasked(self, call, database):
        with pytest.raises(Invalid, match=r"memories of 2 projects: shop \(1\), blog \(1\)"):
            import_(call, str(database))

        assert totals(import_(call, str(database), only=("shop",))) == (1, 0, 0, 0)
        assert totals(import_(call, str(database), only=("*",))) == (1, 0, 1, 0)

    def test_an_unknown_project_is_an_error_that_names_the_projects(self, call, database, graph):
        with pytest.raises(Invalid, match="no memories of the project `shp`") as error:
            import_(call, str(database), only=("shp",))

        assert "shop" in error.value.hint
        with pytest.raises(Invalid) as error:
            import_(call, str(graph), only=("shop",))
        assert "omit --only" in error.value.hint


class TestAgain:
    def test_what_changed_in_the_source_is_replaced_and_what_is_new_is_added(self, call, graph):
        import_(call, str(graph))
        changed = {**GRAPH[0], "observations": ["Owns payments", "On leave in May"]}
        lines(graph, changed, *GRAPH[1:], {**GRAPH[1], "name": "Mail"})

        result = import_(call, str(graph))

        assert totals(result) == (1, 1, 1, 0)
        assert result.verified
        assert "On leave in May" in show(call, id_of(call, "ana")).content
        assert import_(call, str(graph), rollback=True).removed == 3

    def test_a_memory_that_was_changed_here_stays(self, call, graph):
        import_(call, str(graph))
        edit(call, id_of(call, "ana"), content="Ana owns payments and mail")
        lines(graph, {**GRAPH[0], "observations": ["Owns nothing"]}, *GRAPH[1:])

        result = import_(call, str(graph))

        assert totals(result) == (0, 0, 2, 0)
        assert show(call, id_of(call, "ana")).content == "Ana owns payments and mail"
        assert any("differ from the source" in note for note in result.notes)

    def test_a_moved_source_is_the_same_source(self, call, tmp_path):
        first = vault(tmp_path / "a" / "Notes", tea="# Tea\n\nGreen.")
        import_(call, str(first))
        second = tmp_path / "b" / "Notes"
        second.parent.mkdir()
        first.rename(second)

        assert totals(import_(call, str(second))) == (0, 0, 1, 0)

    def test_a_renamed_memory_file_is_recognised_by_its_origin(self, call, graph):
        import_(call, str(graph))
        path = next(call.mind.folder.rglob("fact_ana*.md"))
        path.write_text(
            path.read_text("utf-8").replace(f"id: {path.stem}", "id: ana"), encoding="utf-8"
        )
        path.rename(path.with_name("ana.md"))

        assert totals(import_(call, str(graph))) == (0, 0, 2, 0)

    @pytest.mark.parametrize("again", [True, False])
    def test_an_interrupted_replacement_is_completed_and_rolled_back(self, call, graph, again):
        import_(call, str(graph))
        lines(graph, {**GRAPH[0], "observations": ["Second"]}, *GRAPH[1:])
        interrupt(call, graph)

        plan = import_(call, rollback=True, dry_run=True)
        assert (plan.removed, plan.kept) == (2, ())
        if again:
            assert totals(import_(call, str(graph))) == (0, 0, 2, 0)
        lines(graph, {**GRAPH[0], "observations": ["Third"]}, *GRAPH[1:])
        assert totals(import_(call, str(graph))) == (0, 1, 1, 0)
        assert "Third" in show(call, id_of(call, "ana")).content
        assert import_(call, rollback=True).removed == 2

    def test_a_list_with_an_earlier_digest_is_brought_up_to_date(self, call, graph):
        listed = Path(call.mind.project.root, import_(call, str(graph)).manifest or "")
        before = listed.read_bytes()
        lines(graph, {**GRAPH[0], "observations": ["Second"]}, *GRAPH[1:])
        import_(call, str(graph))
        after = listed.read_bytes()
        listed.write_bytes(before)

        import_(call, str(graph))

        assert listed.read_bytes() == after


def claude_mem(path: Path, *rows: tuple[int, str, str]) -> Path:
    """Makes a database of claude-mem, whose rows are numbered; each has a time, title and text."""
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as sql:
        sql.executescript(
            "CREATE TABLE observations (id INTEGER PRIMARY KEY, created_at_epoch INTEGER,"
            " title TEXT, narrative TEXT);"
            "CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, created_at_epoch INTEGER,"
            " memory_session_id TEXT, request TEXT);"
        )
        for time, title, text in rows:
            row = (1_760_000_000_000 + time, title, text)
            sql.execute("INSERT INTO observations VALUES (NULL, ?, ?, ?)", row)
            sql.execute("INSERT INTO session_summaries VALUES (NULL, ?, ?, ?)", (row[0], "s", text))
    sql.close()
    return path


def mem0(path: Path, *texts: str) -> Path:
    path.write_text(json.dumps([{"memory": text} for text in texts]), encoding="utf-8")
    return path


def journal(path: Path, *texts: str) -> Path:
    """Makes a journal whose entries have the same minute and title."""
    path.write_text("".join(f"[2026-01-02 09:00] Standup\n{text}\n\n" for text in texts), "utf-8")
    return path


def contents(call: Call) -> list[str]:
    """Returns the texts of the memories, without headers."""
    texts = [text for name, text in written(call).items() if name != "MEMORY.md"]
    return sorted(text.rpartition("---\n")[2].strip() for text in texts)


class TestNewerExports:
    """An export has another name each time, and its memories have ids."""

    @staticmethod
    def export(path: Path, *texts: str) -> Path:
        rows = [{"id": f"id-{n}", "memory": text} for n, text in enumerate(texts)]
        path.write_text(json.dumps(rows), encoding="utf-8")
        return path

    def test_what_changed_is_replaced(self, call, tmp_path):
        old = self.export(tmp_path / "january.json", "One", "Two")
        new = self.export(tmp_path / "february.json", "One", "Zwei", "Three")
        import_(call, str(old))

        assert totals(import_(call, str(new))) == (1, 1, 1, 0)
        assert contents(call) == ["One", "Three", "Zwei"]
        assert totals(import_(call, str(self.export(new, "One", "Deux")))) == (0, 1, 1, 0)
        assert import_(call, str(old), rollback=True).removed == 1
        assert import_(call, str(new), rollback=True).removed == 2

    def test_an_older_export_replaces_nothing(self, call, tmp_path):
        old = self.export(tmp_path / "january.json", "One", "Two")
        os.utime(old, (1, 1))
        import_(call, str(self.export(tmp_path / "february.json", "Eins", "Two")))

        assert totals(import_(call, str(old))) == (0, 0, 1, 1)
        assert contents(call) == ["Eins", "Two"]

    def test_a_number_is_no_id_of_another_source(self, call, tmp_path):
        ana, ben = tmp_path / "ana.json", tmp_path / "ben.json"
        ana.write_text(json.dumps([{"id": 1, "memory": "Ana likes tea"}]), encoding="utf-8")
        ben.write_text(json.dumps([{"id": 1, "memory": "Ben likes coffee"}]), encoding="utf-8")
        import_(call, str(ana))

        assert totals(import_(call, str(ben))) == (0, 0, 0, 1)
        assert contents(call) == ["Ana likes tea"]

    def test_a_source_without_memories_of_its_own_has_no_list(self, call, tmp_path):
        import_(call, str(self.export(tmp_path / "january.json", "One")))
        import_(call, str(self.export(tmp_path / "february.json", "Eins")))

        assert import_(call, rollback=True).removed == 1

    def test_a_memory_that_was_changed_here_stays(self, call, tmp_path):
        import_(call, str(self.export(tmp_path / "january.json", "One")))
        edit(call, id_of(call, "one"), content="Changed")

        result = import_(call, str(self.export(tmp_path / "february.json", "Eins")))

        assert totals(result) == (0, 0, 1, 0)
        assert contents(call) == ["Changed"]

    def test_an_interrupted_replacement_is_completed(self, call, tmp_path):
        import_(call, str(self.export(tmp_path / "january.json", "One")))
        new = self.export(tmp_path / "february.json", "Eins")
        interrupt(call, new)

        assert totals(import_(call, str(new))) == (0, 0, 1, 0)
        assert totals(import_(call, str(self.export(new, "Un")))) == (0, 1, 0, 0)
        assert import_(call, rollback=True).removed == 1


class TestSourcesWithoutIds:
    """Rows and places are not ids: other databases and files have the same ones."""

    ROWS = ((1, "Use A", "Fast"), (2, "Use B", "Small"))

    def test_two_databases_are_both_imported(self, call, tmp_path):
        import_(call, str(claude_mem(tmp_path / "a.db", *self.ROWS)))

        result = import_(call, str(claude_mem(tmp_path / "b.db", (9, "Use C", "Free"))))

        assert totals(result) == (2, 0, 0, 0)
        assert len(contents(call)) == 6
        assert totals(import_(call, str(tmp_path / "a.db"))) == (0, 0, 4, 0)

    def test_rows_of_a_database_that_was_made_again_replace_no_others(self, call, tmp_path):
        path = claude_mem(tmp_path / "a.db", *self.ROWS)
        import_(call, str(path))
        before = written(call)

        result = import_(call, str(claude_mem(path, (9, "Use C", "Free"), self.ROWS[0])))

        assert totals(result) == (2, 0, 2, 0)
        assert before.items() <= written(call).items()

    def test_a_row_whose_text_was_edited_is_replaced(self, call, tmp_path):
        path = claude_mem(tmp_path / "a.db", *self.ROWS)
        import_(call, str(path))

        edited = (1, "Use A", "Fast enough")
        result = import_(call, str(claude_mem(path, edited, self.ROWS[1])))

        assert [row.replaced for row in result.groups if row.group == "observations"] == [1]
        assert "Fast enough" in contents(call)
        assert "Fast" not in contents(call)

    def test_memories_of_mem0_without_ids_are_recognised_by_their_texts(self, call, tmp_path):
        import_(call, str(mem0(tmp_path / "a.json", "One", "Two")))

        assert totals(import_(call, str(mem0(tmp_path / "b.json", "Three", "Two")))) == (1, 0, 1, 0)
        assert totals(import_(call, str(mem0(tmp_path / "a.json", "Two", "Four")))) == (1, 0, 1, 0)
        assert contents(call) == ["Four", "One", "Three", "Two"]

    def test_entries_of_one_minute_and_title_do_not_move_up(self, call, tmp_path):
        path = journal(tmp_path / "j.txt", "One", "Two", "Two", "Three")
        import_(call, str(path))
        before = written(call)

        assert totals(import_(call, str(path))) == (0, 0, 4, 0)
        journal(path, "Two", "Two", "Three")
        assert totals(import_(call, str(path))) == (0, 0, 3, 0)
        journal(path, "Three", "Four")
        assert totals(import_(call, str(path))) == (0, 1, 1, 0)
        assert written(call).keys() == before.keys()

    def test_one_entry_of_a_minute_and_title_is_replaced_when_it_was_edited(self, call, tmp_path):
        path = journal(tmp_path / "j.txt", "One")
        import_(call, str(path))

        assert totals(import_(call, str(journal(path, "Two")))) == (0, 1, 0, 0)

    def test_a_note_of_another_folder_with_this_name_is_listed_as_skipped(self, call, tmp_path):
        first = vault(tmp_path / "a" / "Notes", tea="# Tea\n\nGreen.", cup="# Cup")
        import_(call, str(first))
        second = vault(tmp_path / "b" / "Notes", tea="# Tea\n\nBlack.", cup="# Cup")

        result = import_(call, str(second))

        assert totals(result) == (0, 0, 1, 1)
        assert "which this source did not write" in result.skipped[0].reason
        write(first, tea="# Tea\n\nWhite.")
        assert totals(import_(call, str(first))) == (0, 1, 1, 0)


@pytest.mark.attack("private text in git")
class TestPrivacy:
    @pytest.mark.parametrize("text", ["list v1", "salary list v2: Bob 90k"])
    def test_a_shared_memory_becomes_private(self, call, tmp_path, text):
        notes = vault(tmp_path / "V", a="list v1")
        import_(call, str(notes))
        write(notes, a=text)

        result = import_(call, str(notes), private=True)

        assert (totals(result), result.verified) == ((0, 1, 0, 0), True)
        assert any("become private: 1" in note for note in result.notes)
        ((name, stored),) = facts(call).items()
        assert name.startswith("private/facts/fact_a_")
        assert text in stored
        assert totals(import_(call, str(notes), private=True)) == (0, 0, 1, 0)

    def test_a_memory_that_becomes_private_can_be_rolled_back(self, call, tmp_path):
        notes = vault(tmp_path / "V", a="one", b="two")
        import_(call, str(notes))
        write(notes, a="---\nprivate: true\n---\nBob 90k")

        assert totals(import_(call, str(notes))) == (0, 1, 1, 0)
        back = import_(call, rollback=True)

        assert (back.removed, back.missing, back.kept) == (2, 0, ())
        assert facts(call) == {}

    def test_an_interruption_publishes_nothing_and_is_completed(self, call, tmp_path, monkeypatch):
        notes = vault(tmp_path / "V", a="one")
        import_(call, str(notes))
        write(notes, a="Bob 90k")
        monkeypatch.setattr(type(call.mind.store), "rewrite", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            import_(call, str(notes), private=True)
        monkeypatch.undo()

        assert totals(import_(call, str(notes), private=True)) == (0, 1, 0, 0)
        assert [name.partition("/")[0] for name in facts(call)] == ["private"]
        assert import_(call, rollback=True).removed == 1

    def test_a_shared_memory_that_was_changed_here_is_skipped_with_a_hint(self, call, tmp_path):
        notes = vault(tmp_path / "V", a="one")
        import_(call, str(notes))
        edit(call, id_of(call, "fact_a"), content="two")
        before = written(call)

        result = import_(call, str(notes), private=True)

        assert totals(result) == (0, 0, 0, 1)
        assert "move the file" in result.skipped[0].reason
        assert written(call) == before

    def test_a_shared_note_does_not_name_a_private_one(self, call, tmp_path):
        notes = vault(
            tmp_path / "V",
            Secret="---\nprivate: true\nrelated: '[[Open]]'\n---\nBob",
            Open="---\nrelated: '[[Secret]]'\n---\nsee [[Secret]] and [[Other]]",
            Other="see [[Open]]",
        )
        import_(call, str(notes))
        shared = {name: text for name, text in written(call).items() if "private/" not in name}

        assert not any(id_of(call, "secret") in text for text in shared.values())
        text = next(text for name, text in shared.items() if "fact_open" in name)
        assert f"see [[Secret]] and [[{id_of(call, 'other')}|Other]]" in text
        assert [link.to for link in show(call, id_of(call, "secret")).links] == [
            id_of(call, "open")
        ]
        before = written(call)
        import_(call, str(notes))
        assert written(call) == before

    def test_an_exported_memory_that_names_a_private_one_is_skipped(self, call, tmp_path):
        def memory(id: str, **fields: object) -> dict[str, object]:
            date = "2026-01-01T00:00:00Z"
            return {"kind": "memory", "id": id, "type": "fact", "created": date, **fields}

        export = lines(
            tmp_path / "e.jsonl",
            {"kind": "mind", "format": 1, "project": "x"},
            memory("fact_a", content="see", links=[{"to": "fact_b"}]),
            memory("fact_c", content="see [[fact_b]]"),
            memory("fact_b", content="Bob", private=True),
            {"kind": "end", "memories": 3},
        )

        result = import_(call, str(export))

        assert totals(result) == (1, 0, 0, 2)
        assert "private memory" in result.skipped[0].reason


NOTE = "---\nid: fact_pay\ntype: fact\ncreated: 2026-01-01T00:00:00Z\n---\nBob 90k\n"
INGESTED = f"""---
id: source_guide_md
type: fact
source: guide.md
created: 2026-01-01T00:00:00Z
strategy: lines
chunks: 1
sha256: "{64 * "a"}"
---
<!-- chunk 1 lines 1-1 -->
Tea.
"""
OPEN = NOTE.replace("pay", "open").replace("Bob 90k", "Staging resets on Monday")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The folder `.mind` of another project, with a private and a shared memory."""
    folder = write(tmp_path / "other" / ".mind", private__facts__fact_pay=NOTE, MEMORY="# Log")
    write(folder, facts__fact_open=OPEN, private__by_hand="Bob has a new boss")
    (folder / ".index").mkdir()
    (folder / "config.toml").write_text("# Settings.\nformat = 1\n", encoding="utf-8")
    return folder


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """A Markdown export with a private and a shared memory."""
    folder = write(tmp_path / "vault", private__facts__fact_pay=NOTE, facts__fact_open=OPEN)
    write(folder, index="# shop\n\n- [Bob 90k](private/facts/fact_pay.md) (private)\n")
    (folder / ".mind-export").write_text("{}", encoding="utf-8")
    return folder


class TestOwnStores:
    """The memories of another `.mind/` and of exports keep their ids and stay private."""

    BOTH = ("facts/fact_open.md", "private/facts/fact_pay.md")

    @pytest.mark.parametrize("name", [".mind", "copy"])
    def test_a_store_is_recognised_in_spite_of_its_index(self, call, store, name):
        result = import_(call, str(store.rename(store.with_name(name))))

        assert (result.format, tuple(facts(call))) == ("mind", self.BOTH)

    @pytest.mark.parametrize("part", ["", "sources"])
    def test_an_ingested_file_is_listed_as_skipped(self, call, store, part):
        write(store, sources__source_guide_md=INGESTED)
        before = written(call)

        if part:
            with pytest.raises(Invalid, match="it is an ingested file"):
                import_(call, str(store / part))
        else:
            result = import_(call, str(store))
            assert any("ingested file" in left.reason for left in result.skipped)
        assert not [name for name in written(call).keys() - before.keys() if "guide" in name]

    @pytest.mark.parametrize("hidden", [".index", ".obsidian", ".mind-export"])
    def test_an_export_is_recognised_after_another_program_opened_it(self, call, exported, hidden):
        if hidden != ".mind-export":
            (exported / hidden).mkdir()

        result = import_(call, str(exported))

        assert (result.format, tuple(facts(call))) == ("mind", self.BOTH)

    @pytest.mark.parametrize("part", ["", "/facts", "/facts/fact_pay.md"])
    @pytest.mark.parametrize("kind", ["store", "exported", "unpacked"])
    def test_a_private_part_stays_private(self, call, request, kind, part):
        root = request.getfixturevalue("store" if kind == "store" else "exported")
        if kind == "unpacked":
            (root / ".mind-export").unlink()

        result = import_(call, f"{root}/private{part}")

        assert result.format == "mind"
        assert tuple(facts(call)) == ("private/facts/fact_pay.md",)

    @pytest.mark.parametrize("part", ["private", "private/facts", "private/facts/fact_pay.md"])
    def test_a_link_to_a_private_part_stays_private(self, call, store, tmp_path, part):
        link = tmp_path / ("link.md" if part.endswith(".md") else "link")
        link.symlink_to(store / part)

        import_(call, str(link))

        assert all(name.startswith("private/") for name in facts(call))
        assert len(facts(call)) == 1

    @pytest.mark.parametrize(
        ("archive", "names"),
        [
            ("x.zip", ["private/facts/fact_pay.md"]),
            ("x.zip", ["Private/fact_pay.md"]),
            ("x.zip", [".mind/private/facts/fact_pay.md"]),
            ("x.zip", ["shop/private/facts/fact_pay.md", "shop/MEMORY.md"]),
            ("x.zip", ["private\\facts\\fact_pay.md"]),
            ("private.zip", ["facts/fact_pay.md"]),
            ("other/.mind/private/x.zip", ["facts/fact_pay.md"]),
        ],
    )
    def test_an_archive_of_a_private_part_stays_private(self, call, tmp_path, archive, names):
        path = tmp_path / archive
        path.parent.mkdir(parents=True, exist_ok=True)
        texts = {name: "# Log" if name.endswith("MEMORY.md") else NOTE for name in names}
        TestArchives.make(path, texts)

        import_(call, str(path))

        assert all("private/" in name for name in facts(call))
        assert len(facts(call)) == 1

    @pytest.mark.parametrize("format", ["obsidian", "nb", "adr", "claude-md"])
    @pytest.mark.parametrize("part", ["", "private"])
    def test_no_format_shares_private_memories(self, call, store, format, part):
        record = "# Pay\n\n- Status: accepted\n\n## Decision\nBob 90k\n"
        write(store, private__0001=record, private__CLAUDE="- Bob 90k\n")

        import_(call, str(store / part), from_=format)

        shared = [text for name, text in facts(call).items() if not name.startswith("private/")]
        assert not [text for text in shared if "Bob" in text]
        assert any(name.startswith("private/") for name in written(call))

    @pytest.mark.parametrize("format", ["obsidian", "basic-memory", "nb"])
    def test_no_format_shares_the_index_of_private_memories(self, call, exported, format):
        import_(call, str(exported), from_=format)

        shared = {name: text for name, text in facts(call).items() if "private/" not in name}
        assert [name[:20] for name in shared] == ["facts/fact_fact_open"]

    def test_a_private_folder_far_above_is_not_a_mark(self, call, store, exported, tmp_path):
        away = tmp_path / "private" / "work"
        away.mkdir(parents=True)

        import_(call, str(exported.rename(away / "vault")))
        import_(call, str((store / "facts").rename(away / "facts")), from_="obsidian")
        import_(call, str(vault(away / "Notes", tea="# Tea")))

        shared = {name for name in facts(call) if not name.startswith("private/")}
        assert {name[:15] for name in shared} == {"facts/fact_open", "facts/fact_tea_"}


class TestRollingBack:
    def test_a_rollback_removes_what_was_imported(self, call, graph):
        before = written(call)
        import_(call, str(graph))

        plan = import_(call, rollback=True, dry_run=True)
        result = import_(call, str(graph), rollback=True)

        assert (plan.done, plan.removed) == (Done.ROLLBACK_PLANNED, 2)
        assert (result.done, result.removed) == (Done.ROLLED_BACK, 2)
        assert written(call) == before
        assert search(call, "payments").total == 0

    def test_one_of_two_sources_must_be_named(self, call, graph, tmp_path):
        import_(call, str(graph))
        import_(call, str(vault(tmp_path / "Notes", tea="# Tea")))

        with pytest.raises(Invalid, match="2 sources were imported"):
            import_(call, rollback=True)
        assert import_(call, rollback=True, from_="obsidian").removed == 1


class TestRecognising:
    def test_a_missing_source_is_an_error(self, call, tmp_path):
        with pytest.raises(Invalid, match="the source is missing"):
            import_(call)
        with pytest.raises(NotFound, match="does not exist"):
            import_(call, str(tmp_path / "nothing"))

    def test_an_empty_folder_is_an_error(self, call, tmp_path):
        (tmp_path / "empty").mkdir()

        with pytest.raises(Invalid, match="has no files"):
            import_(call, str(tmp_path / "empty"))

    def test_an_unclear_folder_needs_a_format(self, call, tmp_path):
        notes = write(tmp_path / "notes", tea="# Tea\n\nGreen.")

        with pytest.raises(Invalid, match="may be of several formats") as error:
            import_(call, str(notes))

        assert "--from obsidian" in error.value.hint
        assert import_(call, str(notes), from_="obsidian").verified

    def test_an_unknown_file_is_an_error_that_names_the_formats(self, call, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("just prose", encoding="utf-8")

        with pytest.raises(Invalid, match="is not known") as error:
            import_(call, str(path))

        assert "mcp-memory" in error.value.hint

    def test_a_wrong_format_is_an_error_with_the_reason(self, call, tmp_path, graph):
        with pytest.raises(Invalid, match="not an export of conversations"):
            import_(call, str(lines(tmp_path / "a.json", {"a": 1})), from_="chatgpt")
        with pytest.raises(Invalid, match="is not an SQLite database"):
            import_(call, str(graph), from_="claude-mem")
        with pytest.raises(Invalid, match="no memories that can be read as adr: it is not a dec"):
            import_(call, str(write(tmp_path / "notes", tea="# Tea")), from_="adr")

    def test_a_database_of_mama_has_its_own_importer(self, call, tmp_path):
        from tests import mama_databases

        path = mama_databases.make(tmp_path / "m.db")

        with pytest.raises(Invalid) as error:
            import_(call, str(path))

        assert "mind import mama" in error.value.hint

    @pytest.mark.parametrize("named", ["", "conversations.json"])
    def test_text_that_is_not_utf_8_is_an_error(self, call, tmp_path, named):
        (tmp_path / "x").mkdir()
        (tmp_path / "x" / "conversations.json").write_bytes(b'[{"mapping": "\xff"}]')

        with pytest.raises(Invalid, match="not UTF-8"):
            import_(call, str(tmp_path / "x" / named))

    def test_a_note_whose_name_is_not_utf_8_is_imported(self, call, tmp_path):
        notes = vault(tmp_path / "V")
        for name in (b"caf\xe8.md", b"caf\xe9.md"):
            Path(notes, os.fsdecode(name)).write_text("Coffee", encoding="utf-8")

        assert totals(import_(call, str(notes))) == (2, 0, 0, 0)
        assert totals(import_(call, str(notes))) == (0, 0, 2, 0)

    def test_broken_json_names_the_line(self, call, tmp_path):
        path = tmp_path / "a.json"
        path.write_text('[\n{"id": 1,\n', encoding="utf-8")

        with pytest.raises(Invalid, match="line 3: not JSON"):
            import_(call, str(path))


@pytest.mark.attack("hostile file")
class TestHostileSources:
    def test_links_and_special_files_in_a_folder_are_not_read(self, call, tmp_path):
        secret = tmp_path / "secret.md"
        secret.write_text("not for the memory", encoding="utf-8")
        notes = vault(tmp_path / "Notes", tea="# Tea")
        (notes / "link.md").symlink_to(secret)
        (notes / "folder").symlink_to(tmp_path)
        os.mkfifo(notes / "pipe.md")

        result = import_(call, str(notes))

        assert totals(result) == (1, 0, 0, 0)
        assert "not for the memory" not in "".join(written(call).values())
        assert any("symbolic link" in note and "link.md" in note for note in result.notes)
        assert any("not a regular file: pipe.md" in note for note in result.notes)

    def test_a_pipe_is_refused(self, call, tmp_path):
        os.mkfifo(tmp_path / "pipe")

        with pytest.raises(Invalid, match="neither a file nor a folder"):
            import_(call, str(tmp_path / "pipe"))

    def test_a_huge_file_is_refused_before_it_is_read(self, call, tmp_path):
        huge = tmp_path / "huge.json"
        with huge.open("wb") as file:
            file.write(b"[")
            file.truncate(1 << 30)
        notes = vault(tmp_path / "Notes", tea="# Tea")
        with (notes / "big.md").open("wb") as file:
            file.truncate(1 << 30)

        with pytest.raises(Invalid, match="too large"):
            import_(call, str(huge))
        result = import_(call, str(notes))

        assert totals(result) == (1, 0, 0, 1)
        assert "too large" in result.skipped[0].reason

    def test_headers_that_attack_a_parser_are_skipped(self, call, tmp_path):
        bomb = "a: &a [x, x]\n" + "".join(
            f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(9)
        )
        notes = vault(
            tmp_path / "Notes",
            tea="# Tea",
            bomb=f"---\n{bomb}---\nbody",
            deep=f"---\na: {'[' * 900}\n---\nbody",
            tag="---\na: !!python/object:os.system x\n---\nbody",
        )

        result = import_(call, str(notes))

        assert totals(result) == (1, 0, 0, 3)

    def test_json_that_is_nested_too_deep_is_refused(self, call, tmp_path):
        path = tmp_path / "deep.json"
        path.write_text("[" * 100_000, encoding="utf-8")

        with pytest.raises(Invalid, match="not JSON"):
            import_(call, str(path))

    @pytest.mark.parametrize("size", [16, 4096, 20_000])
    def test_a_broken_database_is_an_error(self, call, tmp_path, size):
        path = tmp_path / "m.db"
        with sqlite3.connect(path) as sql:
            sql.execute("CREATE TABLE memories (id, content, content_hash)")
            sql.executemany(
                "INSERT INTO memories VALUES (?, ?, ?)", [(n, "x" * 500, n) for n in range(99)]
            )
        sql.close()
        path.write_bytes(path.read_bytes()[:size] + b"\xff" * 9000)

        with pytest.raises((Invalid, StorageFailed)):
            import_(call, str(path))

        assert not list(call.mind.folder.rglob("fact_*"))

    def test_ids_in_an_export_can_not_leave_the_memory(self, call, tmp_path):
        export = lines(
            tmp_path / "x.jsonl",
            {"kind": "mind", "format": 1, "project": "p"},
            *(
                {"kind": "memory", "id": id, "type": "fact", "created": "2026-01-01T00:00:00Z",
                 "content": "x"}
                for id in ("../../evil", ".hidden", "a/b", "fine", "FINE")
            ),
            {"kind": "end", "memories": 5},
        )  # fmt: skip

        result = import_(call, str(export))

        assert [name for name in written(call) if "fact" in name] == ["facts/fine.md"]
        assert totals(result) == (1, 0, 0, 4)


@pytest.mark.attack("hostile archive")
class TestArchives:
    @staticmethod
    def make(path: Path, contents: dict[str, str]) -> Path:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in contents.items():
                archive.writestr(name, text)
        return path

    def test_a_vault_in_an_archive_is_imported(self, call, tmp_path):
        path = self.make(
            tmp_path / "x.zip", {"Notes/.obsidian/app.json": "{}", "Notes/tea.md": "# Tea"}
        )

        result = import_(call, str(path))

        assert (result.format, totals(result)) == ("obsidian", (1, 0, 0, 0))
        assert "source: obsidian:Notes/tea.md" in "".join(written(call).values())

    def test_an_earlier_file_of_the_same_name_is_listed(self, call, tmp_path):
        path = tmp_path / "Notes.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(".obsidian/x", "")
            archive.writestr("a.md", "First")
            with pytest.warns(UserWarning, match="Duplicate"):
                archive.writestr("a.md", "Second")

        result = import_(call, str(path))

        assert contents(call) == ["Second"]
        assert any("has the same name: a.md" in note for note in result.notes)

    def test_paths_that_lead_out_and_links_are_not_read(self, call, tmp_path):
        path = self.make(
            tmp_path / "x.zip",
            {".obsidian/x": "", "tea.md": "# Tea", "../evil.md": "# Evil", "/root.md": "# Root"},
        )
        with zipfile.ZipFile(path, "a") as archive:
            link = zipfile.ZipInfo("link.md")
            link.external_attr = 0o120777 << 16
            archive.writestr(link, "/etc/passwd")

        result = import_(call, str(path))

        assert totals(result) == (1, 0, 0, 0)
        assert any("leads out" in note for note in result.notes)
        assert any("symbolic link" in note for note in result.notes)

    def test_a_bomb_is_not_unpacked(self, call, tmp_path):
        path = self.make(
            tmp_path / "x.zip", {".obsidian/x": "", "tea.md": "# Tea", "b.md": "a" * 5_000_000}
        )

        result = import_(call, str(path))

        assert totals(result) == (1, 0, 0, 0)
        assert any("200 times its size" in note for note in result.notes)

    def test_an_archive_that_unpacks_to_too_much_is_refused(self, call, tmp_path, monkeypatch):
        monkeypatch.setattr(sources, "LARGEST", 10)
        path = self.make(tmp_path / "x.zip", {"tea.md": "# Tea\n\nLonger than that."})

        with pytest.raises(Invalid, match="have more than 10 bytes"):
            import_(call, str(path))

    def test_a_damaged_file_in_an_archive_is_an_error(self, call, tmp_path):
        text = "# Tea\n" + " ".join(map(str, range(999)))
        path = self.make(tmp_path / "x.zip", {".obsidian/x": "", "tea.md": text})
        data = bytearray(path.read_bytes())
        start = data.index(b"tea.md") + 100
        data[start : start + 200] = b"\xff" * 200
        path.write_bytes(data)

        with pytest.raises(Invalid, match="damaged archive"):
            import_(call, str(path))

    @pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
    def test_damaged_data_is_an_error_with_each_method(self, call, tmp_path, method):
        path = tmp_path / "x.zip"
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("tea.md", "# Tea\n" + " ".join(map(str, range(999))))
        data = bytearray(path.read_bytes())
        data[60:260] = b"\xff" * 200
        path.write_bytes(data)

        with pytest.raises(Invalid, match="damaged archive"):
            import_(call, str(path), from_="obsidian")

    def test_an_archive_with_a_name_that_is_not_utf_8_is_an_error(self, call, tmp_path):
        path = self.make(tmp_path / "x.zip", {".obsidian/x": "", "tea.md": "# Tea", "é": "# X"})
        path.write_bytes(path.read_bytes().replace("é".encode(), b"\xff\xff"))

        with pytest.raises(Invalid, match="damaged archive"):
            import_(call, str(path))

    def test_a_file_without_a_name_in_an_archive_is_not_read(self, call, tmp_path):
        path = self.make(tmp_path / "x.zip", {".obsidian/x": "", "tea.md": "# Tea", "é": "# X"})
        path.write_bytes(path.read_bytes().replace("é".encode(), b"\0\0"))

        assert totals(import_(call, str(path))) == (1, 0, 0, 0)

    def test_a_cut_archive_is_an_error(self, call, tmp_path):
        path = self.make(tmp_path / "x.zip", {"tea.md": "# Tea"})
        path.write_bytes(path.read_bytes()[:30])

        with pytest.raises(Invalid, match="damaged archive"):
            import_(call, str(path))
