"""Secrets are named, never repeated, and kept out of logs."""

import logging

import pytest

from mimo.errors import NotFound, PiiDetected, SecretDetected
from mimo.guard import privacy
from mimo.guard.logs import Redacting
from mimo.guard.policy import PiiAction
from tests import privacy_fakes
from tests.privacy_fakes import Draw

TOKEN = privacy_fakes.TOKENS["gitlab_token"][1](Draw(2))
PASSWORD = Draw(2).password()


def test_a_secret_is_reported_with_the_path_of_its_field() -> None:
    fields = {
        "content": "fine",
        "value": {"db": {"password": PASSWORD, "host": PASSWORD}, "l": ["x", f"a\n{TOKEN}"]},
        "tags": ("ok", TOKEN),
    }

    with pytest.raises(SecretDetected) as refused:
        privacy.check_secrets(fields, by_person=False)

    assert [
        (secret["field"], secret["kind"], secret["line"])
        for secret in refused.value.details["found"]
    ] == [
        ("value.db.password", "password", 1),
        ("value.l", "gitlab_token", 2),
        ("tags", "gitlab_token", 1),
    ]
    assert "and 2 more" in refused.value.message


def test_a_key_that_is_a_secret_is_not_repeated() -> None:
    with pytest.raises(SecretDetected) as refused:
        privacy.check_secrets({"value": {TOKEN: {"x": TOKEN}}}, by_person=True)

    assert TOKEN not in str(refused.value.wire())
    assert refused.value.details["found"][1]["field"] == "value.….x"


def test_only_secrets_of_the_stored_text_may_stay() -> None:
    privacy.check_secrets({"text": f"new words, {TOKEN}"}, by_person=False, previous=f"old {TOKEN}")
    with pytest.raises(SecretDetected):
        privacy.check_secrets({"text": TOKEN}, by_person=False, previous="something else")


def test_the_mark_that_allows_a_line_counts_only_for_the_user() -> None:
    fields = {"text": f"{TOKEN} mind:allow-secret"}

    privacy.check_secrets(fields, by_person=True)
    with pytest.raises(SecretDetected):
        privacy.check_secrets(fields, by_person=False)


@pytest.mark.parametrize("action", list(PiiAction))
def test_personal_data_are_treated_as_the_policy_requires(action: PiiAction) -> None:
    values = {"key": "k", "value": ["jo@corp.io"], "ttl_seconds": None}
    named = {"key": "password", "value": "x"}

    if action is PiiAction.REFUSE:
        with pytest.raises(PiiDetected):
            privacy.admitted(values, action, names=("key",))
        with pytest.raises(PiiDetected):
            privacy.admitted(named, action, names=("key",), pair=("key", "value"))
    else:
        shown = ["[REDACTED:email]"] if action is PiiAction.REDACT else ["jo@corp.io"]
        assert privacy.admitted(values, action, names=("key",)) == values | {"value": shown}
        kept = privacy.admitted(named, action, names=("key",), pair=("key", "value"))
        assert kept["value"] == ("[REDACTED:password]" if action is PiiAction.REDACT else "x")


@pytest.mark.req("002-43")
def test_an_error_is_redacted() -> None:
    error = NotFound(f"no `{TOKEN}`", hint="or jo@corp.io", details={"near": [TOKEN, 1]})

    privacy.redact_error(error, personal=True)

    assert str(error) == error.message == "no `[REDACTED:gitlab_token]`"
    assert error.hint == "or [REDACTED:email]"
    assert error.details == {"near": ["[REDACTED:gitlab_token]", 1]}


@pytest.mark.req("002-43")
def test_a_log_shows_neither_secrets_nor_personal_data_not_even_in_a_traceback() -> None:
    with pytest.raises(ValueError, match="invalid") as failed:
        int(f"jo@corp.io has {TOKEN}")
    info = (ValueError, failed.value, failed.tb)
    record = logging.LogRecord("mind", logging.ERROR, "x", 1, "failed: %s", (TOKEN,), info)

    line = Redacting("%(message)s").format(record)

    assert "failed: [REDACTED:gitlab_token]" in line
    assert "'[REDACTED:email] has [REDACTED:gitlab_token]'" in line
    assert TOKEN not in line
