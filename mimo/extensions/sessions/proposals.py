"""Proposals: sentences of kept sessions, and mended failures, that may become memories.

Nothing is saved here. A proposal is made when it is asked for, from the kept turns and what the
user accepted and rejected before; the same sentence in other words is one proposal.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import PurePath

from mimo.api import Kind, NamedTuple, frozen
from mimo.extensions.sessions import cues
from mimo.extensions.sessions.cues import ENOUGH, Family
from mimo.extensions.sessions.model import Role, Turn
from mimo.extensions.sessions.store import KeptTurn, digest_of

_ALIKE, _SAME = 0.65, 0.6
"""Likeness of near-duplicates, and the share of the fewer words that a repetition has."""

_SHORTEST = 3
"""Distinct words of a sentence that was not repeated, without stop words, at least."""

_REPEATED = 2.0
"""Strength that a sentence gains by its repetition in a second session."""

_PARTLY = 1.5
"""Strength that a sentence needs for its repetition to count."""

_TOLERANCE = 0.4
"""Strength that a proposal may lack after rejections of its family."""

_COMMAND = 120
"""Characters of a command in a memory."""

_FILES = 5
"""Changed files in a memory."""

_QUESTION = 200
"""Characters of the agent's question before an answer."""


class Mention(NamedTuple):
    """The place of a sentence in a session."""

    session: str
    n: int
    text: str
    at: datetime | None = None

    @property
    def reference(self) -> str:
        """Returns its reference, such as `session:cc-1ccba294#12`."""
        return f"session:{self.session}#{self.n}"


@frozen
class Proposal:
    """A sentence that may become a memory."""

    id: str
    type: Kind
    text: str
    family: Family
    strength: float
    mentions: tuple[Mention, ...]
    """Its places, the clearest first."""
    sessions: int = 1
    """The number of sessions that have it."""
    is_general: bool = False
    """True if sessions of other projects have it, too."""
    memory: str = ""
    """The id of the memory that the user accepted it as."""

    @property
    def source(self) -> str:
        """Returns the reference of the clearest place."""
        return self.mentions[0].reference

    @property
    def latest(self) -> datetime | None:
        """Returns when the user last wrote it; None if no place has a time."""
        return max((mention.at for mention in self.mentions if mention.at), default=None)


class History(NamedTuple):
    """A session with its turns."""

    session: str
    turns: Sequence[KeptTurn]


class _Candidate(NamedTuple):
    mention: Mention
    text: str
    family: Family
    strength: float
    words: frozenset[str]


_TYPES = {Family.DECIDE: Kind.DECISION, Family.MEND: Kind.INSIGHT}


def proposed(
    histories: Sequence[History],
    shifts: Mapping[str, float] | None = None,
    elsewhere: Iterable[History] = (),
) -> list[Proposal]:
    """Returns the proposals of sessions, in order of time, best first.

    `shifts` has the strength that a family gains or loses by the user's earlier decisions;
    `elsewhere` the sessions of other projects, which propose nothing here, but may repeat it.
    """
    candidates = [item for history in elsewhere for item in _stated(history)]
    signatures: set[str] = set()
    for history in histories:
        candidates += _stated(history)
        candidates += _mended(history, signatures)
    places = {history.session: place for place, history in enumerate(histories)}
    proposals = (_proposal(group, shifts or {}, places) for group in _folded(candidates))
    return sorted(
        filter(None, proposals),
        key=lambda proposal: (
            *(proposal.sessions == 1, -proposal.strength),
            -places[proposal.mentions[0].session],
        ),
    )


def _proposal(
    candidates: Sequence[_Candidate], shifts: Mapping[str, float], places: Container[str]
) -> Proposal | None:
    """Returns the proposal of sentences that state the same; None if it is too weak.

    None, too, if no session in `places` has it.
    """
    group = [item for item in candidates if item.mention.session in places]
    if not group:
        return None
    strongest, best = group[0], max(group, key=_worth)
    sessions = len({item.mention.session for item in candidates if not _is_copy(strongest, item)})
    is_repeated = sessions > 1 and strongest.strength >= _PARTLY
    strength = strongest.strength + _REPEATED * is_repeated + shifts.get(strongest.family, 0.0)
    is_clear = len(best.words) >= (2 if is_repeated else _SHORTEST)
    if not is_clear or strength < ENOUGH - _TOLERANCE:
        return None
    mentions = [item.mention for item in group if item is not best]
    return Proposal(
        id=f"p{digest_of(best.text).hex()[:7]}",
        type=_TYPES.get(best.family, Kind.FACT),
        text=best.text,
        family=strongest.family,
        strength=strength,
        mentions=(best.mention, *mentions),
        sessions=sessions if is_repeated else 1,
        is_general=is_repeated and len(candidates) > len(group),
    )


def _worth(item: _Candidate) -> tuple[bool, float, int]:
    """Returns a rank of the sentences of a group: the one that is clear alone has the highest."""
    return item.family is not Family.CORRECT, item.strength, len(item.text)


def shifts_of(counts: Iterable[tuple[str, str, int]]) -> dict[str, float]:
    """Returns the strength that each family gains by acceptances, and loses by rejections."""
    taken, left = Counter[str](), Counter[str]()
    for family, verdict, number in counts:
        (taken if verdict.startswith("accepted") else left)[family] += number
    return {
        family: (taken[family] - left[family]) / (taken[family] + left[family] + 4)
        for family in taken.keys() | left.keys()
    }


def _stated(history: History) -> Iterator[_Candidate]:
    """Yields the sentences of the user that have a cue."""
    previous: Turn | None = None
    for n, turn in history.turns:
        if turn.role is Role.USER and turn.is_typed:
            is_answer = _asks(previous)
            for sentence in cues.sentences(turn.text):
                cue = cues.cue_of(sentence, is_answer=is_answer)
                if cue is not None:
                    text = cues.without_reply(sentence)
                    words = cues.words_of(sentence)
                    mention = Mention(history.session, n, sentence, turn.at)
                    yield _Candidate(mention, text, cue.family, cue.strength, words)
                is_answer = False
        if turn.role is not Role.TOOL:
            previous = turn


_CHOICE = re.compile(
    r"\b(which|or|prefer|welche[nrs]?|oder)\b|或|还是|または|それとも|아니면|할까요", re.I
)
_OFFER = re.compile(r"(would you like|do you want|shall i|should i|soll ich)[^?]*\?$", re.I)


def _asks(turn: Turn | None) -> bool:
    """Returns whether an agent's turn ends with a choice, and not with an offer to go on."""
    text = turn.text.rstrip()[-_QUESTION:] if turn and turn.role is Role.AGENT else ""
    return text.endswith(("?", "\uff1f")) and bool(_CHOICE.search(text)) and not _OFFER.search(text)


def _folded(candidates: Sequence[_Candidate]) -> Iterator[list[_Candidate]]:
    """Yields the candidates in groups that state the same, the strongest of each first."""
    frequency = Counter(word for item in candidates for word in item.words)
    usual = {word for word, number in frequency.items() if number > max(4, len(candidates) / 20)}
    groups: list[list[_Candidate]] = []
    by_word: dict[str, list[int]] = defaultdict(list)
    for item in sorted(candidates, key=lambda item: (-item.strength, -len(item.text))):
        rare = item.words - usual or item.words
        near = Counter(place for word in rare for place in by_word[word]).most_common()
        place = next((n for n, _ in near if _is_same(groups[n][0], item, usual)), None)
        if place is not None:
            groups[place].append(item)
            continue
        for word in rare:
            by_word[word].append(len(groups))
        groups.append([item])
    yield from groups


def _is_copy(left: _Candidate, right: _Candidate) -> bool:
    """Returns whether a long sentence is in two sessions word for word, as a copy is."""
    return left is not right and left.words == right.words and len(left.words) > _SHORTEST


def _is_same(left: _Candidate, right: _Candidate, usual: set[str]) -> bool:
    """Returns whether two sentences state the same, in other words if in two sessions."""
    shared = left.words & right.words
    fewer, more = sorted((len(left.words), len(right.words)))
    if len(shared) >= _ALIKE * (fewer + more - len(shared)):
        return True
    is_elsewhere = left.mention.session != right.mention.session
    return is_elsewhere and len(shared - usual) > 1 and len(shared) >= _SAME * fewer


# Failures and their mends.

_SETTINGS = re.compile(
    r"(\.(toml|ya?ml|ini|cfg|conf|env|lock|tf)|package(-lock)?\.json|requirements[^/]*\.txt|Dockerfile"
    r"|Makefile|CMakeLists\.txt|go\.mod|Gemfile|build\.gradle(\.kts)?|pom\.xml|tsconfig[^/]*\.json)$"
)
_VARIABLE = re.compile(r"\d+|0x[0-9a-f]+|'[^']*'|\"[^\"]*\"|/\S+")


class _Failure(NamedTuple):
    command: str
    error: str
    attempts: int
    edits: int
    """The number of edits before the first attempt."""


def _mended(history: History, signatures: set[str]) -> Iterator[_Candidate]:
    """Yields the failures that were mended, as far as the agent states the cause.

    Notes the signatures of all failures: one that was seen in an earlier session is worth more.
    """
    new, failures = set[str](), dict[str, _Failure]()
    mended: tuple[_Failure, str] | None = None
    edits: list[str] = []
    for n, turn in history.turns:
        if turn.role is Role.USER:
            mended = None
        elif turn.role is Role.TOOL:
            program = _program(turn.text)
            if turn.error:
                previous = failures.get(program) or _Failure("", "", 0, len(edits))
                attempts = previous.attempts + 1
                failures[program] = _Failure(turn.text, turn.error, attempts, previous.edits)
                new.add(_VARIABLE.sub("…", turn.error))
                mended = None
            elif not turn.files and (failure := failures.pop(program, None)):
                mended = failure, turn.text
            edits += turn.files
        elif mended and (cause := cues.cause_in(turn.text)):
            failure, way = mended
            changes = tuple(dict.fromkeys(edits[failure.edits :]))
            is_known = _VARIABLE.sub("…", failure.error) in signatures
            text = _story(failure, cause, way, changes)
            strength = _mend_strength(failure, way, changes) + _REPEATED * is_known
            mention = Mention(history.session, n, cause, turn.at)
            yield _Candidate(mention, text, Family.MEND, strength, cues.words_of(text))
            mended = None
    signatures |= new


def _mend_strength(failure: _Failure, way: str, changes: Sequence[str]) -> float:
    """Returns enough for several attempts, or for a mend by settings or another command."""
    is_variant = way != failure.command or any(map(_SETTINGS.search, changes))
    return ENOUGH - 1 + (failure.attempts > 1) + is_variant


def _story(failure: _Failure, cause: str, way: str, changes: Sequence[str]) -> str:
    """Returns a failure, its cause and its mend as sentences."""
    story = f"`{_short(failure.command)}` failed: {failure.error.rstrip('.')}. {cause}"
    if way != failure.command:
        return f"{story} Then `{_short(way)}` worked."
    names = ", ".join(changes[:_FILES]) + (" …" if changes[_FILES:] else ".")
    return f"{story} Changed: {names}" if changes else story


def _short(command: str) -> str:
    return command if len(command) <= _COMMAND else f"{command[:_COMMAND]}…"


def _program(command: str) -> str:
    """Returns the words of a command that its variants share: the program and its subcommand."""
    segment = re.split("&&|;", command)[-1].partition("|")[0]
    words = [word for word in segment.split() if "=" not in word and not word.startswith("-")]
    if not words:
        return command
    subcommand = words[1] if len(words) > 1 and re.fullmatch("[a-z][a-z-]*", words[1]) else ""
    return f"{PurePath(words[0]).name} {subcommand}"
