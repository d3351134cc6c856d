"""A command's declaration -> its click command."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from mimo.cli.typed import NAMED, gathered
from mimo.commands.spec import Param, Spec, Surface
from mimo.commands.types import Shape
from mimo.errors import SecretDetected

Run = Callable[[Spec, Mapping[str, Any], Mapping[str, Any]], None]
"""Runs a command with its arguments and the options that every command has."""

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
KEPT = "mimo.options"
"""Where click's contexts keep the options that every command has."""


class Value(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """A value that stays as it was typed, since `invoke` checks it, but can be completed."""

    def __init__(self, param: Param, shape: Shape, subcommands: Sequence[str] = ()) -> None:
        """Take the name shown in usage lines from the shape."""
        self._subcommands = subcommands
        self._param = param
        self._shape = shape
        named = "file" if param.arg.file else _METAVARS.get(shape.kind, "text")
        self.name = "|".join(shape.choices) or named

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Returns choices as they are typed; click would shout them."""
        return "|".join(self._shape.choices) or None

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Returns what may stand here: sub-commands, choices, paths, or ids, tags and types."""
        words = subcommands_first(ctx, self._subcommands, incomplete)
        return words + self._values(ctx, incomplete)

    def _values(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if self._param.arg.file or self._param.arg.complete == "path":
            return [CompletionItem(incomplete, type="file")]
        if self._shape.choices:
            return [
                CompletionItem(word) for word in self._shape.choices if word.startswith(incomplete)
            ]
        if self._param.arg.complete is None:
            return []
        from mimo.cli.complete import candidates

        project = ctx.meta.get(KEPT, {}).get("project")
        return [
            CompletionItem(word, help=help)
            for word, help in candidates(self._param.arg.complete, incomplete, project)
        ]


_METAVARS = {"integer": "n", "number": "number", "json": "json", "string": "text"}


def common_options() -> list[click.Option]:
    """Returns the options that stand before or after any command."""
    return [
        _common(["--json"], is_flag=True, help="Print the answer as JSON"),
        _common(["--project"], metavar="DIR", type=click.Path(), help="Work on this project"),
        _common(["--no-color"], is_flag=True, help="Print without colours"),
        _common(["--no-pager"], is_flag=True, help="Never page long output"),
    ]


def _common(names: list[str], **settings: Any) -> click.Option:
    return click.Option(names, expose_value=False, callback=_keep, default=None, **settings)


def _keep(ctx: click.Context, option: click.Parameter, value: Any) -> None:
    kept = ctx.meta.setdefault(KEPT, {})
    if value is not None:
        kept[option.name] = value


def command_of(spec: Spec, run: Run, subcommands: tuple[str, ...] = ()) -> click.Command:
    """Returns the click command of a specification."""
    params = [param for param in spec.params if Surface.CLI in param.arg.surfaces]

    def callback(**given: Any) -> None:
        ctx = click.get_current_context()
        run(spec, gathered(params, given), ctx.meta.get(KEPT, {}))

    own: list[click.Parameter] = [_parameter(param, subcommands) for param in params]
    own += [_by_name(param) for param in params if param.arg.named]
    taken = {name for option in own for name in option.opts}
    common = [option for option in common_options() if not taken & set(option.opts)]
    for option in common:
        option.hidden = option.name != "json"
    if SecretDetected in spec.errors:
        told = "Store it although it looks like a secret"
        common.append(_common(["--allow-secret"], is_flag=True, help=told))
    return Command(
        spec, subcommands, name=spec.path.split()[-1], params=[*own, *common], callback=callback
    )


class Command(click.Command):
    """A click command whose help tells its arguments, its sub-commands and its examples."""

    def __init__(self, spec: Spec, subcommands: tuple[str, ...], **attrs: Any) -> None:
        """Take help and examples from the specification."""
        super().__init__(
            help=spec.help, short_help=spec.summary, context_settings=dict(SETTINGS), **attrs
        )
        self._arguments = [
            (metavar_of(param), param.arg.help)
            for param in spec.params
            if param.positional and Surface.CLI in param.arg.surfaces
        ]
        self._subcommands = subcommands
        self._examples = spec.examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, then the options."""
        if self._arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(self._arguments)
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sub-commands of the same word, the examples, and where the rest is told."""
        for title, lines in (
            ("Commands", [f"{ctx.command_path} {word}" for word in self._subcommands]),
            ("Examples", self._examples),
        ):
            if lines:
                with formatter.section(title):
                    for line in lines:
                        formatter.write(f"{' ' * formatter.current_indent}{line}\n")
        formatter.write_paragraph()
        formatter.write_text("Options for every command are told by `mind --help`.")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Returns options and, in the first place, the sub-commands of the same word."""
        words = subcommands_first(ctx, self._subcommands, incomplete)
        return words + super().shell_complete(ctx, incomplete)


def subcommands_first(
    ctx: click.Context, subcommands: Sequence[str], incomplete: str
) -> list[CompletionItem]:
    """Returns the sub-commands that may stand in the first place, while nothing stands there."""
    if any(value and isinstance(value, str | tuple) for value in ctx.params.values()):
        return []
    return [CompletionItem(word) for word in subcommands if word.startswith(incomplete)]


def _parameter(param: Param, subcommands: Sequence[str]) -> click.Parameter:
    shape = param.shape.items or param.shape
    if param.positional:
        return click.Argument(
            [param.attribute],
            required=False,
            nargs=-1 if param.arg.words or param.shape.items else 1,
            metavar=metavar_of(param),
            type=Value(param, shape, subcommands),
        )
    names = _option_names(param)
    settings: dict[str, Any] = {"help": _help(param), "default": None}
    if shape.kind == "boolean":
        settings["is_flag"] = True
    else:
        several = param.shape.items is not None or param.arg.many
        settings |= {"type": Value(param, shape), "multiple": several}
    return click.Option([param.attribute, *names], **settings)


def _by_name(param: Param) -> click.Option:
    """Returns the option that gives a positional parameter, for those who say it by name."""
    shown = f"{param.arg.help}, said by name"
    names = _option_names(param)
    return click.Option([f"{param.attribute}{NAMED}", *names], help=shown, default=None)


def _option_names(param: Param) -> list[str]:
    short = [f"-{param.arg.short}"] if param.arg.short else []
    words = (param.name, *param.aliases)
    return [*short, *(name for word in words for name in _flags(param, word))]


def _flags(param: Param, word: str) -> list[str]:
    name = (singular(word) if param.shape.items else word).replace("_", "-")
    if param.shape.kind == "boolean" and param.default is not False:
        return [f"--{name}/--no-{name}"]
    return [f"--{name}"]


def singular(word: str) -> str:
    """Returns the name of one of many: `tags` -> `tag`, `categories` -> `category`."""
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def metavar_of(param: Param) -> str:
    """Returns a positional parameter as usage lines show it: `QUERY`, `[TEXT]`, `PATH…`."""
    many = param.arg.words or param.shape.items is not None
    name = singular(param.name) if param.shape.items else param.name
    shown = name.upper().replace("_", "-") + ("..." if many else "")
    return shown if param.required and not param.arg.stdin else f"[{shown}]"


def _help(param: Param) -> str:
    told = param.arg.help
    if param.shape.items or param.arg.many:
        told += " (can be repeated)"
    if param.default in (None, (), False) or param.shape.kind == "boolean":
        return told
    return f"{told} (default {param.default})"
