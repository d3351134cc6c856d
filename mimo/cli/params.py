"""Commands for click, made from their declarations: parameters, help, values and completion."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, ShellComplete

from mimo.commands.spec import Param, Shape, Spec, Surface
from mimo.errors import Invalid, SecretDetected
from mimo.text.clean import clean, one_line

Run = Callable[[Spec, Mapping[str, Any], Mapping[str, Any]], None]
"""Runs a command with its arguments and the options that every command has."""

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

KEPT = "mimo.options"
"""The key of click's contexts for the options that every command has."""

BY_NAME = "__named"
"""The end of the name of an option that gives a positional parameter."""

METAVARS = {"integer": "n", "number": "number", "json": "json", "string": "text"}


class Command(click.Command):
    """The click command of a specification."""

    def __init__(self, spec: Spec, run: Run, subcommands: tuple[str, ...] = ()) -> None:
        """Take parameters, help and examples from the specification."""
        params = [param for param in spec.params if Surface.CLI in param.arg.surfaces]
        options: list[click.Parameter] = [_parameter(param, subcommands) for param in params]
        options += [_by_name(param) for param in params if param.arg.named]
        names = {name for option in options for name in option.opts}
        common = [option for option in common_options() if not names & set(option.opts)]
        for option in common:
            option.hidden = option.name != "json"
        if SecretDetected in spec.errors:
            help = "Store it although it looks like a secret"
            common.append(_common(["--allow-secret"], is_flag=True, help=help))
        super().__init__(
            name=spec.path.split()[-1],
            params=[*options, *common],
            help=spec.help,
            short_help=spec.summary,
            context_settings=dict(SETTINGS),
        )
        self._spec = spec
        self._run = run
        self._params = params
        self._subcommands = subcommands

    def invoke(self, ctx: click.Context) -> None:
        """Run the command."""
        self._run(self._spec, gathered(self._params, ctx.params), ctx.meta.get(KEPT, {}))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, then the options."""
        rows = [(metavar_of(param), param.arg.help) for param in self._params if param.positional]
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sub-commands of the same word, the examples, and a pointer to the rest."""
        for title, lines in (
            ("Commands", [f"{ctx.command_path} {word}" for word in self._subcommands]),
            ("Examples", self._spec.examples),
        ):
            if lines:
                with formatter.section(title):
                    for line in lines:
                        formatter.write(f"{' ' * formatter.current_indent}{line}\n")
        formatter.write_paragraph()
        formatter.write_text("For the options of every command, see `mind --help`.")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Returns the options and, for the first word, the sub-commands."""
        words = _subcommands_first(ctx, self._subcommands, incomplete)
        return words + super().shell_complete(ctx, incomplete)


# Parameters.


def common_options() -> list[click.Option]:
    """Returns the options that may be before or after any command."""
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
    """Returns the option that gives a positional parameter by its name."""
    names = _option_names(param)
    help = f"{param.arg.help}, given by name"
    return click.Option([f"{param.attribute}{BY_NAME}", *names], help=help, default=None)


def _option_names(param: Param) -> list[str]:
    names = [f"-{param.arg.short}"] if param.arg.short else []
    for word in (param.name, *param.aliases):
        name = (singular(word) if param.shape.items else word).replace("_", "-")
        is_switch = param.shape.kind == "boolean" and param.default is not False
        names.append(f"--{name}/--no-{name}" if is_switch else f"--{name}")
    return names


def singular(word: str) -> str:
    """Returns the singular of a plural: `tags` -> `tag`, `categories` -> `category`."""
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
    help = param.arg.help
    if param.shape.items or param.arg.many:
        help += " (can be repeated)"
    if param.default in (None, (), False) or param.shape.kind == "boolean":
        return help
    return f"{help} (default {param.default})"


# Values: typed or piped text -> arguments as `invoke` takes them.


def gathered(params: Sequence[Param], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments that were given, by their published names."""
    arguments = {}
    for param in params:
        by_place, by_name = given.get(param.attribute), given.get(f"{param.attribute}{BY_NAME}")
        if by_place is not None and by_name is not None:
            raise Invalid(f"`{param.name}` is given twice", details={"field": param.name})
        typed = by_place if by_name is None else by_name
        value = _gathered(param, typed)
        is_null = param.required and param.shape.kind == "json" and typed not in (None, "-")
        if value is None and param.arg.fallback and given.get(param.arg.fallback[0]):
            value = param.arg.fallback[1]
        if value is not None or is_null:
            arguments[param.name] = value
    return arguments


def _gathered(param: Param, value: Any) -> Any:
    if param.arg.words and param.positional and not param.shape.items:
        value = " ".join(value) if value else None
    if param.shape.items:
        items = param.shape.items
        return [converted(items, item) for item in value] if value else None
    if param.arg.many:
        several = [converted(param.shape, item) for item in value or ()]
        return several if len(several) > 1 else next(iter(several), None)
    is_piped = sys.stdin is not None and not sys.stdin.isatty()
    if param.arg.stdin and (value == "-" or (value is None and param.required and is_piped)):
        text = _standard_input()
        return parsed(text) if text and param.shape.kind == "json" else text or None
    if param.arg.file and value is not None:
        return _standard_input() if value == "-" else _file_text(value)
    return None if value is None else converted(param.shape, value)


def converted(shape: Shape, text: Any) -> Any:
    """Returns the value that a text spells, or the text if it is not a value of the shape."""
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
    """Returns the value of a JSON text, or the text itself if it is not JSON."""
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _file_text(name: str) -> str:
    """Returns the text of a file that was named in place of a text."""
    try:
        return Path(name).read_text("utf-8", "replace")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a valid file name"
        raise Invalid(
            f"`{name}` can't be read: {reason.lower()}", hint="name a file, or - for standard input"
        ) from None


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


# Completion: fast, read-only, and without errors, which would garble the command line.


MOST = 50
"""The maximum number of candidates."""

QUERIES = {
    "id": "SELECT id, coalesce(title, type) FROM memories WHERE shadowed = 0"
    " AND substr(id, 1, ?) = ? ORDER BY created DESC, id LIMIT ?",
    "tag": "SELECT tag, '' FROM tags WHERE substr(tag, 1, ?) = ?"
    " GROUP BY tag ORDER BY count(*) DESC, tag LIMIT ?",
    "topic": "SELECT max(topic), max(coalesce(title, '')) FROM memories WHERE shadowed = 0"
    " AND topic_key IS NOT NULL AND substr(topic, 1, ?) = ?"
    " GROUP BY topic_key ORDER BY max(created) DESC, topic_key LIMIT ?",
}


class Value(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """A value that stays as it was typed, because `invoke` checks it, but can be completed."""

    def __init__(self, param: Param, shape: Shape, subcommands: Sequence[str] = ()) -> None:
        """Take the name shown in usage lines from the shape."""
        self._subcommands = subcommands
        self._param = param
        self._shape = shape
        kind = "file" if param.arg.file else METAVARS.get(shape.kind, "text")
        self.name = "|".join(shape.choices) or kind

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Returns the choices as they are typed; click would write them in capitals."""
        return "|".join(self._shape.choices) or None

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Returns sub-commands, choices, paths, or words of the project such as ids and tags."""
        words = _subcommands_first(ctx, self._subcommands, incomplete)
        kind = self._param.arg.complete
        if self._param.arg.file or kind == "path":
            return [*words, CompletionItem(incomplete, type="file")]
        if self._shape.choices:
            choices = [word for word in self._shape.choices if word.startswith(incomplete)]
            return words + [CompletionItem(word) for word in choices]
        if kind is None:
            return words
        rows = candidates(kind, incomplete, ctx.meta.get(KEPT, {}).get("project"))
        return words + [CompletionItem(word, help=help) for word, help in rows]


def _subcommands_first(
    ctx: click.Context, subcommands: Sequence[str], incomplete: str
) -> list[CompletionItem]:
    """Returns the sub-commands that fit, unless another word was typed before."""
    if any(value and isinstance(value, str | tuple) for value in ctx.params.values()):
        return []
    return [CompletionItem(word) for word in subcommands if word.startswith(incomplete)]


def completions(root: click.Command, words: Sequence[str]) -> list[str]:
    """Returns the completions of the last word, each as `word<TAB>help`.

    `:files` leaves the completion of file names to the shell.
    """
    *before, start = words or [""]
    try:
        items = ShellComplete(root, {}, "mind", "").get_completions(list(before), start)
    except Exception:  # noqa: BLE001 - see above
        return []
    lines = []
    for item in items:
        help = " ".join((item.help or "").split())
        lines.append(":files" if item.type == "file" else f"{item.value}\t{help}".rstrip())
    return lines


def candidates(kind: str, start: str, project: str | None) -> list[tuple[str, str]]:
    """Returns words that begin with `start`, each with a short help.

    `kind` is `id`, `tag`, `topic`, `type`, `setting`, `procedure` or `execution`. If the project
    can't be read, there are none.
    """
    if kind == "type":
        from mimo.memory.model import KIND_ALIASES, Kind

        words: Iterable[str] = [*Kind, *KIND_ALIASES]
        return [(str(word), "") for word in words if word.startswith(start)]
    if kind == "setting":
        from mimo.config import SETTINGS as DECLARED

        return [(entry.key, entry.help) for entry in DECLARED if entry.key.startswith(start)]
    try:
        if kind in ("procedure", "execution"):
            words = filter(_is_word, _on_disk(kind, project))
            return [(word, "") for word in words if word.startswith(start)]
        return _from_index(QUERIES[kind], start, project)
    except Exception:  # noqa: BLE001 - see above
        return []


def _on_disk(kind: str, project: str | None) -> list[str]:
    from mimo.features.procedures.storage import Executions
    from mimo.mind import Mind

    root = Mind.open(Path.cwd(), project=Path(project) if project else None).project.root
    if kind == "execution":
        return Executions(root, "").ids()[::-1][:MOST]
    names = sorted(path.name for path in (root / ".mind/procedures").glob("[!.]*.md"))
    return list(dict.fromkeys(name.partition("@")[0] for name in names))


def _from_index(query: str, start: str, project: str | None) -> list[tuple[str, str]]:
    import sqlite3
    from contextlib import closing

    from mimo.guard.privacy import redacted
    from mimo.index.database import generations
    from mimo.mind import Mind
    from mimo.store.projects import known_owner

    mind = Mind.open(Path.cwd(), project=Path(project) if project else None)
    folder, owner = mind.index_folder, known_owner(mind.home)
    number = generations(folder)[-1]
    path = folder / (f"index-{number}.db" if number else "index.db")
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=0.2)) as connection:
        made_by = connection.execute("SELECT value FROM meta WHERE name = 'owner'").fetchone()
        if owner is None or made_by != (owner,):
            return []
        rows = connection.execute(query, (len(start), start, MOST)).fetchall()
    shown = redacted(rows).value
    return [(word, " ".join(clean(help).split())[:60]) for word, help in shown if _is_word(word)]


def _is_word(text: str) -> bool:
    """Returns whether a shell may offer a text: one visible line, not like an option."""
    return bool(text) and one_line(text) == text and "\t" not in text and text[0] != "-"
