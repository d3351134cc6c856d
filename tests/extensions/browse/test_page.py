"""The docs page of the browser, its picture, and its keys."""

import re
from pathlib import Path

from mimo.extensions.browse.app import Browser, Query
from mimo.extensions.browse.model import KEYS, labels_within

ROOT = Path(__file__).parents[3]


def test_the_page_has_every_key():
    text = (ROOT / "docs/browse.md").read_text("utf-8")
    table = text.partition("## Keys")[2].partition("\n\nThe mouse")[0]
    rows = re.findall(r"^\| `(.+)` \| (.+) \|$", table, re.MULTILINE)

    assert rows == [(key.symbols, key.help) for key in KEYS]


def test_the_picture_is_small_and_refers_to_no_other_host():
    picture = (ROOT / "docs/images/browse.svg").read_text("utf-8")

    assert len(picture) < 100_000
    assert "url(http" not in picture
    assert "JWT" in picture


def test_each_key_has_one_action_that_exists():
    names = [name for key in KEYS for name in key.names.split(",")]
    actions = [*(key.action for key in KEYS), "leave_query"]

    assert len(names) == len(set(names))
    assert all(hasattr(Browser, f"action_{action.partition('(')[0]}") for action in actions)
    assert Query.BINDINGS


def test_the_last_line_names_help_and_quit_however_narrow_it_is():
    for width in range(20, 200):
        labels = labels_within(width)
        assert [label.key.action for label in labels][-2:] == ["help", "quit"]
        assert width < 40 or labels[-1].end <= width
    assert len(labels_within(200)) == len([key for key in KEYS if key.label])
