import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from mimo.index.embedding import open_embedder
from mimo.index.index import Index
from mimo.index.rows import Change

SEARCH = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from mimo.index.embedding import open_embedder
from mimo.index.index import Index
from mimo.index.rows import Request
from mimo.memory.model import Filter

index = Index.open(Path(sys.argv[1]), open_embedder())
index.stamps()
now = datetime(2026, 11, 20, tzinfo=UTC)
found = index.search(Request(sys.argv[2], filter=Filter(), limit=5, now=now))
print(*[hit.record.memory.id for hit in found.hits])
print(*[name for name in sys.argv[3:] if name in sys.modules])
index.close()
"""


def test_a_search_without_an_encoder_needs_no_heavy_library_in_a_new_process(
    folder: Path, change_of: Callable[..., Change]
) -> None:
    index = Index.open(folder, open_embedder())
    index.apply(
        [
            change_of("tea", "green tea in the kitchen"),
            change_of("db", "the database is PostgreSQL"),
        ],
        now_ns=1,
    )
    index.close()
    heavy = ["numpy", "usearch", "numkong", "model2vec", "tokenizers", "asyncio", "yaml", "difflib"]
    done = subprocess.run(
        [sys.executable, "-c", SEARCH, str(folder), "which beverages are there?", *heavy],
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    ids, imported = done.stdout.split("\n")[:2]

    assert ids.split()[0] == "tea"
    assert imported == ""
