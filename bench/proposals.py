"""Measure the proposals of sessions, on invented sessions with labels.

    python -m bench.proposals [open|sealed|talk|talk-sealed|languages] [--list]

Prints precision and recall by the strict and the lenient labels, and the precision of the first 5
and the first 20 of each person's list. `talk` is closer to how people type; the sealed halves have
other persons than those on which the cues were tried.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mimo.extensions.sessions.cues import words_of
from mimo.extensions.sessions.model import Role, Turn
from mimo.extensions.sessions.proposals import History, Proposal, proposed
from mimo.extensions.sessions.store import KeptTurn

FOLDER = Path(__file__).parent / "sessions"
HALVES = sorted(path.stem for path in FOLDER.glob("*.txt"))
LABEL = re.compile(r"\{([sl]):([^}]*)\}")
MENDED = re.compile(r" \{([sl])\}$")
ROLES = {"U": Role.USER, "P": Role.USER, "A": Role.AGENT, "T": Role.TOOL, "E": Role.TOOL}


class Label(NamedTuple):
    """A sentence that is worth keeping, or the turn of a mended failure."""

    session: str
    n: int
    is_strict: bool
    words: frozenset[str]
    """Empty for a mended failure."""


class Labelled(NamedTuple):
    """The sessions of a person, with their labels."""

    person: str
    histories: list[History]
    labels: list[Label]


def read(path: Path) -> list[Labelled]:
    """Returns the sessions of a file, by their persons."""
    people: dict[str, Labelled] = {}
    for part in re.split(r"^== ", path.read_text("utf-8"), flags=re.M)[1:]:
        name, _, body = part.partition("\n")
        session = name.split()[0]
        person = people.setdefault(session.partition("-")[0], Labelled(name, [], []))
        turns: list[KeptTurn] = []
        for n, (speaker, text) in enumerate(entries(body), 1):
            turn, labels = turn_of(speaker, text, session, n)
            turns.append(KeptTurn(n, turn))
            person.labels.extend(labels)
        person.histories.append(History(session, turns))
    return list(people.values())


def entries(body: str) -> Iterator[tuple[str, str]]:
    """Yields the speaker and the text of each turn, which may have several lines."""
    for entry in re.split(r"\n(?=[UAPTE]: )", body.strip("\n")):
        yield entry[0], entry[3:].strip()


def turn_of(speaker: str, text: str, session: str, n: int) -> tuple[Turn, list[Label]]:
    """Returns a turn without its labels, and these."""
    labels = [
        Label(session, n, kind == "s", words_of(sentence)) for kind, sentence in LABEL.findall(text)
    ]
    if mended := MENDED.search(text):
        labels.append(Label(session, n, mended[1] == "s", frozenset()))
    text = MENDED.sub("", LABEL.sub(r"\2", text))
    error, files = "", tuple[str, ...]()
    if speaker == "T":
        text, _, error = text.partition(" | ")
    if speaker == "E":
        text, files = f"Edit {text}", (text,)
    turn = Turn(role=ROLES[speaker], text=text, error=error, files=files, is_typed=speaker != "P")
    return turn, labels


def matches(proposal: Proposal, label: Label) -> bool:
    """Returns whether a proposal is of a label: at its place, with most of its words."""
    for mention in proposal.mentions:
        if (mention.session, mention.n) == (label.session, label.n):
            words = words_of(mention.text)
            fewer = min(len(words), len(label.words))
            if not label.words or len(words & label.words) >= 0.7 * fewer:
                return True
    return False


def verdict(proposal: Proposal, labels: Sequence[Label]) -> str:
    """Returns `s`, `l` or nothing, as the labels of a proposal say."""
    kinds = [label.is_strict for label in labels if matches(proposal, label)]
    return ("s" if any(kinds) else "l") if kinds else ""


def main() -> None:
    """Print the figures of a file of sessions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("half", nargs="?", choices=HALVES, default="open")
    parser.add_argument("--list", action="store_true", help="print each proposal and miss")
    arguments = parser.parse_args()
    people = read(FOLDER / f"{arguments.half}.txt")
    lists = [(person, proposed(person.histories)) for person in people]
    marks = [[verdict(item, person.labels) for item in items] for person, items in lists]
    if arguments.list:
        for (person, items), of_person in zip(lists, marks, strict=True):
            print(f"== {person.person}")
            for item, mark in zip(items, of_person, strict=True):
                print(f"  {mark or '-':2}{item.strength:4.1f} {item.family:8} {item.text}")
            for label in person.labels:
                if not any(matches(item, label) for item in items):
                    words = " ".join(sorted(label.words)) or "(mended)"
                    kind = "strict" if label.is_strict else "lenient"
                    print(f"  missed {kind} {label.session}#{label.n} {words}")
    pairs = [(item, person) for person, items in lists for item in items]
    labels = [(label, items) for person, items in lists for label in person.labels]
    print(f"{len(pairs)} proposals, {len(labels)} labels, {len(people)} persons")
    for name, kinds in (("strict", ("s",)), ("lenient", ("s", "l"))):
        found = [
            any(matches(item, label) for item in items)
            for label, items in labels
            if label.is_strict or "l" in kinds
        ]
        every = share([mark for of_person in marks for mark in of_person], kinds)
        first = [share([mark for m in marks for mark in m[:most]], kinds) for most in (5, 20)]
        recall = sum(found) / len(found)
        print(
            f"{name:8} precision {every:.2f} recall {recall:.2f}"
            f" first 5 {first[0]:.2f} first 20 {first[1]:.2f}"
        )


def share(marks: Sequence[str], kinds: Sequence[str]) -> float:
    """Returns the share of marks that are of some kinds."""
    return sum(mark in kinds for mark in marks) / max(len(marks), 1)


if __name__ == "__main__":
    main()
