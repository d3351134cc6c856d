"""Questions without a subject: where work stopped and what is open, in English, German and Korean.

Such a question consists of words that frame any conversation ("what", "we", "session", "알려줘").
No memory contains its subject, because it has none: the newest memories or the open issues are the
answer. A single other word is a subject, and so is a framing noun that the grammar makes one: "how
do we resume a session" is searched for.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from unicodedata import normalize

from mimo.frozen import NamedTuple
from mimo.text.clean import compiled
from mimo.text.families import WORDS
from mimo.text.tokens import GERMAN_WORDS, QUESTION_WORDS

_FRAME = QUESTION_WORDS | WORDS["frame"]
"""Words that are about no subject, without most of their inflections."""

_CUES = WORDS["cues"]
"""Words that point to earlier work or to its next step."""

_PHRASES = (
    r"\b(?:up to speed|(?:we|i|you) up to$|pick\w* (?:\w+ )?up|going on|fill\w* \w+ in"
    r"|state of (?:things|everything)"
    r"|where (?:were|was|are|am|did|do|had|have|should) (?:we|i|you|things|everything)"
    r"|(?:we|i|you) (?:\w+ )*?(?:do|doing|done|working|saying|asking|talking"
    r"|discussing|about to)|(?:my|our) (?:\w+ )*?(?:work|tasks?|todos?|state|session|plate)"
    r"|(?:are|were|am|was) (?:we|i|you) (?:on|at|in)|(?:we|i) (?:are|re|were|m|was) (?:on|at)"
    r"|keep working"
    r"|how (?:\w+ ){1,3}(?:going|coming)|to (?:do|finish))\b"
)
"""Groups of words that point to earlier work."""

_ONWARD = r"\b(?:(?:keep|carry|go)(?:ing)? (?:on|going)|proceed|next|now what|what now)\b"
"""Words to go on, which in the middle of a session ask for nothing that the memory has."""

_ALONE = frozenset(
    "continue resume recap summarize summarise status proceed progress summary".split()
)
"""Words that are a request by themselves."""

_DOING = (
    r"\b((?:we|i|you) (?:were|was)|(?:were|was) (?:we|i|you)|(?:ve|have) (?:we |i |you )?been)"
    r" \w+ing\b"
)
"""A verb of any work: `what were we debugging`."""

# The grammar of a framing noun that is a subject.
_THING = (
    r"(?:sessions?|conversations?|chats?|messages?|memory|memories|tasks?|items?|steps?|threads?"
    r"|topics?|plans?|states?|status(?:es)?|lists?|notes?|decisions?|checkpoints?|history"
    r"|questions?|contexts?|todos?|issues?|problems?|bugs?|errors?|blockers?)"
)
_THINGS = (
    "(?:sessions|conversations|chats|messages|tasks|items|steps|threads|topics|plans|states|lists"
    "|questions)"
)
_KNOWN = (
    r"\b(?:my|our|your|this|these|those|last|latest|previous|prior|past|earlier|recent|current"
    r"|next|which|what|any|all|no|other|more|today s|yesterday s|known|remaining|pending"
    rf"|(?<!we )(?<!i )(?<!to )open|outstanding|unfinished|unsolved|unresolved) (?:\w+ )?{_THING}\b"
)
"""A thing of this conversation, which is not a subject: `the last session`, `which task`."""
_GENERAL = (
    # What happens in general, or for a reason.
    r"\bwhat happens (?:to|with|after|before|when|once|while|if|in|on|at|during)\b"
    rf"|^(?:why|when|who) (?:do|does|is|are|can|should|must) (?:\w+ )*{_THING}\b"
    rf"|^(?:which|what) {_THING} (?:is|are|comes?|gets?) (?:the )?(?:first|last|final|shown)\b"
    # One of its kind.
    rf"|\ban? (?:\w+ )?(?!(?:list|status)\b){_THING}\b"
    r"(?! (?:update|report|summary|overview|recap|list))"
)
_SUBJECT = (
    # The kind.
    rf"^(?:how|what|where|when|why|who|which|is|are|do|does|did|can|should|were|was)\b.*"
    rf"(?<!the ){_THINGS}\b"
    # What is done with it in general.
    r"|^(?:how|where|what)(?: \w+)? (?:do|does|can|could|must|may)"
    rf" (?!you\b|things\b|(?:we|i) (?:stand|pick|continue|resume|start)\b)(?:\w+ )*?{_THING}\b"
    rf"|^do we .*{_THING}\b"
    rf"|^(?:how|where|when) (?:is|are) (?:the )?{_THING}(?: {_THING})?"
    r" (?:kept|made|shown|put|seen|\w+ed)\b"
)
"""A question in which a framing noun, other than those of `_KNOWN`, is a subject."""

_KOREAN_CUES = (
    "이어서|이어|계속|마저|하던|어디까지|어디서|어디부터|지난번|지난|저번|아까|방금|이전|마지막|최근"
    "|어제|그제|그저께|지금까지|여태|요약|정리|다음|남은|상황|상태|진행|현황|재개|기억|마무리|다시|진척|보고"
)
_KOREAN_NOUNS = (
    f"{_KOREAN_CUES}|어디|작업|업무|할일|대화|얘기|이야기|세션|내용|프로젝트|채팅|맥락|계획|목록|단계"
    "|부분|사항|부탁|무엇|무슨|뭐라|어떤|어때|어떻|어떻게|우리|내가|제가|네가|오늘|지금|현재|시간|시점"
    "|그거|그것|이거|이것|전체|간단|간단히|짧게|빨리|한번|모두|전부|정도|시작|질문|설명|알려|말해|보여"
    "|물어|나눴|말았|멈췄|멈춘|그만|결정|기록|메모|논의|상의|메시지|주제|과정|핵심|요점|순서|참고|주세요|나눈|나누"
    "|휴가|그동안|동안|다녀"
)
_KOREAN_VERBS = (
    "하|한|할|해|했|되|돼|됐|될|된|되어|있|없|보|본|봤|볼|가|간|갔|오|온|왔|와|줘|드|바뀌|바뀐|바뀔"
)
_KOREAN_SHORT = "뭐|만|뭘|일|것|거|걸|게|건|내|나|난|너|네|저|제|때|번|좀|그|다|끝|말|전|후|중|줄"
"""Nouns of one syllable, which begin many other words: only particles may follow them."""
_KOREAN_ENDINGS = (
    "은|는|이|가|을|를|에|에서|부터|까지|의|도|만|로|으로|와|과|랑|이랑|요|야|지|죠|니|나|까|네|더라|더라고"
    "|었|았|던|고|며|면|으면|서|다|라|자|줘|줘요|주세요|줄래|주라|세요|습니다|합니다|합시다|시다|겠|려|려고"
    "|어|아|여|인지|인가|는지|였|이었|이야|예요|이에요|인데|는데|봐|보자|거|것|게|걸|건|야지|싶|을까|들|드려|쯤|아서|어서|달라"
)
_KOREAN_DONE = "했|하던|됐|봤|나눴|말았|멈췄|있었|있던|할 ?일|해야|그동안"
"""Words for finished and for open work, which point to earlier work as a cue does."""
_KOREAN_OPEN = (
    "막힌|막혔|막혀|막히|아직|안|못|끝나|끝난|끝낸|고쳐|고쳐진|고친|고칠|해결|문제|이슈|버그|오류|에러"
    "|미해결|미완료|미완성|걸림돌|블로커|열린|열려|알려진|투두|급한"
)
"""Words of questions about open work."""
_KOREAN_PROBLEMS = r"막[힌혔혀히]|문제|이슈|버그|오류|에러|미해결|걸림돌|블로커"
_KOREAN_NEXT = (
    r"미완|(?:아직 )?(?:안|못) (?:끝|한|된|고|해결)|투두|할 ?일|해야|남은|열린|열려"
    r"|다음(?:에|엔|은|으로)? (?:할|뭐|뭘|무엇|작업|단계)"
)
_KOREAN_SUBJECT = (
    r"(?:세션|메시지|대화|채팅|메모|기록|목록|질문|단계|순서|작업|상태|계획|결정)[은는을를]"
    r" (?:어디(?:에|까지|서)|어떻게|언제|왜|누가)"
    r" (?!되|돼|하|해|할|가|진행|시작|이어|계속|\S*[했됐갔왔봤났췄눴었았였겠])\S+$"
)
"""A framing noun of which a verb of the present asks something in general."""

_LONG = f"{_KOREAN_NOUNS}|{_KOREAN_VERBS}"
_KOREAN_FRAME = (
    rf"(?:{_LONG})(?:{_LONG}|{_KOREAN_ENDINGS}){{0,8}}"
    rf"|(?:{_KOREAN_SHORT})(?:{_KOREAN_ENDINGS}){{0,3}}"
)
_KOREAN_ANY = _KOREAN_FRAME.replace(_LONG, f"{_LONG}|{_KOREAN_OPEN}")
"""A word that frames a conversation, or also one about open work."""

# German words follow, in lower case and without accents (codespell:ignore-begin).
_GERMAN = GERMAN_WORDS | WORDS["german frame"]
_GERMAN_CUES = (
    r"\b(?:letzte[nrs]?|zuletzt|vorhin|gestern|bisher|weiter\w*|fortsetzen|fortfahren|wieder"
    r"|aufgehort|abgebrochen|unterbrochen|\w*geblieben|stecken|verpasst|geschafft|woran|wobei"
    r"|dran|stand|status|zusammen\w*|uberblick|erinner\w*|neues\w*|lief|gearbeitet|besprochen"
    r"|wo (?:waren|war|stehen|sind|bin)|wie weit|(?:haben|habe) (?:wir|ich) \w+)\b"
)
_GERMAN_SUBJECT = (
    r"\bpassiert (?:mit|wenn|nach|vor|bei|in|am)\b|\bein(?:e[mnrs]?)? (?:sitzung|arbeit|aufgabe)\b"
)
_GERMAN_ANY = _GERMAN | WORDS["german open work"]
_GERMAN_PROBLEMS = (
    r"\b(?:block\w+|hangt|hangen|hakt|klemmt|probleme?n?|kaputt|fehler|bugs|baustellen"
    r"|ungelost\w*)\b"
)
_GERMAN_NEXT = (
    r"\b(?:offene?n?|lose enden|un(?:erledigt|fertig)\w*|todos?|nachste\w*|ubrig"
    r"|noch (?:\w+ )?zu (?:tun|machen|erledigen)|mussen (?:wir|ich) noch|bleibt|fehlt)\b"
)
# English again (codespell:ignore-end).

_OPEN = WORDS["open work"]
"""Words of questions about open work, beside those of `_FRAME`."""
_ANY = _FRAME | _OPEN
_PROBLEMS = (
    r"\b(?:block(?:s|ed|ing|ers?)?|stuck|obstacles?|issues?|problems?|bugs?|broken"
    r"|un(?:solved|resolved|fixed)|hold(?:s|ing)? (?:us|me|it|things|everything) (?:up|back)"
    r"|in (?:our|my|the) way|(?:doesn|don|not|isn) (?:t )?(?:yet )?work(?:ing)?)\b"
)
"""Groups of words that ask for problems."""
_NEXT = (
    r"\b(?:loose ends?|unfinished|incomplete|backlog|todos?|to dos?(?= list|$)|remain(?:s|ing)"
    r"|(?:doesn|don|not|isn|haven|aren) (?:t )?(?:yet )?(?:done|finished|fixed|solved|resolved)"
    r"|(?:still|remains?|left|have|needs?|else|something|anything|things|stuff)"
    r" (?:\w+ ){0,2}?(?:to )?(?:be )?(?:do|done|fix|fixed|finish|finished|work on)"
    r"|(?:do|on|what s|what is|what are) next|next$|next (?:up|steps?|tasks?|things?|items?)"
    r"|open (?:tasks?|items?|questions?|points?|things?|stuff)"
    r"|(?:s|is|are|still|remains?) (?:still )?(?:open|left|pending|outstanding))\b"
)
"""Groups of words that ask for what to do."""
_PAST = r"\b(?:did|was|were|had|last)\b"


class _Rules(NamedTuple):
    """The grammar of a language, as patterns of a line of words."""

    general: str
    """Questions with a subject."""
    subject: str
    """Questions with a subject even if things of this conversation are left out."""
    problems: str
    next: str
    cues: str
    """Words that point to earlier work."""


_RULES = _Rules(
    general=f"{_GENERAL}|{_KOREAN_SUBJECT}",
    subject=_SUBJECT,
    problems=f"{_PROBLEMS}|{_KOREAN_PROBLEMS}",
    next=f"{_NEXT}|{_KOREAN_NEXT}",
    cues=f"{_PHRASES}|{_KOREAN_CUES}|{_KOREAN_DONE}",
)
"""The rules of English and Korean, whose words are often mixed."""

_GERMAN_RULES = _Rules(
    general=_GERMAN_SUBJECT,
    subject=_GERMAN_SUBJECT,
    problems=_GERMAN_PROBLEMS,
    next=_GERMAN_NEXT,
    cues=_GERMAN_CUES,
)

_SHORT = 3
"""Words of a text that only asks to go on."""

_LONGEST = 200
"""Characters of a question without a subject; a longer text has one."""


class About(Enum):
    """What a question is about."""

    SUBJECT = auto()
    """A subject that a memory may contain."""
    NOTHING = auto()
    """No subject: all of its words frame a conversation."""
    LATEST = auto()
    """Earlier work, its state or the next step: `where were we?`."""
    NEXT = auto()
    """Work that is not done, as far as it is about no problem: `what is left?`."""
    PROBLEMS = auto()
    """Open problems: `what's blocking us?`."""


def about(text: str, *, onward: bool = True) -> About:
    """Returns what a question is about.

    Without `onward`, a text that only asks to go on is about nothing.
    """
    words = _words(text)
    line = " ".join(words)
    is_german = _GERMAN_ANY.issuperset(words)
    rules = _GERMAN_RULES if is_german else _RULES
    if not words or not (is_german or all(_is_frame(word, open_work=True) for word in words)):
        return About.SUBJECT
    rest = compiled(_KNOWN).sub("", line)
    if compiled(rules.general).search(line) or compiled(rules.subject).search(rest):
        return About.SUBJECT
    is_onward = compiled(_ONWARD).search(line) is not None
    if is_onward and not onward and len(words) <= _SHORT:
        return About.NOTHING
    if is_german or not compiled(_PAST).search(line):
        if compiled(rules.problems).search(line):
            return About.PROBLEMS
        if compiled(rules.next).search(line):
            return About.NEXT
    if not (_GERMAN.issuperset(words) or all(_is_frame(word) for word in words)):
        return About.SUBJECT
    if len(words) == 1 and line.isascii() and not is_german:
        return About.LATEST if line in _ALONE or is_onward else About.NOTHING
    has_cue = any(not _CUES.isdisjoint(_forms(word)) for word in words)
    has_latest_text = is_onward or has_cue or compiled(rules.cues).search(line)
    return About.LATEST if has_latest_text else About.NOTHING


def _words(text: str) -> list[str]:
    """Returns the words in lower case; a code-like word keeps its dots, digits and underscores.

    Letters of Latin script have no accents.
    """
    if len(text) > _LONGEST:
        return []
    plain = compiled("(?<=[a-z])[\u0300-\u036f]+").sub("", normalize("NFD", text.lower()))
    plain = normalize("NFC", plain).replace("\u2019", "'").replace("ß", "ss")
    plain = compiled(r"\b(what(?:'s| is| was)?|anything) new\b").sub(r"\1", plain)
    plain = compiled(r"\bgood (?=morning|afternoon|evening)").sub("", plain)
    words = [
        part
        for word in plain.split()
        for part in re.split(r"['/-]", word.replace("tl;dr", "tldr").strip(".,;:!?…\"'()[]“”~"))
        if part
    ]
    if "ing" not in plain:
        return words
    return compiled(_DOING).sub(r"\1 doing", " ".join(words)).split()


def _is_frame(word: str, *, open_work: bool = False) -> bool:
    """Returns whether a word frames any conversation or, with `open_work`, one about open work."""
    if word.isascii():
        return not (_ANY if open_work else _FRAME).isdisjoint(_forms(word))
    return compiled(_KOREAN_ANY if open_work else _KOREAN_FRAME).fullmatch(word) is not None


def _forms(word: str) -> set[str]:
    """Returns a word and the words that it may be an inflection of."""
    forms = {word}
    for ending in ("s", "es", "d", "ed", "ing"):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            stem = word.removesuffix(ending)
            forms |= {stem, f"{stem}e"} if ending == "ing" else {stem}
            if len(stem) > 3 and stem[-1] == stem[-2]:
                forms.add(stem[:-1])
    return forms
