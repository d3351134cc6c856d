"""What is done about secrets: named, never repeated, and kept out of logs."""

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


def test_every_field_with_a_secret_is_named_with_the_names_that_lead_to_it() -> None:
    fields = {
        "content": "fine",
        "value": {"db": {"password": PASSWORD, "host": PASSWORD}, "l": ["x", f"a\n{TOKEN}"]},
        "tags": ("ok", TOKEN),
    }

    with pytest.raises(SecretDetected) as refused:
        privacy.check_secrets(fields, by_person=False)

    assert [(one["field"], one["kind"], one["line"]) for one in refused.value.details["found"]] == [
        ("value.db.password", "password", 1),
        ("value.l", "gitlab_token", 2),
        ("tags", "gitlab_token", 1),
    ]
    assert "and 2 more" in refused.value.message


def test_a_key_that_is_a_secret_is_not_repeated_either() -> None:
    with pytest.raises(SecretDetected) as refused:
        privacy.check_secrets({"value": {TOKEN: {"x": TOKEN}}}, by_person=True)

    assert TOKEN not in str(refused.value.wire())
    assert refused.value.details["found"][1]["field"] == "value.….x"


def test_what_was_there_before_may_stay_and_nothing_else() -> None:
    privacy.check_secrets({"text": f"new words, {TOKEN}"}, by_person=False, before=f"old {TOKEN}")
    with pytest.raises(SecretDetected):
        privacy.check_secrets({"text": TOKEN}, by_person=False, before="something else")


def test_the_mark_counts_for_a_person_alone() -> None:
    fields = {"text": f"{TOKEN} mind:allow-secret"}

    privacy.check_secrets(fields, by_person=True)
    with pytest.raises(SecretDetected):
        privacy.check_secrets(fields, by_person=False)


@pytest.mark.parametrize("action", list(PiiAction))
def test_personal_data_are_dealt_with_as_the_policy_says(action: PiiAction) -> None:
    values = {"key": "k", "value": ["jo@corp.io"], "ttl_seconds": None}

    if action is PiiAction.REFUSE:
        with pytest.raises(PiiDetected):
            privacy.admitted(values, action, names=("key",))
    else:
        shown = ["[REDACTED:email]"] if action is PiiAction.REDACT else ["jo@corp.io"]
        assert privacy.admitted(values, action, names=("key",)) == values | {"value": shown}


@pytest.mark.req("002-43")
def test_an_error_loses_what_it_would_repeat() -> None:
    error = NotFound(f"no `{TOKEN}`", hint="or jo@corp.io", details={"near": [TOKEN, 1]})

    privacy.redact_error(error, personal=True)

    assert str(error) == error.message == "no `[REDACTED:gitlab_token]`"
    assert error.hint == "or [REDACTED:email]"
    assert error.details == {"near": ["[REDACTED:gitlab_token]", 1]}


@pytest.mark.req("002-43")
def test_a_log_shows_neither_secrets_nor_personal_data_not_even_in_a_traceback() -> None:
    with pytest.raises(ValueError, match="invalid") as failed:
        int(f"jo@corp.io has {TOKEN}")
    told = (ValueError, failed.value, failed.tb)
    record = logging.LogRecord("mind", logging.ERROR, "x", 1, "failed: %s", (TOKEN,), told)

    line = Redacting("%(message)s").format(record)

    assert "failed: [REDACTED:gitlab_token]" in line
    assert "'[REDACTED:email] has [REDACTED:gitlab_token]'" in line
    assert TOKEN not in line
