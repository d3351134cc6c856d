"""Words that share a token although Porter's stemmer leaves them apart.

Irregular forms (`sent`, `indices`), nouns of verbs (`payment`), short names (`db`) and British
spellings become the word that is stemmed. A verb with a particle (`log in`, `rolled it back`) has
the token of the noun besides (`login`, `rollback`).

A compound is written in one, with a hyphen, or with a capital inside: `email` and `e-mail`,
`sqlite` and `SQLite`. A name may have Korean letters (엘라스틱서치), and Chinese characters are
traditional or simplified.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from mimo.text.clean import compiled

_FORMS = r"is(e|es|ed|er|ers|ing|ation|ations)"
"""The forms of the British verbs."""

_PEOPLE = frozenset("customers her him me people them us users you".split())
_DETERMINERS = frozenset("a all an each every its no our the this your".split())
_PLACES = frozenset("in into on onto".split())
"""They mostly begin a phrase of place: `the log in JSON`, `log an error in`."""

_HYPHEN = "[-\u2010\u2011]"
_BOUND = r"[a-z](?=.[a-z]{4})|(?:co|de|re|un)(?=.[a-z]{3})|wi(?=.fi)"
"""First parts that mean little alone, so that the solid spelling of the compound counts."""

_BEGINS, _ENDS = r"(?<![A-Za-z0-9])(?<![A-Za-z0-9][-\u2010\u2011])", r"(?![A-Za-z0-9])"
BOUND_COMPOUND = rf"(?i){_BEGINS}({_BOUND}){_HYPHEN}([a-z]+){_ENDS}"
"""Compounds such as `e-mail`, whose solid spelling takes their place in a query."""

_HYPHENED = rf"{_BEGINS}[A-Za-z]+{_HYPHEN}[A-Za-z]+{_ENDS}(?!{_HYPHEN}[A-Za-z0-9])"
"""Two words with a hyphen between them, which are not part of a longer chain."""

SIGNS = r"[a-z][A-Z]|[A-Z][A-Z][a-z]|[A-Za-z][-\u2010\u2011][A-Za-z]|[\uac00-\ud7a3]"
"""A part of a text without it has no other spelling: no compound, and no Korean name."""

PARTS = r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+"
"""The parts of an identifier in camel case."""

_SHORTEST = 4
"""Letters of the shortest solid spelling: ranges as `a-z` have none."""

_MODEL = __file__.rpartition("text")[0] + "model/"

_HAN = "[\u3400-\u9fff\uf900-\ufaff]"

_LONG = 4
"""The syllables from which a name may begin a longer word: 엘라스틱서치로의, but not 스프링클러."""

_REACH = 60
"""Characters before a particle that are read for its verb."""

_VERB, _PARTICLE, _BOTH = 1, 2, 4
_CLOSE = r"[13].{0,2}[23]|[4-7]"
"""A particle at most three chunks after a verb, or both in one, by the flags of the chunks."""
_LAST_WORD = r"[A-Za-z]+\Z"
_KEPT_CHUNKS = 200_000
_NO_END = 1 << 62


def root(word: str) -> str:
    """Returns the word of its family that is stemmed; `word` is in lower case."""
    roots = _roots()
    if word in roots:
        return roots[word]
    if word.endswith("s"):
        for singular in (word[:-1], f"{word[:-3]}y"):
            if singular in roots:
                return roots[singular]
    if "is" in word and (match := compiled(rf"(\w+){_FORMS}").fullmatch(word)):
        return f"{match[1]}iz{match[2]}" if f"{match[1]}ise" in WORDS["british"] else word
    return word


def nouns(text: str, *, beside: bool) -> str:
    """Returns a text with the nouns of its verbs with particles, beside them or in their place."""
    done = 0
    pieces = []
    for match in _particle().finditer(text):
        start, particle = match.start(), match[1].lower()
        context = text[max(done, start - _REACH) : start]
        verb, between = _verb(context, particle, apart=match[0][0] == " ")
        if verb:
            noun = f"{_bases()[verb.lower()]}{particle.removesuffix('to')}"
            verb_start = start - len(verb) - len(between)
            stop = match.end() if beside else verb_start
            pieces += [text[done:stop], f" {noun}", "" if beside else between]
            done = match.end()
    return "".join([*pieces, text[done:]]) if pieces else text


def hyphened(chunk: str) -> dict[str, str]:
    """Returns the solid spelling of each compound with a hyphen, by that compound."""
    head, hyphen, tail = chunk.partition("-")
    if hyphen and head.isalpha() and tail.isalpha() and chunk.isascii():  # It is all of it.
        return {chunk: (head + tail).lower()} if len(chunk) > _SHORTEST else {}
    words = {word: re.sub(_HYPHEN, "", word) for word in compiled(_HYPHENED).findall(chunk)}
    if chunk.count("-") > len(words):  # A longer chain.
        matches = compiled(BOUND_COMPOUND).finditer(chunk)
        words |= {match[0]: match[1] + match[2] for match in matches}
    return {word: solid.lower() for word, solid in words.items() if len(solid) >= _SHORTEST}


def simplified(word: str) -> str:
    """Returns a word with simplified Chinese characters for traditional ones."""
    return word.translate(_simplified_characters()) if compiled(_HAN).search(word) else word


def name_in_latin(word: str, bare: str) -> str:
    """Returns the Latin spelling of the name that a Korean word is or begins with, or nothing.

    `bare` is the word without its particle.
    """
    names = korean_names()
    if name := names.get(word) or names.get(bare):
        return name
    starts = (word[:end] for end in range(len(word) - 1, _LONG - 1, -1))
    return next(filter(None, map(names.get, starts)), "")


def _verb(context: str, particle: str, *, apart: bool) -> tuple[str, str]:
    """Returns the verb of a particle and the text between them; two empty strings if none."""
    words = context.split(" ")[-4:]
    if match := compiled(_LAST_WORD).search(words[-1]):
        verb = match[0]
        if particle in _particles_of(verb):
            is_noun = verb == "logs" or words[-2:][0].lower() in _DETERMINERS
            return ("", "") if particle in _PLACES and is_noun else (verb, "")
    if not (apart and words[-1].isalpha()):
        return "", ""
    steps = 3 if len(words) > 2 and words[-2].lower() in _DETERMINERS else 2
    match = compiled(_LAST_WORD).search(words[-steps]) if len(words) >= steps else None
    if not match or particle not in _particles_of(match[0]):
        return "", ""
    if particle in _PLACES and words[-1].lower() not in _PEOPLE:
        return "", ""
    return match[0], f" {' '.join(words[1 - steps :])}"


def _particles_of(verb: str) -> Sequence[str]:
    return _particles().get(_bases().get(verb.lower(), ""), ())


def kinds(chunks: Iterable[str]) -> str:
    """Returns a digit for each chunk of text between spaces, for `may_have_nouns`."""
    return "".join(map(_KINDS.__getitem__, chunks))


def may_have_nouns(kinds: str, start: int = 0, end: int = _NO_END) -> bool:
    """Returns whether neighbouring chunks of these kinds have a particle close after a verb."""
    return compiled(_CLOSE).search(kinds, start, end) is not None


class _Kinds(dict[str, str]):
    """The flags of each chunk of text: it ends with a verb, begins with a particle, has both."""

    def __missing__(self, chunk: str) -> str:
        if len(self) > _KEPT_CHUNKS:
            self.clear()
        verb = compiled(_LAST_WORD).search(chunk[-_REACH:]) if chunk[-1].isalpha() else None
        kind = _VERB if verb and verb[0].lower() in _bases() else 0
        kind |= _PARTICLE if _particle().match(f" {chunk}") else 0
        kind |= _BOTH if "-" in chunk and nouns(chunk, beside=True) != chunk else 0
        digit = str(kind)
        if len(chunk) <= _REACH:
            self[chunk] = digit
        return digit


_KINDS = _Kinds()


@cache
def _roots() -> dict[str, str]:
    families = [line.split() for line in LISTS["families"]]
    return {word: family[0] for family in families for word in family[1:]}


@cache
def _particles() -> dict[str, list[str]]:
    verbs = (line.split() for line in LISTS["particles"])
    return {verb: particles for verb, *particles in verbs}


@cache
def _bases() -> dict[str, str]:
    """Returns the verb of each of its forms: `logged`, `tearing`, `took`."""
    forms = {word: head for word, head in _roots().items() if head in _particles()}
    for verb in _particles():
        double, stem = verb + verb[-1], verb.removesuffix("e")
        regular = (verb, f"{verb}s", f"{stem}ed", f"{stem}ing", f"{double}ed", f"{double}ing")
        forms.update(dict.fromkeys(regular, verb))
    return forms


@cache
def _particle() -> re.Pattern[str]:
    particles = sorted({word for line in LISTS["particles"] for word in line.split()[1:]})
    either = [f"[{word[0]}{word[0].upper()}]{word[1:]}" for word in particles]
    return re.compile(rf"[ -]({'|'.join(either)})\b")


@cache
def korean_names() -> Mapping[str, str]:
    """Returns the Latin spelling of each listed name; empty for the first two letters of others."""
    lines = [line.partition(":") for line in _packaged("korean.names.txt").split("\n")]
    names = {word: name for name, _, words in lines for word in words.split() if name[0] != "#"}
    return dict.fromkeys([word[:2] for word in names], "") | names


@cache
def _simplified_characters() -> Mapping[int, int]:
    return str.maketrans(*_packaged("simplified.txt").split("\n")[:2])


def _packaged(name: str) -> str:
    # Data of the package are as constant as its code, so this floor may read them.
    with open(_MODEL + name, encoding="utf-8") as file:  # noqa: PTH123 - for files that change
        return file.read()


_NAMED_LISTS = (part.partition("]\n") for part in _packaged("words.txt").split("\n[")[1:])
LISTS: Mapping[str, Sequence[str]] = {
    name: [line for line in lines.split("\n") if line and line[0] != "#"]
    for name, _, lines in _NAMED_LISTS
}
"""The lines of each list of words in `words.txt`, by its name."""

WORDS = {name: frozenset(" ".join(lines).split()) for name, lines in LISTS.items()}
"""The words of each list."""
