"""Links as tools take them -> links as files hold them."""

from collections.abc import Sequence
from typing import Any

from mimo.domain.memory import Link
from mimo.errors import Invalid
from mimo.mind import Mind
from mimo.services import recall


def links_of(mind: Mind, given: Sequence[Any]) -> tuple[Link, ...]:
    """Returns the links that `{to, type}` or `TYPE:ID` name; raises `NotFound` for no memory."""
    return tuple(dict.fromkeys(_link(mind, one) for one in given))


def _link(mind: Mind, given: Any) -> Link:
    if isinstance(given, str):
        kind, _, name = given.rpartition(":")
        return Link(to=recall.one(mind, name, surely=True).memory.id, type=kind or "relates_to")
    to, words = _named(given, "to", "to_id"), _named(given, "type", "relationship")
    if to is None:
        raise Invalid("a link needs `to`", hint="say it like builds_on:ID")
    return Link(to=recall.one(mind, to, surely=True).memory.id, type=words or "relates_to")


def _named(given: Any, *names: str) -> str | None:
    found = given if isinstance(given, dict) else {}
    return next((word for name in names if isinstance(word := found.get(name), str)), None)
