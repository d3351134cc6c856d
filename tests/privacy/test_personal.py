"""Personal data: what is found, and what only looks like it."""

import sys
from collections.abc import Iterator

import pytest

from mimo.privacy import personal
from mimo.privacy.model import without
from mimo.privacy.personal import personal_in
from tests import personal_fakes
from tests.privacy_fakes import Fake


def kinds(text: str) -> list[str]:
    return [item.kind for item in personal_in(text)]


@pytest.fixture(params=["with phonenumbers", "without phonenumbers"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if request.param.startswith("without"):
        monkeypatch.setitem(sys.modules, "phonenumbers", None)
    else:
        pytest.importorskip("phonenumbers")
    personal._library.cache_clear()
    yield
    personal._library.cache_clear()


@pytest.mark.usefixtures("either_way")
@pytest.mark.req("002-57")
def test_each_kind_is_found_and_replaced_whole() -> None:
    for fake in personal_fakes.personal(7):
        assert kinds(fake.text) == [fake.kind], fake.text
        shown = without(fake.text, personal_in(fake.text))
        assert shown == fake.text.replace(fake.secret, f"[REDACTED:{fake.kind}]")


@pytest.mark.parametrize("decoy", personal_fakes.decoys(7), ids=lambda decoy: decoy.kind)
@pytest.mark.usefixtures("either_way")
def test_look_alikes_of_personal_data_are_ignored(decoy: Fake) -> None:
    assert kinds(decoy.text) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Jo.Smith+home@Corp.IO", "email"),
        ("josé@müller.de", "email"),
        ("mailto:jo@corp.io?subject=x", "email"),
        ("jo (at) corp (dot) io", "email"),
        ("j\N{ZERO WIDTH SPACE}o@corp.io", "email"),
        ("jo\N{SMALL COMMERCIAL AT}corp.io", "email"),
        ("555-123-4567", "phone"),
        ("(212) 234-5678", "phone"),
        ("+15551234567", "phone"),
        ("tel: 030 1234567", "phone"),
        ("４１５-２３４-５６７８", "phone"),
        ("123-45-6789", "ssn"),
        ("123\N{NON-BREAKING HYPHEN}45\N{NON-BREAKING HYPHEN}6789", "ssn"),
        ("SSN: 123456789", "ssn"),
        ("4111 1111 1111 1111", "credit_card"),
        ("4111-1111-1111-1111.", "credit_card"),
        ("378282246310005", "credit_card"),
        ("３７８２８２２４６３１０００５", "credit_card"),
        ("DE89 3704 0044 0532 0130 00 and more", "iban"),
        ("DE89-3704-0044-0532-0130-00", "iban"),
        ("DE89  3704  0044  0532  0130  00", "iban"),
        ("4111  1111  1111  1111", "credit_card"),
        ("0049 171 1234567", "phone"),
        ("0044-20-7946-0018", "phone"),
        ("0033 6 12 34 56 78", "phone"),
        ("0049 1711234567", "phone"),
        ("gb82west12345698765432", "iban"),
        ("93.184.216.34", "ip"),
        ("http://93.184.216.34:8080/x", "ip"),
        ("2a00:1450:4001:81b::200e", "ip"),
        ("0171 1234567", "phone"),
        ("0171/1234567", "phone"),
        ("020 7946 0958", "phone"),
        ("02-123-4567", "phone"),
        ("06 12 34 56 78", "phone"),
        ("742 Evergreen Terrace, Springfield", "address"),
        ("10 Downing St, London", "address"),
        ("Bahnhofstr. 5, 10115 Berlin", "address"),
        ("12 rue de la Paix, 75002 Paris", "address"),
        ("Calle Mayor 5", "address"),
        ("춘천시 중앙로 1", "address"),
        ("DOB: 05/17/1990", "birth_date"),
        ("birthday is May 17, 1990", "birth_date"),
        ("1990년 5월 17일생", "birth_date"),
    ],
)
@pytest.mark.req("002-57")
def test_other_notations_are_found(text: str, kind: str) -> None:
    assert kinds(text) == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "4111 1111 1111 1112",
        "1234567890123456",
        "DE88 3704 0044 0532 0130 00",
        "000-12-3456 666-12-3456 987-65-4321 078-05-1120",
        "2024-05-0612 10.15.2024",
        "git@github.com:owner/repo.git",
        "https://jo@git.corp.io/x.git",
        "noreply@corp.io your.name@corp.io user@domain.com",
        "@corp.io and a@b",
        "Chrome/111.0.93.184 v93.184.216.34 version: 93.184.216.34",
        "255.255.255.0 0.0.0.0 1.2.3.4 93.184.216.300",
        "2001:db8::1 fe80::1 ::1 dead::beef",
        "1700000000 1700000000000 20261120153000",
        "555-0142 and 415-555-0123",
        "released 2026-05-17, built 17.05.2026",
        "00 06 12 34 56 78 90 aa  01 00 02 00 01 00 00",
        "0012 3456 7890 1234 0000 and 0012-10-2024 and 0012-345678901",
        "3 Google Drive files, 12 Street Fighter games, During 2019",
        "기본값으로 3, http로 8080, 그러면 으로 2",
        "step 0123 of 4567, 0.171 1234567, 01:12:34:56",
    ],
)
def test_near_misses_are_ignored(text: str) -> None:
    assert kinds(text) == []


@pytest.mark.parametrize(
    "text",
    [
        word * 40_000
        for word in "a@ a@a. 1 1- +1( 12- DE89 1. 2a00: [at] phone:1 ssn: _ (212) j.j@ 01· "
        "12·Main· Straße·1 born· 로1 12·rue·de· Calle·A· 1990-".replace("·", "\xa0").split(" ")
    ],
    ids=lambda text: text[:8],
)
def test_hostile_texts_take_linear_time(text: str) -> None:
    assert len(set(kinds(text))) <= 1
