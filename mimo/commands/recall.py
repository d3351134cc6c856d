"""`mind recall`: what is remembered about something, in a few sentences."""

from typing import Annotated

from mimo.commands.spec import Arg, Effect, command
from mimo.commands.types import Out
from mimo.domain.ids import uri_of
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services.summary import Summary, summarise


@frozen
class Recollection:
    """What is remembered about something."""

    summary: Annotated[str, Out("Text that stands for itself, from the memories that match best")]
    confidence: Annotated[
        float | None,
        Out("How likely the first of them is what was meant, 0 to 1; null where unknown"),
    ]
    source_refs: Annotated[
        tuple[str, ...], Out("Resources that it was made from, in its order: mind://memory/{id}")
    ]


@command(
    "recall_memory",
    cli="recall",
    effect=Effect.READ,
    toolset="recall",
    needs_project=False,
    examples=("mind recall why did we choose JWT", "mind recall where did I stop --json"),
    description="Retrieves past interactions or summaries relevant to the query. "
    "Use when the user asks about previous context or continuity.",
)
def recall_memory(
    mind: Mind,
    query: Annotated[str, Arg("What to recall", words=True)],
) -> Recollection:
    """Recall what is remembered about something, in a few sentences

    Tells the best passages of up to three memories, with date, outcome and what supersedes them.
    Memory that nobody here has approved is left out. That nothing is found is an answer, too.
    """
    return recollection(summarise(mind, query))


def recollection(found: Summary) -> Recollection:
    """Returns a summary as it is published."""
    return Recollection(
        summary=found.text,
        confidence=found.confidence,
        source_refs=tuple(uri_of(id) for id in found.sources),
    )
