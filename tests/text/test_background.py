"""The packaged list of how rare stems are, and the script that counts them."""

import math
from pathlib import Path

import pytest

import mimo
from mimo.text.background import PAIR, SHORT, UNKNOWN, rarity
from scripts.build_background import FEWEST, STRETCH, frequent, listed

LIST = Path(mimo.__file__).parent / "model" / "background.txt"


def packaged() -> dict[str, float]:
    lines = LIST.read_text(encoding="ascii").splitlines()
    return {stem: int(tenths) / 10 for stem, _, tenths in (line.partition("\t") for line in lines)}


def test_every_stem_of_the_list_is_found():
    rarities = packaged()

    assert len(rarities) > 1_000
    assert {stem: rarity(stem) for stem in rarities} == rarities


def test_the_frequent_stems_are_those_of_the_list():
    lines = LIST.read_text(encoding="ascii").splitlines()

    assert LIST.with_name("frequent.txt").read_text(encoding="ascii") == frequent(lines)


@pytest.mark.parametrize("stem", ["", "0", "zzzzzz", "aa!", "\U0010ffff\U0010ffff", "\ud800a"])
def test_any_other_stem_is_unknown_or_short(stem):
    assert stem not in packaged()
    assert rarity(stem) == (SHORT if len(stem) < 2 else UNKNOWN)


def test_numbers_and_single_characters_have_a_rarity_of_their_own():
    assert {rarity(stem) for stem in ("7", "2026", "x", "é")} == {SHORT}


def test_common_words_are_less_rare_than_names():
    assert rarity("the") < rarity("need") < rarity("server") < rarity("stripe") < UNKNOWN


def test_the_list_counts_the_stretches_that_hold_a_stem():
    often, seldom = "tea " * STRETCH * FEWEST, "cup " * STRETCH * (FEWEST - 1)

    lines = listed([often, f"---\ntitle: {often}\n---\n{seldom}"])

    assert lines == [f"tea\t{round(10 * -math.log(FEWEST / (2 * FEWEST - 1)))}\n"]


@pytest.mark.parametrize("pair", ["로그", "認証", "て"])
def test_pairs_of_characters_are_parts_of_words_and_not_rare_names(pair):
    assert rarity(pair) == PAIR
