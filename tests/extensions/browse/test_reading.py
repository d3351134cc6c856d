"""The memory that is browsed."""

from mimo.call import Call
from mimo.extensions.browse.model import Place
from mimo.extensions.browse.reading import Reader
from tests.conftest import descriptors_left
from tests.extensions.browse.conftest import run_command


def test_a_change_of_settings_leaves_no_files_open(call: Call) -> None:
    reader = Reader(Call(call.mind.reopened()), run_command, lambda *_: None)
    opened = []
    for number in range(6):
        settings = f"[trash]\ndays = {10 + number}\n"
        (call.mind.folder / "config.toml").write_text(settings, encoding="utf-8")
        reader.page(Place(), 0, lambda: False)
        assert reader.has_changed()
        opened.append(descriptors_left())
    reader.close()

    assert max(opened[2:]) <= opened[1]
