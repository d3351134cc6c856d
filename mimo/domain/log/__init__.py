"""`.mind/MEMORY.md`, people's own log: Markdown whose lines are memories, read and never written.

`lines` takes the Markdown apart, `days` understands the headings that are dates, `grammar` says
what a single statement is, and `entries` makes records of it all.
"""

from mimo.domain.log.entries import parse, says_nothing

__all__ = ["parse", "says_nothing"]
