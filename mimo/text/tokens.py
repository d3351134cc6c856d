"""The tokens of a text, which the index stores and the ranking compares.

The index keeps them joined by spaces, so that candidates, coverage and phrases use the same words.
A symbol such as € or ✅ is a word, wherever it is written.
Stemming is Porter's (M. F. Porter, "An algorithm for suffix stripping", 1980).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from mimo.frozen import NamedTuple
from mimo.text.clean import compiled
from mimo.text.families import (
    BOUND_COMPOUND,
    PARTS,
    SIGNS,
    hyphened,
    kinds,
    korean_names,
    may_have_nouns,
    name_in_latin,
    nouns,
    root,
    simplified,
)
from mimo.text.phrases import cut

_DROPPED = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670"
)
"""Accents and points, which comparisons ignore."""

_PLAIN = str.maketrans("\u0131\u0142\u00f8\u0111\u00f0\u0127\u0167", "iloddht")
"""Letters of Latin script whose strokes and missing dots are no accents in Unicode."""

MARKS = _DROPPED + "\u0900-\u0963\u0966-\u0dff\u0e00-\u0eff"
"""Combining marks and vowel signs, at which `\\w` would end a word (Hindi, Thai and others)."""

UNSPACED = (
    "\u0e00-\u0e7f\u1100-\u11ff\u3005-\u3007\u3040-\u312f\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, kana, Hangul and Han: scripts whose runs are cut into pairs of characters."""

SYMBOLS = (
    "\u00a2-\u00a5\u00a7\u00a9\u00ae\u00b6\u2020\u2021\u20a0-\u20cf\u2300-\u237a\u23cd-\u23ff"
    "\u2600-\u2767\u2776-\u2797\u27b0\u27bf\u2b1b\u2b1c\u2b50\u2b55"
    "\U0001f000-\U0001f3fa\U0001f400-\U0001f7ff\U0001f900-\U0001faff"
)
"""Currencies, signs and pictures that are words; lines, arrows, bullets and operators are not."""

_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"

HANGUL = "가-힣ㄱ-ㅎㅏ-ㅣ"
KANA_HAN = "\u3040-\u30ff\u4e00-\u9fff\u3400-\u4dbf々"
"""Two of these scripts, composed (NFC)."""

STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then"
    " there these they this to was will with".split()
)
"""The 33 stop words of Lucene and of SQLite's FTS3."""

QUESTION_WORDS = STOP_WORDS | frozenset(
    "what which who whom whose when where why how do does did doing done have has had having am"
    " were been being i me my mine myself we us our ours you your yours he him his she her hers"
    " its them theirs can could would should shall may might must about from so than too very"
    " just also any some all each other more most much many here please tell remind wondering let"
    " know give get got s t re ve ll d m".split()
)
"""Words that shape a question and are not about its subject."""

REQUEST_WORDS = frozenset(
    "decide decides decided deciding decision decisions choose chooses chose chosen choosing choice"
    " choices pick picks picked picking settle settled prefer prefers preferred use uses used using"
    " need needs needed want wants wanted happen happens happened happening explain explains"
    " explained remember remembers remembered find finds finding something somebody someone"
    " anything anybody anyone nothing nobody everything everybody everyone thing things"
    " because though although while until".split()
)
"""Words that shape most questions, and are the subject of one that has no other."""

LOOKS = frozenset(
    "align alignment banner bigger bold breadcrumb caption captions centre changelog color"
    " colors colour colours describe docstring docstrings emoji favicon font fonts"
    " footer headline headlines heading headings hover icon icons italic larger logo"
    " narrower padding paginate pagination pixel pixels placeholder readme rephrase reword"
    " screenshot screenshots sidebar spinner summarise summarize tooltip tooltips translate typo"
    " typos uppercase wider wording".split()
)
"""Words of tasks that change the looks of a program, or texts about it, and nothing else."""

# Words that are not English follow (codespell:ignore-begin).
_OTHER_WORDS = """
wann warum was wem wen wer weshalb wie wieso wieviel wieviele wo wofur woher wohin
womit welche welchem welchen welcher welches | aber als am an auch auf aus bei beim
bin bis da damit dann das dass dem den denn der des die dies diese diesem diesen
dieser dieses doch du durch durfen ein eine einem einen einer eines er es fuer fur
gegen geht gibt habe haben hat hatte hatten ich ihr ihre im in ins ist jede jeder
jetzt kann kein keine keinen konnen mache machen macht man mehr mein meine mich mir
mit muss mussen nach nicht noch nur ob oder ohne schon sein seine seit sich sie sind
so soll sollen sollte uber um und uns unser unsere unseren unserer unter vom von vor
war waren weil wenn werde werden will wir wird wurde wurden zu zum zur zwischen
;
combien comment ou pourquoi quand que quel quelle quelles quels qui quoi | a ai au
aussi aux avec avoir avons c ce cela ces cet cette chez d dans de depuis des doit du
elle elles en entre est et etait etre eu faire fait faut ici il ils j je l la le les
leur leurs lui ma mais me mes moi mon n ne nos notre nous on ont par pas peut plus
pour qu quelque s sa sans se ses si son sont sous sur t ta te tes ton tous tout
toute toutes tu un une va vers vos votre vous y
;
adonde como cual cuales cuando cuanta cuantas cuanto cuantos donde que quien quienes
| a al algo ante aqui cada con contra de del desde e el ella ellas ellos en entre es
esa ese eso esta estan estar estas este esto estos fue fueron ha hace hacemos hacen
hacer haces hago han hasta hay he hemos la las le les lo los mas me mi mis muy nada
ni no nos nosotros nuestra nuestras nuestro nuestros o otra otro para pero podemos
poder por porque puede puedo se ser si sin sobre son su sus tambien tan te tenemos
tener tengo tiene tienen todo todos tu un una unas uno unos y ya yo
;
como onde porque qual quais quando quanta quantas quanto quantos quem que | a ao aos
as ate com da das de dela dele depois desde do dos e ela elas ele eles em entre era
essa esse esta estao este estes eu faco faz fazemos fazer foi foram ha isso isto ja
la lhe mais mas me meu minha muito na nao nas nem no nos nossa nossas nosso nossos
num numa o os ou para pela pelas pelo pelos pode podemos por posso quer sao se sem
ser seu seus so sobre sua suas tambem te tem temos tenho ter um uma umas uns voce
voces
;
chi come cosa cui dove perche quale quali quando quanta quante quanti quanto che | a
abbiamo ad ai al alla alle allo anche c cioe col con da dagli dai dal dalla dalle
degli dei del della delle dello deve devo di dobbiamo due e ed era essere fa faccio
fanno fare fatti fatto fra gia gli ha hanno ho i il in io l la le lei li lo loro lui
ma mi mio nei nel nella nelle nello no noi non nostra nostre nostri nostro o ogni
per piu puo qui se sei si sia siamo sono su sua sugli sui sul sulla sulle suo suoi
ti tra tu tutti tutto un una uno va vengono viene voi
;
hoe hoelang hoeveel waar waarmee waarom waarvoor wanneer wat welk welke wie | aan al
als bij dan dat de deze die dit doe doen door een en er gaan gaat geen had hadden
heb hebben heeft het hij hun ik in is je jij jullie kan kun kunnen maak maar mag
maken meer met mijn moet moeten na naar niet nog nu of om omdat onder ons onze ook
op over sinds te tegen tot tussen u uit van voor waren was we wel werd werden wij
wil worden wordt zal ze zich zij zijn zo zonder zou
;
co czego czemu czy dlaczego gdzie ile jak jaka jakich jakie jakiej jaki jakim kiedy
kogo kto ktora ktore ktory skad | a albo ale bez bo by byc byl byla byli bylo byly
dla do go i ich ja jego jej jest jestesmy juz kazdy ma mam mamy moge moj moze
mozna na nad nam nas nasz nasza nasze naszym nia nie nim niz o od oraz po przed
przez przy robic sa sie ta tak tam te tego tej ten to tu tylko tym u w we wiec z za
ze zeby zrobic
;
где зачем как какая какие какои какую какое когда кого кому кто куда откуда почему
сколько чем чего что чеи | а без бы был была были было быть в вам вас во все вы да
делать для до его ее если есть еще же за и из или им их к ко ли мне можно мои мы на
над нам нас наш наша наше наши не него нет них но ну нужно о об он она они оно от по
под при про с сделать со так там тебя то тогда только том ту ты у уже чтобы эта эти
это этои этот я
"""  # noqa: RUF001 - Cyrillic letters that look like Latin ones are meant
"""Function words of German, French, Spanish, Portuguese, Italian, Dutch, Polish and Russian.

They are in lower case, without accents. The question words of each language come first.
"""


def _listed(words: str) -> tuple[frozenset[str], frozenset[str]]:
    asking, _, extra = words.partition("|")
    return frozenset(asking.split()), frozenset((asking + extra).split())


_OTHER_LANGUAGES = tuple(map(_listed, _OTHER_WORDS.split(";")))

_ENGLISH_TOO = QUESTION_WORDS | frozenset(
    "al ale also bin by c che ci co com come comment con d da das dei den der des die doe door"
    " dos du due e en er es est et eu fra geht ha hat hay hem hoe hun io j je jest kan l la le"
    " les lo los ma mag mas men mes mi mir mis mit mon n na nas nem non nos nu o om once op or os"
    " ou over par para per po por pour sa se seu si sia sin sole son sous su sua sul sur ta tam"
    " te ten ton tot tu u uit um un una use va van via vous w want war we wet y z za zo".split()
)
"""Those of them that are also English words, names or abbreviations: they prove no language."""

GERMAN_WORDS = _OTHER_LANGUAGES[0][1]
"""Function words of German, in lower case and without accents."""

_FUNCTION_WORDS = frozenset[str]().union(*dict(_OTHER_LANGUAGES).values())

AMBIGUOUS_WORDS = _FUNCTION_WORDS & _ENGLISH_TOO - QUESTION_WORDS
"""Those of them that shape no English question: `come` and `un` point to another language."""

FOREIGN_WORDS = _FUNCTION_WORDS - _ENGLISH_TOO
"""Function words, in lower case and without accents, of languages that are not English."""

ENGLISH_WORDS = QUESTION_WORDS - _FUNCTION_WORDS
"""Those of English that are not also words of these languages, as `in`, `die` and `no` are."""
# English again (codespell:ignore-end).

KOREAN_QUESTION_WORDS = frozenset(
    "어떻게 어떤 어떠한 어때 어땠어 어땠지 무엇 무엇을 무엇이 무엇인가 무엇인가요 뭐 뭐가"
    " 뭐를 뭐로 뭘 뭘로 뭔 뭔가 뭐야 뭐지 뭐죠 뭐였지 뭐였어 뭐였더라 뭐라고 왜 언제 언제까지"
    " 언제부터 어디 어디에 어디서 어디에서 어디로 어디까지 누가 누구 누구를 누구에게 누구한테"
    " 누구의 얼마 얼마나 얼마야 얼마인가 얼마죠 몇 어느 무슨 우리 우리가 우리는 우리의 저희"
    " 저희가 나는 내가 제가 저는 것 것을 것이 것은 것도 거 거야 거지 게 건 걸 수 있어 있어요"
    " 있나 있나요 있는 있는지 있었어 있었지 있었나 있던 있지 있다 없나 없나요 없어 하나 하나요"
    " 하지 하죠 하는 하는지 한 할 해 해요 해야 했지 했죠 했어 했어요 했나 했나요 했더라 했는지"
    " 했던 했었지 하기로 하려면 하면 하자 하던 한다 했다 되나 되나요 돼 돼요 되지 되죠 됐어"
    " 됐지 됐나 됐음 되는 되는지 된 될 이유 이유가 이유는 이유를 까닭 적 적이 때 때는 때문"
    " 때문에 그 그거 그게 그것 그때 그런 그렇게 이 이거 이게 이것 이런 이렇게 좀 더 안 못 또"
    " 잘 다 꼭 대해 대해서 대한 관해 관련 관련해서 위해 위한 및 또는 그리고 그런데 그래서"
    " 하지만 알려줘 알려주세요 말해줘 찾아줘 보여줘 인가 인가요 였지 였더라 나요 건가 건가요"
    " 건지 같은데 같은 쓰나 쓰나요 쓰지 쓰기로 거였지 거였어 결정했지 결정했어 결정했나요"
    " 결정한 정했지 정했어 정한 선택했지 선택한".split()
)
"""Korean words that shape a question, with the particles and endings that they mostly have."""

KOREAN_PARTICLES = tuple(
    "에서는 에서도 으로는 으로도 에게는 까지는 부터는 에서 에게 한테 으로 까지 부터 보다 처럼"
    " 에는 에도 와는 과는 이나 이랑 하고 을 를 은 는 이 가 의 에 로 와 과 도 만 랑".split()
)
"""Particles at the end of a noun, longest first."""

_LAST_OF_PARTICLES = frozenset(particle[-1] for particle in KOREAN_PARTICLES)

_CONTRACTIONS = frozenset(
    "i'm i've i'd i'll you're you've you'd you'll he's he'd he'll she's she'd she'll it's it'd"
    " it'll we're we've we'd we'll they're they've they'd they'll that's there's here's what's"
    " who's where's when's how's why's let's don't doesn't didn't isn't aren't wasn't weren't"
    " haven't hasn't hadn't can't couldn't won't wouldn't shouldn't mustn't".split()
)

_KEPT_CHARACTERS = 500_000
"""The characters of words whose tokens are kept, at most."""

_LONG = 200
"""The length of a text from which asking first whether it may have verbs with particles pays."""

_MOST_PARTS = 3
"""A longer name in camel case is hardly ever written in lower case."""

_NO_SPELLINGS: Mapping[str, str] = {}

_ASCII_WORD = r"[A-Za-z0-9]+"
_APOSTROPHE = r"(?<![A-Za-z])[A-Za-z]+['\u2019][A-Za-z]+"

_IDENTIFIER = (
    r"(?<![\w.])(?:(?<![/-])[\w./-]*/)?"
    r"(?:\w*[^\W_]_+[^\W_]\w*|[a-z]{2,}[A-Z][a-z]\w*|[a-z]\w+(?=\.[a-z0-9]|::\w))"
    r"(?:(?:\.(?=[a-z0-9_])|::)\w+)*"
)
"""A name in code: `acks_late`, `getUser`, `lib/send.py`, `std::move`; not PostgreSQL."""

_SPACED = rf"[^\W_{UNSPACED}]|(?![{UNSPACED}])[{MARKS}]"
_UNSPACED = f"[{UNSPACED}]"
_OTHER_SCRIPTS = "[\u0370-\u1dff\u3040-\ud7ff]"
_ACCENTS = f"[{_DROPPED}]"
# What joins the parts of an emoji is not a word: selectors, skin tones, signs after a joiner.
_WORDS = rf"[{UNSPACED}]+|(?:{_SPACED})+|{_FLAG}|(?!(?<=\u200d)[♀♂])[{SYMBOLS}]"


class QueryTerms(NamedTuple):
    """A query's distinct tokens, in the order of the query."""

    full: tuple[str, ...]
    """All except stop words and function words of another language; all if there are no others."""
    content: tuple[str, ...]
    """`full` without question and request words, and function words of another language.

    If there is nothing else, the request words, and if there are none, `full`.
    """
    spellings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The tokens of other spellings, each with the tokens in `full` that it stands for.

    A text with `sqlite` holds those of `SQLite`.
    """
    is_foreign: bool = False
    """True if the query is in another language than English, as far as its words prove one."""


def tokenize(text: str, *, as_written: bool = False) -> list[str]:
    """Returns the tokens of `text` in order, repeated ones included.

    A token holds no space, and of ASCII only lower-case letters and digits. Those of other
    spellings follow the words that are between the same spaces; `as_written` leaves them out.
    """
    if as_written:
        stems, words = _stems(), _split(nouns(text, beside=True))
        return [stems.of_part(part) for word in words for part in _parts(word)]
    chunks = text.split()
    if len(text) < _LONG or may_have_nouns(kinds(chunks)):
        chunks = nouns(text, beside=True).split()
    return " ".join(map(_stems().__getitem__, chunks)).split()


def tokens_of_chunks(chunks: Iterable[str]) -> list[str]:
    """Returns the tokens of each part of a text between spaces, joined by spaces.

    Together, they are the tokens of the text unless it has verbs with particles.
    """
    return list(map(_stems().__getitem__, chunks))


def query_terms(text: str) -> QueryTerms:
    """Returns the terms of a query."""
    stems = _stems()
    text = compiled(BOUND_COMPOUND).sub(
        lambda match: f"{match[1]}{match[2]}".lower(), nouns(text, beside=False)
    )
    words = _split(compiled(_APOSTROPHE).sub(_without, text)) or _split(text)
    if foreign := _function_words(words):
        words = [word for word in words if word not in foreign] or words
    parts = [part for word in words for part in _parts(word)]
    full = [part for part in parts if part not in STOP_WORDS] or parts
    stripped = [part for word in words for part in _parts(_without_particle(word))]
    asked = [part for part in stripped if part not in QUESTION_WORDS]
    content = [part for part in asked if part not in REQUEST_WORDS] or asked or full
    terms = _distinct(stems, full)
    spellings = {}
    spelled = _other_spellings(text, words) if compiled(SIGNS).search(text) else _NO_SPELLINGS
    for word, spelling in spelled.items():
        letters = _split(word.rstrip("0123456789"))
        tokens = [stems.of_part(part) for each in letters for part in _parts(each)]
        held = tuple([token for token in tokens if token in terms])
        if held and (token := stems.of_part(spelling)) not in terms:
            spellings[token] = held
    return QueryTerms(
        full=terms,
        content=_distinct(stems, content),
        spellings=tuple(spellings.items()),
        is_foreign=bool(foreign) or compiled(_OTHER_SCRIPTS).search(text) is not None,
    )


def identifiers(text: str) -> tuple[str, ...]:
    """Returns the tokens of each identifier of several words in a query, joined by spaces.

    A path is one, and the name at its end another: a text may have the name alone.
    """
    paths = [(path, path.rpartition("/")[2]) for path in compiled(_IDENTIFIER).findall(text)]
    named = (" ".join(tokenize(word, as_written=True)) for pair in paths for word in pair)
    return tuple(dict.fromkeys(tokens for tokens in named if " " in tokens))


def matching_words(text: str, query: str) -> list[str]:
    """Returns the words of a text that share a token with a query, each once."""
    asked, stems = query_terms(query), _stems()
    terms = {*asked.content, *dict(asked.spellings)}
    words = {word for word, solid in hyphened(text).items() if stems.of_part(solid) in terms}
    for word in _split(text):
        shared = terms.intersection(stems[word].split())
        if shared and compiled(_UNSPACED).match(word):
            # In a script without spaces, a word is a whole clause, and its tokens are parts of it.
            pairs = zip(_pairs(simplified(word)), _pairs(word), strict=True)
            words.update([written for pair, written in pairs if pair in shared] or [word])
        elif shared:
            words.add(word)
    return sorted(words, key=text.find)


def excerpt(text: str, query: str, limit: int) -> str:
    """Returns at most `limit` characters of a text, from where it matches a query best."""
    text = text.strip()
    if len(text) <= limit:
        return text
    lines = text.splitlines(keepends=True)
    shared = [len(matching_words(line, query)) for line in lines]
    best = shared.index(max(shared))
    start = sum(map(len, lines[:best]))
    words = matching_words(lines[best], query)
    place = min((lines[best].find(word) for word in words), default=0)
    if place > limit // 2:  # A long line: its beginning would leave out the match.
        start = text.find(" ", start + place - limit // 4) + 1
    return f"{'… ' if start else ''}{cut(text[start:].lstrip(), limit)}"


def _split(text: str) -> list[str]:
    if text.isascii():
        return compiled(_ASCII_WORD).findall(text)
    return compiled(_WORDS).findall(unicodedata.normalize("NFKC", text))


def _function_words(words: Sequence[str]) -> list[str]:
    """Returns the function words of a question in another European language; none for English.

    A language needs two proofs, more than there are other function words of English: words of it
    that are no English words, an accent, a question word in front, or three words in all. Names in
    capitals are no function words.
    """
    folded = {}
    for word in words:
        if word.islower() or word.istitle():
            folded[word] = _parts(word)[0]
    terms = frozenset(folded.values())
    best: frozenset[str] = frozenset()
    for asking, listed in _OTHER_LANGUAGES:
        held = listed & terms
        if len(held) <= len(best):
            continue
        accented = {term for word, term in folded.items() if term in held and not word.isascii()}
        native = (held - _ENGLISH_TOO) | accented
        head = next(iter(folded.values()))
        proofs = len(native) + len(accented) + (head in native & asking) + (len(held) > 2)
        if native and proofs > max(1, len((terms & QUESTION_WORDS) - listed)):
            best = held
    return [word for word, term in folded.items() if term in best] if best else []


def _without_particle(word: str) -> str:
    """Returns a Korean word without its particle; empty for a question word or a particle."""
    if word in KOREAN_QUESTION_WORDS or word in KOREAN_PARTICLES:
        return ""
    if word[-1] in _LAST_OF_PARTICLES:
        for particle in KOREAN_PARTICLES:
            if word.endswith(particle) and len(word) >= len(particle) + 2:
                return word.removesuffix(particle)
    return word


def _without(match: re.Match[str]) -> str:
    """Returns a word with an apostrophe, or a space for a contraction."""
    is_contraction = match[0].lower().replace("\u2019", "'") in _CONTRACTIONS
    return " " if is_contraction else match[0]


def _parts(word: str) -> list[str]:
    """Returns the pieces of one word, lower case and without accents, before stemming."""
    if word.isascii():
        plain = word.islower() and word.isalpha()
        return [word] if plain else [part.lower() for part in compiled(PARTS).findall(word)]
    if compiled(_UNSPACED).match(word):
        return _pairs(simplified(word))
    bare = compiled(_ACCENTS).sub("", unicodedata.normalize("NFKD", word))
    return [bare.casefold().translate(_PLAIN)]


def _other_spellings(text: str, words: Iterable[str]) -> dict[str, str]:
    """Returns other spellings of a text's words, such as `sqlite` for `SQLite`, by these words."""
    spellings = {}
    if "-" in text or "\u2010" in text or "\u2011" in text:
        # A verb with a particle has its noun already.
        compounds = hyphened(text).items()
        spellings = {word: solid for word, solid in compounds if nouns(word, beside=False) == word}
    for word in words:
        if not word.isascii():
            name = word[:2] in korean_names() and name_in_latin(word, _without_particle(word))
            if name:
                spellings[word] = name
        elif not (word.islower() or word.istitle()):
            letters = word.rstrip("0123456789")
            parts = compiled(PARTS).findall(letters)
            if 1 < len(parts) <= (_MOST_PARTS if word[0].isupper() else 2) and letters.isalpha():
                spellings[word] = letters.lower()
    return spellings


def _pairs(word: str) -> list[str]:
    """Returns the pairs of neighbouring characters, or a character alone."""
    return [word[i : i + 2] for i in range(len(word) - 1)] or [word]


def _distinct(stems: _Stems, parts: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(" ".join([stems.of_part(part) for part in parts]).split()))


class _Stems(dict[str, str]):
    """The tokens of each chunk of text between two spaces, joined by spaces; filled on demand.

    A chunk is a word with its punctuation marks. Texts repeat most of them.
    """

    def __init__(self, stem: Callable[[str], str]) -> None:
        super().__init__()
        self._stem = stem
        self._characters = 0

    def __missing__(self, chunk: str) -> str:
        self._characters += len(chunk)
        if self._characters > _KEPT_CHARACTERS:
            self.clear()
            self._characters = len(chunk)
        words = _split(chunk)
        spellings: Mapping[str, str] = _NO_SPELLINGS
        is_plain = "-" not in chunk and chunk.islower() and chunk.isascii()
        if not is_plain and compiled(SIGNS).search(chunk):
            spellings = _other_spellings(chunk, words)
        if words == [chunk] and not spellings:
            joined = " ".join([self.of_part(part) for part in _parts(chunk)])
        elif not spellings:
            joined = " ".join(map(self.__getitem__, words))
        else:
            # The tokens of the parts stay neighbours.
            parts = [
                self[word]
                if word.islower() or word.istitle()
                else " ".join(map(self.of_part, _parts(word)))
                for word in words
            ]
            tokens = " ".join(parts).split()
            new = dict.fromkeys(map(self.of_part, spellings.values()))
            joined = " ".join([*tokens, *(token for token in new if token not in tokens)])
        self[chunk] = joined
        return joined

    def of_part(self, part: str) -> str:
        if not (part.isascii() and part.isalpha()):
            return part
        # Porter's stem of a lone "s" is empty, but "S3" needs it.
        stem = self._stem(root(part)) or part
        # It makes "deploi" of "deploy", but "deploy" of "deployable".
        return f"{stem[:-1]}i" if stem[-1] == "y" and compiled("[aeiou]").search(stem) else stem


@cache
def _stems() -> _Stems:
    from Stemmer import Stemmer

    return _Stems(Stemmer("porter").stemWord)
