"""Chains of sealed records: what any change to them shows."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.errors import Invalid
from mimo.guard.chain import Link, Placed, fault, faults, line_of, link_of, sealed

KEY = b"k" * 32

EVENTS = st.dictionaries(st.text(max_size=8), st.none() | st.integers() | st.text(max_size=12))


def chain(length: int, key: bytes = KEY) -> list[Link]:
    links: list[Link] = []
    for number in range(1, length + 1):
        prev = links[-1].hash if links else None
        links.append(sealed({"n": number, "tool": f"tool{number}"}, prev, key))
    return links


def found(links: list[Link], *, count: int | None = None, key: bytes | None = KEY) -> list[str]:
    whole = chain(count if count is not None else len(links))
    last = whole[-1].hash if whole else None
    placed = [Placed("audit.jsonl", line, link) for line, link in enumerate(links, 1)]
    return [
        f"{problem.line}: {problem.what}"
        for problem in faults(placed, key, count=len(whole), digest=last)
    ]


@given(EVENTS, st.none() | st.just("a" * 64))
def test_a_link_survives_its_line(event: dict[str, object], prev: str | None) -> None:
    link = sealed(event, prev, KEY)
    assert link_of(line_of(link)) == link
    assert fault(link, KEY) is None


def test_the_hash_covers_the_previous_hash_and_the_sorted_event() -> None:
    import hashlib
    import hmac

    link = sealed({"b": 1, "a": "é"}, "0" * 64, KEY)
    expected = hashlib.sha256(b"0" * 64 + '{"a":"é","b":1}'.encode()).hexdigest()
    assert link.hash == expected
    assert link.hmac == hmac.new(KEY, expected.encode(), "sha256").hexdigest()


def test_a_whole_chain_has_no_fault() -> None:
    assert found(chain(5)) == []
    assert found([]) == []


@dataclass
class Damage:
    message: str
    links: list[Link]
    count: int = 5


def changed(link: Link) -> Link:
    return link._replace(event=link.event | {"tool": "other"})


def resealed(link: Link, key: bytes) -> Link:
    return sealed(link.event | {"tool": "other"}, link.prev, key)


FIVE = chain(5)


@pytest.mark.parametrize(
    "damage",
    [
        Damage("3: it was changed", [*FIVE[:2], changed(FIVE[2]), *FIVE[3:]]),
        Damage("3: it was changed", [*FIVE[:2], FIVE[2]._replace(hash="0" * 64), *FIVE[3:]]),
        Damage(
            "3: it was not sealed with this machine's key",
            [*FIVE[:2], FIVE[2]._replace(hmac="0" * 64), *FIVE[3:]],
        ),
        Damage(
            "3: it was not sealed with this machine's key",
            [*FIVE[:2], resealed(FIVE[2], b"other"), *FIVE[3:]],
        ),
        Damage("3: record 3 is missing", [*FIVE[:2], *FIVE[3:]]),
        Damage("3: it does not follow the record before it", [*FIVE[:2], FIVE[1], *FIVE[2:]]),
        Damage("1: records 1 to 2 are missing", FIVE[2:]),
        Damage("3: records 4 to 5 are missing: the end was cut off", FIVE[:3]),
        Damage("0: records 1 to 5 are missing: the end was cut off", []),
        Damage(
            "2: it does not follow the record before it", [FIVE[0], FIVE[2], FIVE[1], *FIVE[3:]]
        ),
    ],
    ids=lambda damage: damage.message,
)
@pytest.mark.req("002-38")
@pytest.mark.req("002-56")
def test_damage_is_reported_at_its_record(damage: Damage) -> None:
    messages = found(damage.links, count=damage.count)
    assert messages
    if damage.message.startswith("2"):  # Of two that changed places, both are named.
        assert messages[0] == "2: record 2 is missing"
    else:
        assert damage.message in messages


@given(st.data())
@pytest.mark.req("002-56")
def test_any_edit_is_a_fault(data: st.DataObject) -> None:
    """Without the key no record can be changed, dropped, repeated, moved or forged."""
    links = chain(6)
    place = data.draw(st.integers(0, 5))
    kind = data.draw(st.sampled_from(["drop", "repeat", "swap", "forge", "cut"]))
    if kind == "drop":
        del links[place]
    elif kind == "repeat":
        links.insert(place, links[data.draw(st.integers(0, 5))])
    elif kind == "swap":
        links[place], links[place - 1] = links[place - 1], links[place]
    elif kind == "cut":
        links = links[:place]
    else:
        before = links[place - 1].hash if place else None
        links[place] = sealed({"n": place + 1, "tool": "forged"}, before, b"guess")
    assert found(links, count=6)


def test_without_the_key_only_hashes_are_checked() -> None:
    links = chain(3, b"another")
    placed = [Placed("audit.jsonl", line, link) for line, link in enumerate(links, 1)]
    assert list(faults(placed, None, count=3, digest=links[-1].hash)) == []
    assert list(faults(placed, KEY, count=3, digest=links[-1].hash))


def test_older_records_may_be_missing_if_a_record_states_it() -> None:
    links = chain(3)
    links.append(sealed({"n": 4, "event_type": "dropped", "through": 2}, links[-1].hash, KEY))
    placed = [Placed("audit.jsonl", line, link) for line, link in enumerate(links[2:], 1)]
    assert list(faults(placed, KEY, count=4, digest=links[-1].hash)) == []
    assert list(faults(placed[1:], KEY, count=4, digest=links[-1].hash))


@pytest.mark.parametrize(
    "line",
    [b"", b"{}", b"[]", b"nonsense", b'{"event":1,"prev":null,"hash":"a","hmac":"b"}', b"[" * 9000],
)
def test_other_lines_are_not_records(line: bytes) -> None:
    with pytest.raises(Invalid):
        link_of(line)


@pytest.mark.attack("changed record of the audit")
def test_a_record_written_in_another_form_is_not_a_record(
    record_property: Callable[[str, object], None],
) -> None:
    line = line_of(sealed({"n": 1, "tool": "mind_add", "agent": "a"}, None, KEY))
    forms = [
        line.replace(b'"tool"', b'"tool":"mind_list","tool"'),
        line.replace(b'"event"', b'"event":{"n":1},"event"'),
        line.replace(b'"hmac"', b'"hmac":"0","hmac"'),
        line.replace(b'"prev":null', b'"prev":null,"note":"x"'),
        line.replace(b"mind_add", b"mind_\\u0061dd"),
        line.replace(b":", b": "),
        line.replace(b"\n", b"\r\n"),
        b" " + line,
        b"\xef\xbb\xbf" + line,
    ]
    assert link_of(line).event["tool"] == "mind_add"
    for form in forms:
        assert form != line
        with pytest.raises(Invalid):
            link_of(form)
    record_property("tried", len(forms))
