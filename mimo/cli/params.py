"""Commands for click, made from their declarations: parameters and help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from mimo import rendering
from mimo.cli.plain import (
    ALLOW_SECRET,
    COMMON,
    LONG,
    Option,
    Run,
    gathered,
    is_text,
    named,
    options_of,
    params_of,
    required_options,
    takes_rest,
)
from mimo.commands import ALONE
from mimo.commands.arguments import shown
from mimo.commands.spec import Param, Spec
from mimo.errors import Invalid

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

KEPT = "mimo.options"
"""The key of click's contexts for the options that every command has."""

METAVARS = {"integer": "n", "number": "number", "json": "json", "string": "text"}


class Program(click.Command):
    """A click command with our text for `--help`, whose name is in every error about its words."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Returns `--help` with our text."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "Print this help"
            option.callback = printing(click.Context.get_help)
        return option

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the words. Raises `UsageError` with the context, which click omits for some."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise


class Command(Program):
    """The click command of a specification."""

    def __init__(self, spec: Spec, run: Run, subcommands: tuple[str, ...] = ()) -> None:
        """Takes parameters, help and examples from the specification."""
        params = params_of(spec)
        arguments = [_argument(param) for param in params if param.positional]
        options = [
            clicked(option, hidden=option in COMMON and option.key != "json")
            for option in options_of(spec)
        ]
        super().__init__(
            name=spec.path.split()[-1],
            params=[*arguments, *options],
            help=spec.help,
            short_help=spec.summary,
            context_settings=SETTINGS | {"allow_extra_args": True},
        )
        self._spec = spec
        self._run = run
        self._params = params
        self._subcommands = subcommands

    def make_parser(self, ctx: click.Context) -> Any:
        """Returns click's parser, to which a text that begins with a dash is not an option."""
        parser = super().make_parser(ctx)
        names = named(options_of(self._spec))
        read_option = parser._process_opts  # noqa: SLF001 - click has no other place for it

        def read(word: str, state: Any) -> None:
            if is_text(word, names):
                state.largs.append(word)
            else:
                read_option(word, state)

        vars(parser)["_process_opts"] = read
        return parser

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Returns the parts of the usage line, with the required options."""
        return usage_of(self._spec)

    def invoke(self, ctx: click.Context) -> None:
        """Runs the command. Raises `Invalid` for more words than it takes."""
        if ctx.args:
            raise self._left_over(ctx)
        self._run(self._spec, gathered(self._spec, ctx.params), ctx.meta.get(KEPT, {}))

    def _left_over(self, ctx: click.Context) -> Invalid:
        """Returns the error for words that are left over, as of a text without quotes."""
        program, words = ctx.command_path, shown(" ".join(ctx.args))
        taken = " ".join(metavar_of(param) for param in self._params if param.positional)
        hint = f"see `{program} --help`"
        if required_options(self._spec):
            hint = f"for example: {self._spec.examples[0]}"
        elif taken:
            hint = f"it takes {taken}; put a text of several words in quotes"
        return Invalid(f"`{program}` does not take {words}", hint=hint)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the arguments, then the options."""
        rows = [(metavar_of(param), param.arg.help) for param in self._params if param.positional]
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the sub-commands of the same word, the examples, and a pointer to the rest."""
        for title, lines in (
            ("Commands", [f"{ctx.command_path} {word}" for word in self._subcommands]),
            ("Examples", self._spec.examples),
        ):
            if lines:
                with formatter.section(title):
                    for line in lines:
                        formatter.write(f"{' ' * formatter.current_indent}{line}\n")
        formatter.write_paragraph()
        formatter.write_text("For the options of every command, see `mind help --all`.")


def printing(text: Callable[[click.Context], str]) -> Callable[..., None]:
    """Returns the callback of an option that prints a text and ends the program.

    The options of click raise plain errors if standard output can't be written.
    """

    def show(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
        if wanted and not ctx.resilient_parsing:
            rendering.write(f"{text(ctx)}\n")
            ctx.exit()

    return show


# Parameters.

_LONGEST = 70
"""Characters of choices that fit on a line of a terminal, behind the name of their option."""


def usage_of(spec: Spec) -> list[str]:
    """Returns the parts of a command's usage line: options, required ones, arguments."""
    required = [f"--{param.name.replace('_', '-')} TEXT" for param in required_options(spec)]
    places = [metavar_of(param) for param in params_of(spec) if param.positional]
    # Without it, another command runs.
    places = [f"[{place}]" for place in places] if spec.path in ALONE else places
    return ["[OPTIONS]", *required, *places]


def clicked(option: Option, *, hidden: bool = False) -> click.Option:
    """Returns an option as click has it."""
    names = [*option.names]
    if option.negated:
        long = [name for name in names if name.startswith("--")]
        names = [name for name in names if name not in long]
        names += [f"{name}/{off}" for name, off in zip(long, option.negated, strict=True)]
    settings: dict[str, Any] = {"help": option.help, "default": None, "hidden": hidden}
    if option.is_flag:
        settings["is_flag"] = True
    else:
        settings |= {"multiple": option.is_repeated, "metavar": option.metavar}
        if option.without is not None:
            settings |= {"is_flag": False, "flag_value": option.without}
        if option.param:
            value = settings["type"] = Value(option.param)
            if value.is_long:
                settings["help"] += f": {', '.join(value.choices)}"
        elif option.choices:
            settings["type"] = click.Choice(option.choices)
        elif option.key == "project":
            settings["type"] = click.Path()
    if option in (*COMMON, ALLOW_SECRET, LONG):
        settings |= {"expose_value": False, "callback": _keep}
    return click.Option([option.key, *names], **settings)


def _keep(ctx: click.Context, option: click.Parameter, value: Any) -> None:
    kept = ctx.meta.setdefault(KEPT, {})
    if value is not None:
        kept[option.name] = value


def _argument(param: Param) -> click.Argument:
    return click.Argument(
        [param.attribute],
        required=False,
        nargs=-1 if takes_rest(param) else 1,
        metavar=metavar_of(param),
        type=Value(param),
    )


def metavar_of(param: Param) -> str:
    """Returns a positional parameter as usage lines show it: `QUERY`, `[TEXT]`, `PATH…`."""
    shown = f"{param.typed}{'...' if takes_rest(param) else ''}"
    return shown if param.required and not param.arg.stdin else f"[{shown}]"


class Value(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """A value that stays as it was typed, because `invoke` checks it."""

    def __init__(self, param: Param) -> None:
        """Takes the name shown in usage lines from the shape."""
        shape = param.shape.items or param.shape
        self.choices = shape.choices
        kind = "file" if param.arg.file else METAVARS.get(shape.kind, "text")
        self.name = "|".join(shape.choices) or kind
        self.is_long = len(self.name) > _LONGEST

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Returns the choices as they are typed; click would write them in capitals.

        Many choices are listed in the help instead.
        """
        return "NAME" if self.is_long else "|".join(self.choices) or None
