"""The viewer and its report have the zone of the other surfaces."""

import pytest

from mimo.call import Call
from mimo.extensions.web import answers
from mimo.features.notes.commands import add
from mimo.features.upkeep.commands import config
from tests.conftest import Clock


@pytest.fixture
def seoul(call: Call, clock: Clock) -> Call:
    """A memory of a user in Seoul, with a note of each side of the last midnight there."""
    clock.forward(hours=-1)
    add(call, "The deploy of Friday went well")
    clock.forward(hours=1)
    add(call, "The deploy of Saturday began")
    config(call, "time.zone", "Asia/Seoul")
    return Call(call.mind.reopened())


def test_a_browser_and_a_report_get_the_name_of_the_zone(
    seoul: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert answers.overview(seoul).zone == "Asia/Seoul"
    config(seoul, "time.zone", "local")
    monkeypatch.setattr("mimo.zones.system_name", lambda _: "Europe/Berlin")
    assert answers.overview(Call(seoul.mind.reopened())).zone == "Europe/Berlin"


def test_the_months_of_the_viewer_are_those_of_its_lists(seoul: Call) -> None:
    (seoul.mind.folder / "facts").mkdir(exist_ok=True)
    for hour in (14, 15):  # Midnight in Seoul is between the two.
        text = f"---\nid: fact_{hour}\ncreated: 2026-10-31T{hour}:30:00Z\n---\nWritten then\n"
        (seoul.mind.folder / "facts" / f"fact_{hour}.md").write_text(text, encoding="utf-8")

    months = answers.overview(seoul).months

    assert months == {"2026-10": 1, "2026-11": 3}
    for month, number in months.items():
        assert answers.list_(seoul, time_filter=month).total == number


@pytest.mark.parametrize("created", ["9999-12-31T23:59:00Z", "0001-01-01T00:00:00Z"])
def test_a_memory_at_an_end_of_the_calendar_has_a_month(seoul: Call, created: str) -> None:
    (seoul.mind.folder / "facts").mkdir(exist_ok=True)
    text = f"---\nid: fact_end\ntype: fact\ncreated: {created}\n---\nThe end\n"
    (seoul.mind.folder / "facts" / "fact_end.md").write_text(text, encoding="utf-8")

    assert answers.overview(seoul).months[created[:7]] == 1
