"""Whole values: keys as well as texts, at any depth."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.frozen import frozen
from mimo.privacy.model import texts_of
from mimo.privacy.secrets import secrets_in
from mimo.privacy.values import screened, screened_key, sensitive
from tests import personal_fakes, privacy_fakes
from tests.privacy_fakes import Draw

TOKEN = privacy_fakes.TOKENS["github_token"][0](Draw(3))
PASSWORD = Draw(4).password()


@frozen
class Inner:
    text: str
    number: float = 0.5


@frozen
class Outer:
    keys: tuple[str, ...]
    rows: tuple[Inner, ...]
    extra: dict[str, Any]


@pytest.mark.req("002-37")
def test_secrets_are_replaced_everywhere_and_clean_parts_are_the_same_objects() -> None:
    clean = Inner(text="tea")
    value = Outer(keys=(), rows=(clean, Inner(text=f"x {TOKEN}")), extra={"a": [{"b": TOKEN}, 1]})

    seen = screened(value)

    assert seen.value.rows[1] == Inner(text="x [REDACTED:github_token]")
    assert seen.value.rows[0] is clean
    assert seen.value.extra == {"a": [{"b": "[REDACTED:github_token]"}, 1]}
    assert seen.kinds == ("github_token", "github_token")


def test_name_alone_can_make_a_value_a_password() -> None:
    value = {"db": {"Password": PASSWORD, "host": PASSWORD}}

    assert screened(value).value == {"db": {"Password": "[REDACTED:password]", "host": PASSWORD}}
    assert secrets_in("\n".join(texts_of(value)))


@pytest.mark.req("002-37")
def test_personal_data_is_replaced_on_request() -> None:
    value = {"who": "jo@corp.io", "card": 4111111111111111, "at": 1700000000000, "tel": 2125550142}
    value |= {"mobile": "030 1234567", "a": {"api_key": {"x": 1}, "token": None, "apiKey": "k"}}

    assert screened(value).value == value
    seen = screened(value, personal=True)

    assert seen.value == {
        "who": "[REDACTED:email]",
        "card": "[REDACTED:credit_card]",
        "at": 1700000000000,
        "tel": 2125550142,
        "mobile": "[REDACTED:phone]",
        "a": {"api_key": "[REDACTED:api_key]", "token": None, "apiKey": "[REDACTED:api_key]"},
    }
    assert seen.kinds == ("email", "credit_card", "phone", "api_key", "api_key")


PHONE, BIRTH, ADDRESS = (f"[REDACTED:{kind}]" for kind in ("phone", "birth_date", "address"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"phone": ["2127365000"]}, {"phone": [PHONE]}),
        ({"phones": [2127365000, True]}, {"phones": [PHONE, True]}),
        ({"tel": {"area": "49", "number": 1711234567}}, {"tel": {"area": "49", "number": PHONE}}),
        ({"fax_nos": {"home": {"no": "212 736 5000"}}}, {"fax_nos": {"home": {"no": PHONE}}}),
        ({"전화번호": "01012345678"}, {"전화번호": PHONE}),
        ({"dob": ("1990-01-02",)}, {"dob": (BIRTH,)}),
        ({"home_address": 12345}, {"home_address": ADDRESS}),
        ({"dob": {"year": 1990, "month": "May"}}, {"dob": {"year": BIRTH, "month": "May"}}),
        ({"homeAddresses": ["Rosenhof 12", "Haus"]}, {"homeAddresses": [ADDRESS, "Haus"]}),
        ({"home_address": {"postal_code": "12345"}}, {"home_address": {"postal_code": ADDRESS}}),
        ({"phone": {"dob": "1990"}}, {"phone": {"dob": BIRTH}}),
    ],
)  # fmt: skip
def test_lists_and_objects_with_the_name_of_personal_data_are_redacted(
    value: Any, expected: Any
) -> None:
    assert screened(value).value == value
    assert screened(value, personal=True).value == expected


@pytest.mark.parametrize(
    "value",
    [
        {"address": {"verified": True}, "email": {"enabled": "yes"}, "home_address": {"lat": 1.5}},
        {"phone": {"enabled": "yes", "updated_at": 1700000000, "id": "1234567890"}},
        {"phone": {"seen": "2024-01-02 10:00", "host": "192.168.100.200", "tag": "UA-1234567-1"}},
        {"mobile": {"breakpoint": 768, "screens": [{"width": 12345678}]}},
        {"dob": {"min_age": 18}, "home_address": {"verified_at": "2024-01-02"}},
        {"birthdays": 3, "streets": 12.0, "phones": 1234567, "cells": [1234567]},
    ],
)
def test_settings_and_counts_under_the_name_of_personal_data_stay(value: Any) -> None:
    assert screened(value, personal=True) == (value, ())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("password", "password"),
        ("PASSWORD", "password"),
        ("userPassword", "user_password"),
        ("x-api-key", "x_api_key"),
        ("accessTokens", "access_tokens"),
        ("update.db_password", "update_db_password"),
        ("update-db-password", None),
        ("csrf_token", None),
        ("client_secret", "client_secret"),
        ("credit card", "credit_card"),
        ("DBPassword", "db_password"),
        ("APIKeys", "api_keys"),
        ("passwords", "passwords"),
        ("userpassword", "userpassword"),
        ("\uff50assword", "password"),
        (f"{'x' * 100}_password", f"{'x' * 71}_password"),
        ("password_policy", None),
        ("passwordless", None),
        ("tokens", None),
        ("token_count", None),
        ("next_page_token", None),
        ("secretary", None),
        ("passport_office", None),
        ("key", None),
    ],
)
def test_sensitive_names_are_recognized(name: str, kind: str | None) -> None:
    assert sensitive(name, "x") == kind


@pytest.mark.req("002-10")
def test_hidden_keys_have_stable_and_distinct_marks() -> None:
    keys = ("call_415-234-5678", "call_415-234-5679", "user_email", TOKEN)
    shown = [screened_key(key, personal=True) for key in keys]

    assert shown[0].startswith("REDACTED-phone-")
    assert len(set(shown)) == 4
    assert shown[2] == "user_email"
    assert shown[3].startswith("REDACTED-github_token-")
    assert [screened_key(key, personal=True) for key in shown] == shown
    page = Outer(keys=keys, rows=(), extra={keys[0]: 1})
    seen = screened(page, personal=True).value
    assert list(seen.keys) == shown
    assert seen.extra == {shown[0]: 1}


FAKES = [*privacy_fakes.secrets(11, each=2), *personal_fakes.personal(11, each=3)]
HOLDERS = st.recursive(
    st.sampled_from(FAKES),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "note", "x y"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(HOLDERS)
def test_nested_secrets_are_replaced_in_one_pass(held: Any) -> None:
    def plain(value: Any, make: Any) -> Any:
        if isinstance(value, list):
            return [plain(item, make) for item in value]
        if isinstance(value, dict):
            return {key: plain(item, make) for key, item in value.items()}
        return make(value)

    seen = screened(plain(held, lambda fake: fake.text), personal=True)

    reported = repr(seen.value)
    plain(held, lambda fake: pytest.fail(fake.kind) if fake.secret in reported else None)
    assert screened(seen.value, personal=True) == (seen.value, ())
