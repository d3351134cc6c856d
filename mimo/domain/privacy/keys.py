"""Texts that name a key of a value: a key that is redacted is redacted in each of them alike."""

from typing import Any

from mimo.domain.names import stem_of


def masked(value: Any, key: str) -> Any:
    """Returns a value of texts, lists and mappings with `key` as it may be shown.

    The name of the key's file is replaced as well. `mind value get` finds a value by either form.
    """
    from mimo.domain.privacy.values import screened_key

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
