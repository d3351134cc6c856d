"""Approvals: only a person gives them, and only for the text that was read."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mimo.call import Call, Caller, Surface
from mimo.call.table import all_commands
from mimo.cli import guided
from mimo.errors import Conflict, Denied, Invalid
from mimo.features.notes.reading import show
from mimo.features.review import trusting
from mimo.features.review.actions import keys_of
from mimo.features.review.commands import review, trust
from mimo.mind import Mind
from mimo.operations.invoke import invoke
from mimo.project import projects
from mimo.rendering.results import setting_of
from tests.conftest import make_store


def fact(root: Path, name: str, text: str) -> Path:
    path = root / ".mind" / "facts" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    head = f"---\nid: {name}\ntype: fact\ncreated: 2026-11-01T08:00:00Z\n---\n"
    path.write_text(f"{head}{text}\n", encoding="utf-8")
    return path


def opened(root: Path, home: Path) -> Call:
    return Call(Mind(home=home, project=projects.explicit(root, home), environ={}))


@pytest.mark.parametrize(
    "tool", ["mind_trust", "mind_untrust", "mind_review_settle", "mind_review_keep"]
)
def test_an_agent_can_not_settle_or_trust(call: Call, tool: str) -> None:
    assert tool not in all_commands().tools()
    specs = {spec.name: spec for spec in all_commands().all()}
    with pytest.raises(Denied):
        invoke(specs[tool], call.by(Caller(surface=Surface.MCP)), {})


def asked(view: Call, path: str, given: Mapping[str, Any]) -> object:
    """Runs a command as the command line does."""
    return invoke(all_commands().at(path), view.by(Caller(surface=Surface.CLI)), given)


def by_command(call: Call, *, last: Callable[[], None]) -> None:
    read = show(call, "tea")
    last()
    with pytest.raises(Conflict):
        trust(call, ids=("tea",), digest=read.digest)


def by_key_in_review(call: Call, *, last: Callable[[], None]) -> None:
    walk = guided.Walk(
        run=partial(asked, call), arguments={}, options={}, setting=setting_of(call.mind, {}),
        text=lambda _: b"", everything=lambda: None, skipped=[], resolved=[], read={},
    )  # fmt: skip
    (item,) = review(call).items
    assert not guided._do(walk, item, keys_of(item)["t"])
    last()
    assert guided._do(walk, item, keys_of(item)["t"])  # The item is shown again.
    assert not walk.resolved


@pytest.mark.attack("unapproved text believed")
@pytest.mark.parametrize("approved", [by_command, by_key_in_review])
def test_a_text_that_changes_while_it_is_approved_is_not_approved(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, approved: Any
) -> None:
    make_store(tmp_path / "clone", "facts")
    path = fact(tmp_path / "clone", "tea", "Drunk without milk")
    call = opened(tmp_path / "clone", home)

    def approve(*given: Any, real: Any = trusting.approve, **named: Any) -> None:
        path.write_text(path.read_text("utf-8").replace("without", "with"), "utf-8")
        real(*given, **named)

    approved(call, last=lambda: monkeypatch.setattr(trusting, "approve", approve))

    assert "with milk" in path.read_text("utf-8")
    assert not call.mind.trust.trusted(*call.mind.store.approvals(".mind/facts/tea.md"))
    with pytest.raises(Invalid, match="one memory"):
        trust(call, mine=True, digest="x")
    with pytest.raises(Conflict, match="have changed"):
        trust(call, digest="x")
