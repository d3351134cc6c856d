"""A procedure as a diagram: Mermaid's language, and lines for a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

from mimo.domain.procedures.procedure import Action, Module, Procedure
from mimo.domain.procedures.templates import spelled


def mermaid(procedure: Procedure) -> str:
    """Returns a state diagram in Mermaid's language."""
    names = {name: f"s{number}" for number, name in enumerate(procedure.states, 1)}
    lines = ["stateDiagram-v2"]
    lines += [f'    state "{_label(name)}" as {short}' for name, short in names.items()]
    lines.append(f"    [*] --> {names[procedure.initial_state]}")
    for name, state in procedure.states.items():
        for event, target in state.transitions.items():
            lines.append(f"    {names[name]} --> {names[target]}: {_label(event)}")
        if state.terminal:
            lines.append(f"    {names[name]} --> [*]")
    return "\n".join(lines) + "\n"


def _label(text: str) -> str:
    """Returns a name as Mermaid shows it, with what it would take for its own syntax spelt out."""
    safe = "".join(c if c.isalnum() or c in " _-." else f"#{ord(c)};" for c in text)
    return safe or "#8203;"


def drawn(definition: Mapping[str, Any]) -> list[str]:
    """Returns a definition as a tree of its states, each with what it does.

    A state that was drawn before is only named.
    """
    states = definition["states"]
    lines: list[str] = []
    seen: set[str] = set()
    # A stack instead of recursion: a chain of states may be longer than Python's stack is deep.
    open_: list[tuple[str, str, str]] = [(definition["initial_state"], "", "")]
    while open_:
        name, lead, rest = open_.pop()
        state = states[name] or {}
        below = [(item["event"], item["target"]) for item in state.get("transitions") or ()]
        known = name in seen
        seen.add(name)
        action = state.get("action")
        did = f"  {_told(action)}" if action and not known else ""
        lines.append(f"{lead}{name}{' ↺' if known else '' if below else ' ■'}{did}")
        if not known:
            open_ += reversed(list(_branches(below, rest)))
    return lines


def _branches(below: list[tuple[str, str]], rest: str) -> Iterator[tuple[str, str, str]]:
    """Yields what stands under a state: the target, what leads to it, and what to its own."""
    for number, (event, target) in enumerate(below, 1):
        last = number == len(below)
        branch, trunk = ("└─", "   ") if last else ("├─", "│  ")
        yield target, f"{rest}{branch} {event} → ", f"{rest}{trunk}"


def _told(action: Mapping[str, Any]) -> str:
    args = action.get("args") or []
    words = args if isinstance(args, list) else [args]
    return _said(action["module"], action["function"], words)


def told(action: Action) -> str:
    """Returns what an action does, in one line."""
    return _said(action.module, action.function, list(action.args))


def _said(module: str, function: str, args: list[Any]) -> str:
    # One line for each action: none may look like several.
    return _in_words(module, function, args).replace("\n", "\\n").replace("\r", "\\r")


def _in_words(module: str, function: str, args: list[Any]) -> str:
    if module == Module.SHELL:
        return f"$ {' '.join(_word(word) for word in args)}"
    if module == Module.STEP:
        name = function
    else:
        name = f"mind {function}" if module == Module.COMMAND else module.rpartition(".")[2]
    named = args[0] if args and isinstance(args[0], dict) else {}
    said = ", ".join(f"{key}: {spelled(value)}" for key, value in named.items())
    return f"[{name}{f' {said}' if said else ''}]"


def _word(word: object) -> str:
    text = str(word)
    plain = text and all(c.isalnum() or c in "-_./={}:,@+" for c in text)
    return text if plain else "'" + text.replace("'", "'\\''") + "'"
