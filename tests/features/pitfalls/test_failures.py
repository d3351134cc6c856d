"""Failed decisions as edges."""

import pytest

from mimo.features.pitfalls.failures import MOST_HOLDING, as_edge
from tests.features.pitfalls.examples import edge


def names(title, successor="", *, held=1, text=None):
    holding = lambda _, limit: min(held, limit)  # noqa: E731
    result = as_edge(edge(title=title), "FAILED", successor, holding, text)
    return result.names if result else None


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Use PayPal for card payments", ("paypal",)),
        ("use paypal for card payments", ("paypal",)),
        ("Hold a bike with a Redis lock", ("redis",)),
        ("Cache whole pages in memory", ()),
        ("Keep the last 100 lines", ()),
        ("Deploy with k3s", ("k3s",)),
    ],
)
def test_rare_and_capitalised_words_are_names(title, expected):
    assert names(title) == expected


def test_words_of_the_successor_are_no_names():
    assert names("Kafka through PayPal", "Kafka through Stripe") == ("paypal",)


def test_a_word_of_many_memories_is_not_a_name():
    assert names("Use PayPal", held=MOST_HOLDING) == ("paypal",)
    assert names("Use PayPal", held=MOST_HOLDING + 1) == ()


def test_with_a_text_only_its_words_are_names():
    title = "Use PayPal and Kafka"

    assert names(title, text="import paypal_sdk") == ("paypal",)
    assert names(title, text="nothing of it") == ()
    assert set(names(title)) == {"paypal", "kafka"}


def test_a_successor_with_all_words_leaves_nothing_to_warn_of():
    assert names("Use PayPal", "Use PayPal again, with webhooks") is None


def test_the_warning_names_the_successor():
    result = as_edge(edge(title="Use PayPal"), "FAILED: slow", "Use Stripe", lambda *_: 1)

    assert result is not None
    assert result.workaround == "FAILED: slow; superseded by Use Stripe"
