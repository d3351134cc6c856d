"""Events of imported memories, and the undoing of an import."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.errors import Conflict
from mimo.operations import removing
from mimo.rendering import Screen
from mimo.rendering.results import render
from tests.kit import do
from tests.operations.test_memory_events import events, run, store


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[[object], str]:
    """Returns a function that returns what people read of a result."""

    def text_of(result: object) -> str:
        screen = Screen()
        render(result, screen)
        screen.finish(pager=False)
        return capsys.readouterr().out

    return text_of


@pytest.mark.req("G-15")
def test_imported_memories_are_created_and_rolled_back_ones_deleted(call, tmp_path):
    source = tmp_path / "outside.jsonl"
    for text in ("Tea is served at five", "Coffee is served at six"):
        store(call, text)
    assert run(call, "export", "-o", str(source)) == 0
    ids = [data["id"] for _, data in events(call)]
    for id in ids:
        removing.remove(call, id)
    before = len(events(call))

    assert run(call, "import", str(source)) == 0
    created = events(call)[before:]
    assert [name for name, _ in created] == ["created"] * 2
    assert run(call, "import", str(source), "--rollback") == 0

    assert sorted(data["id"] for _, data in events(call)[before + 2 :]) == sorted(
        data["id"] for _, data in created
    )
    assert [name for name, _ in events(call)[before + 2 :]] == ["deleted"] * 2


def test_people_do_not_read_of_the_list_that_an_import_keeps(
    call: Call, tmp_path: Path, printed: Callable[[object], str]
) -> None:
    notes = tmp_path / "notes"
    (notes / ".obsidian").mkdir(parents=True)
    (notes / "Tea.md").write_text("# Tea\nBrew it.\n", "utf-8")
    do(call, "import", source=str(notes))
    first = do(call, "undo", list=True).changes[0]
    assert any("/.local/" in path for path in first.files)
    (notes / "Water.md").write_text("# Water\nFilter it.\n", "utf-8")
    do(call, "import", source=str(notes))

    with pytest.raises(Conflict) as refused:
        do(call, "undo", id=first.id)
    texts = printed(do(call, "undo", list=True)), printed(do(call, "undo"))

    assert ".local" not in refused.value.message
    assert ".local" not in "".join(texts)
    assert "facts/fact_water" in texts[1]
