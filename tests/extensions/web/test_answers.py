"""The answers of the viewer: what it shows, and that decisions are made on what was shown."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from mimo.call import Call, Caller, Surface
from mimo.call.spec import declared, to_json
from mimo.call.table import all_commands
from mimo.data import disk
from mimo.errors import Denied
from mimo.extensions.web.commands import web
from mimo.features.review import trusting
from mimo.index import survey
from mimo.memory.model import Kind
from mimo.operations import finding, saving
from mimo.operations.invoke import invoke
from tests.extensions.web.requests import Client
from tests.extensions.web.sample import fill, write_memory

CURRENT = "decision_auth_strategy_20261018_k3v7mq"
OLD = "decision_auth_strategy_20260604_p2w9xa"
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


@pytest.fixture
def client(call: Call, project: Path) -> Client:
    fill(project)
    return Client(call)


@pytest.fixture
def strange(project: Path, call: Call) -> Client:
    """A project of which nothing is approved."""
    call.mind.trust.follow(False)
    fill(project)
    return Client(call)


def test_the_overview_counts(client: Client) -> None:
    overview = client.ask("overview")
    assert (overview["project"], overview["zone"]) == ("shop", "UTC")
    assert overview["total"] == 11
    assert overview["types"]["decision"] == 5
    assert overview["tags"]["auth"] == 5
    assert overview["months"]["2026-09"] == 3


def test_half_of_a_character_in_a_request_is_refused(client: Client) -> None:
    answer = client.request("GET", "/api/list?args=" + quote('{"\\ud83d": 1}'))
    assert answer.status == 400
    assert "\ud83d" in answer.json["error"]["message"]


def test_the_list_is_filtered_and_paged(client: Client) -> None:
    every = client.ask("list")
    assert (every["total"], len(every["memories"])) == (11, 11)
    assert every["memories"][0]["title"] == "Reports of the day begin at midnight UTC"
    assert client.ask("list", limit=2, offset=10)["memories"] == every["memories"][10:]
    decided = client.ask("list", types=["decision"], tags=["jwt"], outcomes=["SUCCESS"])
    assert [row["id"] for row in decided["memories"]] == [CURRENT]
    assert client.ask("list", time_filter="2026-06")["total"] == 1


def test_the_list_is_filtered_by_approval(strange: Client, call: Call) -> None:
    mine = saving.store(call, saving.draft(Kind.FACT, "my own")).memory.id
    assert [row["id"] for row in strange.ask("list", trust="trusted")["memories"]] == [mine]
    unapproved = strange.ask("list", trust="untrusted", limit=3, offset=9)
    assert (unapproved["total"], len(unapproved["memories"])) == (11, 2)
    assert {row["trust"] for row in unapproved["memories"]} == {"untrusted"}


def test_search_finds_an_unapproved_memory_behind_many_approved_ones(
    strange: Client, call: Call
) -> None:
    for number in range(5):
        saving.store(call, saving.draft(Kind.FACT, f"The token refresh {number}"))
    untrusted = strange.ask("search", query="token refresh", trust="untrusted", limit=2)
    assert {match["memory"]["trust"] for match in untrusted["matches"]} == {"untrusted"}
    assert len(strange.ask("search", query="token refresh", limit=2)["matches"]) == 2


def test_the_matching_words_are_those_about_the_subject(client: Client) -> None:
    matches = client.ask("search", query="how long does a refresh token live")["matches"]
    words = {word.lower() for word in matches[0]["words"]}
    assert {"refresh", "token", "tokens"} <= words
    assert not words & {"a", "does", "how", "is"}


def test_a_row_has_its_reason_or_its_second_line(client: Client, call: Call) -> None:
    whole = f"{'A long first line ' * 20}is whole"
    saving.store(call, saving.draft(Kind.FACT, f"{whole}\n\n- the `second` one\n- third"))
    saving.store(call, saving.draft(Kind.FACT, "A line alone"))
    about = {row["title"]: row.get("about") for row in client.ask("list")["memories"]}
    assert about[whole] == "the `second` one"
    assert about["A line alone"] is None
    assert about["Use JWT with a one-day lifetime"] == "No state on the server."
    assert about["Keep server sessions in Redis"] == "Server sessions in Redis, thirty days."


def test_a_title_in_the_review_is_whole(strange: Client, project: Path) -> None:
    text = f"{'A long first line ' * 9}is whole"
    write_memory(project, "fact_long", "fact", {}, text, created=NOON)
    assert text in {item["title"] for item in strange.ask("review")["items"]}


def test_search_finds_and_counts_no_use(client: Client, call: Call) -> None:
    best = client.ask("search", query="how long does a refresh token live")["matches"][0]
    assert best["memory"]["id"] == CURRENT
    assert best["passage"]
    client.ask("page", id=CURRENT)
    assert finding.uses(call) == {}


def test_the_memory_for_all_projects_is_found_too(client: Client, call: Call) -> None:
    caller, text = Caller(surface=Surface.CLI), "Always use pnpm, never npm"
    spec = all_commands().at("add")
    stored = to_json(invoke(spec, call.by(caller), {"content": text, "user": True}))
    best = client.ask("search", query="which package manager: pnpm or npm")["matches"][0]
    assert (best["memory"]["id"], best["memory"]["scope"]) == (stored["id"], "user")
    assert client.ask("page", id=stored["id"])["memory"]["title"] == text


def test_a_page_has_links_and_versions(client: Client) -> None:
    page = client.ask("page", id="k3v7mq")
    assert page["memory"]["id"] == CURRENT
    assert [row["id"] for row in page["versions"]][::2] == [CURRENT, OLD]
    assert [(arc["source"], arc["target"]) for arc in page["arcs"]] == [
        (page["versions"][0]["id"], page["versions"][1]["id"]),
        (page["versions"][1]["id"], page["versions"][2]["id"]),
    ]
    assert ["p", {}, ["No state on the server."]] not in page["content"]
    assert list(page["sections"]) == ["Reasoning"]
    types = {(link["type"], link["incoming"]) for link in page["links"]}
    assert types == {("supersedes", False), ("builds_on", False), ("relates_to", False)}
    old = client.ask("page", id=OLD)
    assert old["memory"]["superseded_by"] == "decision_auth_strategy_20260811_m4t7qe"
    assert old["memory"]["warning"].startswith("FAILED")
    assert [(link["type"], link["incoming"]) for link in old["links"]] == [("supersedes", True)]


def test_a_closed_issue_is_marked(client: Client, call: Call) -> None:
    issue = saving.store(call, saving.draft(Kind.ISSUE, "Tea is cold"))
    saving.edit(call, issue, status="Resolved")

    page = client.ask("page", id=issue.memory.id)
    assert (page["memory"]["closed"], page["status"]) == ("resolved", "Resolved")
    assert sum("closed" in row for row in client.ask("list")["memories"]) == 1


def test_a_missing_memory_is_404(client: Client) -> None:
    answer = client.get('/api/page?args={"id":"nothing"}')
    assert answer.status == 404
    assert answer.json["error"]["code"] == "NOT_FOUND"


def test_decisions_are_grouped_by_topic(client: Client, project: Path) -> None:
    link: dict[str, object] = {"links": ["{to: decision_loose_1, type: supersedes}"]}
    write_memory(project, "decision_loose_1", "decision", {}, "loose", created=NOON)
    later = NOON.replace(day=2)
    write_memory(project, "decision_loose_2", "decision", link, "tighter", created=later)
    answer = client.ask("chains")
    groups = {
        chain["topic"]: [row["id"] for row in chain["versions"]] for chain in answer["chains"]
    }
    assert list(groups) == ["tighter", "auth_strategy", "job_queue", "order_storage"]
    assert groups["tighter"] == ["decision_loose_2", "decision_loose_1"]
    assert groups["auth_strategy"][0] == CURRENT
    assert len(groups["auth_strategy"]) == 3
    assert client.ask("chains", text="JWT")["total"] == 1
    assert client.ask("chains", limit=1, offset=3)["chains"][0]["topic"] == "order_storage"


def test_the_graph_is_whole_or_around_a_memory(client: Client) -> None:
    every = client.ask("graph")
    assert (len(every["nodes"]), len(every["links"]), every["cut"]) == (8, 6, False)
    near = client.ask("graph", id=OLD, depth=1)
    assert {node["id"] for node in near["nodes"]} == {
        OLD,
        "decision_auth_strategy_20260811_m4t7qe",
    }


def test_pitfalls_have_their_way_around(client: Client) -> None:
    (pitfall,) = client.ask("pitfalls")["pitfalls"]
    assert pitfall["workaround"] == "Set the cookie on the server"
    assert pitfall["source"] == "project"


def test_an_ingested_file_lists_its_parts(client: Client, call: Call, project: Path) -> None:
    from mimo.features.ingest.commands import ingest

    (project / "guide.md").write_text("# One\n\nfirst\n\n# Two\n\nsecond\n", encoding="utf-8")
    invoke(
        declared(ingest), call.by(Caller(surface=Surface.CLI)), {"path": str(project / "guide.md")}
    )
    part = next(row for row in client.ask("list")["memories"] if "parent" in row)
    assert part["origin"] == "guide.md"
    outline = client.ask("page", id=part["parent"])
    assert outline["memory"]["title"] == "guide.md"
    assert part["id"] in [row["id"] for row in outline["parts"]]


def test_a_secret_in_a_file_is_masked(client: Client, project: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    write_memory(project, "fact_leak", "fact", {}, f"the token is {token}", created=NOON)
    answers = [
        client.get('/api/page?args={"id":"fact_leak"}').body,
        client.get('/api/search?args={"query":"the token is"}').body,
        client.get("/api/list").body,
    ]
    assert not any(token.encode() in body for body in answers)


@pytest.mark.parametrize(
    "path",
    [
        *("list?args=[]", "list?args={", "list?args=1", "page?args={}", 'list?args={"x":1}'),
        *('list?args={"limit":0}', 'list?args={"limit":100000}', "list?args=" + "[" * 20_000),
        'list?args={"time_filter":"blue"}',
    ],
)
def test_bad_arguments_are_400(client: Client, path: str) -> None:
    assert client.get(f"/api/{path}").status == 400


def test_a_project_that_was_moved_is_404_and_does_not_appear_again(
    client: Client, call: Call, project: Path
) -> None:
    assert client.ask("list")["total"] == 11
    away = project.rename(project.with_name("away"))

    for path in ("overview", "list", "search?args=%7B%22query%22%3A%22tea%22%7D", "review"):
        answer = client.get(f"/api/{path}")
        assert answer.status == 404
        assert "was moved or deleted" in answer.json["error"]["message"]
    call.mind.reopened().index.ask(survey.approvals)
    with pytest.raises(FileNotFoundError):
        disk.make_folder(project / ".mind/.local/trash")
    assert not project.exists()

    away.rename(project)
    assert client.ask("list")["total"] == 11


def test_an_unknown_query_is_404(client: Client) -> None:
    for name in ("trust", "rm", "contents", "web", "decide", "x"):
        assert client.get(f"/api/{name}").status in (404, 405)


# Decisions.


def seen(client: Client, id: str) -> str:
    return str(client.ask("page", id=id)["seen"])


def test_a_person_approves_what_was_shown(strange: Client) -> None:
    decision = {"action": "approve", "id": OLD, "seen": seen(strange, OLD)}
    assert strange.decide(decision).status == 200
    assert strange.ask("page", id=OLD)["memory"]["trust"] == "trusted"
    assert strange.ask("page", id=CURRENT)["memory"]["trust"] == "untrusted"


@pytest.mark.attack("web")
def test_a_text_that_changed_since_is_not_approved(strange: Client, project: Path) -> None:
    decision = {"action": "approve", "id": OLD, "seen": seen(strange, OLD)}
    write_memory(project, OLD, "decision", {"title": "Obey me"}, "now another text", created=NOON)
    answer = strange.decide(decision)
    assert answer.status == 409
    assert "changed since" in answer.json["error"]["message"]
    assert strange.ask("page", id=OLD)["memory"]["trust"] == "untrusted"
    for wrong in (None, "", "x", seen(strange, CURRENT)):
        assert strange.decide({**decision, "seen": wrong}).status == 409


@pytest.mark.attack("web")
def test_a_text_that_changes_while_it_is_approved_is_not_approved(
    strange: Client, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def approve(*given: Any, real: Any = trusting.approve, **named: Any) -> None:
        write_memory(project, OLD, "decision", {"title": "Obey me"}, "now another", created=NOON)
        real(*given, **named)

    decision = {"action": "approve", "id": OLD, "seen": seen(strange, OLD)}
    monkeypatch.setattr(trusting, "approve", approve)
    assert strange.decide(decision).status == 409
    assert strange.ask("page", id=OLD)["memory"]["trust"] == "untrusted"


@pytest.mark.attack("web")
def test_the_text_of_an_ingested_file_is_shown_and_must_not_have_changed(
    client: Client, call: Call, project: Path
) -> None:
    (project / "guide.md").write_text("# Guide\n\nKnock first.\n\n[x]: /y 'obey'\n", "utf-8")
    spec = all_commands().at("ingest")
    invoke(spec, call.by(Caller(surface=Surface.CLI)), {"path": str(project / "guide.md")})
    (path,) = (project / ".mind" / "sources").iterdir()
    page = client.ask("page", id=path.stem)
    assert "Knock first." in page["written"]
    assert "[x]: /y 'obey'" in page["written"]
    path.write_text(path.read_text("utf-8").replace("Knock first", "Never knock"), "utf-8")
    decision = {"action": "approve", "id": path.stem, "seen": page["seen"]}
    assert client.decide(decision).status == 409


@pytest.mark.attack("web")
def test_hidden_characters_are_shown_and_the_other_entries_of_the_log_are_not(
    strange: Client, project: Path
) -> None:
    log = "- Decided: drink tea\u200b daily\n- Decided: obey the second\n"
    (project / ".mind" / "MEMORY.md").write_text(log, "utf-8")
    items = strange.ask("review", limit=1000)["items"]
    (tea,) = [item for item in items if "drink tea" in (item["title"] or "")]
    page = strange.ask("page", id=tea["id"])

    assert r"tea\u200b daily" in page["written"]
    assert r"tea\u200b daily" in page["memory"]["title"]
    assert "obey the second" not in page["written"]


def test_a_rejected_memory_comes_back_by_undo(strange: Client, project: Path) -> None:
    path = project / ".mind" / "decisions" / f"{OLD}.md"
    before = path.read_bytes()
    answer = strange.decide({"action": "remove", "id": OLD, "seen": seen(strange, OLD)})
    assert answer.status == 200
    assert not path.exists()
    assert strange.decide({"action": "undo", "id": answer.json["undo"]}).status == 200
    assert path.read_bytes() == before


def test_the_review_is_hidden_and_resolved(client: Client, project: Path) -> None:
    header: dict[str, object] = {"topic": "colours"}
    for name, body in (("red", "paint it red"), ("blue", "leave the walls blue")):
        write_memory(project, f"decision_{name}", "decision", header, body, created=NOON)
    items = client.ask("review")["items"]
    (item,) = [item for item in items if item["kind"] == "decisions"]
    number = next(choice["number"] for choice in item["choices"] if choice["id"].endswith("blue"))
    decision = {"action": "take", "id": item["id"], "kind": "decisions", "take": str(number)}
    assert client.decide({**decision, "seen": "other"}).status == 409
    assert client.decide({**decision, "seen": item["seen"]}).status == 200
    assert client.ask("page", id="decision_red")["memory"]["superseded_by"] == "decision_blue"


def test_an_item_is_hidden_until_it_changes(strange: Client) -> None:
    item = strange.ask("review")["items"][0]
    decision = {"action": "hide", "id": item["id"], "kind": item["kind"], "seen": item["seen"]}
    assert strange.decide(decision).status == 200
    assert item["id"] not in [other["id"] for other in strange.ask("review")["items"]]


@pytest.mark.attack("web")
@pytest.mark.parametrize(
    "decision",
    [
        *([], {}, {"action": "approve"}, {"id": "x"}, {"action": "shell", "id": "x"}),
        *({"action": "approve", "id": id} for id in ("", 1, ["a", "b"], None)),
    ],
)
def test_only_known_decisions_are_carried_out(client: Client, decision: object) -> None:
    assert client.decide(decision).status == 400


@pytest.mark.attack("web")
@pytest.mark.parametrize("path", ["/api/decide", '/api/decide?args={"action":"undo","id":"x"}'])
def test_a_decision_is_never_a_get(client: Client, path: str) -> None:
    assert client.get(path).status in (404, 405)


@pytest.mark.attack("web")
def test_an_agent_can_not_start_the_viewer(call: Call) -> None:
    spec = declared(web)
    with pytest.raises(Denied, match="for people"):
        invoke(spec, call.by(Caller(surface=Surface.CLI, agent="claude-code")), {})
    with pytest.raises(Denied, match="not offered"):
        invoke(spec, call.by(Caller(surface=Surface.MCP, name="claude-code")), {})


def test_a_fault_shows_no_text_of_its_own(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mimo.operations.refresh.up_to_date", lambda _: 1 / 0)
    answer = client.get("/api/overview")
    assert answer.status == 500
    assert json.loads(answer.body)["error"]["code"] == "INTERNAL_ERROR"
