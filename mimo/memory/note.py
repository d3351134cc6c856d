"""A memory as one harmless line for an agent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from zlib import crc32

from mimo.frozen import NamedTuple
from mimo.text.calendar import MONTHS
from mimo.text.clean import clean, compiled

STATE_TOPIC = "project_state"
"""The topic of the memories under `## Project State` in the log."""

LONGEST = 300
"""Characters of one line."""

_READ = 4_000
"""Characters of a text that are read for a line."""

_OURS = (
    r"(?i)<(?=[/!?]|(?:system|assistant|user|human|instructions?|important|mind|function|tool|invoke|"
    r"antml|local-command|command|task|title|textarea|style|xmp|iframe|noembed|noframes|script|"
    r"plaintext)(?![a-z]))"
)
"""The start of a tag or comment that a client, a model or mind could read as its own.

The last ones take what follows in a page as their text.
"""

_IMPORT = r"(?<![\w`])@(?=[\w~./\\])"
"""`@path`, which an instructions file replaces by the file; with a blank it is plain text."""

_MARK = r"\s{0,3}(?:#{1,6}\s+|[-*+]\s+(?:\[[ xX]\]\s+)?|>\s*)+"
_RULE = r"\s*(?:(?:-\s*)+|(?:[-*_=]\s*){3,}|(?:```|~~~).*)"
_MARKS = r"\A(?:(?:#{1,6}|[-*+])(?:\s+|\Z)|>\s*)+"
_TARGET = r"\[(?:[^\]\\]|\\.)+\](?=:\s*(?:<|\S*(?:\s*\Z|\s[\"'(])))"
"""`[name]: url`, if only its title can follow; any other text makes it a sentence."""

_BEGINNING = (
    r"\A(?:[0-9]{1,9}[.)](?:\s|\Z)|\[[ xX]\](?:\s|\Z)|<(?=[A-Za-z])(?!https?://)|" + _TARGET + ")"
)
"""The beginning of a line that is the item of a list, a task, HTML, or the target of links.

`<https://…>` is a link within a line.
"""

_LINE_STARTS = frozenset("#-+*>_=<[0123456789")
"""The first letters of these."""

_SENTENCE = r".{20,}?(?:[.!?](?=\s+[^a-z\s]|$)|[。！？])"  # noqa: RUF001 - full-width ones, too

_CLOSED = frozenset(("resolved", "closed", "done", "fixed", "archived"))
"""The statuses of closed issues and plans."""


ENDED: Mapping[str, str] = {
    "superseded": r"super[sc]eded|replaced(?= by| with|$)|ersetzt|abgelöst|sustituid[oa]"
    r"|reemplazad[oa]|remplacée?|substituíd[oa]|sostituit[oa]|vervangen",
    "rejected": "rejected|declined|withdrawn|abandoned|canceled|cancelled"
    "|verworfen|abgelehnt|zurückgezogen"
    "|rechazad[oa]|descartad[oa]|rejetée?|refusée?|abandonnée?|rejeitad[oa]|recusad[oa]"
    "|rifiutat[oa]|respint[oa]|afgewezen|verworpen",
    "deprecated": "deprecated|obsolete|retired|veraltet|überholt|obsolet[oa]|obsolète|dépréciée?"
    "|depreciad[oa]|deprecad[oa]|deprecat[oa]|superat[oa]|verouderd|vervallen",
}
"""The words for the statuses of decisions that do not count any more, in seven languages."""


_SUBJECT = "(?:(?:this|the) (?:adr|decision|record|proposal) (?:is|was|has been) )?"
_OF_DECISION = r"\b(?!\s+(?:alternati|optie|option|opci[oó]n|opzion|variant))"
"""The end of a status of the decision itself, and not of alternatives to it."""


def closed_as(kind: str, status: str | None) -> str | None:
    """Returns the status of a closed issue or plan in lower case, and that of an ended decision.

    None for other memories.
    """
    word = (status or "").strip().lower()
    if word and kind == "decision":
        parts = re.split("[;,.|→]", word[:200])
        for label, words in ENDED.items():
            if any(map(compiled(rf"[\W\d_]*{_SUBJECT}(?:{words}){_OF_DECISION}").match, parts)):
                return label
        return None
    return word if kind in ("issue", "plan") and word in _CLOSED else None


class Note(NamedTuple):
    """The parts of a memory that an agent gets."""

    id: str
    kind: str
    title: str
    text: str
    created: datetime
    topic: str = ""
    category: str = ""
    status: str = ""
    outcome: str = ""
    importance: float = 0.5
    keep: bool = False
    """True if the user wants it never to fade."""
    private: bool = False
    sections: Mapping[str, str] = {}
    extra: Mapping[str, object] = {}
    path: str = ""
    digest: str = ""
    superseded_by: str = ""
    """The heading of the memory that replaced it, if it failed."""
    year: int = 0
    """The year in which the agent gets it; 0 for that of the memory."""

    @property
    def heading(self) -> str:
        """Returns the title, or the first line of the text."""
        return self.title or next((line for line in self.text.splitlines() if line.strip()), "")

    @property
    def day(self) -> str:
        """Returns its date: `Dec 10`, or `Dec 10, 2024` in another year."""
        day = f"{MONTHS[self.created.month - 1][:3].title()} {self.created.day}"
        return day if self.year in (0, self.created.year) else f"{day}, {self.created.year}"

    @property
    def mark(self) -> str:
        """Returns a mark that changes with the statement of the memory."""
        statement = "\0".join((self.title, self.text, self.outcome, *self.sections.values()))
        return f"{self.id}#{crc32(statement.encode('utf-8', 'replace')):08x}"


def plain(text: str, limit: int = LONGEST) -> str:
    """Returns prose as one harmless line of at most `limit` characters.

    It has no secrets, no hidden or control characters, and nothing that could close a fence, open
    a tag or a comment, name a file to read, or begin a heading, a list or a block of code.
    """
    words = " ".join(_lines(clean(masked(text[:_READ]))))
    if words[:1] in _LINE_STARTS:
        words = _begun(words, limit)
    if "<" in words:
        words = compiled(_OURS).sub("‹", words)  # noqa: RUF001 - looks the same, and opens nothing
    words = words.replace("-->", "--›").replace("```", "'''").replace("~~~", "'''")  # noqa: RUF001
    if "@" in words:
        words = compiled(_IMPORT).sub("@ ", words)
    return words if len(words) <= limit else f"{words[: limit - 1].rstrip()}…"


def _begun(words: str, limit: int) -> str:
    """Returns a line without marks at its beginning, which joined lines can have, too.

    It is read as it will be cut.
    """
    words = compiled(_MARKS).sub("", words)
    if compiled(_RULE).fullmatch(words):
        return ""
    begins = compiled(_BEGINNING).match(words, 0, limit - 1)
    if not begins:
        return words
    # A no-break space ends no mark.
    mark = "‹" if begins[0] == "<" else f"{begins[0].rstrip()}\u00a0"  # noqa: RUF001 - as above
    return mark + words[begins.end() :]


def masked(text: str) -> str:
    """Returns a text with marks in place of its secrets, truncated ones included."""
    # Most hooks have no text to mask.
    from mimo.privacy.model import without
    from mimo.privacy.secrets import secrets_in

    secrets = secrets_in(text, cut=True)
    return without(text, secrets) if secrets else text


def first_sentence(text: str, limit: int = LONGEST) -> str:
    """Returns the first sentence of a text as one harmless line."""
    words = plain(text, _READ)
    sentence = compiled(_SENTENCE).match(words)
    return plain(sentence[0] if sentence else words, limit)


def tasks(text: str) -> list[str]:
    """Returns the open items of a task list, or all lines of another text."""
    open_ = (
        plain(line)
        for line in text.splitlines()
        if not line.lstrip().lower().startswith(("- [x]", "* [x]"))
    )
    return [item for item in open_ if item]


def _lines(text: str) -> Iterable[str]:
    """Yields the text of each line without marks of headings and items; rules are left out."""
    for line in text.splitlines():
        if not compiled(_RULE).fullmatch(line):
            bare = compiled(_MARK).sub("", line, count=1) if compiled(_MARK).match(line) else line
            if words := " ".join(bare.split()):
                yield words
