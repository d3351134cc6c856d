"""What is done about secrets and personal data: refused on the way in, redacted on the way out."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from mimo.domain.privacy import ALLOWED, secrets_in, texts_of
from mimo.errors import MindError, PiiDetected, SecretDetected

T = TypeVar("T")
E = TypeVar("E", bound=MindError)

HINT = (
    "leave it out and say where it is kept; if it is none, a person can store it with "
    f"--allow-secret, or mark its line in the file with `{ALLOWED}`"
)


class Found(NamedTuple):
    """A secret in what was given: never the secret, but where it is."""

    field: str
    kind: str
    line: int


def check_secrets(
    fields: Mapping[str, Any], *, by_person: bool, before: str = "", file: str | None = None
) -> None:
    """Raises `SecretDetected` where a text in one of the fields holds a secret.

    What `before` holds already may stay: to change another part of it gives away nothing new. The
    mark that allows a line counts only where a person set it.
    """
    found = [
        one
        for field, value in fields.items()
        for one in _found(field, value, allowing=by_person, before=before)
    ]
    if found:
        raise _refusal(found, file)


def _found(field: str, value: Any, *, allowing: bool, before: str) -> Iterator[Found]:
    for path, text in _texts(field, value):
        for one in secrets_in(text, allowing=allowing):
            if not before or text[one.start : one.end] not in before:
                yield Found(path, one.kind, one.line)


def _texts(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yields every text in a value with the names that lead to it."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield path, str(key)
            # Under its name a value may be a password that alone is any word.
            given = f'{key}: "{item}"' if isinstance(item, str) else item
            yield from _texts(f"{path}.{_short(key)}", given)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(path, item)


def _short(key: object) -> str:
    """Returns a key as an error may name it: it may be a secret itself."""
    return "…" if secrets_in(str(key)) else str(key)[:60]


def _refusal(found: list[Found], file: str | None) -> SecretDetected:
    first = found[0]
    place = f"`{file}`" if file else f"`{first.field}`"
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return SecretDetected(
        f"{place} holds a secret on line {first.line}: {first.kind}{more}; nothing was stored",
        hint=HINT,
        details={
            "field": first.field,
            "kind": first.kind,
            "line": first.line,
            "found": [one._asdict() for one in found],
        }
        | ({"file": file} if file else {}),
    )


def check_personal(value: Any) -> None:
    """Raises `PiiDetected` where a value holds personal data, keys included."""
    from mimo.domain.privacy.values import screened

    if kinds := screened(value, personal=True).kinds:
        raise PiiDetected(
            "PII detected in memory operation",
            hint="leave it out, or let the policy redact it: `pii.on_write: redact`",
            details={"redacted_fields": sorted(set(kinds))},
        )


def redacted(result: T) -> T:
    """Returns a result with marks in the place of its secrets; itself where it has none."""
    # All texts at once are quickly looked through; the signs between them keep them apart.
    if not secrets_in("…\n".join(texts_of(result)), cut=True):
        return result
    from mimo.domain.privacy.values import screened

    shown: T = screened(result).value
    return shown


def redacted_error(error: E, *, personal: bool = False) -> E:
    """Returns the same error, whose message, hint and details hold no secret any more."""
    from mimo.domain.privacy.values import screened

    told = [error.message, error.hint, error.details]
    shown, kinds = screened(told, personal=personal)
    if kinds:
        error.message, error.hint, error.details = shown
        error.args = (error.message,)
    return error


def discreet(text: str) -> str:
    """Returns a text as it may stand in a log: without secrets and without personal data."""
    from mimo.domain.privacy.values import screened

    shown: str = screened(text, personal=True).value
    return shown
