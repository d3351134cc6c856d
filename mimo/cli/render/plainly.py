"""Any result by its fields: names and values, and tables for lists of records."""

from typing import Any

from mimo.cli.render.screen import Screen, dim
from mimo.commands.schema import to_json


def by_fields(result: object, screen: Screen) -> None:
    """Write the fields that hold one value, then those that hold many."""
    data = to_json(result)
    if not isinstance(data, dict):
        screen.line(shown(data))
        return
    screen.pairs([(label(name), shown(value)) for name, value in data.items() if _is_single(value)])
    for name, value in data.items():
        if not _is_single(value):
            _many(label(name), value, screen)


def _many(name: str, value: Any, screen: Screen) -> None:
    screen.blank()
    if not value:
        screen.line(dim(f"no {name}"))
        return
    screen.heading(name)
    if isinstance(value, dict):
        screen.pairs([(label(key), shown(item)) for key, item in value.items()], indent=2)
    elif all(isinstance(item, dict) for item in value):
        columns = list(dict.fromkeys(key for item in value for key in item))
        rows = [[shown(item.get(column)) for column in columns] for item in value]
        screen.table([label(column) for column in columns], rows)
    else:
        for item in value:
            screen.line(shown(item), indent=2)


def _is_single(value: Any) -> bool:
    """Returns whether a value fits behind its name: no object, and no list of objects."""
    if isinstance(value, list):
        return bool(value) and not any(isinstance(item, dict | list) for item in value)
    return not isinstance(value, dict)


def label(name: str) -> str:
    """Returns a field's name in words."""
    return name.replace("_", " ")


def shown(value: Any) -> str:
    """Returns a value as a person would write it."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
        case list():
            return ", ".join(map(shown, value))
        case dict():
            return ", ".join(f"{label(key)} {shown(item)}" for key, item in value.items())
        case _:
            return str(value)
