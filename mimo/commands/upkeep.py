"""Looking after the store: the index and the doctor."""

from enum import StrEnum
from typing import Annotated

from mimo.commands.spec import Arg, Effect, Needs, Surface, command
from mimo.commands.types import Omitted, Out
from mimo.domain.policy import Operation
from mimo.errors import StorageFailed
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import doctor as checks
from mimo.services import upkeep


@frozen
class Indexed:
    """What bringing the index up to date came to."""

    added: Annotated[int, Out("Files that are new")]
    changed: Annotated[int, Out("Files that were read again")]
    removed: Annotated[int, Out("Files that are gone")]
    memories: int
    passages: Annotated[int, Out("Pieces of text that are searched")]
    unreadable: Annotated[int, Out("Files that could not be read; `mind doctor` lists them")]
    notice: Omitted[str] = None


class Verdict(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


@frozen
class Check:
    """One thing that was looked at."""

    name: str
    verdict: Verdict
    message: str
    hint: Omitted[str] = None
    file: Annotated[Omitted[str], Out("The file that it is about", omit=True)] = None
    line: Annotated[Omitted[int], Out("The line in it, from 1", omit=True)] = None


@frozen
class Diagnosis:
    """What the doctor found."""

    healthy: Annotated[bool, Out("Whether nothing is at fault")]
    checks: tuple[Check, ...]

    @property
    def exit_status(self) -> int:
        """Returns what the command line exits with: 1 where something is at fault."""
        return 0 if self.healthy else 1


@command(
    "mind_index",
    cli="index",
    effect=Effect.WRITE,
    idempotent=True,
    toolset="extra",
    errors=(StorageFailed,),
    examples=("mind index", "mind index --rebuild"),
)
def index(
    mind: Mind,
    *,
    rebuild: Annotated[bool, Arg("Forget the index and make it anew")] = False,
) -> Indexed:
    """Bring the index up to date with the files

    Every command does so by itself; this one is for a large import, or to see what it comes to.
    """
    done = upkeep.rebuild(mind) if rebuild else upkeep.refresh(mind)
    stats = mind.index.stats()
    return Indexed(
        added=done.added,
        changed=done.changed,
        removed=done.removed,
        memories=stats.memories,
        passages=stats.units,
        unreadable=len(upkeep.problems(mind)),
        notice=mind.notice,
    )


@command(
    "mind_doctor",
    cli="doctor",
    effect=Effect.READ,
    needs=Needs(Operation.READ, diagnosis=True),
    toolset="extra",
    needs_project=False,
    examples=("mind doctor", "mind doctor --fix"),
)
def doctor(
    mind: Mind,
    *,
    fix: Annotated[
        bool, Arg("Repair git's settings and the modes of private files", surfaces=Surface.CLI)
    ] = False,
) -> Diagnosis:
    """Look for what is wrong, and say what to do about it

    Files that could not be read are listed with line and reason; they are never changed. `--fix`
    installs the merge driver in a clone (clones do not copy git settings), adds the lines that
    .mind/.gitignore and .mind/.gitattributes lack, and closes private files to other users. It
    approves nothing.
    """
    if fix:
        checks.mend(mind)
    rows = tuple(
        Check(
            name=found.name,
            verdict=Verdict(found.verdict),
            message=found.message,
            hint=found.hint or None,
            file=found.file,
            line=found.line,
        )
        for found in checks.examine(mind)
    )
    return Diagnosis(healthy=all(row.verdict is not Verdict.FAULT for row in rows), checks=rows)
