"""A run: the project, the processes at work on it, and what they leave."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

from bench.clients import Http
from bench.concurrent.callers import (
    TOKEN,
    Caller,
    CommandLine,
    Daemon,
    HttpServer,
    Served,
    outcome_of,
)
from bench.concurrent.linearizable import Undecided, Wrong, first_wrong
from bench.concurrent.operations import Mix, Outcome, Row, Table, registers
from bench.stores import Server
from bench.torture.examination import problems_of
from bench.torture.scratch import Scratch
from mimo.memory import codec
from mimo.memory.model import Problem

KINDS = ("command line", "pipe", "HTTP", "command line")
"""The ways of the first processes; then they begin again."""

_POLICY = """\
tool_permissions:
  putMemory: {allowed_namespaces: ["agent.*"], operations: ["write"]}
rate_limits:
  tools:
    "*": {sustained: 1000000, burst: 1000000}
  namespaces:
    "*": {sustained: 1000000, burst: 1000000}
"""


class Plan(NamedTuple):
    """The size of a run."""

    processes: int = 8
    operations: int = 10_000
    seed: int = 1
    real: float = 0.1
    """The share of command lines that run as processes of their own; others run in their caller."""
    killed: float = 0.004
    """The share of command lines that are killed."""
    minutes: float = 600
    """The processes start no operation after this time."""


class Report(NamedTuple):
    """The outcome of a run."""

    plan: Plan
    rows: Sequence[Row]
    wrong: Sequence[Wrong]
    problems: Sequence[str]
    registers: int
    checked: int
    """The operations on single registers that were checked."""
    seconds: float
    check_seconds: float

    @property
    def failed(self) -> bool:
        """Returns whether anything is wrong."""
        return bool(self.wrong or self.problems)


def run(plan: Plan, top: Path, progress: Callable[[str], object] = print) -> Report:
    """Runs the processes in a new project in the folder `top`, and checks the history."""
    scratch = Scratch(top)
    anchors = _project(scratch)
    environ = _environ(scratch)
    fork = multiprocessing.get_context("fork")
    table = Table()
    start = time.monotonic()
    with ExitStack() as running:
        daemon = Daemon(scratch.project, environ)
        running.callback(daemon.close)
        server = HttpServer(scratch.project, environ)
        running.callback(server.close)
        workers = []
        for number in range(plan.processes):
            arguments = (plan, number, scratch, table, anchors, server.port)
            worker = fork.Process(target=_work, args=arguments)
            worker.start()
            workers.append(worker)
        for worker in workers:
            worker.join()
    seconds = time.monotonic() - start
    progress(f"{seconds:.0f} s; checking")
    rows = [row for number in range(plan.processes) for row in _history(top, number)]
    problems = [
        f"process {n} ended with {worker.exitcode}"
        for n, worker in enumerate(workers)
        if worker.exitcode
    ]
    before = time.monotonic()
    rows += _last(scratch, rows, plan.processes)
    by_register = registers(rows)
    wrong = []
    for name, operations in by_register.items():
        try:
            if found := first_wrong(name, operations):
                wrong.append(found)
        except Undecided:
            problems.append(f"{name}: too many orders of its operations to check")
    check_seconds = time.monotonic() - before
    problems += _unexpected(rows)
    problems += _examined(scratch)
    return Report(
        plan=plan,
        rows=rows,
        wrong=wrong,
        problems=problems,
        registers=len(by_register),
        checked=sum(map(len, by_register.values())),
        seconds=seconds,
        check_seconds=check_seconds,
    )


def _environ(scratch: Scratch) -> dict[str, str]:
    own = ("MIND_PROJECT", "SANDBOX_DIR", "CLAUDECODE", "GIT_DIR")
    environ = {name: value for name, value in os.environ.items() if name not in own}
    home = str(scratch.home)
    return environ | {
        "HOME": home,
        "MIND_HOME": f"{home}/.mind",
        "MIND_BACKGROUND": "off",
        "MIND_DEBUG": "1",
    }


def _project(scratch: Scratch) -> list[str]:
    """Makes the project, and returns the memories to which others link."""
    scratch.project.mkdir(parents=True)
    scratch.home.mkdir()
    (scratch.home / ".gitconfig").write_text("[user]\nname = A\nemail = a@example.org\n")
    scratch.git("init", "--quiet", "--initial-branch=main", "--template=")
    lines = ["init", "config --user embedding.encoder off"]
    scratch.fork(lambda: max(scratch.call(*line.split()).status for line in lines))
    scratch.write(".mind/policy.yaml", _POLICY)
    anchors = []
    for text in ("The first anchor holds", "Chains lead to the second anchor"):
        anchors.append(str(scratch.mind("add", text, "--json").answer["id"]))
    scratch.mind("trust", "--all")
    return anchors


def _caller(plan: Plan, number: int, scratch: Scratch, port: int) -> Caller:
    match KINDS[number % len(KINDS)]:
        case "pipe":
            return Served(Server(scratch.project, _environ(scratch)))
        case "HTTP":
            return Served(Http(port, TOKEN))
        case _:
            draw = random.Random(f"{plan.seed} caller {number}")
            return CommandLine(draw, plan.real, plan.killed)


def _work(
    plan: Plan, number: int, scratch: Scratch, table: Table, anchors: Sequence[str], port: int
) -> None:
    """Does the operations of one process, and writes its part of the history."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    environ = _environ(scratch)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(scratch.project)
    mix = Mix(number, plan.seed, table, anchors)
    caller = _caller(plan, number, scratch, port)
    deadline = time.monotonic() + plan.minutes * 60
    with _file(scratch.top, number).open("w", encoding="utf-8") as file:
        for _ in range(plan.operations):
            if time.monotonic() > deadline:
                break
            call = mix.next()
            start = time.monotonic_ns()
            outcome = caller.call(call)
            end = time.monotonic_ns()
            mix.done(call, outcome)
            row = (number, start, end, call.name, call.about, outcome)
            file.write(f"{json.dumps(row)}\n")
    caller.close()


def _file(top: Path, number: int) -> Path:
    return top / f"history-{number}.jsonl"


def _history(top: Path, number: int) -> Iterator[Row]:
    with suppress(FileNotFoundError), _file(top, number).open(encoding="utf-8") as file:
        for line in file:
            row = Row(*json.loads(line))
            yield row._replace(outcome=Outcome(*row.outcome))


def _last(scratch: Scratch, rows: Sequence[Row], process: int) -> Iterator[Row]:
    """Yields a last reading of each memory, from the files, and of each topic."""
    files = {}
    for path in (scratch.project / ".mind/facts").glob("fact_q*.md"):
        parsed = codec.parse(path.read_bytes(), path=path.name, modified=None)  # type: ignore[arg-type]
        if not isinstance(parsed, Problem):
            files[path.name.split("_")[1]] = parsed.memory
    now = time.monotonic_ns()
    for name in {row.about["memory"] for row in rows if "memory" in row.about}:
        outcome = Outcome(error="NOT_FOUND", message="Memory not found")
        if memory := files.get(name):
            answer = {
                "content": memory.content,
                "tags": list(memory.tags),
                "sections": {},
                "links": [{"to": link.to} for link in memory.links],
                "protected": bool(memory.protected),
            }
            outcome = Outcome(answer)
        yield Row(process, now, now + 1, "show", {"memory": name}, outcome)
    for topic in {row.about["topic"] for row in rows if "topic" in row.about}:
        shown = scratch.mind("show", topic, "--json")
        outcome = outcome_of(shown.status, shown.output, shown.errors)
        yield Row(process, now, now + 1, "topic", {"topic": topic}, outcome)


def _unexpected(rows: Sequence[Row]) -> Iterator[str]:
    """Yields the errors that no operation of the run may meet, each kind once."""
    counts: Counter[tuple[str, str]] = Counter()
    example = {}
    for row in rows:
        if not row.outcome.is_permitted:
            key = (row.name, row.outcome.error or "")
            counts[key] += 1
            example[key] = row.outcome.message
    for key, count in counts.items():
        yield f"{count} × {key[0]}: {key[1]}: {example[key]}"


def _examined(scratch: Scratch) -> list[str]:
    """Returns the faults that the project has at the end."""
    run = scratch.fork(lambda: _examine(scratch))
    return list(run.answer) if run.status == 0 else [f"it can't be examined: {run.errors[-500:]}"]


def _examine(scratch: Scratch) -> int:
    problems = list(problems_of(scratch))
    listed = _everything(scratch)
    problems += [
        f"{id} is {row['trust']}" for id, row in listed.items() if row["trust"] != "trusted"
    ]
    questions = [memory["title"].split(" ")[0] for memory in listed.values()][:100]
    questions += [memory["title"].split(" ")[-1] for memory in listed.values()][:50]
    before = [_found(scratch, question) for question in questions]
    # Kept, so that the cause of a difference can be found.
    shutil.move(scratch.project / ".mind/.index", scratch.top / "index-before")
    if listed != _everything(scratch):
        problems.append("the list differs from that of a fresh index")
    after = [_found(scratch, question) for question in questions]
    for question, old, new in zip(questions, before, after, strict=True):
        if old != new:
            lost, added = sorted({*old} - {*new}), sorted({*new} - {*old})
            problems.append(f"`{question}` finds {lost} before, and {added} in a fresh index")
    print(json.dumps(problems))
    return 0


def _rows(scratch: Scratch, *words: str) -> Iterator[Mapping[str, Any]]:
    offset = 0
    while True:
        line = ("list", *words, "--limit", "500", "--offset", str(offset), "--json")
        rows = scratch.call(*line).answer["memories"]
        yield from rows
        offset += len(rows)
        if not rows:
            return


def _everything(scratch: Scratch) -> dict[str, Mapping[str, Any]]:
    return {row["id"]: row for row in _rows(scratch)}


def _found(scratch: Scratch, question: str) -> list[tuple[str, float]]:
    results = scratch.call("search", question, "--json").answer["results"]
    return sorted((row["id"], row["relevance"]) for row in results)
