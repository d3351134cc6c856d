"""Questions and texts are compared word by word, across languages."""

from functools import cache

import pytest

from mimo.index.embedding import Aligning, open_embedder
from mimo.index.embedding import alignment as module
from mimo.index.embedding.alignment import Aligner
from mimo.index.embedding.packaged import PackagedModel


@cache
def model() -> PackagedModel:
    return PackagedModel()


NOTES = [
    "삭제한 문서는 30일 동안 휴지통에 보관한다",
    "Lost laptops: sessions live in Redis, so an administrator ends them at once",
    "첨부 파일은 최대 200MB 까지 올릴 수 있다",
    "サーバーの証明書は毎月更新される",
]


@pytest.mark.req("004-26")
@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("deleted documents", 0),
        ("지운 문서", 0),
        ("관리자가 세션을 종료하나요", 1),
        ("maximum size of uploaded files", 2),
        ("업로드하는 파일의 크기", 2),
        ("how often is the certificate renewed", 3),
    ],
)
def test_the_words_of_a_question_correspond_to_the_note_that_it_means(
    question: str, note: int
) -> None:
    shares = model().correspondence(question, NOTES)

    assert shares.index(max(shares)) == note
    assert all(0 <= share <= 1 for share in shares)


def test_the_same_words_correspond_wholly() -> None:
    assert model().correspondence("deploy checklist", ["The checklist: deploy on Monday"]) == [
        pytest.approx(1, abs=1e-5)
    ]


def test_question_words_do_not_count_beside_others() -> None:
    text = ["어떻게 하나요: what and how"]

    assert model().correspondence("서버 인증서는 어떻게 하나요", text)[0] < 0.3
    assert model().correspondence("어떻게 하나요", text) == [pytest.approx(1, abs=1e-5)]


@pytest.mark.parametrize(("question", "text"), [("", "a note"), ("a question", ""), ("☃", "☃")])
def test_without_words_nothing_corresponds(question: str, text: str) -> None:
    assert model().correspondence(question, [text]) == [0.0]
    assert model().correspondence(question, []) == []


def test_answers_stay_the_same_when_kept_words_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = model().correspondence("지운 문서", NOTES)
    monkeypatch.setattr(module, "_MOST_WORDS", 8)
    aligner = Aligner(model()._tokens_of_word, model()._rows)

    for note in (*NOTES, NOTES[0]):
        aligner.correspondence("other words", [note])
    assert aligner.correspondence("지운 문서", NOTES) == pytest.approx(expected)


def test_the_packaged_model_compares_words() -> None:
    assert isinstance(open_embedder(), Aligning)
