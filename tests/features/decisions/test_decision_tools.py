"""The tools, the fields of a memory and the release fulfil the design of MAMA 1.1."""

from pathlib import Path

import pytest

from mimo import __version__
from mimo.call import Call
from mimo.call.table import all_commands
from mimo.features.decisions.commands import decision
from mimo.features.search.commands import search
from mimo.server.tools import described

ROOT = Path(__file__).parents[3]
TOOLS = {
    "save/decision",
    "save/checkpoint",
    "save/insight",
    "load/checkpoint",
    "load/context",
    "search/by_topic",
    "search/by_context",
    "search/recent",
    "evolve/outcome",
    "evolve/supersede",
}
OLD = (
    "save_decision recall_decision suggest_decision list_decisions update_outcome save_checkpoint"
    " load_checkpoint"
).split()


@pytest.mark.req("004-01")
@pytest.mark.req("004-02")
def test_ten_tools_in_four_domains() -> None:
    tools = all_commands().tools()
    domains = ("save/", "load/", "search/", "evolve/")
    assert {name for name in tools if name.startswith(domains)} == TOOLS
    assert described(tools["save/decision"], "slash").name == "save/decision"


@pytest.mark.req("004-03")
@pytest.mark.parametrize("name", sorted(TOOLS))
def test_each_description_names_uses_and_alternatives(name: str) -> None:
    description = described(all_commands().tools()[name], "slash").description or ""
    use, avoid = description.partition("Use when:")[2].split("Don't use for:")
    assert use.strip()
    instead = {word.rstrip(".,;)") for word in avoid.split() if "/" in word}
    assert instead & (TOOLS - {name}), avoid


DECISIONS = {
    "jwt": ("로그인", "세션 대신 JWT 토큰을 사용한다", "서버 상태가 없다"),
    "lunch": ("점심", "직원 식사는 매일 무료로 제공한다", "모두가 좋아한다"),
    "billing": ("결제", "고객에게 매달 요금을 청구한다", "예측이 쉽다"),
    "cache": ("cache", "Keep sessions in Redis", "Two servers share them"),
    "car": ("transport", "We rent a car for deliveries", "Parking is cheap"),
    "doctor": ("health", "Call a physician when a worker is ill", "Safety comes first"),
}


QUESTIONS = {
    # No word in common: only the meaning leads there.
    "doctor of sick employees": "doctor",
    "automobile hire": "car",
    # Other forms of the words, in another order.
    "토큰이 쓰이는 이유": "jwt",
    "요금은 고객들이 언제 내나": "billing",
    "공짜로 주는 식사": "lunch",
    # Korean questions about English decisions.
    "배송에는 어떤 자동차를 쓰나요": "car",
    "직원이 아프면 누구에게 전화하지": "doctor",
    # English questions about Korean decisions.
    "how are customers charged every month": "billing",
    "free meals for the staff": "lunch",
    "why are there tokens instead of sessions": "jwt",
}


@pytest.mark.req("004-26")
def test_english_and_korean_questions_find_what_other_words_state(call: Call) -> None:
    names = {decision(call, *parts).id: name for name, parts in DECISIONS.items()}

    for question, expected in QUESTIONS.items():
        assert names[search(call, question).results[0].id] == expected, question


@pytest.mark.req("004-70")
@pytest.mark.req("004-71")
@pytest.mark.req("004-74")
def test_the_release_comes_with_a_guide_that_names_every_old_tool() -> None:
    guide = (ROOT / "docs" / "migrating-from-mama.md").read_text(encoding="utf-8")
    for name in (*OLD, *TOOLS, "mind import mama", "--rollback"):
        assert name in guide, name
    assert __version__ == "1.1.0"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "docs/migrating-from-mama.md" in readme
    assert "mind save decision" in readme


def test_saving_a_decision_reads_the_files_of_its_topic_alone(call: Call, monkeypatch) -> None:
    old = decision(call, "login", "Use JWT", "No server state")
    monkeypatch.setattr(call.mind.store, "walk", lambda: pytest.fail("it looked at all files"))

    assert decision(call, "login", "Use cookies", "Simple").supersedes == (old.id,)


def test_a_decision_to_which_an_editor_gave_another_topic_is_not_superseded(call: Call) -> None:
    old = decision(call, "login", "Use JWT", "No server state")
    path = Path(call.mind.project.root, old.file)
    path.write_text(path.read_text("utf-8").replace("topic: login", "topic: other"), "utf-8")

    assert decision(call, "login", "Use cookies", "Simple").supersedes == ()


def test_a_decision_supersedes_a_new_document_on_its_topic(call: Call) -> None:
    call.mind.store.include = ("docs/*.md",)
    decision(call, "logs", "Log as JSON", "Machines read them")
    path = call.mind.project.root / "docs" / "login.md"
    path.parent.mkdir()
    path.write_text("---\ntype: decision\ntopic: login\n---\nUse JWT\n", encoding="utf-8")

    assert decision(call, "login", "Use cookies", "Simple").supersedes == ("docs.login",)
