"""A report is one file to share: it has no private text, and runs only its own script."""

import json
import os
import re
import stat
from base64 import b64encode
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call, Caller, Surface
from mimo.call.spec import declared
from mimo.cli.main import main
from mimo.errors import Conflict, Invalid, MindError, NotFound
from mimo.extensions.web import static_files
from mimo.extensions.web.commands import ReportWritten, report
from mimo.extensions.web.report import MODULES, bundle
from mimo.operations.invoke import invoke
from tests.conftest import Clock
from tests.extensions.web.requests import needs_node, run_script
from tests.extensions.web.sample import fill, write_memory
from tests.redteam.test_private_effects import WORD, ids, plant

__all__ = ["ids"]

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
TAGGED: tuple[tuple[str, list[str]], ...] = (
    ("a", ["api", "API"]),
    ("b", ["Api", "ops"]),
    ("c", []),
)
HOSTILE = "</script><script>window.owned = 1</script><!-- <script> ]]> \u2028"


@pytest.fixture
def shop(call: Call, project: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    fill(project)
    monkeypatch.chdir(project)
    return call


def written(call: Call, file: str = "r.html", **options: bool) -> ReportWritten:
    arguments = {"file": file, **options}
    result = invoke(declared(report), call.by(Caller(surface=Surface.CLI)), arguments)
    assert isinstance(result, ReportWritten)
    return result


def data_of(html: str) -> Any:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert match
    return json.loads(match[1])


def titles(html: str) -> set[str]:
    return {page["memory"]["title"] for page in data_of(html)["pages"]}


def test_a_report_has_the_memories(shop: Call, project: Path) -> None:
    result = written(shop)
    html = (project / "r.html").read_text("utf-8")
    data = data_of(html)
    assert (result.memories, result.pitfalls, result.bytes) == (11, 1, len(html.encode()))
    assert data["project"] == "shop"
    assert data["chains"][0]["topic"] == "auth_strategy"
    assert len(data["chains"][0]["ids"]) == 3
    assert "/review" not in html


def private(root: Path, id: str, **header: object) -> None:
    path = write_memory(root, id, "fact", header, "my own affair", created=NOON)
    target = root / ".mind" / "private" / path.name
    target.parent.mkdir(exist_ok=True)
    path.rename(target)


def test_private_memories_are_left_out(shop: Call, project: Path) -> None:
    old = "fact_login_20260921_d5j2sn"
    private(project, "fact_affair", links=[f"{{to: {old}, type: supersedes}}"])
    written(shop)
    html = (project / "r.html").read_text("utf-8")
    assert "affair" not in html
    written(shop, "p.html", private=True)
    assert "my own affair" in (project / "p.html").read_text("utf-8")
    assert (project / "p.html").stat().st_mode & 0o077 == 0


def test_a_report_with_private_memories_can_be_read_by_the_user_alone(
    shop: Call, project: Path
) -> None:
    assert written(shop).notice is None
    for mode in (0o644, 0o600):
        (project / "r.html").chmod(mode)
        assert "you alone can read" in (written(shop, private=True).notice or "")
        assert (project / "r.html").stat().st_mode & 0o777 == 0o600


def test_a_pipe_or_a_device_is_not_replaced(shop: Call, project: Path) -> None:
    os.mkfifo(project / "pipe")
    (project / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(Invalid, match="not a regular file"):
            written(shop, name, force=True)
    assert stat.S_ISFIFO((project / "pipe").stat().st_mode)


def test_no_link_of_a_shared_memory_names_a_private_one(shop: Call, project: Path) -> None:
    private(project, "fact_affair")
    links = [f"{{to: {to}, type: builds_on}}" for to in ("fact_affair", "fact_nowhere")]
    header: dict[str, object] = {"title": "Open", "links": links}
    write_memory(project, "fact_open", "fact", header, "An open text", created=NOON)

    written(shop)
    written(shop, "p.html", private=True)

    for file, targets in (
        ("r.html", ["fact_nowhere"]),
        ("p.html", ["fact_affair", "fact_nowhere"]),
    ):
        pages = data_of((project / file).read_text("utf-8"))["pages"]
        (page,) = (page for page in pages if page["memory"]["id"] == "fact_open")
        assert [link["id"] for link in page["links"]] == targets


def test_unapproved_memories_are_left_out(shop: Call, project: Path) -> None:
    shop.mind.trust.follow(False)
    assert written(shop).memories == 0
    assert written(shop).pitfalls == 0
    assert written(shop, untrusted=True).memories == 11
    assert "untrusted" in (project / "r.html").read_text("utf-8")


def test_pitfalls_of_the_user_are_left_out(shop: Call, home: Path, project: Path) -> None:
    folder = home / "edges"
    folder.mkdir(parents=True)
    text = "---\nid: edge_mine\ntype: edge\ntitle: My own habit\n---\nNever mind.\n"
    (folder / "edge_mine.md").write_text(text, encoding="utf-8")
    written(shop)
    assert "My own habit" not in (project / "r.html").read_text("utf-8")


def test_the_same_memories_give_the_same_bytes(shop: Call, project: Path) -> None:
    written(shop, "a.html")
    shop.mind.index.discard()
    written(Call(shop.mind.reopened()), "b.html")
    assert (project / "a.html").read_bytes() == (project / "b.html").read_bytes()


def test_standard_output_gets_the_same_bytes(
    shop: Call, project: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    write_memory(project, "fact_odd", "fact", {}, f"{HOSTILE} \x07 \u202e é 😀\ttab", created=NOON)
    written(shop)
    assert main(["report", "-"]) == 0
    assert capfdbinary.readouterr().out == (project / "r.html").read_bytes()


@pytest.mark.attack("web")
def test_hostile_text_ends_no_element(shop: Call, project: Path) -> None:
    header: dict[str, object] = {"title": HOSTILE, "topic": HOSTILE, "tags": ["'</script>'"]}
    write_memory(project, "decision_bad", "decision", header, HOSTILE, created=NOON)
    written(shop)
    html = (project / "r.html").read_text("utf-8")
    assert html.count("<script") == 2
    assert html.count("</script") == 2
    assert "owned" in html  # As data.
    data_of(html)


@pytest.mark.attack("web")
def test_only_the_script_and_style_of_the_report_may_run(shop: Call, project: Path) -> None:
    written(shop)
    html = (project / "r.html").read_text("utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy
    assert html.index(policy[0]) < html.index("<style>")
    for tag, rule in (('<script type="module">', "script-src"), ("<style>", "style-src")):
        end = f"</{tag[1:].split()[0].rstrip('>')}>"
        text = html.partition(tag)[2].partition(end)[0]
        digest = b64encode(sha256(text.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy[1]
    assert "unsafe" not in policy[1]
    assert "default-src 'none'" in policy[1]
    outside = re.findall(r'(?:src|href)="(?!#)[^"]*"', html.partition("<script")[0])
    assert outside == []


def test_a_secret_is_masked(shop: Call, project: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    write_memory(project, "fact_leak", "fact", {}, f"the token is {token}", created=NOON)
    written(shop)
    assert token not in (project / "r.html").read_text("utf-8")


def test_another_file_is_not_replaced(shop: Call, project: Path) -> None:
    (project / "r.html").write_text("<!doctype html>\n<p>mine", encoding="utf-8")
    with pytest.raises(Conflict, match="not a report"):
        written(shop)
    assert (project / "r.html").read_text("utf-8").endswith("mine")
    assert written(shop, force=True).memories == 11
    assert written(shop).memories == 11


def test_a_report_is_not_written_among_the_memories(shop: Call, project: Path) -> None:
    (project / "link").symlink_to(project / ".mind", target_is_directory=True)
    for name in (".mind/facts/report.md", ".MIND/report.html", "link/report.html"):
        with pytest.raises(Invalid, match="would read it as memories"):
            report(shop, str(project / name), force=True)


def test_a_link_is_not_replaced(shop: Call, project: Path) -> None:
    written(shop, "real.html")
    (project / "r.html").symlink_to("real.html")
    with pytest.raises(Conflict):
        written(shop)


@pytest.mark.parametrize(
    ("file", "error"), [(".mind", Invalid), ("no/such/r.html", NotFound), ("a\0b", MindError)]
)
def test_a_file_that_can_not_be_written_is_reported(
    shop: Call, file: str, error: type[MindError]
) -> None:
    with pytest.raises(error):
        written(shop, file)


def test_an_empty_project_has_a_report(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(call.mind.project.root)
    assert written(call).memories == 0


def test_every_module_is_in_the_report_after_those_that_it_imports() -> None:
    names = {name for name in static_files() if name.endswith(".js")}
    assert names == {*MODULES, "main.js", "server.js", "sessions.js"}
    for name in MODULES:
        imported = re.findall(r'from "\./([\w.]+)"', static_files()[name].decode())
        assert all(MODULES.index(other) < MODULES.index(name) for other in imported)
    assert not re.search(r"^(?:import|export) ", bundle(), re.MULTILINE)


@pytest.mark.parametrize("name", sorted(static_files()))
def test_files_of_the_page_are_plain(name: str) -> None:
    text = static_files()[name].decode()
    assert all(line == line.rstrip() and line.isprintable() for line in text.splitlines())
    assert text.endswith("\n")


@pytest.mark.attack("web")
@pytest.mark.parametrize("name", sorted(name for name in static_files() if name.endswith(".js")))
def test_no_script_makes_markup_of_text(name: str) -> None:
    text = static_files()[name].decode()
    unsafe = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|srcdoc"
    assert not re.search(unsafe, text)


@needs_node
def test_tags_are_the_same_in_upper_and_lower_case(tmp_path: Path) -> None:
    memories = [{"id": name, "tags": tags, "created_at": "2026-11-20"} for name, tags in TAGGED]
    data = {"pages": [{"memory": memory, "links": []} for memory in memories]}
    script = f"""
        const {{ Embedded }} = await import("./embedded.js");
        const report = new Embedded({json.dumps(data)});
        const asked = (tag) => report.list({{ tags: [tag], limit: 9, offset: 0 }});
        const totals = (await Promise.all(["api", "API"].map(asked))).map((rows) => rows.total);
        console.log(JSON.stringify([totals, (await report.overview()).tags]));"""

    assert run_script(script, tmp_path) == [[2, 2], {"api": 2, "ops": 1}]


@needs_node
def test_words_that_shape_a_question_are_not_searched(shop: Call, tmp_path: Path) -> None:
    data = data_of((written(shop), Path("r.html").read_text("utf-8"))[1])
    script = f"""
        const {{ Embedded }} = await import("./embedded.js");
        const report = new Embedded({json.dumps(data)});
        const asked = async (query) => (await report.search({{ query }})).matches
          .map(({{ memory, words }}) => [memory.title, words]);
        console.log(JSON.stringify([await asked("how do the clocks"), await asked("the")]));"""

    by_subject, by_shape = run_script(script, tmp_path)

    assert by_subject == [["Clocks of the build machines drift by minutes", ["Clocks", "clocks"]]]
    assert by_shape


@pytest.mark.attack("private text in shared output")
def test_private_memories_change_no_report(call: Call, clock: Clock, ids: dict[str, str]) -> None:
    before = Path(written(call, "before.html").file).read_bytes()
    plant(call, clock, ids)
    after = Path(written(call, "after.html").file).read_bytes()

    assert after == before
    assert WORD not in after.decode().casefold()
