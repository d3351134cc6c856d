"""The one path from a surface to a command."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import pytest

from mimo.call import Call, Caller, Surface
from mimo.call.spec import Arg, Effect, Spec, command, spec_of
from mimo.errors import Denied, Internal, Invalid, NoProject, NotFound
from mimo.memory.model import Kind
from mimo.operations import saving
from mimo.operations.invoke import invoke
from mimo.project.projects import Project
from tests.conftest import Clock, Unguarded

MCP = Caller(surface=Surface.MCP, name="a client")


class FakeMind(Unguarded):
    """As much of a Mind as `invoke` needs."""

    has_project = True

    @property
    def project(self) -> object:
        if not self.has_project:
            raise NoProject("there is no project here")
        return Project(root=Path("/"), name="x")


def declared(function: Any, **settings: Any) -> Spec:
    spec = spec_of(command("mind_try", effect=Effect.READ, toolset="extra", **settings)(function))
    assert spec is not None
    return spec


def attempt(call: Any, what: Annotated[str, Arg("What")] = "") -> Any:
    """Try something"""
    if what == "not found":
        raise NotFound("there is none")
    if what:
        raise RuntimeError(what)
    return call.author


def run(spec: Spec, arguments: dict[str, Any], caller: Caller = MCP, mind: Any = None) -> Any:
    opened: Any = mind or FakeMind()
    return invoke(spec, Call(opened, caller), arguments)


def test_a_command_runs_in_the_name_of_its_caller() -> None:
    assert run(declared(attempt), {}) == "a client"


def test_a_command_that_needs_a_project_does_not_run_without_one() -> None:
    nowhere = FakeMind()
    nowhere.has_project = False

    with pytest.raises(NoProject):
        run(declared(attempt), {}, mind=nowhere)
    assert run(declared(attempt, needs_project=False), {}, mind=nowhere) == "a client"


def test_wrong_arguments_are_reported_before_a_missing_project() -> None:
    nowhere = FakeMind()
    nowhere.has_project = False

    with pytest.raises(Invalid):
        run(declared(attempt), {"whta": ""}, mind=nowhere)


def test_a_command_of_one_surface_is_denied_on_the_other() -> None:
    with pytest.raises(Denied):
        run(declared(attempt, surfaces=Surface.CLI), {})


def test_our_errors_pass_and_others_become_one_fixed_message() -> None:
    with pytest.raises(NotFound):
        run(declared(attempt), {"what": "not found"})
    with pytest.raises(Internal) as caught:
        run(declared(attempt), {"what": "the secret text of a memory"})

    assert "secret" not in str(caught.value.wire())
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_an_interrupt_is_not_an_internal_error() -> None:
    def interrupted(call: Any) -> Any:
        """Be interrupted"""
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(declared(interrupted), {})


def test_memories_of_a_long_command_have_their_own_times(call: Call, clock: Clock) -> None:
    def slow(call: Call) -> Any:
        """Try something"""
        first = saving.store(call, saving.draft(Kind.FACT, "Before the wait"))
        clock.forward(hours=1)
        return first, saving.store(call, saving.draft(Kind.FACT, "After the wait"))

    first, second = run(declared(slow), {}, mind=call.mind)

    assert second.memory.created == first.memory.created + timedelta(hours=1)
