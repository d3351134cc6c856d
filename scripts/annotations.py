"""Print the findings of a report in SARIF as annotations of lines, for the GitHub Action.

The action needs both, and `mind pitfalls check` gives one of them at a time.
"""

import json
import sys
from pathlib import Path
from urllib.parse import unquote

KINDS = {"note": "notice", "warning": "warning", "error": "error"}


def main() -> None:
    run = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        place = result["locations"][0]["physicalLocation"]
        path = escaped(unquote(place["artifactLocation"]["uri"]), ":,")
        title = escaped(rules[result["ruleIndex"]]["shortDescription"]["text"], ":,")
        about = f"file={path},line={place['region']['startLine']},title={title}"
        text = f"::{KINDS[result['level']]} {about}::{escaped(result['message']['text'])}\n"
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))


def escaped(text: str, more: str = "") -> str:
    """Returns a text that ends neither its line nor its part of a workflow command."""
    return "".join(f"%{ord(c):02X}" if c in f"%\r\n{more}" else c for c in text)


if __name__ == "__main__":
    main()
