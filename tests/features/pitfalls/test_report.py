"""Reports of the hits for other programs."""

import json

import pytest

from mimo.features.pitfalls.checking import Hit, annotations, sarif
from mimo.features.pitfalls.edge import Severity
from tests.features.pitfalls.examples import edge

SEVERE = edge(title="It: a, b", workaround="Do\nthis 100%", severity=Severity.CRITICAL)


def hit(line=3, which=SEVERE):
    return Hit(edge=which, path="src/ä b.py", line=line, text="x = 1", matched_on="x")


@pytest.mark.attack("hostile text in an output")
def test_an_annotation_is_escaped():
    assert annotations([hit()]) == (
        "::error file=src/ä b.py,line=3,title=It%3A a%2C b::It: a, b. Do%0Athis 100%25"
    )


def test_an_annotation_from_an_unapproved_memory_says_so():
    line = annotations([hit(which=edge(trusted=False, severity=Severity.INFO))])

    assert line.startswith("::notice ")
    assert line.endswith("(from an unapproved memory)")


def test_sarif_has_one_rule_for_each_edge_and_a_result_for_each_place():
    log = json.loads(sarif([hit(3), hit(9), hit(4, SEVERE._replace(id="edge_a"))], version="1.2.3"))

    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert (log["version"], run["tool"]["driver"]["semanticVersion"]) == ("2.1.0", "1.2.3")
    assert [rule["id"] for rule in rules] == ["edge_a", "edge_x"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    assert [result["level"] for result in run["results"]] == ["error"] * 3
    physical = run["results"][0]["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "src/%C3%A4%20b.py"
    assert physical["region"] == {"startLine": 3, "snippet": {"text": "x = 1"}}


def test_a_finding_keeps_its_fingerprint_when_lines_move():
    log = json.loads(sarif([hit(3), hit(9)], version="1"))

    first, second = (result["partialFingerprints"] for result in log["runs"][0]["results"])
    assert first == second


def test_an_empty_report_is_valid():
    assert json.loads(sarif([], version="1"))["runs"][0]["results"] == []
    assert annotations([]) == ""
