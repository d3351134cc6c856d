"""Regular expressions from files of any author."""

import pytest

from mimo.text import patterns
from mimo.text.patterns import Unusable


def found(pattern, text, **how):
    made = patterns.compiled(pattern, **how)
    assert not isinstance(made, Unusable), made
    return list(patterns.lines(made, text.encode()))


def test_each_match_has_its_line():
    assert found("crypto", "a\ncrypto\n\nCRYPTO crypto\n") == [1, 3, 3]


def test_line_ends_are_anchors():
    assert found("^x$", "ax\nx\nxa") == [1]


def test_literal_text_is_escaped():
    assert found("a.b(", "axb(\na.b(\nA.B(", literal=True) == [1]


@pytest.mark.req("003-16")
@pytest.mark.parametrize(
    "pattern", ["(", "x*", "", "(?=x)", r"(x)\1", "x" * 513, "((a{100}){100}){100}", "\ud800"]
)
def test_unusable_pattern_has_a_reason(pattern):
    made = patterns.compiled(pattern)

    assert isinstance(made, Unusable)
    assert made.reason


@pytest.mark.req("003-16")
@pytest.mark.parametrize(
    "pattern", [r"(a+)+$", r"(a|aa)+$", r"(.*a){25}$", r"^(([a-z])+.)+[A-Z]([a-z])+$", r"(a*)*b"]
)
def test_patterns_with_exponential_backtracking_elsewhere_take_no_time(pattern):
    """With an engine that backs up, each of these would outlive the test run."""
    made = patterns.compiled(pattern)

    if not isinstance(made, Unusable):
        assert len(list(patterns.lines(made, b"a" * 50_000 + b"!"))) <= 1
