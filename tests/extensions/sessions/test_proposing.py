"""`mind sessions propose`, `accept` and `reject`, and proposals in a review."""

from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.errors import Invalid, NotFound
from mimo.extensions.browse.app import Browser
from mimo.extensions.sessions import drafts, store
from mimo.extensions.sessions.indexing import sessions_of
from mimo.extensions.sessions.model import Facts, Role, Turn
from mimo.extensions.sessions.reading import project_of
from mimo.features.review import Waiting, waiting
from tests.conftest import NOW
from tests.extensions.browse.conftest import Screen, browse
from tests.extensions.web.requests import Client
from tests.kit import ask, do, put, run

RULE = "prices are integers in cents, never floats"
ON = '[sessions]\nenabled = "on"\npropose = "on"\n'


@pytest.fixture
def user_call(home: Path, project: Path, request: pytest.FixtureRequest) -> Call:
    """A memory of a user who turned sessions and proposals on, with one session."""
    put(home / "config.toml", ON)
    call: Call = request.getfixturevalue("call")
    say(call, "11111111", RULE, "I prefer small functions, one task each")
    return call


def say(call: Call, id: str, *texts: str, days: float = -1, root: str = "") -> None:
    """Keeps a session of the project, or of another one."""
    root = root or str(call.mind.project.root)
    at = NOW + timedelta(days=days)
    turns = [Turn(role=Role.USER, text=text, at=at) for text in texts]
    facts = Facts(client="claude-code", native_id=id, cwd=root)
    with sessions_of(call.mind).store.writing() as sql:
        key = store.key_of(sql, facts, make=True) or 0
        store.put(sql, key, turns, 0, {})
        store.sum_up(sql, key, facts, project_of(root), at=0, copies=0)


def texts(call: Call) -> list[str]:
    return [row.text for row in do(call, "sessions propose").proposals]


def first(call: Call) -> str:
    return str(do(call, "sessions propose").proposals[0].id)


def test_an_accepted_proposal_is_an_approved_memory_with_its_source(user_call: Call) -> None:
    id = first(user_call)
    row = do(user_call, "sessions accept", ids=[id])
    shown = do(user_call, "show", id=row.ids[0])
    assert shown.source == "session:cc-11111111#1"
    assert shown.trust is None or shown.trust == "trusted"
    assert texts(user_call) == ["I prefer small functions, one task each"]
    with pytest.raises(NotFound):
        do(user_call, "sessions accept", ids=[id])


@pytest.mark.parametrize("text", [None, "Prices are in cents"])
@pytest.mark.parametrize("removal", ["undo", "rm"])
def test_a_proposal_waits_again_once_its_memory_is_gone(
    user_call: Call, text: str | None, removal: str
) -> None:
    id = first(user_call)
    (saved,) = do(user_call, "sessions accept", ids=[id], text=text).ids
    assert len(texts(user_call)) == 1
    do(user_call, removal, **({"id": saved} if removal == "rm" else {}))
    assert do(user_call, "list").memories == ()
    assert len(texts(user_call)) == 2
    assert first(user_call) == id


def test_a_proposal_is_saved_for_all_projects(user_call: Call) -> None:
    id = first(user_call)
    (file,) = do(user_call, "sessions accept", ids=[id], user=True).files
    assert Path(file).exists()
    assert do(user_call, "list").memories == ()
    (row,) = do(user_call, "list", user=True).memories
    assert row.title == "Prices are integers in cents, never floats"
    assert len(texts(user_call)) == 1
    do(user_call, "undo", user=True)
    assert do(user_call, "list", user=True).memories == ()
    assert first(user_call) == id


def test_what_is_said_in_another_project_counts_as_repeated(
    user_call: Call, tmp_path: Path
) -> None:
    say(user_call, "22222222", "please use pnpm, not npm in the monorepo")
    say(user_call, "33333333", "again: pnpm, not npm", root=str(tmp_path / "other"))
    assert do(user_call, "sessions propose").proposals[0].sessions == 2
    reasons = [item.why for item in waiting(user_call, (Waiting.PROPOSAL,))]
    assert "in 2 sessions, also of other projects (prefer)" in reasons


def test_an_accepted_proposal_may_get_other_words(user_call: Call) -> None:
    row = do(
        user_call,
        "sessions accept",
        ids=[first(user_call)],
        text="Prices are in cents",
        type="decision",
    )
    shown = do(user_call, "show", id=row.ids[0])
    assert (shown.title, shown.type) == ("Prices are in cents", "decision")
    say(user_call, "22222222", "always run the linter before a commit")
    ids = [proposal.id for proposal in drafts.waiting(user_call)]
    with pytest.raises(Invalid):
        do(user_call, "sessions accept", ids=ids, text="x")


def test_what_a_memory_states_already_is_not_proposed(user_call: Call) -> None:
    do(user_call, "add", content="Prices are integers in cents, never floats.")
    assert texts(user_call) == ["I prefer small functions, one task each"]


def test_a_rejected_proposal_comes_again_only_if_it_is_said_again(user_call: Call) -> None:
    do(user_call, "sessions reject", ids=[first(user_call)])
    assert len(texts(user_call)) == 1
    say(user_call, "22222222", "prices stay integers in cents, never floats please", days=1)
    assert len(texts(user_call)) == 2


def test_never_again_is_for_good(user_call: Call) -> None:
    do(user_call, "sessions reject", ids=[first(user_call)], never=True)
    say(user_call, "22222222", "prices stay integers in cents, never floats please", days=1)
    assert len(texts(user_call)) == 1


def test_a_review_has_the_proposals_for_the_user_alone(user_call: Call) -> None:
    items = waiting(user_call, (Waiting.PROPOSAL,))
    assert [item.file for item in items] == ["session:cc-11111111#1", "session:cc-11111111#2"]
    agent = do(user_call, "review", "claude-code")
    assert agent.total == 0


def test_a_review_has_no_proposals_unless_the_user_asks_for_them(
    home: Path, project: Path, request: pytest.FixtureRequest
) -> None:
    put(home / "config.toml", '[sessions]\nenabled = "on"\n')
    call: Call = request.getfixturevalue("call")
    say(call, "11111111", RULE)
    assert len(texts(call)) == 1
    assert waiting(call) == ()


def test_nothing_is_proposed_while_sessions_are_off(call: Call) -> None:
    with pytest.raises(Invalid, match="is off"):
        do(call, "sessions propose")
    assert waiting(call) == ()


def test_each_key_of_a_review_decides_on_a_proposal(
    user_call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(user_call, "22222222", "always run the linter before a commit", "we never push on Fridays")
    keys = iter("aexn")
    monkeypatch.setattr("click.getchar", lambda echo=False: next(keys))
    monkeypatch.setattr("click.edit", lambda text, **_: f"{text}!")
    monkeypatch.setattr("mimo.cli.main.is_terminal", lambda _: True)
    out = run(user_call, "review").out
    assert "4 resolved; nothing is left" in out
    assert "a accept   e change   x reject   n never again" in out
    titles = [row.title for row in do(user_call, "list").memories]
    assert len(titles) == 2
    assert any(title.endswith("!") for title in titles)
    assert drafts.waiting(user_call) == []


def test_a_session_has_its_own_proposals(user_call: Call) -> None:
    say(user_call, "22222222", "always run the linter before a commit")
    rows = do(user_call, "sessions propose", session="cc-22222222").proposals
    assert [row.source for row in rows] == ["session:cc-22222222#1"]
    assert drafts.proposals_for(user_call.mind, "22222222") == [
        "Always run the linter before a commit (session:cc-22222222#1)"
    ]
    assert (
        drafts.proposals_for(user_call.mind, "")
        == drafts.proposals_for(user_call.mind, "none")
        == []
    )


def test_other_projects_propose_nothing_here(user_call: Call) -> None:
    with sessions_of(user_call.mind).store.writing() as sql:
        sql.execute("UPDATE sessions SET project = '/elsewhere'")
        sql.execute("UPDATE sessions SET revision = revision + 1")
    assert texts(user_call) == []
    assert ask(user_call, "sessions", "propose")[1]["proposals"] == []


@pytest.mark.parametrize(
    ("action", "titles"),
    [("accept", ["Prices are in cents"]), ("reject", []), ("never", [])],
)
def test_the_viewer_decides_on_a_proposal(user_call: Call, action: str, titles: list[str]) -> None:
    client = Client(user_call)
    item = client.ask("review", kinds=["proposal"])["items"][0]
    decision = {"action": action, "id": item["id"], "kind": "proposal", "seen": item["seen"]}
    assert client.decide({**decision, "seen": "other"}).status == 409
    assert client.decide({**decision, "text": "Prices are in cents"}).status == 200
    assert [row.title for row in do(user_call, "list").memories] == titles
    assert len(client.ask("review", kinds=["proposal"])["items"]) == 1


def test_the_browser_decides_on_proposals_by_single_keys(user_call: Call) -> None:
    async def play(screen: Screen) -> None:
        await screen.press("r")
        shown = await screen.until("Prices are integers in cents")
        assert "proposal" in shown
        await screen.press("a")
        await screen.until("saved")
        await screen.press("x")
        await screen.until("nothing to review")

    browse(user_call, play)
    assert len(do(user_call, "list").memories) == 1


def test_the_browser_changes_a_proposal_in_the_editor(
    user_call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Browser, "suspend", lambda _: nullcontext())
    monkeypatch.setattr("click.edit", lambda text, **_: f"{text}, ever\n")

    async def play(screen: Screen) -> None:
        await screen.press("r")
        await screen.until("e  change")
        await screen.press("e")
        await screen.until("1/1")

    browse(user_call, play)
    (row,) = do(user_call, "list").memories
    assert row.title == "Prices are integers in cents, never floats, ever"
