"""Measure finding, the score and speaking unasked, on stores such as teams keep.

    python -m bench.asks [NAME …]

Each TOML file in this folder is a store with labels: memories, edges, questions that a memory
answers and questions that none does, prompts, intents and changes of code. Their authors had not
seen how mind ranks. The real commands answer, and the program prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from mimo.call import PERSON, Call, Caller, Surface
from mimo.call.spec import to_json
from mimo.call.table import all_commands
from mimo.cli.answering import reply
from mimo.features.hooks.command import respond
from mimo.memory.ids import MEMORY_URI, new_id
from mimo.memory.model import kind_of
from mimo.mind import Mind
from mimo.operations import asking
from mimo.operations.invoke import invoke
from mimo.operations.listening import Listener, Memory
from mimo.project.init import init, make_users
from mimo.project.projects import user_root
from mimo.project.trust import Trust
from mimo.when.question import named_time

FOLDER = Path(__file__).parent
AGENT = Caller(surface=Surface.MCP, name="claude-code")

PHRASINGS = FOLDER.parents[1] / "tests" / "text" / "continuity.toml"

Data = Mapping[str, Any]


class Asked(NamedTuple):
    """A question with its answers, best first."""

    right: frozenset[str]
    """The names that answer it; empty if none does."""
    answers: tuple[str, ...]
    scores: tuple[float, ...]
    is_sure: bool
    """False if the answers are labelled as weak."""

    @property
    def is_first(self) -> bool:
        """Returns whether the first answer is right."""
        return bool(self.right & set(self.answers[:1]))

    def among(self, most: int) -> bool:
        """Returns whether a right answer is among the first `most`."""
        return bool(self.right & set(self.answers[:most]))


class Store:
    """A store of a team, written to a project of its own."""

    def __init__(self, data: Data, scratch: Path) -> None:
        """Writes the files, and makes the index."""
        self.data = data
        self.root, self.home = scratch / "project", scratch / "home"
        self.root.mkdir(parents=True)
        init(self.root, self.home, now=_now())
        Trust(self.home, self.root).follow(True)
        self.headings: dict[str, str] = {}
        self.names: dict[str, str] = {}
        """The name in the labels of each id, and of each included file."""
        for number, memory in enumerate(data.get("memory", ())):
            self._name(memory, number, memory["type"], memory["days"])
        for number, edge in enumerate(data.get("edge", ())):
            self._name(edge, 500 + number, "edge", 30)
        home = user_root(self.home)
        if any("home" in row for row in data.get("memory", ())):
            make_users(self.home)
        for memory in data.get("memory", ()):
            folder = f".mind/{kind_of(memory['type']).folder}"
            self._write(memory, folder, _of_memory, home if memory.get("home") else None)
        for edge in data.get("edge", ()):
            is_foreign = edge.get("foreign")
            folder = "edges" if is_foreign else ".mind/edges"
            self._write(edge, folder, _of_edge, self.home if is_foreign else None)
        if "folder" in data:
            shutil.copytree(FOLDER / data["folder"], self.root / "docs")
            for path in (self.root / "docs").rglob("*.md"):
                name = path.relative_to(self.root / "docs").as_posix()
                self.names[f"docs/{name}"] = name
            config = self.root / ".mind/config.toml"
            config.write_text(config.read_text("utf-8") + 'include = ["docs/**/*.md"]\n', "utf-8")
        environ = {"MIND_HOME": str(self.home), "HOME": str(scratch)}
        self.mind = Mind.open(self.root, environ=environ)
        self.tools = all_commands().tools()
        self.ask("mind_index")
        for document in data.get("document", ()):
            path = self.root / document["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(document["text"], "utf-8")
            answer = self.ask("ingest", path=str(path))
            self.names |= dict.fromkeys(answer["ids"], document["key"])
        if user := self.mind.user():
            invoke(self.tools["mind_index"][0], Call(user), {})

    def _name(self, row: Data, number: int, type: str, days: int) -> None:
        title = row.get("title") or row["content"].strip().split("\n")[0]
        letters = "".join(chr(97 + number // 26**place % 26) for place in range(6))
        id = new_id(kind_of(type), row.get("topic") or title, _days_ago(days).date(), letters)
        self.names[id] = row["key"]
        self.headings[row["key"]] = title

    def _write(
        self, row: Data, folder: str, text: Callable[[Data, str, Store], str], root: Path | None
    ) -> None:
        id = self.id_of(row["key"])
        path = (root or self.root) / folder / f"{id}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(row, id, self), encoding="utf-8")

    def id_of(self, key: str) -> str:
        """Returns the id of a memory by its name in the labels."""
        return next(id for id, name in self.names.items() if name == key)

    def ask(
        self,
        tool: str,
        *,
        operation: str | None = None,
        caller: Caller = PERSON,
        **arguments: Any,
    ) -> Any:
        """Returns the answer of a tool as JSON data."""
        spec = next(spec for spec in self.tools[tool] if spec.operation == operation)
        return to_json(invoke(spec, Call(self.mind, caller), arguments))

    def named(self, rows: Sequence[Data]) -> tuple[str, ...]:
        """Returns the names in the labels of rows, by their ids or files, each once."""
        names = [self.names.get(row["id"]) or self.names.get(row.get("file", "")) for row in rows]
        return tuple(dict.fromkeys(name or "" for name in names))


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - spans such as `last month` are relative to it


def _days_ago(days: int) -> datetime:
    return _now() - timedelta(days=days)


def _header(fields: Mapping[str, object]) -> str:
    lines = [f"{name}: {json.dumps(value)}" for name, value in fields.items() if value]
    return "\n".join(["---", *lines, "---", ""])


def _of_memory(row: Data, id: str, store: Store) -> str:
    old = row.get("supersedes")
    fields = {
        "id": id,
        "type": kind_of(row["type"]).value,
        "title": row.get("title"),
        "topic": row.get("topic"),
        "tags": row.get("tags"),
        "outcome": row.get("outcome"),
        "created": _days_ago(row["days"]).isoformat(),
        "links": [{"to": store.id_of(old), "type": "supersedes"}] if old else None,
    }
    reasons = f"\n\n## Reasoning\n\n{row['reasoning'].strip()}" if row.get("reasoning") else ""
    return f"{_header(fields)}{row['content'].strip()}{reasons}\n"


def _of_edge(row: Data, id: str, _: Store) -> str:
    fields = {
        "id": id,
        "type": "edge",
        "title": row["title"],
        "created": _days_ago(30).isoformat(),
        "severity": row.get("severity", "warning"),
        "stack_tags": row.get("stack_tags"),
        "detection": {
            "context": row.get("stack_tags", []),
            "intent": [*row.get("keywords", []), *row.get("tasks", [])],
            "code": row.get("code", []),
        },
    }
    workaround = row["workaround"].strip()
    return f"{_header(fields)}{row['description'].strip()}\n\n## Workaround\n\n{workaround}\n"


# The answers.


def searched(store: Store, asks: Iterable[Data], caller: Caller = PERSON) -> list[Asked]:
    """Returns the answers of `mind_search` to questions of a person or of an agent."""
    asked = []
    for question in asks:
        results = store.ask("mind_search", caller=caller, query=question["ask"])["results"]
        rows = [
            {"id": row["id"], "file": row["source_file"], "score": row["relevance"]}
            for row in results
        ]
        asked.append(
            Asked(
                right=right_of(question),
                answers=store.named(rows),
                scores=tuple(row["score"] or 0.0 for row in rows),
                is_sure=bool(results) and not results[0].get("weak"),
            )
        )
    return asked


def remembered(store: Store) -> list[Asked]:
    """Returns the answers of `memory search` to every question."""
    asked = []
    for question in questions(store.data):
        answer = store.ask("memory", operation="search", query=question["ask"])
        rows = [*answer["results"], *answer.get("nearest", ())]
        scores = tuple(row["score"] or 0.0 for row in rows)
        is_sure = bool(rows) and not rows[0].get("weak")
        asked.append(Asked(right_of(question), store.named(rows), scores, is_sure))
    return asked


def recalled(store: Store) -> list[Asked]:
    """Returns the memories that `recall_memory` names for every question."""
    asked = []
    for question in questions(store.data):
        references = store.ask("recall_memory", query=question["ask"])["source_refs"]
        ids = [uri.removeprefix(MEMORY_URI) for uri in references]
        records = [store.mind.index.named(id) for id in ids]
        rows = [
            {"id": id, "file": record.place.path if record else ""}
            for id, record in zip(ids, records, strict=True)
        ]
        asked.append(Asked(right_of(question), store.named(rows), (), bool(rows)))
    return asked


def continued(store: Store) -> list[bool]:
    """Returns whether `recall_memory` answers phrasings that ask where work stopped.

    The answer is the newest checkpoint, or the newest memory of a store without one.
    """
    memories = store.data.get("memory", ())
    checkpoints = [row for row in memories if row["type"] == "checkpoint"] or memories
    newest = min(checkpoints, key=lambda row: row["days"], default=None)
    if newest is None:
        return []
    wanted = f"{MEMORY_URI}{store.id_of(newest['key'])}"
    phrasings = tomllib.loads(PHRASINGS.read_text(encoding="utf-8"))
    return [
        wanted in store.ask("recall_memory", query=text)["source_refs"]
        for text in phrasings["held"]
        if named_time(text, _now()) is None
    ]


def questions(data: Data) -> Iterator[Data]:
    """Yields the questions with answers, then those without."""
    yield from data.get("question", ())
    yield from data.get("unanswerable", ())


def right_of(question: Data) -> frozenset[str]:
    """Returns the names that answer a question."""
    return frozenset(name.removeprefix("@") for name in question.get("answers", ()))


class Count(NamedTuple):
    """Labelled cases that were met, were met by others only, or should have been silent."""

    right: int
    wanted: int
    wrong: int
    silent: int


@contextmanager
def served(store: Store) -> Iterator[None]:
    """Runs the block while a server of the store answers hooks."""
    listener = Listener(store.home, Memory(store.mind.reopened), reply)
    listener.start()
    root = str(store.root)
    request = {"ask": "status", "folder": root, **asking.surroundings(store.mind.environ)}
    while not asking.ask(str(store.home), root, request):
        time.sleep(0.05)
    try:
        yield
    finally:
        listener.close()


def spoken(store: Store, session: str = "prompt") -> Count:
    """Returns how many prompts a hook answered with a right, and with a wrong memory."""
    right = wanted = wrong = silent = 0
    environ = {"MIND_HOME": str(store.home), "HOME": str(store.home.parent)}
    for number, prompt in enumerate(store.data.get("prompt", ())):
        event = {
            "hook_event_name": "UserPromptSubmit",
            "prompt": prompt["text"],
            "session_id": f"{session}-{number}",
            "cwd": str(store.root),
        }
        text = json.dumps(respond(json.dumps(event).encode(), "claude-code", environ) or "")
        is_told = any(_beginning(store.headings[name]) in text for name in prompt["speak"])
        wanted += bool(prompt["speak"])
        silent += not prompt["speak"]
        right += is_told
        wrong += "additionalContext" in text and not is_told
    return Count(right, wanted, wrong, silent)


def _beginning(title: str) -> str:
    return json.dumps(title.strip("# `*_"))[1:-1].split("`")[0][:30]


def warned(store: Store) -> tuple[Count, Count]:
    """Returns the edges that `mind_edges` named rightly and wrongly, of intents and of changes."""
    stack = store.data.get("stack", [])
    intents = [
        (
            item["edges"],
            store.ask("mind_edges", intent=item["text"], stack=[*stack, *item.get("stack", ())]),
        )
        for item in store.data.get("intent", ())
    ]
    diffs = [
        (item["edges"], {"edges": store.ask("mind_edges_check", code=_patch(item))["findings"]})
        for item in store.data.get("diff", ())
    ]
    counts = []
    for cases in (intents, diffs):
        pairs = [(set(edges), set(store.named(answer["edges"]))) for edges, answer in cases]
        counts.append(
            Count(
                right=sum(len(wanted & named) for wanted, named in pairs),
                wanted=sum(len(wanted) for wanted, _ in pairs),
                wrong=sum(len(named - wanted) for wanted, named in pairs),
                silent=sum(not wanted for wanted, _ in pairs),
            )
        )
    return counts[0], counts[1]


def _patch(diff: Data) -> str:
    lines = diff["added"].strip("\n").split("\n")
    added = "\n".join(f"+{line}" for line in lines)
    return f"--- a/{diff['file']}\n+++ b/{diff['file']}\n@@ -1,0 +1,{len(lines)} @@\n{added}\n"


# The figures.


def share(values: Collection[bool]) -> str:
    """Returns the share of true values in percent, or a dash if there are none."""
    return f"{100 * sum(values) / len(values):.0f}" if values else "-"


def auc(asked: Sequence[Asked]) -> float | None:
    """Returns the probability that a right first answer scores above a wrong answer.

    The area under the ROC curve, by ranks (Mann and Whitney); None without answers of both kinds.
    """
    right = [answer.scores[0] for answer in asked if answer.scores and answer.is_first]
    wrong = [answer.scores[0] for answer in asked if answer.scores and not answer.is_first]
    if not right or not wrong:
        return None
    above = sum((a > b) + (a == b) / 2 for a in right for b in wrong)
    return above / (len(right) * len(wrong))


def calibration(asked: Sequence[Asked]) -> tuple[float, float]:
    """Returns Brier's score and the expected calibration error, in ten bins, of first answers."""
    pairs = [(answer.scores[0], answer.is_first) for answer in asked if answer.scores]
    brier = sum((score - right) ** 2 for score, right in pairs) / max(1, len(pairs))
    error = 0.0
    for bin in range(10):
        chosen = [(score, right) for score, right in pairs if min(9, int(score * 10)) == bin]
        error += abs(sum(score - right for score, right in chosen))
    return brier, error / max(1, len(pairs))


HEADINGS = (
    "store",
    "questions",
    "first / three / five",
    "right one shown: people, agents",
    "sure of a wrong one alone",
    "`memory search` shows",
    "recall first / three",
    "continuity",
    "unanswerable quiet: near, far",
    "AUC",
    "Brier",
    "ECE",
    "hook right / wrong %",
    "with a server",
    "edges precision / recall",
    "changes precision / recall",
    "long: first / three",
)


def row_of(store: Store) -> list[str]:
    """Returns the figures of a store."""
    asked = searched(store, questions(store.data))
    real = [answer for answer in asked if answer.right]
    to_agents = searched(store, store.data.get("question", ()), AGENT)
    misled = [answer.is_sure and not answer.among(10) for answer in to_agents]
    long = searched(store, store.data.get("long", ()))
    memory = [answer for answer in remembered(store) if answer.right]
    recall = [answer for answer in recalled(store) if answer.right]
    kinds = [item["kind"] for item in store.data.get("unanswerable", ())]
    quiet = [not answer.is_sure for answer in asked if not answer.right]
    near, far = (
        [q for q, kind in zip(quiet, kinds, strict=True) if kind == name]
        for name in ("near", "far")
    )
    brier, error = calibration(asked)
    area = auc(asked)
    hook = spoken(store)
    with served(store):
        with_server = spoken(store, "served")
    intents, diffs = warned(store)
    return [
        store.data["name"],
        str(len(real)),
        " / ".join(
            [share([answer.is_first for answer in real])]
            + [share([answer.among(most) for answer in real]) for most in (3, 5)]
        ),
        ", ".join(share([answer.among(10) for answer in some]) for some in (real, to_agents)),
        share(misled),
        share([answer.among(10) for answer in memory]),
        " / ".join(
            (
                share([answer.is_first for answer in recall]),
                share([answer.among(3) for answer in recall]),
            )
        ),
        share(continued(store)),
        f"{share(near)}, {share(far)}",
        "-" if area is None else f"{area:.2f}",
        f"{brier:.2f}",
        f"{error:.2f}",
        *(
            f"{_percent(spoke.right, spoke.wanted)}"
            f" / {_percent(spoke.wrong, spoke.wanted + spoke.silent)}"
            for spoke in (hook, with_server)
        ),
        _precision(intents),
        _precision(diffs),
        f"{share([one.is_first for one in long])} / {share([one.among(3) for one in long])}",
    ]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}" if whole else "-"


def _precision(count: Count) -> str:
    named = count.right + count.wrong
    precision = f"{count.right / named:.2f}" if named else "-"
    return f"{precision} / {count.right / count.wanted:.2f}" if count.wanted else "-"


@contextmanager
def stored(name: str) -> Iterator[Store]:
    """Yields a store of this folder."""
    data = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    with TemporaryDirectory() as scratch:
        store = Store(data, Path(scratch))
        yield store
        store.mind.close()


def chosen(about: str | None) -> list[str]:
    """Returns the stores that the command line names, all if it names none."""
    parser = argparse.ArgumentParser(description=str(about).partition("\n")[0])
    every = sorted(path.stem for path in FOLDER.glob("*.toml"))
    parser.add_argument("stores", nargs="*", metavar="NAME", help=f"of {', '.join(every)}")
    os.environ["MIND_BACKGROUND"] = "off"  # No process outlives the folder of a store.
    return parser.parse_args().stores or every


def main() -> None:
    """Print the table of the chosen stores."""
    print(f"| {' | '.join(HEADINGS)} |")
    print("|---" * len(HEADINGS) + "|")
    for name in chosen(__doc__):
        with stored(name) as store:
            print(f"| {' | '.join(row_of(store))} |", flush=True)


if __name__ == "__main__":
    main()
