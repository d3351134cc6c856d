"""Check texts and names against the word list: plain technical English, actors named.

Reads docstrings, comments, texts and names of Python files, and the prose of Markdown files.
Exits with 1 if a folder has more findings than scripts/words.json allows. `words.py PATH...` lists
every finding below the given paths; `words.py --record` lowers the allowances to the present
numbers, which never rise.
"""

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

INSTEAD = {
    r"(?:some|no|any)body": "the user, another user",
    r"told|tells|said|says": "reported, shows, contains, states",
    r"(?:stands|stood) (?!for|in)|lies\b": "is, is stored, appears",
    r"anew": "again, rebuilt",
    r"whoever": "the caller, the user",
    r"whatever": "anything that",
    r"what (?:(?:it|they|there) (?:is|are|was|were)|is (?:not )?there)": "the ..., existing ...",
    r"in force": "active, current",
    r"settle[sd]?|settling": "resolve",
    r"near doubles?": "near-duplicate",
    r"a look at": "a check of, reading",
    r"(?<!there )is no (?!longer|more than)[a-z]+|is none of": "is not a, is not one of",
    r"made of": "its parts",
    r"tak(?:e|es|en|ing) in(?! (?:the|a|an|that|this|order|its)\b)": "import, ingest",
    r"go(?:es)? wrong|went wrong": "fail",
    r"the past": "at that revision",
    r"unless (?:said|told)": "default",
    r"(?<!be )gone": "missing, deleted",
    r"but for|save for": "except",
}
"""Words and phrases that our texts do without, each with words for it."""

PHRASES = re.compile("|".join(rf"(\b(?:{words})\b)" for words in INSTEAD), re.IGNORECASE)
NAMES = {"told", "found", "said", "known", "there", "one", "gone"}
"""Names of variables that tell how a thing was got, and not what it is."""

ENDINGS = {
    *("before", "first", "kept", "wanted", "other", "others", "last", "given", "rest", "shown"),
    *("own", "most", "every", "made", "whole", "latter"),
}
"""Words that qualify a noun, and say little as a name, or as the end of one."""
MOST_ENDINGS = 6
"""The most such names of each thousand that the package gives."""

FIRST = re.compile(r"(?:what|how|where|whether|who|why)\b", re.IGNORECASE)
"""Words that no docstring begins with."""

COMMENT = re.compile(r"(?:^[ \t]*|[^'\"\n]  )# (.*)$", re.MULTILINE)

CODE = re.compile(r"```.*?^```|`[^`\n]*`|review settle|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
"""What a text quotes: code, addresses, and the command `review settle`."""

EXCEPT = {
    "mimo/when": "its vocabulary is what users type",
    "mimo/text/continuity.py": "its vocabulary is what users type",
    "mimo/ranking/vocabulary.py": "its vocabulary is what users type",
    "scripts/words.py": "it has the list",
}
"""Files and folders that are not read, each with the reason."""

PAGES = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md")

ALLOWED = Path("scripts/words.json")
"""The most findings of each folder; a folder that is not named may have none."""


class Finding(NamedTuple):
    """A place that has a word of the list."""

    path: Path
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: `{self.word}`: {self.instead}"


def in_text(path: Path, line: int, text: str) -> Iterator[Finding]:
    """Yields the findings in prose that begins at a line of a file."""
    prose = CODE.sub(lambda match: "`" + "\n" * match[0].count("\n"), text)
    for match in PHRASES.finditer(prose):
        place = line + prose.count("\n", 0, match.start())
        instead = list(INSTEAD.values())[(match.lastindex or 1) - 1]
        yield Finding(path, place, match[0].strip(), instead)


def in_python(path: Path) -> Iterator[Finding]:
    """Yields the findings in comments, docstrings, names, and in texts unless it is a test."""
    source = path.read_text(encoding="utf-8")
    for comment in COMMENT.finditer(source):
        yield from in_text(path, source.count("\n", 0, comment.start()) + 1, comment[1])
    documents = set[ast.AST]()
    for node in ast.walk(ast.parse(source)):  # a statement comes before the text that it is
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            documents.add(node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_docstring = node in documents
            if is_docstring or path.parts[0] != "tests":
                yield from in_text(path, node.lineno, node.value)
            if is_docstring and (first := FIRST.match(node.value)):
                yield Finding(path, node.lineno, first[0], "begin with a noun or a verb")
        elif (name := named(node)) and name in NAMES:
            yield Finding(path, getattr(node, "lineno", 1), name, "name what it holds")


def named(node: ast.AST) -> str | None:
    """Returns the name that a node gives to a variable or a parameter."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.arg if isinstance(node, ast.arg) else None


def endings(path: Path) -> tuple[int, list[Finding]]:
    """Returns the number of names that a module gives, and those that end with a qualifier."""
    count, findings = 0, []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        name = named(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.attr
        count += name is not None
        if name and name.strip("_").lower().rpartition("_")[2] in ENDINGS:
            line = getattr(node, "lineno", 1)
            findings.append(Finding(path, line, name, "a noun, or a verb and its object"))
    return count, findings


def files() -> Iterator[Path]:
    """Yields every file that is read."""
    for folder, pattern in (("mimo", "*.py"), ("tests", "*.py"), ("scripts", "*.py")):
        yield from sorted(Path(folder).rglob(pattern))
    pages = sorted(Path("docs").rglob("*.md"))
    yield from (page for page in pages if page.parent != Path("docs/reference"))  # generated
    yield from sorted(path for path in Path("completions").iterdir() if path.is_file())
    yield from map(Path, PAGES)


def findings() -> Iterator[Finding]:
    """Yields every finding."""
    for path in files():
        if any(path.is_relative_to(place) for place in EXCEPT):
            continue
        if path.suffix == ".py":
            yield from in_python(path)
        else:
            yield from in_text(path, 1, path.read_text(encoding="utf-8"))


def folder_of(path: Path) -> str:
    """Returns the folder that a file is counted in: `mimo/project`, `tests/features/pitfalls`."""
    parts = path.parts[:-1]
    return "/".join(parts[: 3 if "features" in parts else 2]) or "."


def main(arguments: list[str]) -> int:
    """Prints the findings below the given paths, or the folders with too many; returns 1 if any."""
    every = list(findings())
    places = [argument for argument in arguments if argument != "--record"]
    ends = [endings(path) for path in sorted(Path("mimo").rglob("*.py"))]
    named_so = [finding for _, findings in ends for finding in findings]
    if places:
        below = [
            row
            for row in [*every, *named_so]
            if any(row.path.is_relative_to(place) for place in places)
        ]
        print("\n".join(map(str, below)))
        return 1 if below else 0
    counts = Counter(folder_of(finding.path) for finding in every)
    allowed: dict[str, int] = json.loads(ALLOWED.read_text(encoding="utf-8"))
    if "--record" in arguments:
        lowered = {name: min(most, counts[name]) for name, most in allowed.items() if counts[name]}
        ALLOWED.write_text(json.dumps(lowered, indent=2) + "\n", encoding="utf-8")
    for folder, number in sorted(counts.items()):
        if number > allowed.get(folder, 0):
            print(f"{folder}: {number} findings, at most {allowed.get(folder, 0)}")
            print(f"`python scripts/words.py {folder}` lists them")
    print(f"{len(every)} words of the list in our texts, at most {sum(allowed.values())}")
    share = 1000 * len(named_so) / sum(count for count, _ in ends)
    print(f"{share:.1f} of 1,000 names end with a qualifier, at most {MOST_ENDINGS}")
    has_more = any(number > allowed.get(name, 0) for name, number in counts.items())
    return 1 if has_more or share > MOST_ENDINGS else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
