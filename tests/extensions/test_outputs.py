"""Every command and every other output with hostile text in every field, as fuzzing tries it."""

import re
from collections.abc import Callable
from random import Random
from types import ModuleType
from unittest.mock import patch

import pytest

from fuzz import outputs
from fuzz.choices import Choices
from fuzz.grammar import hostile, in_markdown
from fuzz.pages import check_page
from fuzz.project import IDS, a_project
from mimo import rendering
from mimo.call import Call
from mimo.call.spec import Effect
from mimo.call.table import all_commands
from mimo.extensions.exchange import documents, madr
from mimo.features.history import revisions
from mimo.features.history.revisions import DiffRow, markdown
from mimo.memory import note
from mimo.memory.changes import VERBS
from mimo.memory.model import Kind
from mimo.operations.rows import TrustLabel, row_of
from tests.conftest import git
from tests.kit import repository


def test_the_commands_that_are_left_out_exist() -> None:
    assert set(all_commands().modules) > outputs.NOT_RUN


TOGETHER = 12
"""The reading command lines that are tried in one project."""


@pytest.mark.attack("hostile text in any field")
def test_no_output_of_a_command_leaves_its_format(
    record_property: Callable[[str, object], None],
) -> None:
    draw = Random(1)
    every = [(spec, *form) for spec in outputs.commands() for form in outputs.formats(spec)]
    reading = [each for each in every if each[0].effect is Effect.READ]
    groups = [reading[first : first + TOGETHER] for first in range(0, len(reading), TOGETHER)]
    groups += [[each] for each in every if each not in reading]
    reached = 0
    for group in groups:
        with a_project("outputs") as call:
            outputs.fill(call, Choices(draw.randbytes(4000)))
            for spec, form, more in group:
                words = outputs.line(spec, Choices(draw.randbytes(400)), more, **form)
                reached += outputs.check_line(call, words, form)
    assert reached > 60
    record_property("tried", len(every))


@pytest.mark.attack("hostile text in any field")
def test_no_other_output_leaves_its_format() -> None:
    draw = Random(7)
    injected = 0
    for _ in range(8):
        choices = Choices(draw.randbytes(4000))
        with a_project("outputs") as call:
            outputs.fill(call, choices)
            outputs.check_agents(call, choices)
            injected += outputs.check_hooks(call, choices)
            outputs.check_block(call)
            outputs.check_exports(call)
            outputs.check_report(call)
            outputs.check_completions(call)
    assert injected > 5


@pytest.mark.attack("hostile text in any field")
def test_no_output_about_commits_leaves_its_format() -> None:
    draw = Random(11)
    for _ in range(3):
        with a_project("outputs") as call:
            root, choices = call.mind.project.root, Choices(draw.randbytes(4000))
            repository(root)
            for number in range(2):
                outputs.fill(call, choices)
                git(root, "add", "-A")
                # A name in a commit has no line end and no NUL.
                odd = (re.sub(r"[\n\0<>]", " ", hostile(choices)) for _ in range(3))
                name, email, subject = (text.encode("utf-8", "replace").decode() for text in odd)
                git(
                    root, "-c", f"user.name=a{name}", "-c", f"user.email=a{email}", "commit", "-q",
                    "--allow-empty", "-m", f"a{subject}\n\nAgent: {name}",
                )  # fmt: skip
                git(root, "checkout", "-q", "-b", f"branch-{number}-\u2066\u200b")
            for words in (
                ["log"], ["blame", IDS[0]], ["diff", "HEAD~1..HEAD"], ["sync", "--dry-run"],
                ["diff", "HEAD~1", "--format=markdown"], ["restore", IDS[0], "--at=HEAD~1"],
                ["status"], ["trust", "--follow"], ["scan", "--history"], ["list", "--at=HEAD~1"],
            ):  # fmt: skip
                is_page = "--format=markdown" in words
                outputs.check_line(call, words, {"format": "markdown"} if is_page else {})
                outputs.check_line(call, [*words, "--json"], {})


def _compared(times: int) -> None:
    """Checks differences of memories with hostile text in every field."""
    for number in range(times):
        choices = Choices(Random(number).randbytes(400))
        texts = (in_markdown(choices) for _ in range(5))
        title, id, file, *others = texts
        row = row_of(
            None, DiffRow, id=id, type=choices.one_of(list(Kind)), title=title, file=file,
            change=choices.one_of(list(VERBS)), fields=("title", "content"),
            supersedes=(others[0],), contradicts=(others[1],), outcome_changed=True,
            trust=TrustLabel.TRUSTED,
        )  # fmt: skip
        check_page(markdown([row, row]))


def _filled(check: Callable[[Call, Choices], object]) -> Callable[[int], None]:
    def tried(times: int) -> None:
        for number in range(times):
            choices = Choices(Random(number).randbytes(4000))
            with a_project("outputs") as call:
                outputs.fill(call, choices)
                check(call, choices)

    return tried


_exported = _filled(lambda call, _: outputs.check_exports(call))
_noted = _filled(lambda call, _: outputs.check_block(call))
_listed = _filled(lambda call, _: outputs.check_line(call, ["list"], {}))
_injected = _filled(outputs.check_hooks)


@pytest.mark.attack("hostile text in any field")
def test_no_text_is_an_element_of_a_comment() -> None:
    _compared(300)


@pytest.mark.parametrize(
    ("module", "name", "check"),
    [
        (revisions, "escaped", _compared),
        (documents, "literal", _exported),
        (madr, "literal", _exported),
        (note, "_begun", _noted),
        (note, "_begun", _injected),
    ],
    ids=["a comment", "an export", "records", "notes", "hooks"],
)
def test_a_page_that_lets_text_through_is_noticed(
    module: ModuleType, name: str, check: Callable[[int], None]
) -> None:
    with patch.object(module, name, lambda text, *_: text), pytest.raises(AssertionError):
        check(20)


@pytest.mark.parametrize("name", ["inert", "one_line"])
def test_a_screen_that_lets_text_through_is_noticed(name: str) -> None:
    with patch.object(rendering, name, lambda text: text), pytest.raises(AssertionError):
        _listed(20)
