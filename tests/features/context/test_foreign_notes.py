"""Other people's Markdown: everything readable is found, the rest is listed, no byte changes."""

from pathlib import Path

import pytest

from mimo.call import Call
from mimo.features.notes.reading import list_
from mimo.features.search.commands import search
from mimo.operations import refresh

READABLE: dict[str, bytes] = {
    "plain.md": b"Just a line about zeppelins.\n",
    "obsidian/Daily Note.md": b"---\ntags:\n  - daily\naliases: [today]\n---\nSee [[Other]].\n",
    "hugo/post.md": b"+++\ntitle = 'A post'\ndate = 2024-05-06T07:08:09Z\n+++\nHugo writes TOML.\n",
    "windows/crlf.md": b"---\r\ntitle: From Windows\r\n---\r\nLines end in CRLF.\r\n",
    "windows/bom.md": b"\xef\xbb\xbf---\ntitle: With a mark\n---\nBytes before the header.\n",
    "한국어/결정.md": "# 캐시 결정\n\n데이터베이스 앞에 캐시를 둔다.\n".encode(),
    "中文/笔记.md": "# 数据库笔记\n\n我们选择了关系型数据库。\n".encode(),
    "rule-first.md": b"---\n\nA text that begins with a rule and has no header.\n",
    "setext.md": b"A title underlined\n==================\n\nBody.\n",
    "adr/0001-use-x.md": b"# 1. Use X\n\n## Status\n\nAccepted\n\n## Decision\n\nWe use X.\n",
    "odd-values.md": b"---\nimportance: 7\nconfidence: high\ntype: recipe\n---\nStill a memory.\n",
    "no-newline.md": b"The last line has no end",
    "broken-yaml.md": b"---\ntitle: Fix: the thing\n---\nbody\n",
    "template.md": b"---\n{{ title }}: x\n---\nbody\n",
    "alias-bomb.md": b"---\na: &a [x]\nb: *a\n---\nbody\n",
}
UNREADABLE: dict[str, bytes] = {
    "latin.md": b"---\ntitle: caf\xe9\n---\nbody\n",
    "binary.md": b"\x00\x01\x02" * 50,
    "conflict.md": b"<<<<<<< ours\none\n=======\ntwo\n>>>>>>> theirs\n",
}


@pytest.fixture
def notes(call: Call) -> Path:
    folder = call.mind.folder / "notes"
    for name, data in (READABLE | UNREADABLE).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def test_every_file_is_either_found_or_listed_with_its_reason(call: Call, notes: Path) -> None:
    listed = {row.file for row in list_(call).memories}
    problems = {problem.path: problem.reason for problem in refresh.problems(call)}

    assert listed == {f".mind/notes/{name}" for name in READABLE}
    assert set(problems) == {f".mind/notes/{name}" for name in UNREADABLE}
    assert all(problems.values())


def test_reading_changes_no_byte(call: Call, notes: Path) -> None:
    search(call, "zeppelins")
    list_(call)

    after = {str(p.relative_to(notes)): p.read_bytes() for p in notes.rglob("*.md")}
    assert after == READABLE | UNREADABLE


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("zeppelins", "plain.md"),
        ("캐시", "한국어/결정.md"),
        ("关系型数据库", "中文/笔记.md"),
        ("Hugo TOML", "hugo/post.md"),
        ("lines end CRLF", "windows/crlf.md"),
    ],
)
def test_each_is_found_by_its_own_words(call: Call, notes: Path, query: str, name: str) -> None:
    assert search(call, query).results[0].source_file == f".mind/notes/{name}"
