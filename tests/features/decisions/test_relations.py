"""The relations that words name, and the links that callers list."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call
from mimo.errors import AmbiguousId, Invalid, NotFound
from mimo.features.decisions import relations
from mimo.features.notes.commands import add
from mimo.memory.model import Link
from mimo.memory.relations import Relation
from mimo.mind import Mind

LABELLED: dict[Relation, str] = {
    Relation.SUPERSEDES: (
        "supersedes, replaces, replaced the old, takes the place of, obsoletes, deprecates, "
        "makes obsolete, overrides, swaps out, retires, is the new version instead of, 대체, "
        "대체함, 대신함, 폐기, replaces entirely, obsoletes the decision, supplants, 교체함"
    ),
    Relation.REFINES: (
        "refines, improves, improves on, better version of, clarifies, makes more precise, "
        "narrows down, polishes, corrects details of, adds detail to, fine-tunes, 개선, 보완, "
        "구체화, 다듬음, improved version of, clarifies the scope of, is a more precise version "
        "of, revision of, cleans up, simplifies, makes stricter, 이전 결정을 개선, 수정함, "
        "보완하는 내용"
    ),
    Relation.CONTRADICTS: (
        "contradicts, conflicts with, disagrees with, is at odds with, opposes, incompatible "
        "with, goes against, inconsistent with, refutes, disproves, 모순, 충돌, 반대, 상충됨, "
        "contradiction, in conflict with, is opposed to, argues the opposite of, cannot hold "
        "together with, is not compatible with, 서로 모순됨, 와 충돌"
    ),
    Relation.BUILDS_ON: (
        "builds on, based on, extends, derived from, depends on earlier work in, inspired by, "
        "expands, grows out of, uses as foundation, leans on, continues the idea of, 기반, "
        "바탕으로 함, 확장, 에서 파생, builds upon the idea of, an extension to, takes "
        "inspiration from, presupposes, rooted in, is founded on, made possible by, 에 기반함, "
        "이를 확장"
    ),
    Relation.DEBATES: (
        "debates, discusses, argues with, weighs alternatives to, questions, challenges, "
        "considers pros and cons of, raises doubts about, 토론, 논쟁, 의문 제기, 논의, raises "
        "questions about, discussion of, argument over, casts doubt on, tradeoffs of, is an "
        "alternative to, 에 대한 논의, 대안 검토"
    ),
    Relation.SYNTHESIZES: (
        "synthesizes, combines, merges, summarizes, brings together, consolidates, unifies, "
        "distils, aggregates, 종합, 요약, 통합, 합침, a synthesis of, merge of, summarises, "
        "roll-up of, digest of, ties together, 내용을 요약, 통합본"
    ),
    Relation.IMPLEMENTS: (
        "implements, carries out, puts into practice, realizes, fulfils, is the code for, "
        "executes the plan, delivers, 구현, 실행함, 적용, 실현, implementing, puts in place, is "
        "an implementation of, carries through, turns into code, ships, 구현체, 계획을 실행"
    ),
    Relation.OUTCOME_OF: (
        "outcome of, result of, consequence of, caused by, came out of, was produced by, effect "
        "of, resulted from, 결과, 의 결과, 로 인한, 결과물, as a result of, outcome, the "
        "consequence of, what happened because of, learned from, spawned by, 작업의 결과, 장애로 "
        "인한"
    ),
    Relation.FOLLOWS: (
        "follows, after, comes after, next step after, later than, temporal, happened after, "
        "subsequent to, then, 이후, 다음, 후속, 뒤이음, follow up, comes right after, is the "
        "next step, next phase of, later, following, 그 다음 단계, 이후 작업"
    ),
    Relation.RELATES_TO: (
        "relates to, related, see also, similar to, about, mentions, is connected with, goes "
        "with, same topic, reminds me of, bananas, xyzzy, blocks, has the same author as, 관련, "
        "관련됨, 참고, 비슷함, 같은 주제, is related to, in connection with, has something in "
        "common with, cf., same component as, assigned to, coffee, see, child of, depends partly "
        "on the weather, 연관 있음, 담당자"
    ),
}
"""Phrases labelled by hand before the aliases were written (140), and others after that (83)."""


def meanings(call: Call) -> list[tuple[str, Relation, Relation]]:
    """Returns each labelled phrase with its label and the relation that it is mapped to."""
    return [
        (words, right, relations.meant(call, words))
        for right, listed in LABELLED.items()
        for words in listed.split(", ")
    ]


@pytest.mark.req("004-59")
def test_words_for_a_relation_are_mapped_to_it(call: Call) -> None:
    """Of 223 phrases 213 are mapped to their label; most others are `relates_to`."""
    mapped = meanings(call)

    right = [words for words, label, relation in mapped if relation is label]
    misleading = [
        (words, relation)
        for words, label, relation in mapped
        if relation not in (label, Relation.RELATES_TO)
    ]
    assert len(mapped) == 223
    assert len(right) >= 211
    assert misleading == [("argues the opposite of", Relation.DEBATES)]


@pytest.mark.req("004-59")
def test_other_words_are_mapped_by_meaning(call: Call) -> None:
    """The table has none of these words, nor their beginnings."""
    assert relations.meant(call, "making it clearer") is Relation.REFINES
    assert relations.meant(call, "chronologically later") is Relation.FOLLOWS
    assert relations.meant(call, "bananas") is Relation.RELATES_TO


class _Sure:
    """An embedder for which everything means what `supersedes` does."""

    model = "sure:1"

    def encode(self, text: str) -> bytes:
        near = "replaces" in text or "unheard" in text
        return bytes([127, 0, 0, 0] if near else [0, len(text) % 90, 90, 0])

    def encode_many(self, texts: Sequence[str]) -> list[bytes]:
        return [self.encode(text) for text in texts]


@pytest.mark.req("004-59")
def test_meaning_alone_never_makes_a_superseding_link(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Mind, "embedder", _Sure())

    assert relations.meant(call, "unheard of words") is Relation.RELATES_TO
    assert relations.meant(call, "replaces") is Relation.SUPERSEDES


class _Broken(_Sure):
    def encode(self, text: str) -> bytes:
        raise OSError("no model")


@pytest.mark.parametrize("embedder", [None, _Broken()])
@pytest.mark.req("004-59")
def test_the_table_works_without_a_model(
    call: Call, monkeypatch: pytest.MonkeyPatch, embedder: Any
) -> None:
    monkeypatch.setattr(Mind, "embedder", embedder)

    assert relations.meant(call, "based on") is Relation.BUILDS_ON
    assert relations.meant(call, "making it clearer") is Relation.RELATES_TO


REPLACED = """superseded by, superseded_by, supersededBy, is replaced by, was replaced with,
obsolete, has been superseded, deprecated, 대체됨, 에 의해 대체됨, 대체되었음, 폐기된"""


@pytest.mark.parametrize("words", REPLACED.split(","))
@pytest.mark.req("004-59")
def test_words_for_being_superseded_are_refused(call: Call, words: str) -> None:
    """Such a link belongs into the newer memory; reversed, it would hide that one."""
    with pytest.raises(Invalid, match="would make this memory the one that is replaced"):
        relations.link(call, "x", words)


TURNED = """is implemented by, refined by, followed by, before, leads to, causes, replaces part of,
does not implement, never replaces, not superseded, 구현됨, 대체하지 않음, 대체로 비슷,
기존 결정을 대체"""


@pytest.mark.parametrize("words", [words.strip() for words in TURNED.split(",")])
@pytest.mark.req("004-59")
def test_words_for_the_opposite_direction_become_relates_to(call: Call, words: str) -> None:
    made = relations.link(call, "x", words)

    assert (made.type, made.given) == ("relates_to", words)


@pytest.mark.req("004-59")
def test_given_words_are_kept(call: Call) -> None:
    assert relations.link(call, "x", "based  on", confidence=1) == Link(
        to="x", type="builds_on", given="based on", confidence=1.0
    )
    for words in ("builds_on", "Builds on", "builds-on"):
        assert relations.link(call, "x", words) == Link(to="x", type="builds_on")
    assert relations.link(call, "x", " ") == Link(to="x")


@pytest.mark.parametrize(("words", "confidence"), [("x" * 201, None), ("refines", 1.5)])
def test_an_invalid_link_is_refused(call: Call, words: str, confidence: float | None) -> None:
    with pytest.raises(Invalid):
        relations.link(call, "x", words, confidence=confidence)


@pytest.fixture
def three(call: Call) -> list[str]:
    """The ids of three memories."""
    texts = ("Use JWT", "Use cookies", "Rotate keys")
    return [add(call, text, type="decision").id for text in texts]


@pytest.mark.req("004-17")
def test_links_may_be_listed_in_each_form(call: Call, three: list[str]) -> None:
    jwt, cookies, keys = three
    given = [
        {"to": jwt, "type": "supersedes"},
        {"to_id": cookies[-6:], "relationship": "based on", "confidence": 0.8, "tags": ["auth"]},
        f"implements: {keys}",
        jwt,
        {"to": jwt, "to_id": jwt, "type": None},
        f"replaces:{jwt}",
    ]

    assert relations.links_of(call, given) == (
        Link(to=jwt, type="supersedes"),
        Link(to=cookies, type="builds_on", given="based on", confidence=0.8),
        Link(to=keys, type="implements"),
        Link(to=jwt),
    )
    assert relations.links_of(call, []) == ()


@pytest.mark.req("004-17")
def test_all_missing_targets_are_reported(call: Call, three: list[str]) -> None:
    with pytest.raises(NotFound, match="Memory not found: `decision_use_jvt`") as missing:
        relations.links_of(call, [three[0], "decision_use_jvt"])
    assert missing.value.details["nearest"]

    with pytest.raises(NotFound, match="`nothing`, `nowhere`") as several:
        relations.links_of(call, ["nothing", three[0], {"to": "nowhere"}, "nothing"])
    assert several.value.details["ids"] == ["nothing", "nowhere"]

    with pytest.raises(AmbiguousId):
        relations.links_of(call, ["decision_use"])


WRONG: list[Any] = [
    "",
    "refines:",
    7,
    None,
    ["x"],
    {},
    {"to": ""},
    {"to": 7},
    {"to": "x", "to_id": "y"},
    {"to": "x", "type": 7},
    {"to": "x", "confidence": "high"},
    {"to": "x", "confidence": True},
    {"to": "x", "reason": "why"},
]


@pytest.mark.parametrize("given", WRONG, ids=str)
@pytest.mark.req("004-17")
def test_an_item_that_is_not_a_link_is_refused(call: Call, given: Any) -> None:
    with pytest.raises(Invalid, match="is not a link") as error:
        relations.links_of(call, [given])
    assert error.value.details == {"field": "links"}


def test_the_page_on_links_has_every_type_with_its_meaning() -> None:
    page = (Path(__file__).parents[3] / "docs" / "graph.md").read_text(encoding="utf-8")

    for relation in Relation:
        assert f"| `{relation}` | {relation.meaning} |" in page
