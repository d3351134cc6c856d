"""Words of one family, which share a token although Porter's stemmer leaves them apart.

Irregular forms (`sent`), nouns of verbs (`payment`), short names (`db`) and British spellings
become the word that is stemmed. A verb with a particle (`log in`, `rolled it back`) has the token
of the noun besides (`login`, `rollback`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from mimo.text.clean import compiled

_FAMILIES = """
arise arose arisen; become became; begin began begun; bend bent; blow blew blown
break broke broken; bring brought; build built; buy bought; catch caught; choose chose chosen choice
come came; deal dealt; dig dug; draw drew drawn; drive drove driven; eat ate eaten
fall fell fallen; feed fed; feel felt; fight fought; find found; fly flew flown
forget forgot forgotten; freeze froze frozen; give gave given; go went gone; grow grew grown
hang hung; hear heard; hide hid hidden; hold held; keep kept; know knew known; lay laid; lend lent
lose lost; make made; mean meant; meet met; overwrite overwrote overwritten
override overrode overridden; pay paid payment; rebuild rebuilt; rerun reran
rewrite rewrote rewritten; ride rode ridden; run ran; say said; seek sought; sell sold; send sent
shake shook shaken; show shown; shrink shrank shrunk; sink sank sunk; sit sat; sleep slept
speak spoken; spend spent; spin spun; steal stole stolen; sweep swept; take took taken; teach taught
tear tore torn; tell told; think thought; throw threw thrown; understand understood
undo undid undone
wake woke woken; wear wore worn; withdraw withdrew withdrawn; write wrote written
analyze analyse analysis analyses; decide decision; deliver delivery; describe description
discover discovery; expire expiry; fail failure; fast faster fastest; big bigger biggest
cheap cheaper cheapest; high higher highest; large larger largest
long longer longest; low lower lowest; new newer newest; old older oldest; short shorter shortest
slow slower slowest slowly; small smaller smallest; strict stricter strictly; day daily; week weekly
month monthly; year yearly; night nightly; hour hourly; quick quickly; recover recovery
retain retention; ship shipment; store storage; subscribe subscription
administrator admin; authenticate auth; configure config conf; database db; dependency dep
develop dev; documentation doc; environment env; postgres postgre postgresql pg; prod production
repository repo; transaction tx; behavior behaviour; catalog catalogue; center centre; color colour
favorite favourite; gray grey; license licence; login logon; logout logoff
"""
"""Each family's first word, then its other words; a regular plural belongs to the family."""

_BRITISH = """
anonymise authorise categorise centralise characterise containerise customise denormalise finalise
generalise initialise internationalise localise materialise maximise memoise minimise modernise
monetise normalise optimise organise parallelise prioritise randomise realise recognise
sanitise serialise specialise standardise summarise synchronise tokenise utilise virtualise
visualise
"""
_FORMS = r"is(e|es|ed|er|ers|ing|ation|ations)"
"""The forms of those verbs."""

_PARTICLES = """
back up; break down; call back; check out; clean up; count down; cut off over; drop down; fail over
fall back; follow up; hand off over; kick off; lock down out; log in into off on onto out; look up
opt in out; plug in; pop up; roll back out over; set up; shut down; sign in into out up
slow down; speed up; spin up; stand by up; start up; switch over; take over; tear down; time out
warm up; write up
"""
"""Verbs, each with the particles that make a noun of it."""

_PEOPLE = frozenset("customers her him me people them us users you".split())
_DETERMINERS = frozenset("a all an each every its no our the this your".split())
_PLACES = frozenset("in into on onto".split())
"""They mostly begin a phrase of place: `the log in JSON`, `log an error in`."""

_REACH = 60
"""Characters before a particle that are read for its verb."""

_VERB, _PARTICLE, _BOTH = 1, 2, 4
_CLOSE = r"[13].{0,2}[23]|[4-7]"
"""A particle at most three chunks after a verb, or both in one, by the flags of the chunks."""
_KEPT_CHUNKS = 50_000
_NO_END = 1 << 62


def root(word: str) -> str:
    """Returns the word of its family that is stemmed; `word` is in lower case."""
    roots = _roots()
    if word in roots:
        return roots[word]
    if word.endswith("s") and word[:-1] in roots:
        return roots[word[:-1]]
    if "is" in word and (match := compiled(rf"(\w+){_FORMS}").fullmatch(word)):
        return f"{match[1]}iz{match[2]}" if f"{match[1]}ise" in _british() else word
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


def _verb(context: str, particle: str, *, apart: bool) -> tuple[str, str]:
    """Returns the verb of a particle and the text between them; two empty strings if none."""
    words = context.split(" ")[-4:]
    if match := _last_word().search(words[-1]):
        verb = match[0]
        if particle in _particles_of(verb):
            is_noun = verb == "logs" or words[-2:][0].lower() in _DETERMINERS
            return ("", "") if particle in _PLACES and is_noun else (verb, "")
    if not (apart and words[-1].isalpha()):
        return "", ""
    steps = 3 if len(words) > 2 and words[-2].lower() in _DETERMINERS else 2
    match = _last_word().search(words[-steps]) if len(words) >= steps else None
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
        verb = _last_word().search(chunk[-_REACH:]) if chunk[-1].isalpha() else None
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
    families = [family.split() for family in _FAMILIES.replace("\n", ";").split(";")]
    return {word: family[0] for family in families for word in family[1:]}


@cache
def _british() -> frozenset[str]:
    return frozenset(_BRITISH.split())


@cache
def _particles() -> dict[str, list[str]]:
    verbs = [entry.split() for entry in _PARTICLES.replace("\n", ";").split(";")]
    return {verb: particles for verb, *particles in filter(None, verbs)}


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
    particles = sorted({word for words in _particles().values() for word in words})
    either = [f"[{word[0]}{word[0].upper()}]{word[1:]}" for word in particles]
    return re.compile(rf"[ -]({'|'.join(either)})\b")


def _last_word() -> re.Pattern[str]:
    return compiled(r"[A-Za-z]+\Z")
