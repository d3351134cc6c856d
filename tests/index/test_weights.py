"""The weight of a unit by words: the plain BM25 of its tokens and its heading's."""

from collections import Counter
from math import log

import pytest

from mimo.index.index import Index
from mimo.index.rows import Change
from mimo.index.schema import BM25
from tests.index.conftest import Make

FILLING = " oats rye barley wheat malt hops yeast"


def weights(index: Index, *terms: str) -> dict[str, float]:
    """Returns the weight of each unit with a term, by its tokens."""
    query = (
        f"SELECT unpacked(u.tokens), {BM25} FROM words JOIN units u ON u.key = words.rowid"
        " WHERE words MATCH ?"
    )
    return dict(index.ask(lambda sql: sql.execute(query, (" OR ".join(terms),)).fetchall()))


def expected(texts: dict[str, list[str]], *terms: str) -> dict[str, float]:
    """Returns the BM25 of each text that has a term, from its tokens."""
    mean = sum(map(len, texts.values())) / len(texts)
    weighed = {}
    for name, tokens in texts.items():
        total = 0.0
        for term in terms:
            held, times = sum(term in each for each in texts.values()), Counter(tokens)[term]
            rarity = max(1e-6, log((len(texts) - held + 0.5) / (held + 0.5)))
            part = 0.3 + 0.9 * min(len(tokens), 1_023) / mean
            total -= rarity * times * 2.2 / (times + part)
        if total:
            weighed[name] = total
    return weighed


@pytest.fixture
def changes(change_of: Make) -> list[Change]:
    """Texts with a word once and often, of several lengths; one has headings, one is very long."""
    repeated = " ".join("tea" for _ in range(9))
    return [
        *(change_of(f"n{n}", f"note{n}{FILLING * (n + 1)}") for n in range(5)),
        change_of("once", f"tea{FILLING * 2}"),
        change_of("often", f"{repeated} milk{FILLING}"),
        change_of("titled", f"tea and milk{FILLING}", title="Tea at noon", topic="tea"),
        # Fifty words of a unit, each of which has 33 tokens.
        change_of("long", " ".join("tea" + ".x" * 32 for _ in range(50))),
    ]


def test_a_weight_is_the_bm25_of_the_tokens_and_the_heading(
    index: Index, changes: list[Change]
) -> None:
    removal = Change(path=changes[0].path, stamp=None)
    for change in changes:
        index.apply([change], now_ns=1)
    index.apply([removal, changes[6]], now_ns=2)

    selected = (
        "SELECT unpacked(u.tokens), u.start, m.title_tokens || ' ' || m.topic_tokens FROM units u"
        " JOIN memories m ON m.key = u.memory"
    )
    rows = index.ask(lambda sql: sql.execute(selected).fetchall())
    texts = {
        tokens: f"{'' if start else heading} {tokens}".split() for tokens, start, heading in rows
    }
    weighed = weights(index, "tea", "milk")
    assert len(weighed) >= 4
    assert max(map(len, texts.values())) > 1_023
    assert weighed == pytest.approx(expected(texts, "tea", "milk"))


def test_very_short_texts_have_finite_weights(index: Index, change_of: Make) -> None:
    """At three tokens in the mean, the part of BM25 that FTS5 adds would be zero."""
    texts = ["tea", "tea milk rye", "rye hops malt barley oats", "hops", "malt", "oats barley"]
    for mean in range(1, 7):
        changes = [change_of(f"n{n}", text) for n, text in enumerate(texts[:mean])]
        index.apply(changes, now_ns=mean)
        weighed = weights(index, "tea", "rye")
        assert all(-10 < weight <= 0 for weight in weighed.values()), mean
        assert weighed.get("tea milk rye", -10) < weighed["tea"], mean
