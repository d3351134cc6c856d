"""Ingested files as a whole: found by their ids, and removed."""

from mimo.errors import AmbiguousId
from mimo.memory.model import Record
from mimo.mind import Mind
from mimo.operations import refresh, saving
from mimo.operations.finding import is_sure


def named(mind: Mind, wanted: str, *, surely: bool = False) -> tuple[Record, ...]:
    """Returns the chunks of the source that `wanted` names by its id, or a start or end of it.

    None where it names no source; a single memory goes first. With `surely`, a cut id must be long
    enough that it was meant. Raises `AmbiguousId` with the candidates.
    """
    parents = refresh.ask(mind, lambda index: index.parents(wanted))
    if not parents:
        return ()
    ids = mind.index.matching(wanted)
    if ids == (wanted,):
        return ()
    beginnings = tuple(f"{parent}." for parent in parents)
    candidates = [*parents, *(id_ for id_ in ids if not id_.startswith(beginnings))]
    if len(candidates) > 1:
        raise AmbiguousId(
            f"`{wanted}` fits {len(candidates)} sources and memories",
            hint=f"say more of it: {', '.join(candidates[:5])}",
            details={"candidates": candidates[:20]},
        )
    if surely and parents[0] != wanted and not is_sure(wanted):
        raise AmbiguousId(
            f"`{wanted}` says too little to be sure",
            hint=f"did you mean {parents[0]}?",
            details={"candidates": candidates},
        )
    return mind.index.parts(parents[0])


def remove(mind: Mind, parts: tuple[Record, ...]) -> None:
    """Removes a source with all of its chunks. Raises `Conflict` and `StorageFailed`.

    What had superseded a chunk supersedes it no more; other links to it stay, as to any memory.
    """
    newer = saving.successors(mind, parts)
    saving.check_format(mind)
    mind.store.delete_source(parts[0].place)
    refresh.note_change(mind, parts[0].place.path)
    saving.relink(mind, newer, parts)
