"""What records add up to."""

from statistics import quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.guard.audit import Totals, totals_of
from mimo.guard.chain import Link


def call(number: int, **event: object) -> Link:
    told = {"event_type": "tool_call", "tool": "t", "status": "ok", "n": number, **event}
    return Link(told, None, "", "")


def added(*links: Link) -> Totals:
    totals = Totals()
    for link in links:
        totals.add(link)
    return totals


@pytest.mark.req("002-50")
@pytest.mark.req("002-52")
@pytest.mark.req("002-53")
def test_calls_are_counted_by_what_they_were() -> None:
    totals = added(
        call(1, tool="putMemory", namespace="session.a"),
        call(2, tool="putMemory", namespace="session.a"),
        call(3, tool="putMemory", namespace="public.a", status="denied", reason="namespace"),
        call(4, tool="getMemory", namespace="session.a", redactions=3),
        call(5, event_type="dropped", tool="nothing"),
    )
    assert totals.requests == {
        ("putMemory", "session.a", "ok"): 2,
        ("putMemory", "public.a", "denied"): 1,
        ("getMemory", "session.a", "ok"): 1,
    }
    assert totals.denies == {("putMemory", "namespace"): 1}
    assert totals.redactions == {("getMemory",): 3}
    assert totals.calls("putMemory") == 3
    assert totals.calls("putMemory", "denied") == 1


def test_no_record_counts_twice() -> None:
    assert added(call(1), call(2), call(2), call(1)).calls("t") == 2


@given(st.lists(st.floats(1e-5, 100), min_size=20, max_size=200))
@pytest.mark.req("002-51")
def test_a_quantile_is_near_the_true_one(seconds: list[float]) -> None:
    totals = added(*(call(n, seconds=each) for n, each in enumerate(seconds, 1)))
    ordered = sorted(seconds)
    for quantile in (0.5, 0.9, 0.99):
        rank = max(0, -(-int(quantile * len(ordered) * 100) // 100) - 1)
        near = ordered[rank : rank + 2]
        assert min(near) * 0.94 <= totals.latency("t", quantile) <= max(near) * 1.06
    assert len(quantiles(seconds)) == 3


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 9)), max_size=20))
def test_totals_survive_json(calls: list[tuple[str, float]]) -> None:
    totals = added(*(call(n, tool=tool, seconds=took) for n, (tool, took) in enumerate(calls, 1)))
    again = totals_of(totals.as_json())
    assert again.as_json() == totals.as_json()
    assert again.tools() == totals.tools()


@pytest.mark.parametrize("data", [{}, {"through": "x"}, {"through": 1, "requests": 3}])
def test_other_json_is_refused(data: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        totals_of(data)
