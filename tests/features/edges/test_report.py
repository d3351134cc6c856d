"""What a change runs into, told to other programs."""

import json

import pytest

from mimo.features.edges.checking import Reported, annotations, sarif
from mimo.features.edges.edge import Severity


def place(line=3, *, rule="edge_x", trusted=True, severity=Severity.CRITICAL, title="It: a, b"):
    return Reported(
        rule=rule,
        title=title,
        description="What happens",
        workaround="Do\nthis 100%",
        severity=severity,
        file="src/ä b.py",
        line=line,
        text="x = 1",
        trusted=trusted,
    )


@pytest.mark.attack("hostile text in an output")
def test_an_annotation_is_escaped():
    assert annotations([place()]) == (
        "::error file=src/ä b.py,line=3,title=It%3A a%2C b::It: a, b. Do%0Athis 100%25"
    )


def test_an_annotation_from_an_unapproved_memory_says_so():
    told = annotations([place(trusted=False, severity=Severity.INFO)])

    assert told.startswith("::notice ")
    assert told.endswith("(from an unapproved memory)")


def test_sarif_has_one_rule_for_each_edge_and_a_result_for_each_place():
    log = json.loads(sarif([place(3), place(9), place(4, rule="edge_a")], version="1.2.3"))

    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert (log["version"], run["tool"]["driver"]["semanticVersion"]) == ("2.1.0", "1.2.3")
    assert [rule["id"] for rule in rules] == ["edge_a", "edge_x"]
    assert all(rules[one["ruleIndex"]]["id"] == one["ruleId"] for one in run["results"])
    assert [one["level"] for one in run["results"]] == ["error"] * 3
    physical = run["results"][0]["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "src/%C3%A4%20b.py"
    assert physical["region"] == {"startLine": 3, "snippet": {"text": "x = 1"}}


def test_a_finding_keeps_its_fingerprint_when_lines_move():
    log = json.loads(sarif([place(3), place(9)], version="1"))

    first, second = (one["partialFingerprints"] for one in log["runs"][0]["results"])
    assert first == second


def test_an_empty_report_is_valid():
    assert json.loads(sarif([], version="1"))["runs"][0]["results"] == []
    assert annotations([]) == ""
