"""Hints: command lines on a terminal, values for the server, and redacted like any text."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mimo
from mimo.call.table import GROUPS, all_commands
from mimo.errors import Command, Hint, Option, join_texts
from mimo.guard.privacy import redacted
from mimo.privacy.model import texts_of
from mimo.text.clean import exposed
from tests.privacy_fakes import TOKENS, Draw

ROOT = Path(mimo.__file__).parent


@pytest.mark.parametrize(
    ("run", "line"),
    [
        (Command("list"), "mind list"),
        (Command("undo", list=True), "mind undo --list"),
        (Command("undo", "k3", force=True, dry_run=False, user=None), "mind undo k3 --force"),
        (Command("edit", "k3", add_tag="a b"), "mind edit k3 --add-tag 'a b'"),
        (Command("import", "notes", from_="obsidian"), "mind import notes --from obsidian"),
        (Command("show", "it's"), """mind show 'it'"'"'s'"""),
        (Command("procedure send", "x_1", "--help"), "mind procedure send x_1 -- --help"),
        (Command("rm", "-x", purge=True), "mind rm --purge -- -x"),
        (Option(tag=True), "--tag"),
        (Option(tag="a b"), "--tag 'a b'"),
    ],
)
def test_a_command_line_is_quoted_for_a_shell(run: str, line: str) -> None:
    assert run == line


def test_a_hint_shows_commands_in_backticks_and_keeps_them_when_it_is_joined() -> None:
    run, option = Command("undo", list=True), Option(force=True)
    hint = Hint("see ", run, ", or give ", option)

    assert hint == "see `mind undo --list`, or give `--force`"
    assert join_texts(None, "a", "", hint) == f"a; {hint}"
    assert join_texts("a", hint) == Hint("a; ", hint)
    joined = join_texts("a", hint)
    assert isinstance(joined, Hint)
    assert joined.parts == ("a", "; ", "see ", run, ", or give ", option)
    assert join_texts(None, "") is None


def test_a_secret_in_a_hint_is_redacted() -> None:
    secret = TOKENS["gitlab_token"][1](Draw(2))
    hint = Hint("see ", Command("search", secret))

    assert texts_of((hint,)) == [hint]
    (shown,) = redacted((hint,)).value
    assert secret not in shown
    assert redacted((Hint("see ", Command("list")),)).value[0].parts[1] == "mind list"


def test_a_hint_about_an_unapproved_memory_shows_invisible_characters() -> None:
    assert exposed(Hint("see ", Command("show", "a\u202eb"))) == r"see `mind show 'a\u202eb'`"


def calls(name: str) -> Iterator[tuple[str, ast.Call]]:
    """Yields the calls of a class of `mimo.errors` in the package, each with its place."""
    for path in sorted(ROOT.rglob("*.py")):
        if f"{name}(" not in (text := path.read_text("utf-8")):
            continue
        nodes = list(ast.walk(ast.parse(text)))
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
        imported = [a.name for node in imports if node.module == "mimo.errors" for a in node.names]
        for node in nodes if name in imported else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def fault_of(run: ast.Call) -> str | None:
    """Returns the reason why a command of a hint does not exist."""
    path, *words = run.args
    if ast.unparse(path) == "spec.path":
        return None
    if not isinstance(path, ast.Constant) or not isinstance(path.value, str):
        return "the command is not a constant"
    if path.value in GROUPS and not words and not run.keywords:
        return None
    commands = all_commands()
    if path.value not in commands.modules:
        return f"there is no command `{path.value}`"
    params = commands.at(path.value).params
    options = {option for param in params for option in param.options}
    for keyword in run.keywords:
        name = (keyword.arg or "").rstrip("_").replace("_", "-")
        if f"--{name}" not in options:
            return f"`{path.value}` has no option `--{name}`"
    places = [param for param in params if param.positional]
    is_open = bool(places) and (places[-1].arg.words or places[-1].shape.kind == "array")
    return "too many values" if len(words) > len(places) and not is_open else None


def test_every_command_of_a_hint_exists_with_its_options() -> None:
    runs = list(calls("Command"))

    assert [(place, fault) for place, run in runs if (fault := fault_of(run))] == []
    assert runs
    named = {
        option for spec in all_commands().all() for param in spec.params for option in param.options
    }
    for place, option in calls("Option"):
        for keyword in option.keywords:
            assert f"--{(keyword.arg or '').replace('_', '-')}" in named, place
