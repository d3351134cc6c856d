"""URLs in settings; those of encoders are in `test_config`."""

import pytest

from mimo.config import setting
from mimo.data.urls import database_url
from mimo.errors import Invalid


@pytest.mark.parametrize(
    ("url", "place", "passwords"),
    [
        ("postgresql://ana@db.example.org/mind", "db.example.org/mind", ()),
        ("postgres://db:5433,[::1]:5434/mind?sslmode=require", "db:5433,[::1]:5434/mind", ()),
        ("postgresql:///mind", "this machine/mind", ()),
        ("postgresql:///mind?host=%2Frun%2Fpostgresql", "/run/postgresql/mind", ()),
        ("postgresql://ana@/?host=db&port=5433&dbname=mind", "db:5433/mind", ()),
        ("postgresql://db/mind?dbname=other", "db/other", ()),
        ("postgresql:///?service=mind%20test", "service mind test", ()),
        ("postgresql://ana:hunter2@db/mind", "db/mind", ("hunter2",)),
        ("postgresql://ana:hunter:2@db/mind", "db/mind", ("hunter:2",)),
        ("postgresql://ana:hunter%2F2@db", "db", ("hunter%2F2", "hunter/2")),
        ("postgresql://ana@db/mind?password=hunter2", "db/mind", ("hunter2",)),
        ("postgresql://db/mind?user=ana&pass%77ord=hunter2", "db/mind", ("hunter2",)),
        ("postgresql://db/mind?sslkey=/a&sslpassword=hunter2", "db/mind", ("hunter2",)),
    ],
)
def test_a_url_has_a_place_and_passwords(url, place, passwords):
    parsed = database_url(url)

    assert parsed.place == place
    assert set(parsed.passwords) == set(passwords)
    if passwords:
        with pytest.raises(Invalid, match="has a password"):
            setting("index.url").check(url)
    else:
        assert setting("index.url").check(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:hun/ter2@db/mind",
        "postgresql://ana:12/hunter2@db/mind",
        "postgresql://ana:hun?ter2@db/mind",
        "postgresql://ana:hun#ter2@db/mind",
        "postgresql://ana:hun@ter2@db/mind",
        "postgresql://ana:hunter2%@db/mind",
        "postgresql://ana:hunter 2@db/mind",
        "postgresql://ana@db:hunter2/mind",
        "host=db password=hunter2",
        "mysql://ana:hunter2@db/mind",
        "hunter2",
    ],
)
def test_a_url_that_can_be_misread_is_refused_without_naming_any_part(url):
    with pytest.raises(Invalid) as caught:
        setting("index.url").check(url)

    assert "hun" not in f"{caught.value.wire()}{caught.value!r}"
    assert "ter2" not in f"{caught.value.wire()}"
    assert caught.value.hint
    assert caught.value.__context__ is None
