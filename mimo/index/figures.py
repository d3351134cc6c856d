"""How much an index holds."""

import sqlite3

from mimo.frozen import frozen
from mimo.index import schema, words
from mimo.index.database import Database
from mimo.index.vectors import Vectors


@frozen
class IndexStats:
    """How much the index holds."""

    memories: int
    units: int
    vectors: int
    files: int
    bytes: int
    format: int
    generation: int

    @classmethod
    def of(
        cls, sql: sqlite3.Connection, database: Database, vectors: Vectors | None
    ) -> "IndexStats":
        """Returns the figures of an index as it stands."""
        sums = words.totals(sql)
        (files,) = sql.execute("SELECT count(*) FROM files").fetchone()
        names = {name for (name,) in sql.execute("SELECT vector FROM units")}
        return cls(
            memories=sums.memories - sums.shadowed,
            units=sums.units,
            vectors=len(vectors.known(names)) if vectors else 0,
            files=files,
            bytes=database.size(),
            format=schema.FORMAT,
            generation=database.generation,
        )
