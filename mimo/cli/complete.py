"""What the shell completes: quickly, read only, and never with an error."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from click.shell_completion import ShellComplete

from mimo.text.clean import clean, one_line

MOST = 50
"""How many candidates are offered at most."""

_QUERIES = {
    "id": "SELECT id, coalesce(title, type) FROM memories WHERE shadowed = 0"
    " AND substr(id, 1, ?) = ? ORDER BY created DESC, id LIMIT ?",
    "tag": "SELECT tag, '' FROM tags WHERE substr(tag, 1, ?) = ?"
    " GROUP BY tag ORDER BY count(*) DESC, tag LIMIT ?",
    "topic": "SELECT max(topic), max(coalesce(title, '')) FROM memories WHERE shadowed = 0"
    " AND topic_key IS NOT NULL AND substr(topic, 1, ?) = ?"
    " GROUP BY topic_key ORDER BY max(created) DESC, topic_key LIMIT ?",
}


def tell(root: click.Command, words: Sequence[str]) -> None:
    """Print what the last of the words may become, one `word<TAB>help` a line.

    `:files` stands for the names of files, which the shell knows best.
    """
    *before, start = words or [""]
    try:
        found = ShellComplete(root, {}, "mind", "").get_completions(list(before), start)
    except Exception:  # noqa: BLE001 - a completion that fails would garble the command line
        return
    for item in found:
        help = " ".join((item.help or "").split())
        click.echo(":files" if item.type == "file" else f"{item.value}\t{help}".rstrip())


def candidates(what: str, start: str, project: str | None) -> list[tuple[str, str]]:
    """Returns words that begin with `start`, each with a short explanation.

    `what` is `id`, `tag`, `topic`, `type`, `setting`, `procedure` or `execution`. Where
    what is asked for can't be read there are none.
    """
    if what == "type":
        from mimo.memory.model import KIND_ALIASES, Kind

        names: Iterable[str] = [*Kind, *KIND_ALIASES]
        return [(str(name), "") for name in names if name.startswith(start)]
    if what == "setting":
        from mimo.config import SETTINGS

        return [(one.key, one.help) for one in SETTINGS if one.key.startswith(start)]
    try:
        if what in ("procedure", "execution"):
            names = filter(is_word, _on_disk(what, project))
            return [(name, "") for name in names if name.startswith(start)]
        return _from_index(_QUERIES[what], start, project)
    except Exception:  # noqa: BLE001 - a completion that fails would garble the command line
        return []


def _on_disk(what: str, project: str | None) -> list[str]:
    from mimo.features.procedures.storage import Executions
    from mimo.mind import Mind
    from mimo.store import procedures

    root = Mind.open(Path.cwd(), project=Path(project) if project else None).project.root
    if what == "execution":
        return Executions(root, "").ids()[::-1][:MOST]
    return list(dict.fromkeys(file.stem.partition("@")[0] for file in procedures.listed(root)))


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
    return [(word, " ".join(clean(help).split())[:60]) for word, help in shown if is_word(word)]


def is_word(text: str) -> bool:
    """Returns whether a shell may offer a text: a visible line that can't pass for an option."""
    return bool(text) and one_line(text) == text and "\t" not in text and text[0] != "-"
