"""Secrets and personal data: refused when a call stores them, redacted in answers and logs."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mimo.data.disk import STORE
from mimo.errors import Command, Hint, MindError, PiiDetected, SecretDetected
from mimo.frozen import NamedTuple
from mimo.guard import PiiAction
from mimo.memory.ids import SUFFIX, stem_of
from mimo.privacy.model import APART, PROSE, Finding, findings, name_in, texts_of
from mimo.privacy.rules import ALLOWED
from mimo.privacy.secrets import secrets_in

if TYPE_CHECKING:
    from mimo.guard.policy import Policy

T = TypeVar("T")

HINT = (
    "remove it and refer to the place where it is kept; if it is not a secret, a person can store "
    f"it with --allow-secret, or mark its line in the file with `{ALLOWED}`"
)


def masked(value: Any, key: str) -> Any:
    """Returns a value of texts, lists and mappings in which `key` is redacted.

    The name of the key's file is redacted, too. `mind value get` accepts both forms of a key.
    """
    from mimo.privacy.values import screened_key

    safe_key = screened_key(key, personal=True)
    return value if safe_key == key else _replaced(value, (key, stem_of(key)), safe_key)


def _replaced(value: Any, forms: tuple[str, ...], replacement: str) -> Any:
    if isinstance(value, str):
        for form in filter(value.__contains__, forms):  # A hint without one stays a hint.
            value = value.replace(form, replacement)
        return value
    if isinstance(value, dict):
        return {name: _replaced(item, forms, replacement) for name, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, forms, replacement) for item in value]
    return value


class Found(NamedTuple):
    """The place and kind of a secret in the arguments, without the secret."""

    field: str
    kind: str
    line: int


def check_secrets(
    fields: Mapping[str, Any], *, by_person: bool, previous: str = "", file: str | None = None
) -> Found | None:
    """Raises `SecretDetected` if a text in one of the fields contains a secret.

    Returns the first secret that may be stored, with a warning: one in prose, or a part of a token.
    Secrets in `previous`, the stored text, may stay: another part of it may be changed. The mark
    that allows a line counts only if a person set it.
    """
    secrets: list[Found] = []
    warnings: list[Found] = []
    for field, value in fields.items():
        for path, text in _texts(field, value):
            hits = secrets_in(text, cut=True, allowing=by_person)
            complete = secrets_in(text, allowing=by_person) if hits else ()
            places = [hit.start for hit in complete if hit.kind != PROSE]
            for hit in hits:
                if not previous or text[hit.start : hit.end] not in previous:
                    is_refused = any(hit.start <= place < hit.end for place in places)
                    finding = Found(path, hit.kind, hit.line)
                    (secrets if is_refused else warnings).append(finding)
    if secrets:
        raise _detected(secrets, file)
    return warnings[0]._replace(field=file or warnings[0].field) if warnings else None


def warning(secret: Found) -> Hint:
    """Returns a notice about a secret that is stored, with the way to keep it out of git."""
    return Hint(
        f"`{secret.field}` seems to hold a secret on line {secret.line}: {secret.kind}; answers "
        "mask it, and a memory of ",
        Command("add", private=True),
        " stays out of git",
    )


def _detected(secrets: Sequence[Found], file: str | None) -> SecretDetected:
    finding = secrets[0]
    more = f", and {len(secrets) - 1} more" if len(secrets) > 1 else ""
    return SecretDetected(
        f"`{file or finding.field}` holds a secret on line {finding.line}: {finding.kind}{more}; "
        "nothing was stored",
        hint=HINT,
        details={
            **finding._asdict(),
            "found": [secret._asdict() for secret in secrets],
            **({"file": file} if file else {}),
        },
    )


def check_file(path: str, data: bytes, *, by_person: bool) -> Found | None:
    """Raises `SecretDetected` if a file or its name contains a secret, as `mind scan` reports it.

    Returns the first secret in prose. The mark that allows a line counts only for a person.
    """
    if kinds := [hit.kind for hit in secrets_in(path)]:
        raise SecretDetected(
            f"the name of `{path}` holds a secret: {kinds[0]}; nothing was stored",
            hint="rename the file",
            details={"file": path, "kind": kinds[0]},
        )
    hits = secrets_in_file(path, text_of(data), allowing=by_person)
    places = [Found(path, hit.kind, hit.line) for hit in hits]
    if secrets := [place for place in places if place.kind != PROSE]:
        raise _detected(secrets, path)
    return places[0] if places else None


def text_of(data: bytes) -> str:
    """Returns the text of a file in UTF-8, or in UTF-16 with a byte order mark."""
    is_wide = data.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    return data.decode("utf-16" if is_wide else "utf-8", "replace")


def _texts(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yields every text in a value with its path of names."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield path, str(key)
            label = "…" if secrets_in(str(key)) else str(key)[:60]
            yield from _texts(f"{path}.{label}", named(name_in(value, key), item))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(path, item)


def named(key: object, value: Any) -> Any:
    """Returns a text with its name: only the name may show that a word is a password.

    Returns any other value itself.
    """
    return f'{key}: "{value}"' if isinstance(value, str) else value


def secrets_in_file(path: str, text: str, *, allowing: bool = True) -> tuple[Finding, ...]:
    """Returns the secrets in a file, in order; `path` is that in the project or in a folder above.

    In the file of a value, these include a secret that only its key, or the name of its field,
    shows. Without `allowing`, the mark `mind:allow-secret` is ignored.
    """
    hits = secrets_in(text, allowing=allowing)
    if f"/{STORE}/values/" not in f"/{path}":
        return hits
    from mimo.memory.codec import value as codec
    from mimo.memory.codec.document import Unreadable
    from mimo.privacy.values import named_secrets

    try:
        _, key, value = codec.parse(text.encode())
    except Unreadable:
        return hits
    name = key or path.rpartition("/")[2].removesuffix(SUFFIX)
    of_names = named_secrets(name, value, text, allowing=allowing)
    return findings(text, [*(hit[:3] for hit in hits), *of_names])


def admitted(
    values: Mapping[str, Any],
    action: PiiAction,
    *,
    names: Iterable[str | None],
    pair: tuple[str, str] | None = None,
    proposed: Policy | None = None,
) -> dict[str, Any]:
    """Returns the arguments of a tool for values, redacted if the policy requires it.

    `pair` names the arguments with a key and its value, `proposed` is the policy in a file that is
    not approved. Raises `PiiDetected` if they contain personal data and the policy does not permit
    it, and if one of `names`, such as a key, does: redacted, it would be another key.
    """
    if action is PiiAction.ALLOW:
        return dict(values)
    from mimo.privacy.values import screened, screened_key

    screened_values = {name: screened(value, personal=True) for name, value in values.items()}
    if pair is not None:
        key, value = pair
        fields = screened({values[key]: values[value]}, personal=True)
        screened_values[value] = fields._replace(value=next(iter(fields.value.values())))
    keys = [str(values[name]) for name in names if name is not None and name in values]
    masks = [mask for key in keys if (mask := screened_key(key, personal=True)) != key]
    kinds = [mask.split("-")[1] for mask in masks]
    if action is PiiAction.REFUSE:
        kinds += [kind for value in screened_values.values() for kind in value.kinds]
    if kinds:
        hidden = sorted(set(kinds))
        listed = f"`{'`, `'.join(hidden)}`"
        hint = (
            f"remove {listed}, rename a key or field if only its name looks like that of a secret"
        )
        if proposed and proposed.on_write is not PiiAction.REFUSE:
            way = f", or approve {proposed.source}, which permits it: "
            hint = Hint(hint, way, Command("trust", proposed.source), ", or commit it")
        else:
            hint += ", or let the policy redact it: `pii.on_write: redact`"
        if masks:
            hint = f"remove {listed}, and choose a namespace and a key without personal data: "
            hint += "redacted, they would be others"
        raise PiiDetected(
            "PII detected in memory operation", hint=hint, details={"redacted_fields": hidden}
        )
    return {name: value.value for name, value in screened_values.items()}


class Redacted(NamedTuple, Generic[T]):
    """A redacted result, and the kinds of the redacted parts."""

    value: T
    kinds: tuple[str, ...] = ()


def redacted(result: T, *, personal: bool = False, allowing: bool = True) -> Redacted[T]:
    """Returns a result with its secrets, and if `personal` its personal data, replaced by marks.

    Without `allowing`, the mark `mind:allow-secret` is ignored.
    """
    # Searching all texts at once is fast.
    texts = f"{APART}\n".join(texts_of(result))
    if not personal and not secrets_in(texts, cut=True, allowing=allowing):
        return Redacted(result)
    from mimo.privacy.values import screened

    return Redacted(*screened(result, personal=personal, allowing=allowing))


def redact_error(error: MindError, *, personal: bool = False, key: str | None = None) -> None:
    """Redacts the message, hint and details of an error, and its words for a terminal.

    `key` is the key of a value, and is redacted as in answers.
    """
    parts: dict[str, Any] = {
        "message": error.message,
        "hint": error.hint,
        "details": error.details,
        "typed": error.typed,
    }
    if key is not None:
        parts = masked(parts, key)
    for name, value in redacted(parts, personal=personal).value.items():
        if value != getattr(error, name):
            setattr(error, name, value)
    error.args = (error.message,)


def for_log(text: str) -> str:
    """Returns a text for a log, without secrets and personal data."""
    from mimo.privacy.values import screened

    result: str = screened(text, personal=True).value
    return result
