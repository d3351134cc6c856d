"""What a change runs into, told to other programs: SARIF 2.1.0 and GitHub's annotations."""

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import quote

from mimo.domain.edges.edge import Severity

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {Severity.INFO: "note", Severity.WARNING: "warning", Severity.CRITICAL: "error"}
_COMMANDS = {Severity.INFO: "notice", Severity.WARNING: "warning", Severity.CRITICAL: "error"}
_LONGEST_TITLE = 200


class Reported(NamedTuple):
    """One place at which a change runs into something."""

    rule: str
    """The id of the edge, or of the decision that failed."""
    title: str
    description: str
    workaround: str
    severity: Severity
    file: str
    line: int
    text: str
    trusted: bool

    @property
    def message(self) -> str:
        """Returns in words what is met and what to do about it."""
        told = f"{self.title}. {self.workaround}" if self.workaround else self.title
        return told if self.trusted else f"{told} (from a memory that nobody here approved)"


def annotations(places: Iterable[Reported]) -> str:
    """Returns workflow commands, which GitHub shows at the lines that they name."""
    return "\n".join(_annotation(place) for place in places)


def sarif(places: Sequence[Reported], *, version: str) -> str:
    """Returns a log in SARIF 2.1.0, with one rule for each edge that was met."""
    rules = {place.rule: place for place in reversed(places)}
    indexes = {rule: number for number, rule in enumerate(sorted(rules))}
    run = {
        "tool": {
            "driver": {
                "name": "mind",
                "semanticVersion": version,
                "rules": [_rule(rules[name]) for name in indexes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(place, indexes[place.rule]) for place in places],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2)


def _rule(place: Reported) -> dict[str, Any]:
    whole = place.description or place.title
    told = f"{whole}\n\nWhat to do: {place.workaround}" if place.workaround else whole
    return {
        "id": place.rule,
        "shortDescription": {"text": place.title[:_LONGEST_TITLE]},
        "fullDescription": {"text": whole},
        "help": {"text": told},
        "defaultConfiguration": {"level": _LEVELS[place.severity]},
        "properties": {"trusted": place.trusted},
    }


def _result(place: Reported, index: int) -> dict[str, Any]:
    mark = sha256(f"{place.rule}\n{place.file}\n{place.text.strip()}".encode("utf-8", "replace"))
    return {
        "ruleId": place.rule,
        "ruleIndex": index,
        "level": _LEVELS[place.severity],
        "message": {"text": place.message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(place.file, errors="replace")},
                    "region": {"startLine": place.line, "snippet": {"text": place.text}},
                }
            }
        ],
        "partialFingerprints": {"edgeAndLine/v1": mark.hexdigest()[:32]},
    }


def _annotation(place: Reported) -> str:
    properties = {"file": place.file, "line": str(place.line), "title": place.title}
    told = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_COMMANDS[place.severity]} {told}::{_data(place.message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
