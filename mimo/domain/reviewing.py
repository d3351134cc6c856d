"""What a branch does to the memory, as Markdown for those who review it."""

import re
from collections.abc import Iterator, Sequence

from mimo.domain.changes import VERBS, one_line
from mimo.domain.memory import Memory
from mimo.frozen import frozen

_MARKUP = re.compile(r"([\\`*_\[\]<>|])")
_REFERENCES = re.compile(r"[@#!~&]")
"""Begin a mention or a reference on a forge, which notifies users and other discussions."""
_APART = "&#8203;"
"""A zero-width space, as an entity: forges find references after they have read the escapes."""
_MOST = 100
"""Memories that are listed of each sort."""


@frozen
class Changed:
    """A memory that differs between two states."""

    memory: Memory
    """Its newer state, or the last one."""
    before: Memory | None
    after: Memory | None
    path: str
    fields: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    """Ids of the memories that it supersedes now and did not before."""
    contradicts: tuple[str, ...] = ()

    @property
    def change(self) -> str:
        """Returns `added`, `changed` or `removed`."""
        if self.before is None:
            return "added"
        return "changed" if self.after else "removed"

    @property
    def turned_out(self) -> str | None:
        """Returns how the outcome changed, in words."""
        if not self.before or not self.after or self.before.outcome is self.after.outcome:
            return None
        return f"{self.before.outcome or 'open'} → {self.after.outcome or 'open'}"


def markdown(rows: Sequence[Changed]) -> str:
    """Returns a comment for a pull request: nothing in it is taken for markup but our own."""
    if not rows:
        return "### Memory\n\nNothing changes in the memory.\n"
    return "\n".join(["### Memory", *_lists(rows)]) + "\n"


def escaped(text: str) -> str:
    """Returns text that Markdown shows as it is, on one line, without mentions and references."""
    return _MARKUP.sub(r"\\\1", _REFERENCES.sub(rf"\g<0>{_APART}", one_line(text)))


def _code(id: str) -> str:
    """Returns an id as code, in which forges look for no mention."""
    return f"`{one_line(id).replace('`', '')}`"


def _lists(rows: Sequence[Changed]) -> Iterator[str]:
    for change, verb in VERBS.items():
        chosen = [row for row in rows if row.change == change]
        if not chosen:
            continue
        yield f"\n**{verb}** ({len(chosen):,})\n"
        for row in chosen[:_MOST]:
            memory = row.memory
            yield f"- {memory.type.value}: {escaped(memory.heading)} ({_code(memory.id)})"
            yield from (f"  - {told}" for told in _told(row))
        if len(chosen) > _MOST:
            yield f"- and {len(chosen) - _MOST:,} more"


def _told(row: Changed) -> Iterator[str]:
    if row.turned_out:
        yield f"outcome: **{row.turned_out}**"
    if row.fields:
        yield f"changed: {', '.join(row.fields)}"
    for ids, verb in ((row.supersedes, "supersedes"), (row.contradicts, "contradicts")):
        yield from (f"**{verb}** {_code(name)}" for name in ids)
