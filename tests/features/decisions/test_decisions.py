"""`mind save`, `evolve`, `load context` and `search by-topic`: decisions and how they evolve."""

from typing import Any

import pytest

from mimo.errors import Invalid
from mimo.features.decisions.commands import decision
from mimo.features.search.browse import by_context

WHY = "No session store is needed"


class TestSave:
    def test_a_topic_as_long_as_a_text_is_refused(self, call):
        with pytest.raises(Invalid, match="too long"):
            decision(call, "a" * 201, "Use JWT", WHY)


class TestContext:
    @pytest.mark.req("004-12")
    @pytest.mark.req("004-52")
    def test_a_search_includes_memories_five_links_away(self, call, clock):
        ids: list[str] = []
        for number, text in enumerate(["Use JWT tokens", *(f"Thing {n}" for n in range(6))]):
            links: Any = ({"to_id": ids[-1], "relationship": "builds_on"},) if ids else ()
            ids.append(decision(call, f"t{number}", text, "so", links=links).id)
            clock.forward(days=1)
        answer = by_context(call, "JWT tokens", threshold=0.5)
        assert [row.memory.id for row in answer.results] == [ids[0]]
        assert [(row.id, row.depth) for row in answer.related] == [
            (ids[depth], depth) for depth in range(1, 6)
        ]
