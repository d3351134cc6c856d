"""`mind diff`: what lies between two states of the memory."""

from enum import StrEnum
from typing import Annotated

from mimo.commands.common import File
from mimo.commands.spec import Arg, Effect, command
from mimo.commands.types import Omitted, Out
from mimo.domain import reviewing
from mimo.domain.memory import Kind, Outcome
from mimo.domain.reviewing import Changed
from mimo.errors import Invalid, NotFound
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import comparing


class Format(StrEnum):
    """How the difference is shown."""

    TEXT = "text"
    MARKDOWN = "markdown"


@frozen
class DiffRow:
    """A memory that differs between the two states."""

    id: str
    type: Kind
    title: str
    change: Annotated[str, Out("`added`, `changed` or `removed`")]
    file: File
    fields: Annotated[tuple[str, ...], Out("What changed in it")] = ()
    outcome: Omitted[Outcome] = None
    outcome_before: Annotated[Omitted[Outcome], Out("Where the outcome changed", omit=True)] = None
    outcome_changed: Annotated[Omitted[bool], Out("Whether it turned out otherwise", omit=True)] = (
        None
    )
    supersedes: Annotated[tuple[str, ...], Out("Ids that it newly supersedes")] = ()
    contradicts: Annotated[tuple[str, ...], Out("Ids that it newly contradicts")] = ()


@frozen
class Diff:
    """What differs between two states of the memory."""

    before: Annotated[str, Out("The commit that is compared with")]
    after: str
    added: int
    changed: int
    removed: int
    superseded: int
    contradicted: int
    outcomes: Annotated[int, Out("How many turned out otherwise")]
    memories: tuple[DiffRow, ...]
    text: Annotated[Omitted[str], Out("The difference in the `format`", omit=True)] = None


@command(
    "mind_diff",
    cli="diff",
    effect=Effect.READ,
    toolset="extra",
    errors=(Invalid, NotFound),
    examples=("mind diff v1.1..v1.2", "mind diff --branch --format markdown"),
)
def diff(
    mind: Mind,
    revisions: Annotated[
        str | None, Arg("Two revisions, `A..B`; `A...B` is what B did since they parted")
    ] = None,
    *,
    branch: Annotated[bool, Arg("What this branch did since it left the main one")] = False,
    format: Annotated[Format, Arg("Text, or Markdown for a pull request")] = Format.TEXT,
) -> Diff:
    """Show what changed in the memory between two revisions

    Which memories were added, changed and removed, what they supersede and contradict, and which
    decisions turned out otherwise.
    """
    found = comparing.compare(mind, revisions, branch=branch)
    rows = tuple(_row(one) for one in found.changed)
    return Diff(
        before=found.before.short,
        after=found.after.short,
        added=sum(row.change == "added" for row in rows),
        changed=sum(row.change == "changed" for row in rows),
        removed=sum(row.change == "removed" for row in rows),
        superseded=sum(len(row.supersedes) for row in rows),
        contradicted=sum(len(row.contradicts) for row in rows),
        outcomes=sum(row.outcome_changed or False for row in rows),
        memories=rows,
        text=reviewing.markdown(found.changed) if format is Format.MARKDOWN else None,
    )


def _row(one: Changed) -> DiffRow:
    turned = one.turned_out is not None
    return DiffRow(
        id=one.memory.id,
        type=one.memory.type,
        title=one.memory.heading,
        change=one.change,
        file=one.path,
        fields=one.fields,
        outcome=one.memory.outcome,
        outcome_before=one.before.outcome if turned and one.before else None,
        outcome_changed=turned or None,
        supersedes=one.supersedes,
        contradicts=one.contradicts,
    )
