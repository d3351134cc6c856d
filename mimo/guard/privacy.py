"""What is done about secrets and personal data: refused on the way in, redacted on the way out."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from mimo.errors import MindError, PiiDetected, SecretDetected
from mimo.guard.policy import PiiAction
from mimo.memory.ids import stem_of
from mimo.privacy import texts_of
from mimo.privacy.model import APART
from mimo.privacy.rules import ALLOWED
from mimo.privacy.secrets import secrets_in

# Texts that name a key of a value: a key that is redacted is redacted in each of them alike.


def masked(value: Any, key: str) -> Any:
    """Returns a value of texts, lists and mappings with `key` as it may be shown.

    The name of the key's file is replaced as well. `mind value get` finds a value by either form.
    """
    from mimo.privacy.values import screened_key

    shown = screened_key(key, personal=True)
    return value if shown == key else _replaced(value, (key, stem_of(key)), shown)


def _replaced(value: Any, forms: tuple[str, ...], shown: str) -> Any:
    if isinstance(value, str):
        for form in forms:
            value = value.replace(form, shown)
        return value
    if isinstance(value, dict):
        return {name: _replaced(item, forms, shown) for name, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, forms, shown) for item in value]
    return value


T = TypeVar("T")

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


def admitted(
    values: Mapping[str, Any], action: PiiAction, *, names: Iterable[str | None]
) -> dict[str, Any]:
    """Returns the arguments of a tool for values as they may be stored.

    Raises `PiiDetected` where they hold personal data and the policy does not say otherwise; also
    where one of `names`, such as a key, does: redacted it would be another one.
    """
    if action is PiiAction.ALLOW:
        return dict(values)
    from mimo.privacy.values import screened, screened_key

    seen = {name: screened(value, personal=True) for name, value in values.items()}
    named = [str(values[name]) for name in names if name is not None and name in values]
    masks = [mask for key in named if (mask := screened_key(key, personal=True)) != key]
    kinds = [mask.split("-")[1] for mask in masks]
    if action is PiiAction.REFUSE:
        kinds += [kind for one in seen.values() for kind in one.kinds]
    if kinds:
        raise PiiDetected(
            "PII detected in memory operation",
            hint="leave it out, or let the policy redact it: `pii.on_write: redact`",
            details={"redacted_fields": sorted(set(kinds))},
        )
    return {name: one.value for name, one in seen.items()}


class Redacted(NamedTuple, Generic[T]):
    """A result as it may be shown, and the kinds of all that was taken out of it."""

    value: T
    kinds: tuple[str, ...] = ()


def redacted(result: T, *, personal: bool = False) -> Redacted[T]:
    """Returns a result with marks in the place of its secrets, and perhaps its personal data."""
    # All texts at once are quickly looked through.
    if not personal and not secrets_in(f"{APART}\n".join(texts_of(result)), cut=True):
        return Redacted(result)
    from mimo.privacy.values import screened

    return Redacted(*screened(result, personal=personal))


def redact_error(error: MindError, *, personal: bool = False, key: str | None = None) -> None:
    """Takes secrets, and perhaps personal data, out of an error's message, hint and details.

    `key` is that of a value: it is redacted as in answers.
    """
    parts: dict[str, Any] = {
        "message": error.message,
        "hint": error.hint,
        "details": error.details,
    }
    if key is not None:
        parts = masked(parts, key)
    for name, value in redacted(parts, personal=personal).value.items():
        if value != getattr(error, name):
            setattr(error, name, value)
    error.args = (error.message,)


def key_for_log(key: str) -> str:
    """Returns a key or a namespace as it may be logged: itself, or the mark of answers."""
    from mimo.privacy.values import screened_key

    return screened_key(key, personal=True)


def for_log(text: str) -> str:
    """Returns a text as it may stand in a log: without secrets and without personal data."""
    from mimo.privacy.values import screened

    shown: str = screened(text, personal=True).value
    return shown
