"""A command's declaration -> its click command."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from mimo.commands.spec import Param, Shape, Spec, Surface
from mimo.errors import Invalid, SecretDetected

# What was typed, or piped in -> arguments as `invoke` takes them.


NAMED = "__named"
"""Ends the name of an option that gives a positional parameter."""


def gathered(params: list[Param], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments by their published names, as far as any were given."""
    found = {}
    for param in params:
        typed = _given(param, given)
        value = _gathered(param, typed)
        is_null = param.required and param.shape.kind == "json" and typed not in (None, "-")
        if value is None and param.arg.fallback and given.get(param.arg.fallback[0]):
            value = param.arg.fallback[1]
        if value is not None or is_null:
            found[param.name] = value
    return found


def _given(param: Param, given: Mapping[str, Any]) -> Any:
    """Returns what was typed, by place or by name; raises `Invalid` where it is both."""
    by_place, by_name = given.get(param.attribute), given.get(f"{param.attribute}{NAMED}")
    if by_place is not None and by_name is not None:
        raise Invalid(f"`{param.name}` is given twice", details={"field": param.name})
    return by_place if by_name is None else by_name


def _gathered(param: Param, value: Any) -> Any:
    if param.arg.words and param.positional and not param.shape.items:
        value = " ".join(value) if value else None
    if param.shape.items:
        items = param.shape.items
        return [converted(items, item) for item in value] if value else None
    if param.arg.many:
        several = [converted(param.shape, item) for item in value or ()]
        return several if len(several) > 1 else next(iter(several), None)
    if param.arg.stdin and (value == "-" or (value is None and param.required and _is_piped())):
        return _read_in(param)
    if param.arg.file and value is not None:
        return _standard_input() if value == "-" else _file_text(value)
    return None if value is None else converted(param.shape, value)


def converted(shape: Shape, text: Any) -> Any:
    """Returns typed text as the value that it spells, or as it is where it spells none."""
    if not isinstance(text, str) or shape.kind in ("string", "boolean"):
        return text
    if shape.kind == "json":
        return parsed(text)
    for number in (int, float) if shape.kind == "number" else (int,):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def parsed(text: str) -> Any:
    """Returns JSON where the text is JSON, and the text itself otherwise."""
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _file_text(name: str) -> str:
    """Returns the text of a file that was named in the place of the text itself."""
    try:
        return Path(name).read_text("utf-8", "replace")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no name of a file"
        raise Invalid(
            f"`{name}` can't be read: {reason.lower()}", hint="name a file, or - for standard input"
        ) from None


def _read_in(param: Param) -> Any:
    text = _standard_input()
    return parsed(text) if text and param.shape.kind == "json" else text or None


def _is_piped() -> bool:
    return sys.stdin is not None and not sys.stdin.isatty()


def _standard_input() -> str:
    """Returns the text on standard input without its last line end."""
    if sys.stdin is None:
        return ""
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise Invalid(
            "standard input is not text in UTF-8", hint="convert it first, for example with iconv"
        ) from None


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
