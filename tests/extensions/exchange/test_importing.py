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
from mimo.errors import Invalid, StorageFailed
from mimo.features.importing import sources
from mimo.features.importing.commands import Import, import_
from mimo.features.notes.reading import show
from tests import privacy_fakes
from tests.kit import put
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


class TestAgain:
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
        listed.write_bytes(before)

        import_(call, str(graph))

        assert import_(call, rollback=True).removed == 2

    def test_a_list_of_an_earlier_version_is_continued_and_rolled_back(self, call, graph):
        listed = Path(call.mind.project.root, import_(call, str(graph)).manifest or "")
        data = json.loads(listed.read_bytes())
        (ana, [digest]), (pay, [other]) = data["files"].items()
        files = {ana: "0" * len(digest), pay: other}
        listed.write_text(json.dumps({**data, "files": files, "replacing": {ana: digest}}))

        lines(graph, {**GRAPH[0], "observations": ["Second"]}, *GRAPH[1:])
        assert totals(import_(call, str(graph))) == (0, 1, 1, 0)
        assert import_(call, rollback=True).removed == 2


class TestNewerExports:
    """An export has another name each time, and its memories have ids."""

    @staticmethod
    def export(path: Path, *texts: str) -> Path:
        rows = [{"id": f"id-{n}", "memory": text} for n, text in enumerate(texts)]
        path.write_text(json.dumps(rows), encoding="utf-8")
        return path

    def test_an_interrupted_replacement_is_completed(self, call, tmp_path):
        import_(call, str(self.export(tmp_path / "january.json", "One")))
        new = self.export(tmp_path / "february.json", "Eins")
        interrupt(call, new)

        assert totals(import_(call, str(new))) == (0, 0, 1, 0)
        assert totals(import_(call, str(self.export(new, "Un")))) == (0, 1, 0, 0)
        assert import_(call, rollback=True).removed == 1


@pytest.mark.attack("private text in git")
class TestPrivacy:
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


NOTE = "---\nid: fact_pay\ntype: fact\ncreated: 2026-01-01T00:00:00Z\n---\nBob 90k\n"


class TestOwnStores:
    """The memories of another `.mind/` and of exports keep their ids and stay private."""

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


class TestRecognising:
    def test_a_database_of_mama_has_its_own_importer(self, call, tmp_path):
        from tests import mama_databases

        path = mama_databases.make(tmp_path / "m.db")

        with pytest.raises(Invalid) as error:
            import_(call, str(path))

        assert "mind import mama" in error.value.hint

    def test_a_note_whose_name_is_not_utf_8_is_imported(self, call, tmp_path):
        notes = vault(tmp_path / "V")
        for name in (b"caf\xe8.md", b"caf\xe9.md"):
            Path(notes, os.fsdecode(name)).write_text("Coffee", encoding="utf-8")

        assert totals(import_(call, str(notes))) == (2, 0, 0, 0)
        assert totals(import_(call, str(notes))) == (0, 0, 2, 0)


@pytest.mark.attack("hostile file")
class TestHostileSources:
    def test_headers_that_attack_a_parser_are_texts(self, call, tmp_path):
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

        assert totals(result) == (4, 0, 0, 0)
        (bomb_file,) = call.mind.folder.glob("facts/*bomb*")
        assert len(bomb_file.read_bytes()) < 2_000

    def test_the_first_line_may_be_broken(self, call, tmp_path):
        path = tmp_path / "memory.jsonl"
        entity = '{"type": "entity", "name": "A", "entityType": "x", "observations": ["tea"]}'
        path.write_text(f"bad\n{entity}\n", encoding="utf-8")

        assert totals(import_(call, str(path))) == (1, 0, 0, 1)

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

        assert [text.split()[-1] for text in facts(call).values()] == ["Second"]
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
