"""The demo: its answers are right, and fit one screen."""

from pathlib import Path
from textwrap import wrap

import pytest

from mimo.call import Call
from mimo.features.search.commands import search
from mimo.features.upkeep import demo
from mimo.features.upkeep.demo import write_story
from mimo.mind import Mind
from mimo.rendering import Screen
from mimo.rendering.results import show_on

JWT = "Use JWT: access tokens for 15 minutes"
ANSWERS = {
    demo.QUESTION: JWT,
    "how long is a login valid": JWT,
    "why are uploads failing": "Flaky uploads came from the proxy",
    "where did my test account go": "Staging is rebuilt every night",
    "does Safari keep what scripts store": "Safari deletes tokens",
}
"""Questions, each with the beginning of the memory that answers it."""

_SCREEN = 33


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scratch = tmp_path_factory.mktemp("demo") / "project"
    scratch.mkdir()
    assert write_story(scratch) == len(list((scratch / ".mind").glob("*/*.md")))
    return scratch


@pytest.mark.parametrize(("question", "title"), ANSWERS.items())
def test_the_right_memory_of_the_story_is_first(story: Path, question: str, title: str) -> None:
    call = Call(Mind.open(story, environ={"MIND_HOME": str(story.parent / "home")}))
    first = search(call, question).results[0]

    assert first.title.startswith(title)
    assert not first.weak


def test_the_demo_shows_the_question_the_note_and_the_pitfall_on_one_screen(call: Call) -> None:
    result = demo.demo(call)
    asked, hooked, checked = (step.output for step in result.steps)

    assert asked.partition("\n")[0].find(JWT) > 0
    assert "FAILED, do not repeat it: a second node" in hooked
    assert "Keep the refresh token in an HttpOnly cookie" in checked
    assert Path(result.project).is_dir()
    assert not (call.mind.home / "memories").exists()

    screen = Screen()
    show_on(screen, result)
    lines = "\n".join(screen._lines).replace(str(Path(result.project).parent), "mind-demo-abcdefgh")
    rows = [row for line in lines.splitlines() for row in wrap(line, 80) or [""]]
    assert len(rows) <= _SCREEN, lines
