"""The questions of a call to the user of its client, who approves texts or chooses between them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

from mimo.call import Call, Surface
from mimo.data import files
from mimo.errors import MindError
from mimo.project import git, revisions
from mimo.surroundings import NO, Question
from mimo.text.clean import one_line, visible

YES = "yes"

_LARGEST = 4_000
"""Characters of the texts in a question: a user reads no more before an answer."""
_SECONDS = 120.0
_UNREAD = re.compile(r"[^\S\n]{40}|[^\n]{1000}|(?:\n *\|[^\S\n]*){10}(?=\n)")
"""A line that a client could wrap so that its end looks like mind's, or many that are empty."""


def can_ask(call: Call) -> bool:
    """Returns whether a client shows questions about approvals to the user of this machine.

    What one of several users of a server approves would be approved for all of them.
    """
    return call.caller.surface is Surface.MCP and call.permissions is None and call.ask is not None


def answered(call: Call, question: Question) -> str:
    """Returns the choice of the client's user; empty if there is none."""
    return (can_ask(call) and call.ask and call.ask(question, _SECONDS)) or ""


def agreed(call: Call, texts: Mapping[str, bytes], effect: str) -> bool:
    """Returns whether the client's user approves texts, by their paths, after reading them whole.

    Texts that are too long for a question are not asked about. `effect` is the result of an
    approval, as a part of the question.
    """
    if not can_ask(call):
        return False
    authors = _authors(call)
    subject, object = ("this text", "it is") if len(texts) == 1 else ("these texts", "they are")
    # Clients may show the first lines only.
    lines = [f"Approve {subject}, so that {effect}? On this machine {object} not approved yet."]
    bodies = []
    for path, data in texts.items():
        try:
            whole = visible(data.decode(), "\n\t")
        except UnicodeDecodeError:
            return False
        author = f", last committed by {authors[path]}" if path in authors else ""
        lines.append(f"{one_line(path)} ({len(data):,} bytes{author})")
        bodies += ["", f"{one_line(path)}:"] if len(texts) > 1 else []
        # A client that renders Markdown shows this as code, and so hides no comment or address.
        bodies += ["", *(f"    | {line}" for line in whole.rstrip("\n").split("\n"))]
    text = "\n".join((*lines, *bodies))
    if len(text) > _LARGEST or _UNREAD.search(text.expandtabs()):
        return False
    question = Question(text, (YES, NO), tuple(map(files.digest, texts.values())))
    is_agreed = answered(call, question) == YES
    if is_agreed:
        call.mind.tell("mimo.trust.approved", {"count": len(texts)}, files=list(texts))
    return is_agreed


def _authors(call: Call) -> dict[str, str]:
    """Returns the author of the last commit of each memory file; git lets anyone write any name."""
    root = call.mind.project.root
    with suppress(MindError):
        if git.has_repository(root):
            return {
                path: one_line(commits[0].author)[:80]
                for path, commits in revisions.commits_by_path(root).items()
            }
    return {}
