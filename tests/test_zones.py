"""The zone of shown times: the names that are accepted, and the zone of the process."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo import config, zones
from mimo.errors import Invalid
from mimo.zones import LOCAL, system_name, zone_of


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[ZoneInfo]:
    """The process is in Berlin."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield ZoneInfo("Europe/Berlin")
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("name", ["Europe/Berlin", "Asia/Seoul", "America/New_York", "Etc/UTC"])
def test_a_zone_of_the_system_is_found_by_its_name(name: str) -> None:
    assert str(zone_of(name)) == name


def test_utc_and_local_need_no_data_of_zones() -> None:
    assert zone_of("UTC") is UTC
    assert zone_of("local") is LOCAL


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Europe/Berln", "did you mean `Europe/Berlin`"),
        ("europe/berlin", "did you mean `Europe/Berlin`?"),
        ("Berlin", "did you mean `Europe/Berlin`?"),
        ("new york", "did you mean `America/New_York`?"),
        ("utc", "did you mean `UTC`"),
        ("Local", "did you mean `local`?"),
        ("", "such as Europe/Berlin"),
        ("nowhere at all", "such as Europe/Berlin"),
        ("../../etc/passwd", "such as Europe/Berlin"),
        ("/etc/localtime", "did you mean"),
        ("Europe", "did you mean"),
        ("a\0b", "such as Europe/Berlin"),
        ("x" * 10_000, "such as Europe/Berlin"),
    ],
)
def test_an_unknown_name_is_an_error_with_near_names(name: str, hint: str) -> None:
    with pytest.raises(Invalid) as caught:
        zone_of(name)

    assert "must be UTC, local or the name of a time zone" in caught.value.message
    assert caught.value.hint.startswith(hint)


def test_a_system_without_data_of_zones_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoneinfo.available_timezones", set)

    with pytest.raises(Invalid, match="this system has no data of time zones") as caught:
        zone_of("Europe/Berlln")

    assert "tzdata" in caught.value.hint


def test_an_unknown_zone_in_the_settings_is_ignored_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[time]\nzone = "Europe/Berln"\n', encoding="utf-8")

    loaded = config.load(user=path, project=None)

    assert loaded["time.zone"] == "UTC"
    assert "Europe/Berln" in loaded.warnings[0]


def test_a_project_does_not_set_the_zone(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[time]\nzone = "Asia/Seoul"\n', encoding="utf-8")

    loaded = config.load(user=tmp_path / "none.toml", project=path)

    assert loaded["time.zone"] == "UTC"
    assert loaded.warnings == (f"{path}: `time.zone` is read from the user's config only",)


@given(st.datetimes(datetime(1971, 1, 1), datetime(2037, 1, 1), timezones=st.just(UTC)))
def test_the_zone_of_the_process_agrees_with_the_zone_of_that_name(
    berlin: ZoneInfo, moment: datetime
) -> None:
    here, named = moment.astimezone(LOCAL), moment.astimezone(berlin)

    assert here.replace(tzinfo=None) == named.replace(tzinfo=None)
    assert (here.fold, here.tzname()) == (named.fold, named.tzname())
    assert here.astimezone(UTC) == moment


def test_the_hour_that_comes_twice_has_two_moments(berlin: ZoneInfo) -> None:
    first = datetime(2026, 10, 25, 2, 30, tzinfo=LOCAL)

    assert first.replace(fold=1).astimezone(UTC) - first.astimezone(UTC) == timedelta(hours=1)


def test_the_ends_of_the_calendar_have_a_local_time(berlin: ZoneInfo) -> None:
    for moment in (datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)):
        assert moment.astimezone(LOCAL).astimezone(UTC) == moment


@pytest.mark.parametrize("zone", ["AAA24", "AAA-24", "AAA24:59:59"])
def test_a_zone_that_is_a_day_from_utc_is_utc(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    moment = datetime(2026, 10, 25, tzinfo=UTC)

    local = moment.astimezone(LOCAL)
    monkeypatch.undo()
    time.tzset()

    assert (local.replace(tzinfo=UTC), local.utcoffset()) == (moment, timedelta(0))


def test_the_name_of_the_zone_of_the_process(
    berlin: ZoneInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert system_name({"TZ": ":Europe/Berlin"}) == "Europe/Berlin"
    monkeypatch.setattr(zones, "_linked", lambda _: "/usr/share/zoneinfo/Europe/Berlin")
    assert system_name({}) == "Europe/Berlin"
    monkeypatch.setattr(zones, "_linked", lambda _: "/etc/localtime")
    assert system_name({}) == "CET"


def test_a_process_in_utc_has_no_zone_to_offer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()

    assert system_name() is None
