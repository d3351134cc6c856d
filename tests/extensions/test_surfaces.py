"""Commands of extensions answer on every surface as those of the core do."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from mimo.call import Call, Surface
from mimo.call.spec import Spec
from mimo.extensions.team import tokens
from mimo.extensions.team.tokens import Member, Scope, digest_of
from tests.call import test_surfaces as core
from tests.call.test_surfaces import Example, Fresh, committed, keyed
from tests.call.test_surfaces import fresh as fresh_core
from tests.claude_sessions import claude_code
from tests.conftest import NOW
from tests.extensions.sessions.talks import KEYSET, RULE, id_of
from tests.kit import do

__all__ = ["committed", "fresh_core"]

EXAMPLES: dict[str, Example] = {
    "mind_browse": {"query": "rate limit"},
    "mind_export": {"output": "memories.jsonl"},
    "mind_import": {"source": "../memory.jsonl", "dry_run": True},
    "mind_report": {"file": "report.html"},
    "mind_search_org": {"query": "JWT tokens"},
    "mind_sessions": {"query": "keyset pagination"},
    "mind_sessions_accept": {"ids": [id_of(RULE)]},
    "mind_sessions_forget": {"sessions": ["cc-aaaaaaaa"], "yes": True},
    "mind_sessions_index": {},
    "mind_sessions_list": {"all_projects": True},
    "mind_sessions_propose": {},
    "mind_sessions_reject": {"ids": [id_of(RULE)]},
    "mind_sessions_resume": {"session": "cc-aaaaaaaa"},
    "mind_sessions_search": {"query": "keyset pagination", "all_projects": True},
    "mind_sessions_show": {"session": "cc-aaaaaaaa", "around": 2},
    "mind_token_add": {"name": "Ben", "email": "ben@example.com"},
    "mind_token_list": {},
    "mind_token_rm": {"name": "Ann"},
    "mind_token_rotate": {"name": "Ann"},
    "mind_web": {"port": 8123},
}
"""One call of each command; a command without one fails."""

SPECS = [spec for spec in core.REGISTRY.all() if spec not in core.SPECS]
ELSEWHERE = ("mind_browse", "mind_search_org", "mind_sessions")
"""Commands that need a terminal, a server or an agent; tests of their extensions have these."""

FOR_PEOPLE = [spec for spec in SPECS if spec.key not in ELSEWHERE]

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def fresh(
    fresh_core: Callable[[], Call], tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Fresh:
    """Returns the memory of the tests of the core, with a file to import and a user of a team."""
    monkeypatch.setattr("mimo.operations.earlier.is_on", lambda _: True)
    # A real viewer has tests of its own.
    monkeypatch.setattr("mimo.extensions.web.serving.serve", lambda _, port, __: f"port {port}")
    entity = '{"type": "entity", "name": "Ana", "observations": ["Owns payments"]}'
    (tmp_path / "memory.jsonl").write_text(entity, encoding="utf-8")

    def make() -> Call:
        call = fresh_core()
        ann = Member(name="Ann", email="a@example.com", scope=Scope.READ, digest=digest_of("x"))
        tokens.write(home / tokens.FILE, [ann])
        talk = [("user", "Let's use keyset pagination."), ("agent", "Done."), ("user", RULE)]
        claude_code(
            tmp_path / "user", KEYSET, call.mind.project.root, talk, NOW - timedelta(days=40)
        )
        do(call, "sessions index")
        return call

    return make


def test_every_command_is_for_people_and_has_an_example() -> None:
    assert {spec.surfaces for spec in FOR_PEOPLE} == {Surface.CLI}
    assert sorted(EXAMPLES) == sorted(spec.key for spec in SPECS)


@pytest.mark.parametrize(("spec", "example"), keyed(SPECS, EXAMPLES))
def test_every_example_fits_the_published_input_schema(spec: Spec, example: Example) -> None:
    core.test_every_example_fits_the_published_input_schema(spec, example)


@pytest.mark.parametrize(("spec", "example"), keyed(FOR_PEOPLE, EXAMPLES))
def test_answers_of_commands_for_people_match_their_schema(
    spec: Spec, example: Example, fresh: Fresh, capsys: Capture
) -> None:
    core.test_answers_of_commands_for_people_match_their_schema(spec, example, fresh, capsys)


@pytest.mark.parametrize(("spec", "example"), keyed(FOR_PEOPLE, EXAMPLES))
def test_every_answer_can_be_shown_to_people(
    spec: Spec,
    example: Example,
    fresh: Fresh,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core.test_every_answer_can_be_shown_to_people(spec, example, fresh, capsys, monkeypatch)
