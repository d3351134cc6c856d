"""`mind pitfalls` and what belongs to it."""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from mimo import rendering
from mimo.call import Call
from mimo.call.schema import input_schema
from mimo.call.spec import to_json
from mimo.call.table import all_commands
from mimo.cli.main import main
from mimo.errors import EdgeExists, Invalid, NoProject, StorageFailed
from mimo.features.edges import sources
from mimo.features.edges.commands import (
    Format,
    Source,
    add,
    add_global_edge,
    check,
    edges,
    list_,
    starter,
)
from mimo.features.edges.edge import Severity
from mimo.features.search.commands import search
from mimo.mind import Mind
from mimo.operations.rows import TrustLabel
from mimo.project.init import init
from tests.calls import from_shell
from tests.conftest import NOW, git, make_store

CRYPTO: dict[str, Any] = {
    "title": "Vercel Edge crypto limitation",
    "description": "There is no crypto of Node's",
    "workaround": "Use Web Crypto",
    "detection": {
        "context": ["vercel", "edge", "middleware"],
        "intent": ["crypto", "uuid", "random", "token"],
        "code": ["import.*crypto", "require.*crypto"],
    },
}

SEED: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "mind_search": (
        "Semantic search across memories. Use when CLAUDE.md context isn't enough.",
        {
            "query": {"type": "string"},
            # `org` came later, for the shared index.
            "scope": {"type": "string", "enum": ["project", "all", "org"], "default": "project"},
            "types": {"type": "array"},
            "limit": {"type": "integer", "default": 10},
        },
        ["query"],
    ),
    "mind_edges": (
        "Check for gotchas before implementing risky code.",
        {"intent": {"type": "string"}, "code": {"type": "string"}, "stack": {"type": "array"}},
        ["intent"],
    ),
    "mind_add_global_edge": (
        "Add a cross-project gotcha.",
        {
            "title": {"type": "string"},
            "description": {"type": "string"},
            "workaround": {"type": "string"},
            "detection": {"type": "object"},
            "stack_tags": {"type": "array"},
            "severity": {"type": "string", "enum": ["info", "warning", "critical"],
                         "default": "warning"},
        },
        ["title", "description", "workaround", "detection"],
    ),
    "mind_status": ("Check Mind daemon status and project stats.", {}, []),
}  # fmt: skip


@pytest.fixture
def nowhere(home, clock):
    return Call(Mind(home=home, project=None, clock=clock, environ={}))


def log(call, text):
    (call.mind.project.root / ".mind" / "MEMORY.md").write_text(text, encoding="utf-8")


def run(call, *words):
    return main([*words], open=lambda _: call.mind)


@pytest.mark.req("003-12", "003-20", "003-47")
@pytest.mark.parametrize("name", SEED)
def test_the_four_tools_are_described_as_documented(name):
    description, properties, required = SEED[name]
    specs = all_commands().tools()[name]
    schema = input_schema(specs)

    assert specs[0].description.startswith(description)
    assert schema.get("required", []) == required
    for field, expected in properties.items():
        given = schema["properties"][field]
        shape = given if "type" in given else given["anyOf"][0]
        assert expected.items() <= (shape | given).items(), field


class TestAsking:
    @pytest.mark.req("003-14", "003-17", "003-22")
    def test_a_warning_has_the_documented_fields(self, call):
        made = add_global_edge(call, **CRYPTO, stack_tags=("vercel",))

        answer = to_json(edges(call, "implementing token generation with crypto"))

        (row,) = answer["edges"]
        assert 0 < row.pop("confidence") <= 1
        matched_on = row.pop("matched_on")
        assert matched_on.startswith("intent: crypto, token")
        assert row == {
            "id": made.id,
            "title": "Vercel Edge crypto limitation",
            "description": "There is no crypto of Node's",
            "workaround": "Use Web Crypto",
            "severity": "warning",
            "source": "global",
            "trust": "trusted",
            "file": made.file,
            "line": row["line"],
        }

    @pytest.mark.req("003-12", "003-18", "003-19")
    def test_code_and_a_stack_are_optional(self, call):
        add_global_edge(call, **CRYPTO)

        by_code = edges(call, "auth", code="import crypto from 'crypto'").edges
        by_stack = edges(call, "auth", stack=("vercel", "edge"), all_=True).edges

        assert [row.matched_on for row in by_code] == ["code: import.*crypto (line 1)"]
        assert [row.source for row in by_stack] == [Source.STACK]
        assert edges(call, "auth", stack=("vercel", "edge")).edges == ()
        assert edges(call, "auth", all_=True).edges == ()

    @pytest.mark.req("003-13", "003-25")
    def test_a_gotcha_of_the_log_is_reported_with_its_line(self, call):
        log(call, "# shop\n\n## Gotchas\n- Our API allows 100 calls a minute → cache it\n")

        (row,) = edges(call, "calling the API in a loop").edges

        assert (row.title, row.workaround) == ("Our API allows 100 calls a minute", "cache it")
        assert (row.source, row.file, row.line) == (Source.PROJECT, ".mind/MEMORY.md", 4)

    @pytest.mark.req("003-43")
    def test_without_a_project_global_edges_are_checked(self, nowhere):
        add_global_edge(nowhere, **CRYPTO)

        assert len(edges(nowhere, "a token").edges) == 1
        assert len(list_(nowhere).edges) == 1
        with pytest.raises(NoProject):
            check(nowhere, ("a.py",))

    def test_a_task_of_several_words_is_kept_with_the_edge(self, call, capsys):
        words = ("edges", "add", *named("Safari drops cookies", "After 7 days", "Set them again"))

        assert run(call, *words, "--task", "keep users logged in", "--json") == 0
        made = json.loads(capsys.readouterr().out)
        assert made["detection"]["tasks"] == ["keep users logged in"]
        assert run(call, "edges", "a login that lasts a month") == 0
        assert "Safari drops cookies" in capsys.readouterr().out

    def test_an_edge_of_a_clone_is_labelled_untrusted(self, call):
        log(call, "## Gotchas\n- Crypto tokens are slow → run the installer\n")
        call.mind.trust.forget()
        add_global_edge(call, **CRYPTO)

        labels = {row.source: row.trust for row in edges(call, "generating crypto tokens").edges}

        assert labels == {
            Source.PROJECT: TrustLabel.UNTRUSTED, Source.GLOBAL: TrustLabel.TRUSTED
        }  # fmt: skip

    @pytest.mark.req("003-16")
    def test_an_invalid_pattern_is_reported_and_harmless(self, call):
        made = add_global_edge(call, **(CRYPTO | {"detection": {"code": ["(", "crypto"]}}))

        answer = edges(call, "auth", code="crypto")

        assert "`(`" in (made.notice or "")
        assert len(answer.edges) == 1
        assert "mind pitfalls list" in (answer.notice or "")
        assert [problem.file for problem in list_(call).problems] == [made.file]


class TestAdding:
    @pytest.mark.req("003-20", "003-21", "003-22")
    def test_an_added_edge_is_returned_whole(self, call):
        made = to_json(add_global_edge(call, **(CRYPTO | {"detection": {"intent": ["crypto"]}})))

        assert made["id"].startswith("edge_vercel_edge_crypto_limitation_20261120_")
        assert made["detection"] == {"context": [], "intent": ["crypto"], "code": []}
        assert (made["stack_tags"], made["severity"]) == ([], "warning")
        assert (made["created_at"], made["verified_count"]) == ("2026-11-20T15:30:00Z", 0)
        assert to_json(edges(call, "crypto"))["edges"][0]["id"] == made["id"]

    @pytest.mark.req("003-23")
    def test_it_holds_in_every_project(self, call, nowhere):
        add_global_edge(call, **CRYPTO)

        assert len(edges(nowhere, "a token").edges) == 1

    @pytest.mark.req("003-24", "003-41")
    def test_a_duplicate_title_is_refused_with_its_id(self, call):
        made = add_global_edge(call, **CRYPTO)

        with pytest.raises(EdgeExists) as caught:
            add_global_edge(call, **(CRYPTO | {"title": "vercel edge  CRYPTO limitation!"}))

        assert caught.value.details == {"id": made.id}
        assert caught.value.code == "EDGE_EXISTS"
        assert [row.title for row in list_(call).edges] == [made.title]

    @pytest.mark.req("003-25")
    def test_a_project_edge_is_stored_in_the_project(self, call, nowhere):
        made = add(call, "Staging is slow", "It sleeps", "Wait", intent=("staging",), project=True)

        assert made.file.startswith(".mind/edges/edge_staging_is_slow_")
        assert edges(nowhere, "staging").edges == ()
        (row,) = edges(call, "deploying to staging").edges
        assert (row.source, row.description, row.workaround) == (
            Source.PROJECT, "It sleeps", "Wait",
        )  # fmt: skip
        with pytest.raises(EdgeExists):
            add(call, "Staging is slow", "x", "y", project=True)

    @pytest.mark.parametrize("title", ["", "  \n ", "x" * 201])
    def test_a_title_must_be_short(self, call, title):
        with pytest.raises(Invalid, match="title"):
            add_global_edge(call, **(CRYPTO | {"title": title}))

    def test_a_private_global_edge_is_refused(self, call):
        with pytest.raises(Invalid, match="needs `project`"):
            add(call, "X is slow", "x", "y", private=True)

    def test_the_starter_edges_are_added_once(self, call):
        assert list_(call).edges == ()
        first, second = starter(call), starter(call)

        assert len(first.added) == len(list_(call).edges) == second.known
        assert second.added == ()

    def test_starter_edges_are_added_beside_changed_ones(self, call):
        first = [Path(edge.file) for edge in starter(call).added]
        retitled, renamed, damaged, *removed = first
        for path in (retitled, renamed):
            text = path.read_text("utf-8")
            path.write_text(re.sub("(?m)^title: .*", "title: My own words", text), "utf-8")
        renamed.rename(renamed.with_name("mine.md"))
        damaged.write_text("---\nid: [\n---\n", "utf-8")
        for path in removed:
            path.unlink()

        second = starter(call)

        assert [Path(edge.file) for edge in second.added] == removed
        assert second.known == 3
        assert not renamed.exists()

    def test_the_command_line_takes_a_flag_for_this_project(self, call, capsys):
        words = ("edges", "add", *named("Staging is slow", "It sleeps", "Wait"), "--project")

        assert run(call, *words, "--severity", "info", "--code", "staging") == 0
        assert capsys.readouterr().out.endswith("Staging is slow  info  this project\n")
        assert run(call, *words, "-v") == 1
        assert "[EDGE_EXISTS]" in capsys.readouterr().err


@pytest.fixture
def risky(call):
    """A project in which two lines of a file run into an edge each."""
    add_global_edge(call, **CRYPTO, stack_tags=("vercel",), severity=Severity.CRITICAL)
    add(call, "`sleep(` blocks", "It does", "Await", project=True, severity=Severity.INFO)
    root = call.mind.project.root
    (root / "vercel.json").write_text("{}", encoding="utf-8")
    (root / "a.ts").write_text("import crypto\n\nsleep(1)\n", encoding="utf-8")
    return call


class TestChecking:
    def test_each_finding_names_its_edge(self, risky):
        answer = check(risky, ("a.ts",))

        assert [(hit.line, hit.severity, hit.source) for hit in answer.findings] == [
            (1, Severity.CRITICAL, Source.GLOBAL), (3, Severity.INFO, Source.PROJECT),
        ]  # fmt: skip
        assert (answer.files, answer.exit_status, answer.document) == (1, 1, None)

    def test_a_minimum_severity_hides_milder_findings(self, risky):
        assert len(check(risky, ("a.ts",), at_least=Severity.WARNING).findings) == 1
        answer = check(risky, code="x = 1")
        assert (answer.findings, answer.exit_status) == ((), 0)

    def test_two_sources_exclude_each_other(self, risky):
        with pytest.raises(Invalid, match="exclude each other"):
            check(risky, ("a.ts",), staged=True)

    def test_sarif_and_annotations_name_the_same_lines(self, risky):
        sarif = check(risky, ("a.ts",), format=Format.SARIF).document or ""
        github = check(risky, ("a.ts",), format=Format.GITHUB).document or ""

        regions = [
            result["locations"][0]["physicalLocation"]["region"]["startLine"]
            for result in json.loads(sarif)["runs"][0]["results"]
        ]
        assert regions == [1, 3]
        assert [line.split(",")[1] for line in github.splitlines()] == ["line=1", "line=3"]

    def test_a_project_in_a_folder_below_adds_its_pitfalls(self, call, monkeypatch, capsys):
        root = call.mind.project.root
        git(root, "init", "-q")
        store = make_store(root / "pk" / "api")
        edge = "## Gotchas\n- Staging needs `eval(x)` → parse it\n"
        (store / "MEMORY.md").write_text(edge, encoding="utf-8")
        (store / "private" / "edges").mkdir(parents=True)
        (store / "private" / "edges" / "a.md").write_text("---\ntype: edge\n---\n`eval(x)` hangs")
        for name in ("pk/api/a.py", "pk/b.py"):
            (root / name).write_text("y = eval(x)\n", encoding="utf-8")
        monkeypatch.chdir(root)

        assert run(call, "edges", "check", "pk") == 0, "no one registered it or added it to git"
        capsys.readouterr()
        git(root, "add", "pk/api/.mind/config.toml")
        assert run(call, "edges", "check", "pk", "--json") == 1
        rows = json.loads(capsys.readouterr().out)["findings"]

        assert {row["file"] for row in rows} == {"pk/api/a.py"}
        assert sorted(row["known_from"] for row in rows) == [
            "pk/api/.mind/MEMORY.md:2",
            "pk/api/.mind/private/edges/a.md:4",
        ]
        call = from_shell(call, "codex")
        assert [row.known_from for row in check(call, ("pk",)).findings] == [rows[-1]["known_from"]]

    def test_a_project_below_that_can_not_be_asked_is_named(self, call, monkeypatch, capsys):
        root = call.mind.project.root
        (root / "pk").mkdir()
        init(root / "pk", call.mind.home, now=NOW)
        (root / "pk" / ".mind" / "policy.yaml").write_text("agents: [", encoding="utf-8")
        (root / "pk" / "a.py").write_text("x\n", encoding="utf-8")
        monkeypatch.chdir(root)

        assert run(call, "edges", "check", "pk") == 0
        assert "pk was skipped: its policy is invalid" in capsys.readouterr().err

        registry = call.mind.home / "projects.json"
        entries = json.loads(registry.read_text(encoding="utf-8"))
        entries[-1]["search_all"] = False
        registry.write_text(json.dumps(entries), encoding="utf-8")
        assert run(call, "edges", "check", "pk") == 0
        assert "pk" not in capsys.readouterr().err

    def test_a_diff_does_not_lead_out_of_the_project(self, call, tmp_path):
        make_store(tmp_path / "other")
        (tmp_path / "other" / ".mind" / "MEMORY.md").write_text("## Gotchas\n- `eval(x)` → no\n")
        for name in ("../other/a.py", f"{tmp_path}/other/a.py", "pk/../../other/a.py"):
            diff = f"--- a/x\n+++ b/{name}\n@@ -0,0 +1 @@\n+eval(x)\n"
            assert check(call, code=diff).findings == ()

    def test_a_commit_is_checked_from_a_top_that_is_not_a_project(
        self, tmp_path, monkeypatch, capsys
    ):
        git(tmp_path, "init", "-q")
        monkeypatch.chdir(tmp_path)
        assert main(["edges", "check", "--staged"]) == 3
        store = make_store(tmp_path / "pk")
        (store / "MEMORY.md").write_text("## Gotchas\n- `eval(x)` → parse it\n")
        git(tmp_path, "add", "pk")
        git(tmp_path, "commit", "-qm", "begin")
        (tmp_path / "pk" / "a.py").write_text("eval(x)\n", encoding="utf-8")
        git(tmp_path, "add", "pk")

        assert main(["edges", "check", "--staged"]) == 1
        assert "pk/a.py:1" in capsys.readouterr().out

    def test_the_exit_status_fits_a_pipeline(self, risky, capsys, monkeypatch):
        monkeypatch.chdir(risky.mind.project.root)
        assert run(risky, "edges", "check", "a.ts") == 1
        assert "2 findings in 1 file" in capsys.readouterr().out
        assert run(risky, "edges", "check", "nope") == 2
        assert run(risky, "edges", "check", "--staged") == 2
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x = 1\n")))
        assert run(risky, "edges", "check", "--code", "-") == 0

    @pytest.mark.parametrize("error", [StorageFailed("the disk failed"), KeyError("x")])
    def test_an_error_has_another_exit_status_than_a_finding(self, risky, monkeypatch, error):
        def failing(*_, **__):
            raise error

        monkeypatch.setattr(sources, "run_into", failing)
        monkeypatch.chdir(risky.mind.project.root)
        for words in (("edges", "check", "a.ts"), ("--json", "edges", "check", "a.ts")):
            assert run(risky, *words) == 6
        monkeypatch.setattr(rendering, "flush", failing)
        assert run(risky, "policy", "check") == 6
        assert run(risky, "list") == 1


def named(title: str, description: str, workaround: str) -> tuple[str, ...]:
    """Returns the required options of `mind pitfalls add`."""
    return ("--title", title, "--description", description, "--workaround", workaround)


class TestErrors:
    def test_prose_is_not_an_edge(self, call, capsys):
        assert run(call, "edges", "add", "a", "token", "table") == 2
        message, hint = capsys.readouterr().err.splitlines()
        assert "`mind pitfalls add` does not take `a token table`" in message
        assert hint.startswith("hint: for example: mind pitfalls add --title ")
        assert run(call, "pitfalls", "add", "--title", "Tokens leak") == 2
        message, hint = capsys.readouterr().err.splitlines()
        assert "`--description` and `--workaround` are missing" in message
        assert hint.startswith("hint: for example: mind pitfalls add --title ")
        assert list_(call).edges == ()

    @pytest.mark.req("003-40", "003-41")
    def test_an_error_is_printed_with_its_code_message_and_details(self, call, capsys):
        made = add_global_edge(call, **CRYPTO)

        assert run(call, "edges", "add", *named(CRYPTO["title"], "a", "b"), "--json") == 1
        error = json.loads(capsys.readouterr().err)["error"]
        assert (error["code"], error["details"]["id"]) == ("EDGE_EXISTS", made.id)
        assert CRYPTO["title"] in error["message"]

    @pytest.mark.req("003-41")
    def test_without_a_project_the_error_asks_for_init(self, nowhere, capsys):
        assert run(nowhere, "search", "x", "--json") == 3
        error = json.loads(capsys.readouterr().err)["error"]
        assert error["code"] == "PROJECT_NOT_REGISTERED"
        assert "run `mind init`" in error["details"]["hint"]

    @pytest.mark.req("003-41")
    def test_search_without_a_usable_index_and_readable_files_fails(
        self, call, capsys, monkeypatch
    ):
        def unreadable(_):
            raise StorageFailed("`.mind` can't be read", hint="check the disk")

        monkeypatch.setattr(type(call.mind.store), "walk", unreadable)

        assert run(call, "search", "x", "--json") != 0
        error = json.loads(capsys.readouterr().err)["error"]
        assert error["code"] == "SEARCH_FAILED"
        assert "`.mind` can't be read" in error["message"]

    @pytest.mark.req("003-42")
    def test_without_a_daemon_a_search_is_complete_and_status_names_the_command_that_starts_it(
        self, call, capsys
    ):
        log(call, "## 2026-11-19\n**Decided:** Use JWT because it is stateless\n")

        (row,) = search(call, "JWT").results
        assert run(call, "status") == 0

        assert (row.source_file, row.source_line) == (".mind/MEMORY.md", 2)
        assert row.reasoning == "it is stateless"
        report = capsys.readouterr().out
        assert "the daemon is not running" in report
        assert "mind daemon start" in report
