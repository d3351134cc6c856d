"""A store with something of everything, and the questions that are asked about it."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

from mimo.features.edges import storage
from tests.bench.torture.scratch import Result, Scratch

_THINGS = ("kettle", "pot", "cup", "harbour", "ledger", "queue", "token", "index", "parser", "lamp")
_VERBS = ("holds", "limits", "moves", "checks", "repairs", "counts", "sends", "keeps")
_KOREAN = (
    "결제 서버는 매일 새벽 네 시에 다시 시작한다",
    "로그인 토큰은 두 시간 뒤에 만료된다",
    "검색 색인은 파일에서 언제든지 다시 만들 수 있다",
    "배포는 화요일과 목요일에만 한다",
    "고양이 사료는 창고의 두 번째 선반에 있다",
)

_EDGES = (
    ("Payments repeat", "After a timeout, they are charged twice", "Send a key", "payment timeout"),
    ("Clocks differ", "Tokens expire too early on two hosts", "Allow a minute", "check a token"),
    ("Lamps flicker", "The driver drops every tenth message", "Send it twice", "dim the lamps"),
)

QUESTIONS: tuple[tuple[str, ...], ...] = (
    ("search", "kettle"),
    ("search", "who repairs the harbour lamp"),
    ("search", "warm beverage in the afternoon"),
    ("search", "로그인 토큰"),
    ("search", "when does the login expire"),
    ("search", "database decision", "--type", "decision"),
    ("search", "queue", "--tag", "red", "--limit", "3"),
    ("search", "chapter on boats"),
    ("list", "--limit", "200"),
    ("list", "--type", "fact", "--tag", "blue"),
    ("show", "{fact}"),
    ("show", "{second}"),
    ("edges", "payment timeout"),
    ("graph", "{second}", "--depth", "3"),
    ("recall", "database"),
    ("load", "context", "database"),
    ("status",),
    ("doctor",),
    ("review",),
    ("list", "--at", "HEAD", "--limit", "200"),
    ("search", "kettle", "--at", "HEAD"),
)

Questions = Sequence[tuple[str, ...]]

_MEMORIES = 24
"""Few, so that every place of every file can be tried."""
_SOME = 5
_COMMITTED = 12
_PAST = tuple(words for words in QUESTIONS if "--at" in words)


def about(file: str, number: int) -> Questions:
    """Returns some questions whose answers can depend on a file, others for each number."""
    if file == "edges.json":
        return [words for words in QUESTIONS if words[0] in ("edges", "doctor")]
    if file.startswith("past/"):
        return _PAST
    if file.startswith(("vectors", "meanings")):
        return [QUESTIONS[2], QUESTIONS[4], QUESTIONS[7], ("review",)]
    first = number * _SOME % len(QUESTIONS)
    return (*QUESTIONS, *QUESTIONS)[first : first + _SOME]


def prepared(scratch: Scratch, memories: int = _MEMORIES) -> None:
    """Makes the project with so many facts and some other memories, and indexes it.

    Some facts are committed; HEAD has only these.
    """
    scratch.project.mkdir(parents=True)
    scratch.home.mkdir()
    (scratch.home / ".gitconfig").write_text("[user]\nname = A\nemail = a@example.org\n")
    scratch.git("init", "--quiet", "--initial-branch=main", "--template=")
    scratch.enter()
    _done(scratch, "init")
    for title, description, workaround, task in _EDGES:
        given = ("--title", title, "--description", description, "--workaround", workaround)
        _done(scratch, "edges", "add", *given, "--task", task)
    time.sleep(storage._SETTLED_NS / 1e9)  # Until then, edges are not kept in `edges.json`.
    for number, text in enumerate(_texts()[:memories]):
        scratch.write(f".mind/facts/fact_{number:02}.md", text)
        if number == min(_COMMITTED, memories) - 1:
            scratch.git("add", ".mind")
            scratch.git("commit", "--quiet", "--message", "Some facts")
    _done(scratch, "trust")
    scratch.ids["fact"] = "fact_07"
    words = ("save", "decision", "database", "--json")
    scratch.ids["first"] = _done(scratch, *words[:3], "SQLite", "--because", "One file")["id"]
    second = _done(scratch, *words[:3], "PostgreSQL", "--because", "Many writers")
    scratch.ids["second"] = second["id"]
    _done(scratch, "save", "insight", "Backups are tried on Mondays", "--link",
          f"builds_on:{second['id']}")  # fmt: skip
    _done(scratch, "add", "The safe opens with the grey key", "--private")
    chapters = (f"## Chapter {n}\n\n{_chapter(n)}\n\n" for n in range(8))
    scratch.write("docs/boats.md", "# A book on boats\n\n" + "".join(chapters))
    _done(scratch, "ingest", "docs/boats.md")
    for number in range(3):  # They are not approved.
        scratch.write(f".mind/facts/foreign_{number}.md", f"The kettle of team {number} is red\n")
    _indexed(scratch)


def changed(scratch: Scratch) -> None:
    """Changes the store a little: pages of the index before that are stale."""
    for number in range(3):
        _done(scratch, "add", f"Late note {number}: the kettle was descaled", "--tag", "red")
    _done(scratch, "edit", "fact_03", "--content", "The parser keeps comments since May")
    _indexed(scratch)


def _indexed(scratch: Scratch) -> None:
    """Indexes the files, and those at HEAD."""
    _done(scratch, "search", "kettle")
    _done(scratch, "list", "--at", "HEAD")


def ask(scratch: Scratch, questions: Questions = QUESTIONS) -> dict[str, str]:
    """Returns the answer to each question, by its words."""
    answers = {}
    for words in questions:
        given = [scratch.ids[word[1:-1]] if word[0] == "{" else word for word in words]
        answers[" ".join(words)] = _comparable(scratch.call(*given, "--json"), words[0])
    return answers


def index_files(scratch: Scratch) -> list[Path]:
    """Returns all files that are made from memories and can be deleted, each of some content."""
    folders = (scratch.project / ".mind/.index", scratch.home / ".mind/cache")
    every = (path for folder in folders for path in sorted(folder.rglob("*")))
    return [path for path in every if path.stat().st_size and path.suffix in _SUFFIXES]


_SUFFIXES = (".db", ".db-sums", ".db-wal", ".db-shm", ".rows", ".json")

_VARIES = ("bytes", "generation", "index_bytes", "took_ms", "seconds")
"""Fields that say how the index is kept, or that count calls."""


def _comparable(result: Result, command: str) -> str:
    """Returns what must not depend on the index: the status and the answer."""
    answer = result.answer
    if answer is None:
        return json.dumps([result.status, result.output, result.errors], ensure_ascii=False)
    if command == "status":
        answer = {name: answer.get(name) for name in ("memories", "untrusted", "problems")}
    if command == "doctor":
        answer = [check for check in answer["checks"] if check["verdict"] == "fault"]
    return json.dumps([result.status, _without(answer)], ensure_ascii=False)


def _without(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without(field) for name, field in value.items() if name not in _VARIES}
    if isinstance(value, list):
        return [_without(item) for item in value]
    return value


def _texts() -> list[str]:
    texts = []
    for number in range(_MEMORIES):
        thing, verb = _THINGS[number % 10], _VERBS[number * 3 % 8]
        other, tag = _THINGS[number * 7 % 10], ("red", "blue", "green")[number % 3]
        linked = f"links:\n  - to: fact_{number * 13 % _MEMORIES:02}\n    type: relates_to\n"
        head = f"---\ntitle: The {thing} {verb} {number}\ntags: [{tag}, {thing}]\n"
        topic = f"topic: {other}_care\n" if number % 4 == 0 else ""
        body = f"The {thing} {verb} the {other} of team {number * 7 % 13} on day {number}."
        if number % 12 == 0:
            body = _KOREAN[number // 12]
        texts.append(f"{head}{topic}{linked if number % 5 == 0 else ''}---\n{body}\n")
    return texts


def _chapter(number: int) -> str:
    sentence = f"Boat {number} sails from the harbour with {number + 3} lamps and a brass kettle. "
    return sentence * 12


def _done(scratch: Scratch, *words: str) -> dict[str, str]:
    result = scratch.call(*words, "--json")
    if result.status:
        raise SystemExit(f"mind {' '.join(words)} failed: {result.errors or result.output}")
    return result.answer or {}
