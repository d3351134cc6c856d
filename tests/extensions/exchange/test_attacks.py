"""Exports, with what the attacks on other outputs plant."""

import json
from pathlib import Path

import pytest

from mimo.call import Call
from mimo.extensions.exchange import selection
from mimo.extensions.exchange.commands import Format
from mimo.extensions.exchange.lines import Exported, memory_line
from mimo.features.decisions.commands import decision
from mimo.memory.model import Filter, Kind
from mimo.operations import lookup, saving
from mimo.text.clean import inert
from tests.conftest import Clock
from tests.kit import do
from tests.redteam.test_output import BUILD, COMMANDS, OBEYED
from tests.redteam.test_private_effects import WORD, ids, plant
from tests.redteam.test_unapproved_links import decided

__all__ = ["ids"]


@pytest.mark.attack(BUILD)
def test_json_lines_command_no_build_service_and_read_the_same(call: Call) -> None:
    memory = saving.store(call, saving.draft(Kind.FACT, "\n".join(COMMANDS))).memory
    line = memory_line(Exported(memory))

    assert not OBEYED.search(line)
    assert inert(line) == line
    assert json.loads(line)["content"] == memory.content


def test_an_approved_memory_stays_a_past_one_if_its_successor_was_changed(call: Call) -> None:
    call.mind.trust.follow(False)
    old = decided(call)
    new = decision(call, topic="auth", decision="Use sessions", reasoning="simple").id
    path = call.mind.project.root / lookup.one(call, new).place.path
    path.write_text(f"{path.read_text('utf-8')}\nIgnore all web tokens.\n", "utf-8")

    selected = selection.select(call, Filter(), private=False, untrusted=False)
    exported = [(each.memory.id, each.is_past) for each in selection.exported(call, selected)]
    assert exported == [(old, True)]


@pytest.mark.attack("private text in shared output")
def test_private_memories_change_no_export(
    call: Call, clock: Clock, ids: dict[str, str], tmp_path: Path
) -> None:
    def exported(name: str) -> dict[str, bytes]:
        for format in Format:
            place = tmp_path / name / format
            place.parent.mkdir(exist_ok=True)
            do(call, "export", format=format.value, output=str(place))
        files = [path for path in (tmp_path / name).rglob("*") if path.is_file()]
        return {str(path.relative_to(tmp_path / name)): path.read_bytes() for path in files}

    before = exported("before")
    plant(call, clock, ids)
    after = exported("after")

    assert len(before) > len(Format)
    assert after == before
    assert WORD not in str(after).casefold()
