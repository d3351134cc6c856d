"""Hostile text in every field, through every command and every other output.

The commands and their formats are those of the registry, so that a new one is covered.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from shutil import rmtree
from typing import Any
from unittest.mock import patch

from prometheus_client.parser import text_string_to_metric_families

from fuzz.choices import Choices
from fuzz.grammar import hostile, in_markdown
from fuzz.pages import PROJECT, check_export, check_fence, check_page
from fuzz.project import IDS, RUN, a_project
from fuzz.tools import CALLER, TOOLS, given
from mimo.call import Call, Surface
from mimo.call.spec import Effect, Param, Spec
from mimo.call.table import all_commands
from mimo.cli.completing import candidates
from mimo.cli.main import main
from mimo.errors import Invalid, MindError
from mimo.extensions.web.report import MARK
from mimo.features import context
from mimo.features.hooks.command import respond
from mimo.index.schema import WORDS
from mimo.memory.codec import front_matter
from mimo.memory.codec.value import render
from mimo.memory.model import Filter
from mimo.project.memories import approvals_of
from mimo.server import completions, prompts, resources
from mimo.server.answers import answer
from mimo.text.clean import HIDDEN
from tests.conftest import git
from tests.sample_procedures import GREET, text

HARMFUL = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{HIDDEN}]|[\ufe00-\ufe0f]{{2}}")
OBEYED = re.compile(r"(?mi)^\s*::\s*[\w-]+[^\n]*::|##(?:vso|teamcity)?\[")
NOT_RUN = frozenset(
    {"browse", "web", "demo", "daemon start", "daemon restart", "daemon run", "daemon stop",
     "install", "uninstall", "init", "sync"}
)  # fmt: skip
"""Commands that start servers or other programs, or are not of a project."""

_ENDLESS = frozenset({"--follow", "--open", "--async", "--push", "--pull", "--port"})
_KINDS = ("fact", "decision", "insight", "edge", "checkpoint", "observation")
_FILE = "notes.md"


def commands() -> list[Spec]:
    """Returns the commands whose output is checked."""
    every = [spec for spec in all_commands().all() if spec.surfaces & Surface.CLI]
    return [spec for spec in every if spec.path not in NOT_RUN]


# The project: every field that a person or another tool can write.


def _name(choices: Choices) -> str:
    """Returns the name of a file."""
    name = re.sub(r"[/\0]", "", hostile(choices))[:60] or "a"
    return name.encode("utf-8", "replace")[:120].decode("utf-8", "ignore")


def _memory(choices: Choices, id: str | None) -> str:
    header: dict[str, Any] = {
        name: in_markdown(choices)
        for name in ("title", "topic", "by", "source", "category", "status")
    }
    kind = choices.one_of(_KINDS)
    header |= {"id": id, "type": kind} if id else {"type": kind}
    header["tags"] = [in_markdown(choices) for _ in range(choices.number(3))]
    header["links"] = [{"to": choices.one_of([*IDS, "x"]), "type": in_markdown(choices)}]
    header[choices.one_of(["x", "session", "source_file", "severity"])] = in_markdown(choices)
    header["outcome"] = choices.one_of(["failed", "success", "pending"])
    kept = {}
    for key, value in header.items():
        with suppress(Invalid):  # Some text can't be in a header.
            front_matter.emitted_lines({key: value})
            kept[key] = value
    lines = front_matter.emitted_lines(kept)
    body = f"{in_markdown(choices)}\n\n## Reasoning\n\n{in_markdown(choices)}\n\n## Outcome\n\n"
    return f"---\n{lines}---\n{body}{in_markdown(choices)}\n"


def fill(call: Call, choices: Choices) -> None:
    """Writes hostile text into each kind of file of a project."""
    root, store = call.mind.project.root, call.mind.folder
    written: dict[Path, str] = {}
    for number, id in enumerate((*IDS, None)):
        folder = ("facts", "decisions", "edges", "checkpoints")[number]
        # The file that had the id before is replaced.
        name = f"{id}.md" if id else f"{_name(choices)}.md"
        written[store / folder / name] = _memory(choices, id)
    written[store / "MEMORY.md"] = (
        f"## Gotchas\n\n- {in_markdown(choices)} -> {in_markdown(choices)}\n"
    )
    written[root / _FILE] = f"{hostile(choices)}\n"
    written[root / f"{_name(choices)}.md"] = hostile(choices)
    written[root / "CLAUDE.md"] = f"# Rules\n\n{hostile(choices)}\n"
    value = {hostile(choices): [hostile(choices)]}
    with suppress(UnicodeEncodeError):  # Half of a surrogate pair can't be in a value.
        data = render("agent.x", "evil", value).decode()
        written[store / "values" / "agent.x" / "evil.md"] = data
    spoken = GREET.replace('"Hello, {{who}}"', json.dumps(hostile(choices)))
    steps = text("greet", spoken, description=json.dumps(hostile(choices)))
    steps = steps.replace("greet", choices.one_of(["greet", "greet", "a", hostile(choices)]))
    written[store / "procedures" / "greet@1.0.md"] = steps
    written[store / "config.toml"] = f"format = 1\n{json.dumps(hostile(choices))} = 1\n"
    if choices.seldom():
        written[store / "policy.yaml"] = (
            f"tool_permissions: {{{json.dumps(hostile(choices))}: {{}}}}"
        )
    for path, content in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("utf-8", "replace"))
    every = {path.relative_to(root).as_posix(): path.read_bytes() for path in written}
    if choices.seldom(4):  # What the user commits is trusted, too; this takes longer.
        git(root, "add", ".")
        message = hostile(choices).replace("\0", "").encode("utf-8", "replace").decode()
        git(root, "commit", "--quiet", "--allow-empty-message", "--file=-", input=message)
    call.mind.trust.approve(name for text in every.items() for name in approvals_of(*text))


# The command lines.


def _value(param: Param, choices: Choices) -> str:
    inner = param.shape.items or param.shape
    name = param.name.lower()
    if inner.choices and not choices.seldom():
        return choices.one_of(inner.choices)
    if inner.kind in ("integer", "number"):
        return str(choices.one_of([param.arg.ge or 0, 1, 5, hostile(choices)]))
    if inner.kind == "json":
        return json.dumps({"a": hostile(choices)})
    usual = {
        "id": choices.one_of(IDS), "other": choices.one_of(IDS), "namespace": "agent.x",
        "key": "evil", "name": "greet", "file": _FILE, "path": _FILE, "source": _FILE,
        "output": "out", "directory": ".", "target": ".", "db": _FILE, "diff": _FILE,
        "execution_id": RUN,
    }  # fmt: skip
    if name.rstrip("s") in usual:
        # Paths stay in the project: another one would be read, or written.
        is_path = usual[name.rstrip("s")] in (_FILE, "out", ".")
        other = _name(choices) if is_path else hostile(choices)
        return other if choices.seldom(4) else usual[name.rstrip("s")]
    return hostile(choices)


def line(spec: Spec, choices: Choices, more: Sequence[str] = (), **fixed: str) -> list[str]:
    """Returns a command line, with more options and the given values of some parameters."""
    options, places = list(more), []
    for param in spec.params:
        if Surface.CLI not in param.arg.surfaces or param.typed in _ENDLESS:
            continue
        wanted = fixed.get(param.name)
        if wanted is None and not param.required and not choices.seldom(4):
            continue
        if param.shape.kind == "boolean":
            options.append(param.typed)
        elif param.positional:
            places.append(wanted or _value(param, choices))
        else:
            options.append(f"{param.typed}={wanted or _value(param, choices)}")
    words = [*spec.path.split(), *options, "--", *places]
    return [word.replace("\0", "").encode("utf-8", "replace").decode() for word in words]


def formats(spec: Spec) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Yields the forms of a command's output: values of `--format`, and other options."""
    yield {}, []
    yield {}, ["--json"]
    if spec.is_long:
        yield {}, ["--long"]
    for param in spec.params:
        if param.name == "format":
            for word in param.shape.choices:
                yield {"format": word}, []


def ran(call: Call, words: Sequence[str], **environ: str) -> tuple[str, str]:
    """Returns what a command line writes to standard output and standard error."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    surroundings = {"MIND_HOME": str(call.mind.home), "HOME": str(call.mind.home.parent)}
    surroundings |= {
        "MIND_BACKGROUND": "off",
        "MIND_DEBUG": "1",
        "PATH": os.environ.get("PATH", ""),
    } | environ
    before = Path.cwd()
    os.chdir(call.mind.project.root)
    try:
        with (
            patch.dict(os.environ, surroundings, clear=True),
            redirect_stdout(out),
            redirect_stderr(err),
            suppress(SystemExit),
        ):
            main(words, open=lambda _: call.mind.reopened())
    finally:
        os.chdir(before)
    for stream in (out, err):
        stream.seek(0)
    return out.read(), err.read()


def check_line(call: Call, words: Sequence[str], form: dict[str, str]) -> bool:
    """Checks what a command prints in one of its forms; returns whether it printed an answer."""
    out, err = ran(call, words)
    assert "unexpected error" not in err, (words, err)
    check_text(err, words)
    format = form.get("format")
    if format != "github":
        check_text(out, words)
    assert not HARMFUL.search(out), (words, HARMFUL.search(out))
    if not out or " --output=" in " ".join(words):  # The answer is in the file.
        return bool(out)
    if "--json" in words or format == "sarif":
        json.loads(out)
    elif format == "github":
        assert all(re.match(r"::(notice|warning|error) file=", row) for row in out.splitlines())
    elif format in ("jsonl", "mcp") or words[:2] == ["audit", "export"]:
        assert all(isinstance(json.loads(row), dict) for row in out.splitlines())
    elif format == "prometheus":
        assert list(text_string_to_metric_families(out))
    elif format in ("mermaid", "dot"):
        check_graph(out, format)
    elif words[0] == "diff" and format == "markdown":
        check_page(out)
    elif format == "llms" and out.startswith("# "):
        check_page(out, PROJECT)
    return True


_LABEL = r"[^\"`<>\[\]{}()|]*"
_QUOTED = r'"(?:[^"\\]|\\["\\n]|(?<=#)\\#)*"'
"""The last one is in a command for a build service, and Graphviz shows no backslash there."""
_OF_GRAPH = {
    "mermaid": r"```(?:mermaid)?|flowchart LR|stateDiagram-v2|  classDef \w+ [\w :,#-]+|"
    rf'  n\d+\["(?:{_LABEL}|<br/>)*"\](?::::\w+)?|  n\d+ -->\|"{_LABEL}"\| n\d+|'
    rf'    state "{_LABEL}" as \w+|    (?:\w+|\[\*\]) --> (?:\w+(?:: {_LABEL})?|\[\*\])',
    "dot": rf"digraph memory \{{|\}}|  rankdir=LR;|  node \[shape=box\];|"
    rf'  n\d+(?: -> n\d+)? \[label={_QUOTED}(?:, \w+=(?:\w+|"[#\w]+"))*\];',
}
"""The lines of a diagram."""


def check_graph(out: str, format: str) -> None:
    """Checks that each line of a diagram is one of its grammar, so that no text left its label."""
    for row in out.splitlines():
        assert not row or re.fullmatch(_OF_GRAPH[format], row), row
    if out.startswith("```"):
        check_fence(out)


def check_text(shown: str, about: object) -> None:
    """Checks that a text commands neither a terminal nor a build service."""
    assert not HARMFUL.search(shown), (about, HARMFUL.search(shown), shown[:2000])
    assert not OBEYED.search(shown), (about, OBEYED.search(shown))


def check_read(shown: str) -> None:
    """Checks a text for agents: no line of it is a command."""
    assert not HARMFUL.search(shown), (HARMFUL.search(shown), shown[:2000])
    assert not re.search(r"(?mi)^\s*(::\s*[\w-]+[^\n]*::|##(?:vso|teamcity)?\[)", shown), shown


# The other outputs.


def check_agents(call: Call, choices: Choices) -> None:
    """Checks the texts for agents: of tools, resources, prompts and completions."""
    specs = choices.one_of(TOOLS)
    shown = [answer(specs, call.by(CALLER), given(choices, specs)).content[0]]
    texts = [getattr(part, "text", "") for part in shown]
    with suppress(MindError):
        texts += [resource.title or "" for resource in resources.newest(call.by(CALLER))]
        texts += [resources.read(call.by(CALLER), f"mind://memory/{id}").text for id in IDS]
        for kind in ("topic", "tag"):
            texts += completions.complete(call, kind).values
        prompt = prompts.prompt(call.by(CALLER), prompts.RESUME.name, {})
        for message in prompt.messages:
            check_fenced(getattr(message.content, "text", ""))
    for each in texts:
        assert not HARMFUL.search(each), HARMFUL.search(each)
    check_read(getattr(shown[0], "text", ""))


def check_hooks(call: Call, choices: Choices) -> int:
    """Checks that what hooks inject into a session stays within its fence.

    Returns the number of injected notes. A hook reads the index as it is, so it is brought up to
    date before.
    """
    ran(call, ["list"])
    environ = {"HOME": str(call.mind.home.parent), "MIND_HOME": str(call.mind.home)}
    name = choices.one_of(["SessionStart", "UserPromptSubmit", "PreToolUse"])
    titles = [record.memory.heading for record in call.mind.index.records(Filter())]
    event = {
        "hook_event_name": name, "session_id": hostile(choices) or "s",
        "prompt": choices.one_of([*titles, ""]) + hostile(choices),
        "cwd": str(call.mind.project.root), "source": "startup", "tool_name": "Edit",
        "tool_input": {"file_path": _FILE, "new_string": hostile(choices)},
    }  # fmt: skip
    data = json.dumps(event).encode()
    count = 0
    for client in ("claude-code", "cursor", "gemini"):
        with suppress(MindError):
            for injected in _texts(respond(data, client, environ)):
                count += check_fenced(injected)
    return count


def check_fenced(shown: str) -> int:
    """Checks a text that may end with fenced notes; returns the number of lines in the fence."""
    check_read(shown)
    opened, closed = shown.count("<mind-context"), shown.count("</mind-context")
    assert opened == closed <= 1, shown
    if not opened:
        return 0
    _, notes, rest = re.split(r"<mind-context[^>]*>\n|\n</mind-context>", shown)
    assert not rest, shown
    check_notes(notes)
    return notes.count("\n") + 1


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict | list):
        for item in data.values() if isinstance(data, dict) else data:
            yield from _texts(item)


def check_block(call: Call) -> None:
    """Checks that the notes in CLAUDE.md stay in their block, without an open fence."""
    path = call.mind.project.root / "CLAUDE.md"
    ran(call, ["context", "write", "--force"])
    block = None
    with suppress(Invalid):  # Markers in the user's own text are not paired.
        block = context.find(path.read_bytes())
    if block is not None and block.body:
        check_read(block.body)
        check_notes(block.body)


def check_notes(notes: str) -> None:
    """Checks notes for agents: headings of ours, and lists of memories."""
    check_page(notes, r"[A-Z][\w ()',]*", formatted=True)
    for row in notes.splitlines():
        assert re.match(r"- |## [A-Z]|_Notes|Where work stopped|$", row), row


def check_exports(call: Call) -> None:
    """Checks the exports that are folders, and llms.txt."""
    for format in ("markdown", "madr", "okf", "claude"):
        ran(call, ["export", f"--format={format}", "--output=vault", "--untrusted", "--force"])
        vault = call.mind.project.root / "vault"
        every = (path for path in vault.rglob("*.md") if path.is_file())
        check_export(
            {path.relative_to(vault).as_posix(): path.read_text("utf-8") for path in every}
        )
        rmtree(vault, ignore_errors=True)
    form = {"format": "llms"}
    check_line(call, ["export", "--format=llms", "--untrusted"], form)


def check_report(call: Call) -> None:
    """Checks that a report has its own elements only."""
    path = call.mind.project.root / "report.html"
    ran(call, ["report", "report.html", "--untrusted", "--force"])
    if path.exists():
        page = path.read_text("utf-8")
        assert page.startswith(MARK)
        assert page.count("<script") == page.count("</script>") == 2
        data = page.split('id="data">', 1)[1].split("</script>", 1)[0]
        assert "<" not in data
        assert not HARMFUL.search(data)
        json.loads(data)


def check_completions(call: Call) -> None:
    """Checks that the shell is offered words of one line."""
    before = Path.cwd()
    os.chdir(call.mind.project.root)
    try:
        for kind in (*WORDS, "id", "memory", "procedure", "setting", "project", "type"):
            for row in candidates(kind, "", None):
                for word in row:
                    check_text(word, kind)
                    assert not re.search(r"[\n\t]", word)
    finally:
        os.chdir(before)


def hostile_outputs(data: bytes) -> None:
    """No output commands a reader, and each keeps to its format, with any text stored and asked."""
    choices = Choices(data)
    every = commands()
    spec = choices.one_of(every)
    with a_project() as call:
        form, more = choices.one_of(list(formats(spec)))
        fill(call, choices)
        check_line(call, line(spec, choices, more, **form), form)
        check_agents(call, choices)
        check_hooks(call, choices)
        if spec.effect is Effect.READ and choices.seldom(4):
            check_block(call)
            check_exports(call)
            check_report(call)
            check_completions(call)
