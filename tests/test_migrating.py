"""The guide for users of MAMA names tools that exist."""

import re
from pathlib import Path

import pytest

from mimo.call.table import all_commands
from mimo.text.tool_names import folded

GUIDE = (Path(__file__).parent.parent / "docs" / "migrating-from-mama.md").read_text("utf-8")


@pytest.mark.req("004-69")
@pytest.mark.req("004-70")
def test_every_old_tool_and_its_new_name_can_be_called() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `([\w/]+)` \| `mind ([a-z]+ [a-z-]+)\b", GUIDE, re.MULTILINE)
    callable_ = {folded(name) for name in all_commands().tools()}
    paths = set(all_commands().modules)

    assert len(rows) == 7
    for old, new, path in rows:
        assert {folded(old), folded(new)} <= callable_, old
        assert path in paths
