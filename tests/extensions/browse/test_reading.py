"""The memory that is browsed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.extensions.browse.model import Place
from mimo.extensions.browse.reading import Reader
from mimo.rendering import terminal
from tests.conftest import descriptors_left
from tests.extensions.browse.conftest import run_command
from tests.features.review import test_trust_command


def test_a_change_of_settings_leaves_no_files_open(call: Call) -> None:
    reader = Reader(Call(call.mind.reopened()), run_command, lambda *_: None)
    opened = []
    for number in range(6):
        settings = f"[trash]\ndays = {10 + number}\n"
        (call.mind.folder / "config.toml").write_text(settings, encoding="utf-8")
        reader.page(Place(), 0, lambda: False)
        assert reader.has_changed()
        opened.append(descriptors_left())
    reader.close()

    assert max(opened[2:]) <= opened[1]


def test_words_of_a_query_are_highlighted_but_those_that_shape_it(call: Call, three: Path) -> None:
    reader = Reader(Call(call.mind.reopened()), run_command, lambda *_: None)
    place = Place(query="how is the tea drunk")
    (row,) = [row for row in reader.page(place, 0, lambda: False).rows if row.id == "tea"]
    lines = reader.preview(row, place.query, 80, lambda: False, counted=False)
    reader.close()

    marked = {
        line.plain[span.start : span.end]
        for line in lines
        for span in line.spans
        if span.style == terminal.MARK
    }
    assert marked == {"tea", "drunk"}


@pytest.mark.attack("unapproved text believed")
def test_a_text_that_changes_while_it_is_approved_is_not_approved(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_key(call: Call, *, last: Callable[[], None]) -> None:
        reader = Reader(call, test_trust_command.asked, lambda *_: None)
        read, _ = reader.to_approve("tea", 80)
        last()
        assert reader.approve(read) is None

    test_trust_command.test_a_text_that_changes_while_it_is_approved_is_not_approved(
        tmp_path, home, monkeypatch, by_key
    )
