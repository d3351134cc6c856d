"""Values behave as a dict of values with times does, whatever is done to them in whatever order."""

import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mimo.project.values import Values
from tests.conftest import NOW

NAMESPACES = st.sampled_from(["agent.a", "agent.A", "session.a", "public"])
KEYS = st.sampled_from(["k", "K", "con", ".k", "k.md", "k~"[:1] + "2"])
VALUES = st.none() | st.integers() | st.text("a\n-:`", max_size=9) | st.lists(st.floats(0, 1))


class ValuesMachine(RuleBasedStateMachine):
    """Values beside the dict that they should be; two processes take turns."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        (self.root / ".mind").mkdir()
        self.both = [Values(self.root, "me"), Values(self.root, "me")]
        self.now = NOW
        self.wanted: dict[tuple[str, str], tuple[Any, Any]] = {}

    @rule(
        who=st.integers(0, 1),
        namespace=NAMESPACES,
        key=KEYS,
        value=VALUES,
        ttl=st.none() | st.integers(0, 60),
    )
    def put(self, who: int, namespace: str, key: str, value: Any, ttl: int | None) -> None:
        self.both[who].put(namespace, key, value, ttl, self.now)
        until = None if ttl is None else self.now + timedelta(seconds=ttl)
        self.wanted[namespace, key] = (value, until)
        self._expire()

    @rule(who=st.integers(0, 1), namespace=NAMESPACES, key=KEYS)
    def remove(self, who: int, namespace: str, key: str) -> None:
        there = self.wanted.pop((namespace, key), None)
        assert self.both[who].remove(namespace, key, self.now) == (there is not None)

    @rule(seconds=st.integers(1, 40))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        self._expire()

    @rule(who=st.integers(0, 1))
    def reopen(self, who: int) -> None:
        self.both[who].close()
        self.both[who] = Values(self.root, "me")

    @invariant()
    def both_answer_as_the_dict_does(self) -> None:
        for values in self.both:
            for namespace in ("agent.a", "agent.A", "session.a", "public"):
                keys = sorted(key for space, key in self.wanted if space == namespace)
                assert values.keys(namespace, self.now) == keys
            for (namespace, key), (value, until) in self.wanted.items():
                found = values.get(namespace, key, self.now)
                assert found is not None
                assert (found.value, found.expires) == (value, until)

    def _expire(self) -> None:
        self.wanted = {
            place: (value, until)
            for place, (value, until) in self.wanted.items()
            if until is None or until > self.now
        }

    def teardown(self) -> None:
        for values in self.both:
            values.close()
        shutil.rmtree(self.root)


TestValues = pytest.mark.req("002-25", "002-26", "002-55")(ValuesMachine.TestCase)
TestValues.settings = settings(stateful_step_count=20)
