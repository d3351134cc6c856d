"""What docs/values.md and docs/policy.md show is what mind prints."""

import re
import shlex
from pathlib import Path

import pytest

from mimo.cli.main import main
from mimo.guard.policy import DEFAULT, FILE, parse
from mimo.mind import Mind

DOCS = Path(__file__).parents[2] / "docs"
VALUES = (DOCS / "values.md").read_text("utf-8")
POLICY = (DOCS / "policy.md").read_text("utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def run(mind: Mind, block: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Returns what a terminal shows when the commands of a block are typed."""
    shown = ""
    for command in re.findall(r"^\$ mind (.*)$", block, re.MULTILINE):
        main(shlex.split(command), open=lambda _: mind)
        out, err = capsys.readouterr()
        shown += f"$ mind {command}\n{out}{err}"
    return shown


@pytest.mark.req("002-65")
def test_the_page_on_values_is_true(mind: Mind, capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks(VALUES, "console"):
        assert run(mind, block, capsys) == block
    kept = (mind.folder / "values" / "agent.build" / "last_run.md").read_text("utf-8")
    assert [kept] == blocks(VALUES, "markdown")


@pytest.mark.req("002-65")
def test_the_page_on_the_policy_is_true(mind: Mind, capsys: pytest.CaptureFixture[str]) -> None:
    _, read_only, agents = blocks(POLICY, "yaml")
    permitted, faulty = blocks(POLICY, "console")
    (mind.project.root / FILE).write_text(read_only, encoding="utf-8")
    assert run(mind, permitted, capsys) == permitted

    typo = "tool_permissions:\n  listMemory:\n    alowed_namespaces: []\n"
    (mind.project.root / FILE).write_text(typo, encoding="utf-8")
    assert run(mind, faulty, capsys) == faulty

    (mind.project.root / FILE).write_text(agents, encoding="utf-8")
    assert "✓" in run(mind, "$ mind policy check", capsys)


@pytest.mark.req("002-29")
def test_the_policy_that_the_page_shows_is_what_holds_without_one() -> None:
    shown = parse(blocks(POLICY, "yaml")[0].encode(), "default")

    for name, rule in shown.rules.items():
        for part in ("operations", "namespaces", "contexts", "max_ttl_seconds"):
            assert getattr(rule, part) == getattr(DEFAULT.rules[name], part)
    assert shown.tool_limits == DEFAULT.tool_limits
    assert shown.namespace_limits == DEFAULT.namespace_limits
    assert shown.on_write is DEFAULT.on_write
