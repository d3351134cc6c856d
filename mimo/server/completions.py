"""Completion of arguments: the topics and tags of prompts, and the ids of resources."""

from typing import Annotated, Literal

from mcp_types import (
    CompleteRequestParams,
    CompleteResult,
    Completion,
    PromptReference,
    ResourceTemplateReference,
)

from mimo.call import Call
from mimo.call.spec import Arg, Needs
from mimo.errors import NotFound
from mimo.frozen import frozen
from mimo.guard.policy import Operation
from mimo.index.schema import WORDS
from mimo.operations import disclosure, refresh
from mimo.server import prompts, resources
from mimo.server.requests import answer_to, request
from mimo.text.clean import one_line

MOST = 100
"""The number of values that the protocol permits."""

_APPROVED = (
    "WITH memories AS (SELECT * FROM main.memories WHERE (SELECT approved(digest))),"
    " tags AS (SELECT t.* FROM main.tags t CROSS JOIN memories ON key = memory) "
)
"""Begins a query for the words of approved memories: a topic or a tag of others has no label.

SQLite evaluates a subquery last, so only memories with the wanted words are looked up.
"""


@frozen
class Completions:
    """Words that begin with a text."""

    values: tuple[str, ...]
    has_more: bool = False


def completed(call: Call, params: CompleteRequestParams) -> CompleteResult:
    """Returns the values that an argument may have.

    An argument without known values has none. Raises `NotFound` if there is no such prompt or
    resource, and what `invoke` raises.
    """
    kind = _kind(params)
    prefix, comma, start = params.argument.value.rpartition(",")
    if kind != "tag":
        prefix, comma, start = "", "", params.argument.value
    if kind is None or not (call.mind.has_project or kind == "id"):
        return CompleteResult(completion=Completion(values=[]))
    arguments = {"kind": kind, "start": start.lstrip()}
    words = answer_to(complete, Completions, call, arguments)
    values = [f"{prefix}{comma}{word}" for word in words.values]
    return CompleteResult(completion=Completion(values=values, has_more=words.has_more))


def _kind(params: CompleteRequestParams) -> str | None:
    """Returns the kind of words of an argument, or None if any text fits."""
    kinds: dict[str, str] = {}
    match params.ref:
        case PromptReference(name=name):
            if name not in [prompt.name for prompt in prompts.PROMPTS]:
                raise NotFound(f"there is no prompt `{name}`")
            if name == prompts.DECIDE.name:
                kinds = {"topic": "topic", "tags": "tag"}
        case ResourceTemplateReference(uri=uri):
            if uri not in (resources.TEMPLATE.uri_template, resources.CONTEXT.uri):
                raise NotFound(f"there is no resource template `{uri}`")
            if uri == resources.TEMPLATE.uri_template:
                kinds = {"id": "id"}
    return kinds.get(params.argument.name)


@request("completion/complete", needs=Needs(Operation.READ, like="mind_list"))
def complete(
    call: Call,
    kind: Annotated[Literal["topic", "tag", "id"], Arg("Kind of word")],
    start: Annotated[str, Arg("First letters")] = "",
) -> Completions:
    """Return words by their beginning, and ids also by that of their short form"""
    words = _beginning(call, kind, start)
    return words if words.values or kind != "id" else _beginning(call, "of_handle", start)


def _beginning(call: Call, kind: str, start: str) -> Completions:
    query = f"{_APPROVED}{WORDS[kind]}" if kind in ("tag", "topic") else WORDS[kind]
    rows = refresh.up_to_date(call).ask(
        lambda sql: sql.execute(query, (len(start), start, MOST + 1)).fetchall()
    )
    words = [word for word, *_ in rows[:MOST] if one_line(word) == word]
    if kind not in ("tag", "topic"):
        words = disclosure.names_of(call, words)
    return Completions(values=tuple(words), has_more=len(rows) > MOST)
