"""What should not be remembered, or not be shown: secrets and personal data.

Pure functions over texts and values; `mimo.guard.privacy` decides what is done about it. Only the
names of what every command needs are loaded here: personal data concern the value tools alone.
"""

from collections.abc import Iterator, Mapping
from typing import Any

# All the texts of a value.


def texts_of(value: Any) -> Iterator[str]:
    """Yields every text in strings, lists, mappings and dataclasses, keys included.

    A text with a name stands behind it, since a password may be one by its name alone.
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
