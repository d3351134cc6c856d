"""Questions without a subject: those that only ask where work stopped, in English and Korean.

Such a question consists of words that frame any conversation ("what", "we", "session", "알려줘").
No memory contains its subject, because it has none: the newest memories are the answer. A single
other word is a subject, and the question is searched for.
"""

from __future__ import annotations

import re
from unicodedata import normalize

from mimo.text.clean import compiled
from mimo.text.tokens import STOP_WORDS

_FRAME = STOP_WORDS | frozenset(
    # Questions, persons, and words for politeness.
    "what which who when where why how do did does done have has had having am were been being can"
    " could would should shall may might must i me my mine we us our you your he she him her its"
    " them about from so than too very just also any some all each other more most much many here"
    " s t re ve ll d m don didn please ok okay hi hello hey thanks now quick quickly short shortly"
    " brief briefly let want need like supposed able whole everything anything something nothing"
    # The work and the conversation themselves.
    " work session conversation chat discussion interaction context message memory thing"
    " stuff task todo item step point place part bit thread topic project plan state status"
    " progress summary overview rundown gist highlights headway recap update speed loop question"
    " answer idea way list instruction plate tldr note decision checkpoint history same else"
    # Times.
    " time day week month year hour minute moment morning afternoon evening night today yesterday"
    " tonight lately recently recent currently current already yet ever since until till before"
    " after ago earlier later previously previous prior past last latest first final next soon far"
    " lunch dinner coffee weekend still again while away back break out off over up down along once"
    " through"
    # What people do in any conversation.
    " talk discuss cover outstanding say said ask tell told mention speak spoke go went gone come"
    " came start begin"
    " began begun finish complete end make made get got put left leave stop quit pause resume"
    " continue carry keep kept proceed pick catch caught bring brought fill give gave show help"
    " look see saw seen remember remind recall refresh forget forgot forgotten summarize summarise"
    " sum think thought accomplish achieve happen change decide learn stand remain open pending"
    " unfinished miss try know load reload restore".split()
)
"""Words that are about no subject, without most of their inflections."""

_CUES = frozenset(
    "continue resume recap summarize summarise summary status progress proceed catch remind"
    " remember recall refresh last latest previous previously earlier recent recently lately"
    " yesterday ago far left leave stop pending remain unfinished update overview stand back since"
    " open current miss finish outstanding instruction tldr away still before plan rundown headway"
    " restore reload".split()
)
"""Words that point to earlier work or to its next step."""

_PHRASES = (
    r"\b(?:up to (?:speed|date)|pick\w* (?:\w+ )?up|going on|fill\w* \w+ in"
    r"|where (?:were|was|are|am|did|do|had|have|should) (?:we|i|you|things|everything)"
    r"|(?:we|i|you) (?:\w+ )*?(?:do|doing|done|working|saying|asking|talking"
    r"|discussing|about to)|(?:my|our) (?:\w+ )*?(?:work|tasks?|todos?|state|session|plate)"
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

_KOREAN_CUES = (
    "이어서|이어|계속|마저|하던|어디까지|어디서|어디부터|지난번|지난|저번|아까|방금|이전|마지막|최근"
    "|어제|그제|그저께|지금까지|여태|요약|정리|다음|남은|상황|상태|진행|현황|재개|기억|마무리|다시|진척|보고"
)
_KOREAN_NOUNS = (
    f"{_KOREAN_CUES}|어디|작업|업무|할일|대화|얘기|이야기|세션|내용|프로젝트|채팅|맥락|계획|목록|단계"
    "|부분|사항|부탁|무엇|무슨|뭐라|어떤|어때|어떻|어떻게|우리|내가|제가|네가|오늘|지금|현재|시간|시점"
    "|그거|그것|이거|이것|전체|간단|간단히|짧게|빨리|한번|모두|전부|정도|시작|질문|설명|알려|말해|보여"
    "|물어|나눴|말았|멈췄|멈춘|그만|결정|기록|메모|논의|상의|메시지|주제|과정|핵심|요점|순서|참고|주세요|나눈|나누"
)
_KOREAN_VERBS = "하|한|할|해|했|되|돼|됐|될|된|되어|있|없|보|본|봤|볼|가|간|갔|오|온|왔|줘|드"
_KOREAN_SHORT = "뭐|만|뭘|일|것|거|걸|게|건|내|나|난|너|네|저|제|때|번|좀|그|다|끝|말|전|후|중|줄"
"""Nouns of one syllable, which begin many other words: only particles may follow them."""
_KOREAN_ENDINGS = (
    "은|는|이|가|을|를|에|에서|부터|까지|의|도|만|로|으로|와|과|랑|이랑|요|야|지|죠|니|나|까|네|더라|더라고"
    "|었|았|던|고|며|면|으면|서|다|라|자|줘|줘요|주세요|줄래|주라|세요|습니다|합니다|합시다|시다|겠|려|려고"
    "|어|아|여|인지|인가|는지|였|이었|이야|예요|이에요|인데|는데|봐|보자|거|것|게|걸|건|야지|싶|을까|들|드려|쯤|아서|어서|달라"
)
_KOREAN_DONE = "했|하던|됐|봤|나눴|말았|멈췄|있었|있던|할 ?일|해야"
"""Words for finished and for open work, which point to earlier work as a cue does."""

_LONG = f"{_KOREAN_NOUNS}|{_KOREAN_VERBS}"
_KOREAN = (
    rf"(?:{_LONG})(?:{_LONG}|{_KOREAN_ENDINGS}){{0,8}}"
    rf"|(?:{_KOREAN_SHORT})(?:{_KOREAN_ENDINGS}){{0,3}}"
)

_SHORT = 3
"""Words of a text that only asks to go on."""

_LONGEST = 200
"""Characters of a question without a subject; a longer text has one."""


def is_framing(text: str) -> bool:
    """Returns whether a text has words, and none of them is about a subject."""
    words = _words(text)
    return bool(words) and all(map(_is_frame, words))


def asks_where_work_stopped(text: str, *, onward: bool = True) -> bool:
    """Returns whether a question only asks for earlier work, its state or the next step.

    Without `onward`, a text that only asks to go on does not count.
    """
    if not is_framing(text):
        return False
    words = _words(text)
    line = " ".join(words)
    if compiled(_ONWARD).search(line):
        return onward or len(words) > _SHORT
    if len(words) == 1 and line.isascii():
        return line in _ALONE
    patterns = (_PHRASES, _KOREAN_CUES, _KOREAN_DONE)
    return any(_forms(word) & _CUES for word in words) or any(
        compiled(pattern).search(line) for pattern in patterns
    )


def _words(text: str) -> list[str]:
    """Returns the words in lower case; a code-like word keeps its dots, digits and underscores."""
    if len(text) > _LONGEST:
        return []
    plain = normalize("NFC", text).lower().replace("\u2019", "'")
    plain = compiled(r"\b(what(?:'s| is| was)?|anything) new\b").sub(r"\1", plain)
    return [
        part
        for word in plain.split()
        for part in re.split(r"['/-]", word.replace("tl;dr", "tldr").strip(".,;:!?…\"'()[]“”~"))
        if part
    ]


def _is_frame(word: str) -> bool:
    if word.isascii():
        return bool(_forms(word) & _FRAME)
    return compiled(_KOREAN).fullmatch(word) is not None


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
