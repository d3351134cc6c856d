"""Writes what follows from the declarations: man/, docs/reference/, tests/api.txt,
mimo/call/summaries.txt, from which `mind --help` is printed without loading the commands, and
mimo/server/opening.json, with the first answers over MCP.
completions/ has copies of the scripts in mimo/completions/, where packagers look for them.

`--check` writes nothing and names what is out of date instead.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import click
from mcp.server.runner import modern_on_request
from mcp.shared.transport_context import TransportContext
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION

from mimo import __version__, errors
from mimo.call import Surface
from mimo.call.extensions import extensions
from mimo.call.schema import input_schema, listed_input, output_schema, parameter_schema
from mimo.call.spec import Needs, Param, Spec
from mimo.call.table import LAST, CommandTable, all_commands, listed
from mimo.cli.options import PROGRAMS
from mimo.cli.program import SUMMARY, Command, Words, metavar_of, program_command
from mimo.config import FALLBACKS, SETTINGS, TOOLSETS
from mimo.errors import MindError
from mimo.mind import Mind
from mimo.operations.listening import Memory
from mimo.server.app import App
from mimo.text.tool_names import spelled

ROOT = Path(__file__).parent.parent
WHOLLY_OURS = ("man", "docs/reference", "completions")
"""Folders in which no other file may be; `docs/reference/rules/` is written by hand."""

Files = dict[str, str]


def generated() -> Files:
    """Returns every generated file: its path in the repository and its text."""
    commands = all_commands()
    own = {"tests/api.txt": api(commands), "mimo/call/summaries.txt": summaries(commands)}
    own["mimo/server/opening.json"] = opening(commands)
    return man(commands) | reference(commands) | completions() | own


def completions() -> Files:
    """Returns the scripts for shells, as they are in the package."""
    paths = sorted((ROOT / "mimo" / "completions").iterdir())
    return {f"completions/{path.name}": path.read_text(encoding="utf-8") for path in paths}


def summaries(commands: CommandTable) -> str:
    """Returns the first line of the help of every command, after its path."""
    return "".join(f"{path}: {commands.at(path).summary}\n" for path in commands.modules)


def opening(commands: CommandTable) -> str:
    """Returns the results of requests that depend on no memory, as the SDK's server gives them."""
    memory = Memory(lambda: Mind(home=ROOT, project=None))
    toolsets = ("all", "legacy")
    app = App(memory, commands, toolsets=toolsets, naming="slash", settings=_every(commands))
    server = app.server()
    meta = {PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION, CLIENT_CAPABILITIES_META_KEY: {}}
    request: Any = SimpleNamespace(
        transport=TransportContext(kind="none", can_send_request=False),
        message_metadata=None,
        request_id=0,
    )

    async def ask(method: str) -> dict[str, Any]:
        return await modern_on_request(server, {})(request, method, {"_meta": meta})

    methods = ("server/discover", "tools/list", "prompts/list", "resources/templates/list")
    results = {method: anyio.run(ask, method) for method in methods}
    tools = {tool["name"]: tool for tool in results["tools/list"].pop("tools")}
    data = {
        "versions": HANDSHAKE_PROTOCOL_VERSIONS,
        "extensions": sorted(extensions()),
        "results": results,
        "tools": {
            name: {
                "toolset": specs[0].toolset,
                "setting": specs[0].setting,
                "tool": tools[name],
            }
            for name, specs in commands.tools(_every(commands)).items()
        },
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _every(commands: CommandTable) -> Mapping[str, str]:
    """Returns the settings with which every tool is listed."""
    return {spec.setting: "on" for spec in commands.all()}


class Page:
    """A command as man pages and the reference show it."""

    def __init__(self, path: str, command: click.Command, spec: Spec | None) -> None:
        """Take summary and description from the specification, or from click's command."""
        self.path = path
        self.title = f"mind {path}".strip()
        self.name = self.title.replace(" ", "-")
        self.command = command
        self.spec = spec
        self.summary, _, rest = (spec.help if spec else command.help or "").partition("\n")
        self.body = rest.strip()

    @property
    def usage(self) -> str:
        """Returns the form of its command line."""
        pieces = self.command.collect_usage_pieces(click.Context(self.command))
        return " ".join([self.title, *pieces])

    @property
    def params(self) -> list[Param]:
        """Returns the parameters that the command line has."""
        return [p for p in self.spec.params if Surface.CLI in p.arg.surfaces] if self.spec else []

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """Returns the positional parameters with their help."""
        return [(metavar_of(p), p.arg.help) for p in self.params if p.positional]

    @property
    def options(self) -> list[tuple[str, str]]:
        """Returns the names of each option, and its help."""
        return [
            (_names(option), option.help or "")
            for option in self.command.params
            if isinstance(option, click.Option)
            and (not option.hidden or option.name == "json")
            and option.name != "help"
        ]


def _names(option: click.Option) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    metavar = option.make_metavar(click.Context(click.Command("mind")))
    return names if option.is_flag else f"{names} {metavar}"


def pages(commands: CommandTable) -> Iterator[Page]:
    """Yields a page for the program, and for each command on the command line."""
    root = Words("", commands)
    yield Page("", root, None)
    for path in commands.modules:
        yield Page(path, Command(commands.at(path), commands.listed(path)), commands.at(path))
    for name in PROGRAMS:
        yield Page(name, program_command(name, commands), None)


def man(commands: CommandTable) -> dict[str, str]:
    """Returns the manual pages, in the `man` macros."""
    every = list(pages(commands))
    return {f"man/{page.name}.1": _man_page(page, every) for page in every}


def _man_page(page: Page, every: list[Page]) -> str:
    lines = [
        f'.TH "{page.name.upper()}" "1" "" "mind {__version__}" "mind manual"',
        ".SH NAME",
        f"{_roff(page.name)} \\- {_roff(page.summary)}",
        ".SH SYNOPSIS",
        f".B {_roff(page.usage if page.path else 'mind [OPTIONS] COMMAND')}",
    ]
    if page.body:
        lines += [".SH DESCRIPTION", *_paragraphs(page.body)]
    lines += _listed("ARGUMENTS", page.arguments) + _listed("OPTIONS", page.options)
    if not page.path:
        lines += _listed("COMMANDS", [(other.title, other.summary) for other in every[1:]])
        lines += _listed("EXIT STATUS", [(str(status), text) for status, text in STATUSES.items()])
    elif page.spec and page.spec.examples:
        lines += [".SH EXAMPLES", ".nf", *(_roff(line) for line in page.spec.examples), ".fi"]
    others = [".BR mind (1)"] if page.path else []
    return "\n".join([*lines, *([".SH SEE ALSO", *others] if others else [])]) + "\n"


STATUSES = {
    0: "Done",
    1: "Failed",
    2: "The command line is wrong",
    3: "There is no project",
    4: "The daemon does not run",
    5: "Permission denied, or memory that is not approved",
}


def _listed(title: str, rows: list[tuple[str, str]]) -> list[str]:
    lines = [line for name, text in rows for line in (".TP", f".B {_roff(name)}", _roff(text))]
    return [f".SH {title}", *lines] if lines else []


def _paragraphs(text: str) -> list[str]:
    return [line for part in text.split("\n\n") for line in (".PP", _roff(" ".join(part.split())))]


def _roff(text: str) -> str:
    safe = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return f"\\&{safe}" if safe[:1] in (".", "'") else safe


def reference(commands: CommandTable) -> Files:
    """Returns the reference: a page for each command, the tools, the errors and the settings."""
    every = list(pages(commands))
    files = {f"{page.name}.md": _reference_page(page) for page in every[1:]}
    files |= {"mcp-tools.md": _tools_page(commands), "errors.md": _errors_page()}
    files |= {"settings.md": _settings_page(), "README.md": _index_page(commands, every)}
    return {f"docs/reference/{name}": f"{NOTICE}\n\n{text}" for name, text in files.items()}


NOTICE = "<!-- Generated by scripts/generate.py; edit the declarations instead. -->"


def _reference_page(page: Page) -> str:
    parts = [f"# {page.title}", f"{page.summary}.", page.body, _fenced(page.usage)]
    parts += [_bullets("Arguments", page.arguments), _bullets("Options", page.options)]
    if page.spec:
        parts += _about(page.spec)
    return "\n\n".join(part for part in parts if part) + "\n"


def _about(spec: Spec) -> list[str]:
    errors_of = [(error.code, _sentence(error.__doc__)) for error in spec.errors]
    tool = spelled(spec.name, "underscore")
    call = f"`{tool}`" + (f" with operation `{spec.operation}`" if spec.operation else "")
    return [
        f"Examples:\n\n{_fenced(chr(10).join(spec.examples))}" if spec.examples else "",
        _bullets("Errors", errors_of),
        f"MCP tool: {call} (toolset `{spec.toolset}`)." if Surface.MCP in spec.surfaces else "",
    ]


def _tools_page(commands: CommandTable) -> str:
    tools = commands.tools(_every(commands))
    default = set(listed(tools, ()))
    lines = ["# MCP tools", f"Toolsets: {', '.join(TOOLSETS)}; `core` and `all` name several."]
    for name, specs in tools.items():
        shown = "" if name in default else f" (listed in toolset `{specs[0].toolset}` only)"
        shown += f", only while `{specs[0].setting}` is `on`" if specs[0].setting else ""
        lines += [f"## {spelled(name, 'underscore')}", f"Canonical name: `{name}`{shown}."]
        lines.append(_bullets("Arguments", _arguments(specs)))
        lines.append(_bullets("Answer", _fields(output_schema(specs))))
    return "\n\n".join(line for line in lines if line) + "\n"


def _arguments(specs: Sequence[Spec]) -> list[tuple[str, str]]:
    """Returns the arguments, with a mark on those that the list of tools leaves out."""
    shown = listed_input(specs)["properties"]
    fields = _fields(input_schema(specs))
    return [
        (
            name,
            help if name.rstrip("?") in shown else f"{help} (accepted; not in the list of tools)",
        )
        for name, help in fields
    ]


def _fields(schema: dict[str, Any]) -> list[tuple[str, str]]:
    required = schema.get("required", [])
    return [
        (f"{name}{'' if name in required else '?'}", _told(field))
        for name, field in schema["properties"].items()
    ]


def _told(field: dict[str, Any]) -> str:
    return "; ".join(part for part in (_type(field), field.get("description", "")) if part)


def _type(field: dict[str, Any]) -> str:
    kind = field.get("type", "any")
    kind = " or ".join(kind) if isinstance(kind, list) else kind
    if "enum" in field:
        kind = " | ".join("null" if word is None else word for word in field["enum"])
    bounds = [str(field[bound]) for bound in ("minimum", "maximum") if bound in field]
    inner = f" of {_type(field['items'])}" if "items" in field else ""
    default = f", default {json.dumps(field['default'])}" if "default" in field else ""
    return f"{kind}{inner}{' ' + ' to '.join(bounds) if bounds else ''}{default}"


def _errors_page() -> str:
    lines = ["# Errors", "| code | exit status | meaning |\n|---|---|---|"]
    rows = [
        f"| {error.code} | {error.exit_status} | {_sentence(error.__doc__)} |"
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, MindError) and error is not MindError
    ]
    lines[1] += "\n" + "\n".join(rows)
    lines.append(f"If the status 1 of a command is a finding, its errors have {errors.UNDECIDED}.")
    form = '{"type": "error", "error": {"code": …, "message": …, "details": {…}}}'
    lines.append(f'With `--json`, and as `_meta["mind/error"]` over MCP:\n\n{_fenced(form)}')
    return "\n\n".join(lines) + "\n"


def _settings_page() -> str:
    rows = [
        f"| `{entry.key}` | {_default(entry.default)} | {entry.scope.value} | {entry.help} |"
        for entry in SETTINGS
    ]
    head = "| setting | default | file | meaning |\n|---|---|---|---|\n"
    restricting = [f"| `{key}` | `{text}` |" for key, text in FALLBACKS.items()]
    table = head + "\n".join(rows)
    foot = "| setting | value |\n|---|---|\n" + "\n".join(restricting)
    return f"# Settings\n\n{SETTINGS_HEAD}\n{table}\n\n{SETTINGS_FOOT}\n{foot}\n"


SETTINGS_HEAD = """`mind config --all` lists the settings, `mind config KEY VALUE` changes
one. Commas separate the items of a list; `yes`, `no`, `on`, `off`, `true` and `false` turn a
setting on or off.

The column `file` names the file that a setting is read from: `user` is `config.toml` in
`$MIND_HOME`, `project` is `.mind/config.toml`, and `any` is both, of which the project's file
overrides the user's.
"""

SETTINGS_FOOT = """## If a file can't be read

An invalid value and an unknown key are ignored, with a warning below the results of commands. A
file with a syntax error is ignored as a whole. Because it may have restricted something, the
settings below then have these values, not their defaults, until the file is corrected. The same
applies to each of them whose own value is invalid. `<none>` is an address that no commit has. An
error in the project's file affects only settings that are read from it. A missing file has no
effect. A project's file that is [not approved](rules/trust.md#settings-of-the-project) only narrows
the approved one, and an error in it changes nothing.

At the start of a session, hooks name the file, and write the reason to `$MIND_HOME/logs/hook.log`.
"""


def _default(value: Any) -> str:
    """Returns a default as it is typed on the command line."""
    if value in ("", ()):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{','.join(value)}`" if isinstance(value, tuple) else f"`{value}`"


def _index_page(commands: CommandTable, every: list[Page]) -> str:
    titles = {page.path: f"- [{page.title}]({page.name}.md): {page.summary}" for page in every}
    parts = ["# Reference", " ".join(SUMMARY.split("\n\n")[1].split())]
    for section, table in commands.sections.items():
        also = {"Start": ["help"], LAST: ["hook", "mcp"]}.get(section, [])
        parts.append(f"## {section}\n\n" + "\n".join(titles[path] for path in [*table, *also]))
    parts[-1] += "\n- [MCP tools](mcp-tools.md)"
    parts.append("## Both\n\n- [Errors](errors.md)\n- [Settings](settings.md)")
    rules = sorted((ROOT / "docs" / "reference" / "rules").glob("*.md"))
    links = (f"- [{_title(page)}](rules/{page.name})" for page in rules)
    parts.append("## Exact rules\n\n" + "\n".join(links))
    return "\n\n".join(parts) + "\n"


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def _bullets(title: str, rows: list[tuple[str, str]]) -> str:
    return f"{title}:\n\n" + "\n".join(f"- `{name}`: {text}" for name, text in rows) if rows else ""


def _fenced(text: str) -> str:
    return f"```\n{text}\n```"


def _sentence(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


# --- the golden dump of all signatures


def api(commands: CommandTable) -> str:
    """Returns every command's signature, so that any change shows in review."""
    return "\n".join(_signature(spec) for spec in commands.all())


def _needed(needs: Needs) -> list[tuple[str, object]]:
    return [(name, part) for name, part in needs._asdict().items() if part]


def _signature(spec: Spec) -> str:
    head = [spec.key, f"mind {spec.path}" if Surface.CLI in spec.surfaces else "MCP only"]
    needs = ",".join(str(name if part is True else part) for name, part in _needed(spec.needs))
    facts = [spec.effect.value, spec.toolset, needs, "project" if spec.needs_project else ""]
    codes = sorted({error.__name__ for error in spec.errors})
    lines = [" | ".join([*head, " ".join(fact for fact in facts if fact), " ".join(codes)])]
    for param in spec.params:
        place = "positional" if param.positional else "option"
        alias = f" alias {','.join(param.aliases)}" if param.aliases else ""
        lines.append(f"  {place} {_inputs(spec)[param.name]}{alias}")
    lines += [f"  -> {line}" for line in _outputs(output_schema([spec]), "")]
    return "\n".join(lines) + "\n"


def _inputs(spec: Spec) -> dict[str, str]:
    return {
        param.name: f"{param.name}{'' if param.required else '?'}: {_type(parameter_schema(param))}"
        for param in spec.params
    }


def _outputs(schema: dict[str, Any], prefix: str) -> Iterator[str]:
    for name, field in schema["properties"].items():
        mark = "" if name in schema.get("required", ()) else "?"
        yield f"{prefix}{name}{mark}: {_type(field)}"
        inner = field.get("items", field)
        if "properties" in inner:
            yield from _outputs(inner, f"{prefix}{name}.")


# --- writing


def stale(files: Files) -> list[str]:
    """Returns the paths whose text is not what it should be, and those that should not be there."""
    wrong = [name for name, text in files.items() if _current(ROOT / name) != text]
    present = (path for folder in WHOLLY_OURS for path in sorted((ROOT / folder).glob("*")))
    extra = [path.relative_to(ROOT).as_posix() for path in present if path.is_file()]
    return [*wrong, *(name for name in extra if name not in files)]


def _current(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def write(files: Files) -> None:
    """Write what has changed and remove what nothing makes any more."""
    for name in stale(files):
        path = ROOT / name
        if name not in files:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[name], encoding="utf-8")
        print(f"wrote {name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say what is out of date")
    if not parser.parse_args().check:
        write(generated())
        return 0
    old = stale(generated())
    for name in old:
        print(f"out of date: {name} (run `make generate`)", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
