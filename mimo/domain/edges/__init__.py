"""Edges: what goes wrong for everybody who does not know it, and when to say so.

An edge is a memory of type `edge`: its text is what happens, `## Workaround` what to do about it,
and its header says by which stack, words and code it is recognised.
"""

from mimo.domain.edges.edge import Detection, Edge, Severity, edge_of, title_key
from mimo.domain.edges.matching import Match, Question, asked, match

__all__ = [
    "Detection",
    "Edge",
    "Match",
    "Question",
    "Severity",
    "asked",
    "edge_of",
    "match",
    "title_key",
]
