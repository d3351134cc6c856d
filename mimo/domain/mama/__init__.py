"""Rows of a MAMA v1.0 database -> memories; nothing that a row says is lost."""

from mimo.domain.mama.conversion import TABLES, Converted, Source, convert
from mimo.domain.mama.relations import LinkCounts

__all__ = ["TABLES", "Converted", "LinkCounts", "Source", "convert"]
