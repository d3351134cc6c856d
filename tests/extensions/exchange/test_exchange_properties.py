"""Every memory that a file can hold reads back from its line as itself."""

import json

import pytest
from hypothesis import given

from mimo.errors import Invalid
from mimo.extensions.exchange.lines import Exported, end_line, from_data, header_line, memory_line
from mimo.memory.codec.file import normal
from tests.properties.test_codec_properties import MEMORIES


@given(MEMORIES)
def test_a_line_reads_back_as_the_memory(memory):
    stored = normal(memory)
    line = memory_line(Exported(stored))
    assert line.isascii()
    assert line.count("\n") == 1
    assert from_data(json.loads(line)) == stored


@given(MEMORIES)
def test_the_marks_of_an_export_are_no_part_of_the_memory(memory):
    stored = normal(memory)
    data = json.loads(memory_line(Exported(stored, private=True, untrusted=True)))
    assert (data["kind"], data["private"], data["trust"]) == ("memory", True, "untrusted")
    assert from_data(data | {"a later key": 1}) == stored


def test_the_first_and_the_last_line() -> None:
    assert json.loads(header_line("shop")) == {"kind": "mind", "format": 1, "project": "shop"}
    assert json.loads(header_line("shop", user=True))["user"] is True
    assert json.loads(end_line(3)) == {"kind": "end", "memories": 3}


LINE = {"id": "fact_x", "type": "fact", "created": "2026-11-20T15:30:00Z", "content": "Tea"}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"id": None}, "id"),
        ({"id": "../x"}, "id"),
        ({"created": "yesterday"}, "created"),
        ({"type": "wish"}, "type"),
        ({"content": 5}, "content"),
        ({"importance": 7}, "importance"),
        ({"links": [{"to": "x", "weight": 1}]}, "links"),
        ({"sections": {"Why": "x"}}, "sections"),
        ({"sections": {"Reasoning": 5}}, "sections"),
        ({"sections": []}, "sections"),
        ({"competing": [{"field": "outcome"}]}, "competing"),
        ({"competing": {}}, "competing"),
        ({"extra": []}, "extra"),
    ],
)
def test_a_wrong_value_is_named(changes: dict[str, object], named: str) -> None:
    from_data(LINE)
    with pytest.raises(Invalid) as raised:
        from_data(LINE | changes)
    assert f"`{named}`" in raised.value.message
