"""The words of a command line, and the commands that they lead to."""

from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from mimo.cli.params import SETTINGS, Run, command_of, common_options
from mimo.commands.registry import Registry
from mimo.errors import Invalid


class Words(click.Group):
    """Commands by the words that lead to them, each loaded when it is named."""

    def __init__(self, path: str, commands: Registry, run: Run, **attrs: Any) -> None:
        """Serve the commands below `path`, which is empty for the program itself."""
        super().__init__(
            name=path or "mind",
            params=[*common_options()],
            context_settings=SETTINGS | {"allow_interspersed_args": False},
            no_args_is_help=False,
            invoke_without_command=True,
            callback=self._show_help_without_command,
            **attrs,
        )
        self.path = path
        self.registry = commands
        self._run = run

    def _show_help_without_command(self, **_options: object) -> None:
        """Shows the program's help if no command was named; a group's lack of one is an error."""
        ctx = click.get_current_context()
        if ctx.invoked_subcommand is not None:
            return
        if self.path:
            known = ", ".join(self.list_commands(ctx))
            raise Invalid(f"`mind {self.path}` needs a command", hint=f"commands are {known}")
        click.echo(ctx.get_help())

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the words that may follow."""
        return [*self.registry.below(self.path), *([] if self.path else ["hook", "mcp"])]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns the command or the group of that name, or None."""
        path = f"{self.path} {cmd_name}".strip()
        if path in self.registry.table:
            return self.leaf(path)
        if self.registry.below(path):
            return Words(path, self.registry, self._run, help=self.registry.groups.get(path, ""))
        if path in ("hook", "mcp"):
            from mimo.cli import serve

            return serve.hook_command() if path == "hook" else serve.mcp_command()
        return None

    def leaf(self, path: str) -> click.Command:
        """Returns the command at a path of the table."""
        return command_of(self.registry.at(path), self._run, self.registry.below(path))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command, its name and its arguments.

        A word may be a command and lead to sub-commands at once: `search` and `search by-topic`.
        """
        word, rest = args[0], args[1:]
        path = f"{self.path} {word}".strip()
        place = _first_word(rest)
        if path in self.registry.table and place is not None and self._leads(path, rest, place):
            sub = rest[place]
            remaining = rest[:place] + rest[place + 1 :]
            return f"{word} {sub}", self.leaf(f"{path} {sub}"), remaining
        command = self.get_command(ctx, word)
        if command is None and not ctx.resilient_parsing:
            raise self._unknown(ctx, word)
        return (word if command else None), command, rest

    def _leads(self, path: str, rest: Sequence[str], place: int) -> bool:
        """Returns whether the word at `place` is a sub-command of `path`."""
        full = f"{path} {rest[place]}"
        alone = place + 1 == len(rest) or rest[place + 1].startswith("-")
        return full in self.registry.table and (full not in self.registry.lone or alone)

    def _unknown(self, ctx: click.Context, word: str) -> Invalid:
        if word.startswith("-"):
            return Invalid(f"`{word}` is not an option of `mind`", hint="see `mind --help`")
        known = self.list_commands(ctx)
        from mimo.commands.arguments import nearest

        program = f"mind {self.path}".strip()
        near = nearest(word, known)
        listed = f"commands are {', '.join(known)}" if self.path else f"see `{program} --help`"
        return Invalid(
            f"`{word}` is not a command of `{program}`",
            hint=f"did you mean `{program} {near[0]}`?" if near else listed,
        )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Returns the words that may follow, without loading their commands, or the options."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        words = self.list_commands(ctx)
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under the headings of their sections."""
        for title, words in self._sections().items():
            rows = []
            for word in words:
                command = self.get_command(ctx, word)
                rows.append((word, command.get_short_help_str(80) if command else ""))
            with formatter.section(title):
                formatter.write_dl(rows)

    def _sections(self) -> dict[str, list[str]]:
        if self.path:
            return {"Commands": list(self.registry.below(self.path))}
        sections: dict[str, list[str]] = {}
        seen: set[str] = set()
        for title, table in self.registry.sections.items():
            words = list(dict.fromkeys(path.split()[0] for path in table))
            sections[title] = [word for word in words if word not in seen]
            seen.update(words)
        sections.setdefault("Agents", []).extend(("hook", "mcp"))
        return {title: words for title, words in sections.items() if words}


def _first_word(rest: Sequence[str]) -> int | None:
    """Returns the place of the first word that is no option of every command's, nor follows one."""
    place = 0
    while place < len(rest) and rest[place].startswith("-"):
        if rest[place] not in ("--json", "--no-color", "--no-pager", "--project"):
            return None
        place += 2 if rest[place] == "--project" else 1
    return place if place < len(rest) else None
