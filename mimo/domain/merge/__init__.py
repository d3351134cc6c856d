"""Three states of a file -> one that holds what both sides say: git's merge of a memory.

Merging in either order gives the same bytes. What both sides changed differently is kept in full,
one version in force and the others under `## Competing: …`; nobody's word is lost.
"""

from mimo.domain.merge.memory import Merged, merge

__all__ = ["Merged", "merge"]
