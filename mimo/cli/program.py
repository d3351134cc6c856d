"""The command line as click reads it: a lazy group, whose commands are made from declarations.

`read` returns what a line asks for; the caller runs or prints it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import click

from mimo import __version__
from mimo.call.arguments import is_one_letter_off, nearest, shown
from mimo.call.spec import Param, Spec
from mimo.call.table import ALONE, LAST, CommandTable
from mimo.cli.options import (
    ALLOW_SECRET,
    COMMON,
    HELP,
    LONG,
    PROGRAMS,
    STDIN_IDS,
    SUMMARIES,
    VERSION,
    Line,
    Option,
    led,
    named,
    names_of,
    options_of,
    params_of,
    required_options,
    summary_of,
    takes_rest,
)
from mimo.errors import Invalid
from mimo.frozen import frozen

SETTINGS: dict[str, Any] = {"max_content_width": 100}
_NARROW = 58
"""The width of a page below which its texts have no column of their own."""

SHARED_VALUES = "mimo.options"
"""The key of click's contexts for the options that every command has."""

_MEANINGS = (
    {"since", "after", "from", "newer-than"},
    {"until", "before", "to", "older-than"},
    {"because", "reason", "reasoning", "why", "rationale"},
    {"limit", "count", "max", "max-count", "number", "top"},
    {"type", "kind", "category"},
    {"tag", "label"},
    {"json", "format", "output"},
    {"message", "content", "text", "body"},
    {"user", "global"},
)
"""Names of options that mean the same, here and in other programs."""

SUMMARY = """Long-term memory for coding agents and the people who work with them

Memories are Markdown files under .mind/ in your project. You and your agents find them by meaning
and by words, offline.
"""


@frozen
class Start:
    """A program for clients that a line starts: `hook` or `mcp`."""

    name: str
    project: str | None
    values: Mapping[str, Any]
    """The values of its arguments and options by their keys."""


class Page(Exception):
    """Ends the reading of a line that asks for a text: the help, or the version."""

    def __init__(self, text: str) -> None:
        """Takes the text without its last line end."""
        super().__init__(text)
        self.text = text


def read(commands: CommandTable, words: Sequence[str]) -> Line | Start | Page:
    """Returns what a command line asks for, and runs and prints nothing.

    Raises `Invalid` if the words are not a command line.
    """
    try:
        root = Words("", commands)
        with root.make_context("mind", list(words)) as ctx:
            result: Line | Start = root.invoke(ctx)
            return result
    except Page as page:
        return page
    except click.ClickException as error:
        raise usage(error) from error


def usage(error: click.ClickException) -> Invalid:
    """Returns an error of click as one of ours."""
    ctx = getattr(error, "ctx", None)
    program = ctx.command_path if ctx else "mind"
    text = error.format_message().strip().removesuffix(".")
    message, hint = f"{text[:1].lower()}{text[1:]}", f"see `{program} --help`"
    if isinstance(error, click.NoSuchOption):
        message = f"`{error.option_name}` is not an option of `{program}`"
        name = error.option_name.lstrip("-")
        params = ctx.command.params if ctx else ()
        accepted = [opt[2:] for param in params for opt in param.opts if opt[:2] == "--"]
        accepted = [opt for opt in accepted if opt != "help"]
        meaning = next((names for names in _MEANINGS if name in names), ())
        starts = [opt for opt in accepted if opt.startswith(f"{name}-")]
        near = [opt for opt in accepted if opt in meaning] or starts or nearest(name, accepted)
        if near:
            hint = f"did you mean `--{near[0]}`? {hint}"
        elif ctx and any(isinstance(param, click.Argument) for param in ctx.command.params):
            hint += "; put `--` before a text that begins with a dash"
    elif isinstance(error, click.BadOptionUsage):
        takes = "takes no value" if "not take a value" in text else "needs a value"
        message = f"`{error.option_name}` {takes}"
    elif extra := re.fullmatch(r"Got unexpected extra arguments? \((.*)\)", text, re.DOTALL):
        command = ctx.command if ctx else None
        quote = "put a text of several words in quotes"
        if isinstance(command, Command):
            message = f"`{program}` does not take {shown(extra[1])}"
            taken = " ".join(map(metavar_of, command.places))
            if required_options(command.spec):
                hint = f"for example: {command.spec.examples[0]}"
            elif taken:
                first = ctx.params.get(command.places[0].attribute) if ctx else None
                advice = f"leave out `{first}`: " if first in ("get", "set") else ""
                hint = f"{advice}it takes {taken}; {quote}"
            else:
                hint = f"{_meant_option(command, extra[1])}{hint}"
        else:
            message = f"`{program}` does not take `{extra[1]}`"
            hint = f"{quote}; {hint}"
    return Invalid(message, hint=hint)


def _meant_option(command: Command, word: str) -> str:
    """Returns a question for the option that a word names or is a choice of, or else for `-o`."""
    if any(f"--{word}" in param.opts for param in command.params):
        return f"did you mean `--{word}`? "
    for param in command.spec.params:
        if word in param.shape.choices or param.name == "output":
            value = word if param.shape.choices else "FILE"
            return f"did you mean `{names_of(param)[0]} {value}`? "
    return ""


# The click command of a declaration.


class _Formatter(click.HelpFormatter):
    """A page of help; if the terminal is narrow, each text is below its term."""

    def __init__(self, width: int | None = None, max_width: int | None = None) -> None:
        from shutil import get_terminal_size

        super().__init__(width=width, max_width=max_width)
        self.width = min(self.width, max(get_terminal_size().columns - 2, 20))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        if self.width < _NARROW:
            rows, col_max = [(term.rstrip(), text) for term, text in rows], 2
        super().write_dl(rows, col_max, col_spacing)


class _Context(click.Context):
    formatter_class: type[click.HelpFormatter] = _Formatter


class Program(click.Command):
    """A click command with our help option, whose name is in every error about its words."""

    context_class: type[click.Context] = _Context

    def __init__(self, name: str, params: Sequence[click.Parameter], **attrs: Any) -> None:
        """Takes the parameters without the help option."""
        settings = SETTINGS | attrs.pop("context_settings", {})
        params = [*params, _page_option(HELP, click.Context.get_help)]
        super().__init__(
            name, params=params, add_help_option=False, context_settings=settings, **attrs
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the words. Raises `UsageError` with the context, which click omits for some."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise


class Command(Program):
    """The click command of a specification."""

    def __init__(self, spec: Spec, subcommands: tuple[str, ...] = ()) -> None:
        """Takes parameters, help and examples from the specification."""
        self.spec = spec
        self.places = [param for param in params_of(spec) if param.positional]
        self._options = options_of(spec)
        hidden = [option for option in COMMON if option.key != "json"]
        self._subcommands = subcommands
        self.initials = {name[0] for name in subcommands}
        super().__init__(
            spec.path.split()[-1],
            [
                *map(_argument, self.places),
                *(clicked(o, hidden=not o.param and o in hidden) for o in self._options),
            ],
        )

    def make_parser(self, ctx: click.Context) -> Any:
        """Returns click's parser, to which a text that begins with a dash is not an option."""
        parser = super().make_parser(ctx)
        names = named(self._options)
        read_option = parser._process_opts  # noqa: SLF001 - click has no other place for it

        def read(word: str, state: Any) -> None:
            # `- use yarn`, but neither `--title=Two words` nor `-t` joined with its value
            if any(map(str.isspace, word.partition("=")[0])) and word[:2] not in names:
                state.largs.append(word)
            else:
                read_option(word, state)

        vars(parser)["_process_opts"] = read
        return parser

    def check_subcommand(self, words: Sequence[str], lone: Container[str]) -> None:
        """Raises `Invalid` if the first word after the command is a misspelled sub-command.

        Before other words, or for sub-commands that are only ones alone, it may be a text.
        """
        word, alone = words[0], len(words) == 1 or words[1].startswith("-")
        for name in nearest(word, self._subcommands):
            slips = sorted(word) == sorted(name) or is_one_letter_off(word, name)
            is_lone = f"{self.spec.path} {name}" in lone
            if name != word and ("-" in name or slips + alone + (not is_lone) > 1):
                line = f"mind {self.spec.path}"
                place = f" As {self.places[0].typed}: `{line} -- {word}`" if self.places else ""
                raise Invalid(
                    f"`{word}` is not a command of `{line}`",
                    hint=f"did you mean `{line} {name}`?{place}",
                )

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Returns the parts of the usage line: options, required ones, arguments."""
        required = [f"--{p.name.replace('_', '-')} TEXT" for p in required_options(self.spec)]
        places = [metavar_of(param) for param in self.places]
        # Without it, another command runs.
        places = [f"[{place}]" for place in places] if self.spec.path in ALONE else places
        return ["[OPTIONS]", *required, *places]

    def invoke(self, ctx: click.Context) -> Line:
        """Returns the line that was read."""
        return Line(spec=self.spec, values=ctx.params, options=ctx.meta[SHARED_VALUES])

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the help of the specification, which is read from its docstring for that alone."""
        self.help = self.spec.help
        super().format_help_text(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the arguments, then the options."""
        if self.places:
            with formatter.section("Arguments"):
                formatter.write_dl([(metavar_of(param), param.arg.help) for param in self.places])
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the sub-commands of the same word, the examples, and a pointer to the rest."""
        program, path = ctx.find_root().command, self.spec.path
        if self._subcommands and isinstance(program, Words):
            summaries = [
                (word, summary_of(program.registry, f"{path} {word}")) for word in self._subcommands
            ]
            with formatter.section("Commands"):
                formatter.write_dl(summaries)
        if self.spec.examples:
            with formatter.section("Examples"):
                for line in self.spec.examples:
                    formatter.write(f"{' ' * formatter.current_indent}{line}\n")
        formatter.write_paragraph()
        formatter.write_text("For the options of every command, see `mind help --all`.")


def _page_option(option: Option, text: Callable[[click.Context], str]) -> click.Option:
    """Returns an option that asks for a text."""

    def show(ctx: click.Context, _param: click.Parameter, is_set: bool) -> None:
        if is_set:
            raise Page(text(ctx))

    names = [option.key, *option.names]
    made = click.Option(names, is_flag=True, is_eager=True, expose_value=False, callback=show)
    made.help = option.help  # click would load `inspect` to remove indents.
    return made


_LONGEST = 70
"""Characters of choices that fit on a line of a terminal, behind the name of their option."""

_METAVARS = {"integer": "N", "number": "NUMBER", "json": "JSON"}


def clicked(option: Option, *, hidden: bool = False) -> click.Option:
    """Returns an option as click has it."""
    names = [*option.names]
    if option.negated:
        long = [name for name in names if name.startswith("--")]
        names = [name for name in names if name not in long]
        names += [f"{name}/{off}" for name, off in zip(long, option.negated, strict=True)]
    settings: dict[str, Any] = {"default": None, "hidden": hidden}
    text = option.help
    if option.is_flag:
        settings["is_flag"] = True
    else:
        settings |= {"multiple": option.is_repeated, "metavar": option.metavar}
        if option.without is not None:
            settings |= {"is_flag": False, "flag_value": option.without}
        if option.param:
            settings["metavar"] = _metavar(option.param, option.choices)
            if settings["metavar"] == "NAME":
                text += f": {', '.join(option.choices)}"
        elif option.choices:
            settings["type"] = click.Choice(option.choices)
    if not option.param and option in (*COMMON, ALLOW_SECRET, LONG, STDIN_IDS):
        settings |= {"expose_value": False, "callback": _share_value}
    made = click.Option([option.key, *names], **settings)
    made.help = text
    return made


def _metavar(param: Param, choices: Sequence[str]) -> str:
    """Returns the value of an option as usage lines show it; the help lists many choices."""
    if choices:
        typed = "|".join(choices)
        return typed if len(typed) <= _LONGEST else "NAME"
    kind = (param.shape.items or param.shape).kind
    return "FILE" if param.arg.file else _METAVARS.get(kind, "TEXT")


def _share_value(ctx: click.Context, option: click.Parameter, value: Any) -> None:
    values = ctx.meta.setdefault(SHARED_VALUES, {})
    if value is not None:
        values[option.name] = value


def _argument(param: Param) -> click.Argument:
    count = -1 if takes_rest(param) else 1
    return click.Argument([param.attribute], required=False, nargs=count, metavar=metavar_of(param))


def metavar_of(param: Param) -> str:
    """Returns a positional parameter as usage lines show it: `QUERY`, `[TEXT]`, `PATH…`."""
    shown = f"{param.typed}{'...' if takes_rest(param) else ''}"
    return shown if param.required and not param.arg.stdin else f"[{shown}]"


# The words of a command line.


class Words(Program, click.Group):
    """Commands by the words that lead to them, each loaded when it is named."""

    def __init__(self, path: str, commands: CommandTable) -> None:
        """Serves the commands below `path`, which is empty for the program itself."""
        params = [clicked(option, hidden=bool(path)) for option in COMMON]
        if not path:
            params.append(_page_option(VERSION, lambda _: f"mind {__version__}"))
        super().__init__(
            path or "mind",
            params,
            help=commands.group(path) if path else SUMMARY,
            context_settings={"allow_interspersed_args": False},
            no_args_is_help=False,
            invoke_without_command=True,
            callback=self._show_help_without_command,
        )
        self.path = path
        self.registry = commands

    def _show_help_without_command(self) -> None:
        """Shows the program's help without a command; a group without one is an error."""
        ctx = click.get_current_context()
        if ctx.invoked_subcommand is not None:
            return
        if self.path:
            words = ", ".join(self.registry.listed(self.path))
            raise Invalid(f"`mind {self.path}` needs a command", hint=f"commands are {words}")
        raise Page(ctx.get_help())

    def at(self, path: str) -> click.Command | None:
        """Returns the command, the group or the program at a path, or None."""
        if path in self.registry:
            return Command(self.registry.at(path), self.registry.listed(path))
        if self.registry.below(path):
            return Words(path, self.registry)
        return program_command(path, self.registry) if path in PROGRAMS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command, its name and its arguments.

        A word may be a command and also lead to sub-commands: `search` and `search by-topic`.
        """
        path, tail = led(self.registry, self.path, args)
        command = self.at(path) if args[0] else None
        if command is None:
            raise self.unknown(args[0])
        # Most lines skip the comparison, as few slips are in the first letter.
        if isinstance(command, Command) and tail and tail[0][:1] in command.initials:
            command.check_subcommand(tail, self.registry.lone)
        return path.removeprefix(f"{self.path} "), command, tail

    def check_path(self, words: Sequence[str]) -> None:
        """Raises `Invalid` for words after those of a command."""
        path, tail = "", list(words)
        while tail and path not in self.registry and path not in PROGRAMS:
            path, tail = led(self.registry, path, tail)
        if tail:
            raise Words(path, self.registry).unknown(tail[0])

    def unknown(self, word: str) -> Invalid:
        """Returns the error for a word that is not a command or a sub-command."""
        if word.startswith("-"):
            return Invalid(f"`{word}` is not an option of `mind`", hint="see `mind help --all`")
        words = [*self.registry.listed(self.path), *([] if self.path else PROGRAMS)]
        program = f"mind {self.path}".strip()
        meant = self.registry.meant(self.path, word)
        near = nearest(word, words)[:1]
        meant = meant or [f"{self.path} {word}".strip() for word in near]
        lines = " or ".join(f"`mind {line}`" for line in meant)
        listed = f"commands are {', '.join(words)}" if self.path else "see `mind help --all`"
        return Invalid(
            f"`{word}` is not a command of `{program}`",
            hint=f"did you mean {lines}?" if meant else listed,
        )

    # The help: of the program, its first page or all; of a group, its commands.

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the options before a command; `--all` is one of them beside `--help`."""
        start = list(takewhile(lambda word: word.startswith("-"), args))
        if not self.path and not set(start).isdisjoint(HELP.names):
            ctx.meta[ALL_COMMANDS] = not ALL_NAMES.isdisjoint(start)
            args = [word for word in start if word not in ALL_NAMES] + args[len(start) :]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands under their headings; with all commands, the options too."""
        is_first_page = not self.path and self.registry.first and not ctx.meta.get(ALL_COMMANDS)
        if is_first_page:
            self._write(formatter, self.registry.first)
        else:
            click.Command.format_options(self, ctx, formatter)
            self._write(formatter, self._sections())
        if not self.path:
            hint = ", `mind help --all` all commands" if is_first_page else ""
            formatter.write_paragraph()
            formatter.write_text(f"`mind help COMMAND` explains a command{hint}.")

    def _write(self, formatter: click.HelpFormatter, sections: Mapping[str, Sequence[str]]) -> None:
        """Writes commands under their headings, in columns of the same width."""
        named = {title: list(map(self._row, words)) for title, words in sections.items()}
        width = max(len(names) for rows in named.values() for names, _ in rows)
        for title, rows in named.items():
            with formatter.section(title):
                formatter.write_dl([(names.ljust(width), text) for names, text in rows])

    def _row(self, word: str) -> tuple[str, str]:
        """Returns a command with the other words for it, and its summary."""
        aliases = {} if self.path else self.registry.aliases
        names = ", ".join([word, *(alias for alias, name in aliases.items() if name == word)])
        return names, summary_of(self.registry, f"{self.path} {word}".strip())

    def _sections(self) -> dict[str, list[str]]:
        if self.path:
            return {"Commands": list(self.registry.listed(self.path))}
        sections: dict[str, list[str]] = {}
        left = set(self.registry.listed(""))
        for title, table in self.registry.sections.items():
            words = list(dict.fromkeys(path.split()[0] for path in table))
            sections[title] = [word for word in words if word in left]
            left.difference_update(words)
        for title, word in (("Start", "help"), (LAST, "hook"), (LAST, "mcp")):
            sections.setdefault(title, []).append(word)
        return {title: words for title, words in sections.items() if words}


# `mind help`, `mind hook` and `mind mcp`, which are not in the table of commands.

ALL_COMMANDS = "mimo.all"
"""The key of click's contexts for whether the help lists all commands."""

ALL_NAMES = frozenset(PROGRAMS["help"][0].names)

HELP_HELP = f"""{SUMMARIES["help"]}

Without COMMAND it lists the commands of daily use, with --all every command, those of extensions
included.
"""

HOOK_HELP = f"""{SUMMARIES["hook"]}

Reads one JSON object from standard input, as sent by Claude Code, Codex, Gemini CLI, Cursor,
VS Code, Copilot CLI and OpenCode, and prints one or none. CLIENT names the client if the JSON does
not. The exit status is always 0; failures are recorded in $MIND_HOME/logs/hook.log.
"""

MCP_HELP = f"""{SUMMARIES["mcp"]}

By default every toolset but `extra` and `legacy` is listed. `core` is a small set to start with,
and `all` adds `extra`, the everyday commands. Tools that are not listed can still be called.

With --http it serves many clients and all your projects from one process, until Ctrl-C. Clients
send the token of the token file, or of MIND_HTTP_TOKEN, and name the project: see docs/http.md.
With --tokens it serves a team: see docs/team-server.md.
"""

HELPS = {"help": HELP_HELP, "hook": HOOK_HELP, "mcp": MCP_HELP}


def program_command(name: str, commands: CommandTable) -> click.Command:
    """Returns the command of a program, which returns a `Start`; `help` raises a `Page` instead."""

    def explain(words: tuple[str, ...], all: bool | None) -> None:
        root = Words("", commands)
        root.check_path(words)
        ask = [*words, "--help", *(["--all"] if all and not words else [])]
        with root.make_context("mind", ask) as ctx:
            root.invoke(ctx)  # The option raises the page.

    def start(**values: Any) -> Start:
        project = click.get_current_context().meta[SHARED_VALUES].get("project")
        return Start(name=name, project=project, values=values)

    arguments = {
        "help": [click.Argument(["words"], nargs=-1, metavar="[COMMAND...]")],
        "hook": [click.Argument(["client"], required=False)],
    }
    return Program(
        name,
        [*arguments.get(name, ()), *map(clicked, PROGRAMS[name])],
        help=HELPS[name],
        callback=explain if name == "help" else start,
    )
