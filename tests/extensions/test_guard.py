"""Commands of extensions are bound by policies as those of the core are."""

import pytest

from mimo.call import Call
from mimo.errors import Denied
from mimo.features.policy.commands import policy_explain
from mimo.operations.invoke import invoke
from tests.kit import is_of_core
from tests.redteam.test_guard import MEMBER, SHELL, SPECS, filled, policy


def test_few_commands_are_free_of_any_policy_for_a_person() -> None:
    free = {spec.name for spec in SPECS.values() if spec.needs.person and not is_of_core(spec)}
    assert free == {
        "mind_sessions_forget",
        "mind_sessions_index",
        "mind_sessions_accept",
        "mind_sessions_propose",
        "mind_sessions_reject",
        "mind_token_add",
        "mind_token_list",
        "mind_token_rm",
        "mind_token_rotate",
        "mind_web",
    }


@pytest.mark.attack(MEMBER)
@pytest.mark.parametrize("needed", ["mind_show", "mind_list", "memories"])
@pytest.mark.parametrize("key", ["mind_export", "mind_report"])
def test_a_file_with_whole_memories_needs_both_tools_that_show_them(
    call: Call, key: str, needed: str
) -> None:
    policy(call, f"tool_permissions: {{{needed}: {{operations: []}}}}\n")

    with pytest.raises(Denied) as denied:
        invoke(SPECS[key], call.by(SHELL), filled(SPECS[key]))

    assert "policy.yaml:1" in denied.value.hint
    assert not policy_explain(call, key).permitted
