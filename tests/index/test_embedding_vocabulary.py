"""A piece has the same id in the lines and in the table."""

import pytest

from mimo.index.embedding.wordpiece import FOLDER, SCANS, Vocabulary

LINES = (FOLDER / "vocab.txt").read_bytes()
PIECES = LINES.decode().split("\n")


@pytest.mark.parametrize("number", [0, 1, 2, len(PIECES) // 2, len(PIECES) - 1])
def test_the_id_of_a_piece_is_the_number_of_its_line_from_the_first_time_on(number: int) -> None:
    vocabulary = Vocabulary(LINES)

    assert {vocabulary.find(PIECES[number]) for _ in range(2 * SCANS)} == {number}


@pytest.mark.parametrize("piece", ["", "no such piece", "##", PIECES[5][:-1] + "\x00", "☃☃"])
def test_a_text_that_is_not_a_line_has_no_id(piece: str) -> None:
    vocabulary = Vocabulary(LINES)

    assert {vocabulary.find(piece) for _ in range(2 * SCANS)} == {
        PIECES.index(piece) if piece in PIECES else None
    }


def test_every_piece_is_found() -> None:
    vocabulary = Vocabulary(LINES)

    assert [vocabulary.find(piece) for piece in PIECES] == list(range(len(PIECES)))
