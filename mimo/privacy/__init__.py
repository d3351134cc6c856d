"""Detection of secrets and personal data in texts and values.

Pure functions; `mimo.guard.privacy` decides what to do with the findings. `rules` defines what
counts as a secret. This package itself loads nothing: most commands need only `texts_of`.
"""

from collections.abc import Iterator, Mapping
from typing import Any


def texts_of(value: Any) -> Iterator[str]:
    """Yields every text in strings, lists, mappings and dataclasses, keys included.

    A text comes with its name, since the name alone can make it a password.
    """
    if type(value) is str:
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if type(item) is str:
                yield f'{key}: "{item}"'
            else:
                yield str(key)
                yield from texts_of(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_of(item)
    elif not isinstance(value, type):
        for name in getattr(value, "__dataclass_fields__", ()):
            yield from texts_of(getattr(value, name))
