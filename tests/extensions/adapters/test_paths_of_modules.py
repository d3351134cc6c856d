"""The public paths of the adapters, and the names of their tools."""

import importlib
import inspect

import pytest

import mimo.memory_tool
from mimo.call.spec import specs_in
from mimo.extensions.adapters import (
    conversations,
    file_commands,
    item_commands,
    memory_tool,
)
from mimo.guard.policy import TOOLS


def test_the_memory_tool_is_the_same_at_both_paths():
    names = ("TOOL", "Answer", "MemoryTool", "handle")
    assert all(getattr(mimo.memory_tool, name) is getattr(memory_tool, name) for name in names)


@pytest.mark.parametrize(
    ("name", "package"),
    [("anthropic", "anthropic"), ("langgraph", "langgraph"), ("openai_agents", None)],
)
def test_an_adapter_has_the_same_classes_at_both_paths(name, package):
    if package:
        pytest.importorskip(package)
    public = importlib.import_module(f"mimo.adapters.{name}")
    module = importlib.import_module(f"mimo.extensions.adapters.{name}")
    own = {key: value for key, value in vars(module).items() if inspect.isclass(value)}
    own = {
        key: value
        for key, value in own.items()
        if value.__module__ == module.__name__ and not key.startswith("_")
    }

    assert own
    assert {key: getattr(public, key) for key in own} == own


def test_a_policy_can_name_the_tools():
    modules = (conversations, file_commands, item_commands)
    names = {spec.name for module in modules for spec in specs_in(vars(module), module.__name__)}
    assert names <= set(TOOLS)
