"""The tools that fit a prompt: classified by its words, passed to the server in a file.

The words and the rules are those of MAMA's design: resuming comes before deciding, and every other
prompt lists every tool. A prompt without such a word that only asks where work stopped resumes it,
too. While sessions are on, one about earlier work names the tool that finds them. A word counts
fully only in a request: "let's continue", not "the continue button". Only the list of tools becomes
shorter; the client may call all of them. The file is `.mind/.local/exposure.json`, one JSON object;
a file that can't be read is ignored.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from mimo.data.files import LOCAL
from mimo.data.state import StateFile
from mimo.frozen import NamedTuple
from mimo.text.clean import compiled
from mimo.text.continuity import About, about

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PLACE = f"{LOCAL}/exposure.json"
SURE = 0.7
"""Below this confidence every tool is listed."""

_UNSURE = 0.5
"""Confidence if a prompt only has a word of an intent."""

_MAX_READ = 20_000
"""Characters of a prompt that are read: its purpose is stated before that."""
_MAX_BYTES = 16_384
_MAX_TOOLS = 100
_MAX_LENGTH = 200

_QUOTED = r"(?s)```.*?(?:```|\Z)|`[^`\n]*`"
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class Intent(StrEnum):
    """The subject of a prompt."""

    RESUMING = "resuming"
    DECIDING = "deciding"
    SEARCHING = "searching"
    TRACKING = "tracking"
    EARLIER = "earlier"
    OTHER = "other"


_WORDS = {
    Intent.RESUMING: ("어제", "이어서", "continue", "resume"),
    Intent.DECIDING: ("결정", "decide", "choice", "선택"),
    Intent.SEARCHING: ("찾아", "search", "recall", "어떻게 했"),
    Intent.TRACKING: ("실패", "성공", "failed", "success"),
}
"""In the order in which they are tried."""

_ASKS = (
    r"(?:^|\n[^\S\n]*|[.!?,;:)]\s*|\b(?:please|let'?s|let us"
    r"|(?:can|could|shall|should|will) (?:we|you|i)"
    r"|(?:we|i)(?:'ll|'d like to| would like to| (?:want|need|have|wish) to| can| should| must"
    r"| will)?"
    r"|help me|(?:going|ready|time) to|now|ok|okay|and|then|so)\s+)"
)
"""The beginning of a request, in English. Each blank line is read from one line end only."""
_END = r"\s*(?:$|[.!?,;:)\n])"
_WORK = (
    r"(?:our|my|the|that|this|your|yesterday's|last|previous|earlier)\b(?: \w+)?"
    r" ?\b(?:work|session|task|conversation|discussion|thread|plan|refactoring|migration|review)\b"
)
_PATTERNS = {
    Intent.RESUMING: (
        rf"{_ASKS}(?:continue|resume)(?:{_END}| (?:where|working|fixing|implementing|writing"
        r"|building|refactoring|debugging|testing|yesterday|please|now|here|again)\b"
        rf"|(?: with| on)? {_WORK}| with (?:this|that|it|the next|step|phase|part)\b"
        rf"|(?: with| on)? (?:this|that|it){_END}"
        r"| from (?:where|there|here|yesterday|before|last time)\b)"
        r"|이어서\s*(?:하자|할까|해\s?줘|해줘|해\b|하고|진행|작업|계속|가자|시작|부탁|개발|마무리|$|[.!?])"
        r"|(?m:^)(?:(?!어제).)*어제.*(?:이어서\s*(?:하|해|진행|작업)|계속|마저|재개)"
    ),
    Intent.DECIDING: (
        rf"{_ASKS}decide(?:{_END}| (?:on|about|whether|which|what|how|where|when|who|if|between|for"
        r"|against|to|together|this|that|it|now|later|next)\b)"
        r"|\b(?:better|best|right|good|our|my|which|what)(?: is)?(?: the)?(?: better| best| right)?"
        rf" choice(?:{_END}| (?:between|for|of|here|is)\b)"
        r"|\b(?:a|the|this|our) choice between\b|\bmake (?:a|the|this|our) choice"
        rf"(?:{_END}| (?:between|about|now)\b)"
        r"|결정을 (?:내리자|내려|하자)"
        r"|(?:결정|선택)\s*(?:하자|할까|합시다|해\s?줘|해야 (?:해|할까|돼|겠)|하고 싶|해\s?보자)"
    ),
}
"""Requests in which a word of an intent means it, in lower case."""
_SUBJECTS = (
    r"\b(?:button|link|flag|option|menu|icon|dialog|label|screen|dropdown|endpoint|handler|keyword"
    r"|statement|playback|player|upload|download|cvs?|pdf|users?|customers?|doesn't|isn't"
    r"|(?:before|until|when|if|unless|while|after|once) (?:we|i|you) (?:continue|resume|decide)"
    r"|fails?|failing|broken|crash\w*|bug)\b|버튼|고객|사용자|화면|필드"
)
"""Words of a prompt about a program, in which the words of an intent rarely are requests."""

_AGO = (
    r"\b(?:(?:before|once)(?=\s*(?:$|[.?!,;)]))|earlier|(?:day|week|month|year)s? ago"
    r"|last (?:time|week|month|year|spring|summer|autumn|fall|winter))\b"
)
_DID = r"(?:did|done|solved|fixed|discussed|tried|decided|talked|had|seen|saw|hit|ran into)"
_EARLIER = (
    r"\blast time (?:we|i|you|this|that|it)\b|\b(?:as|like|the way) (?:we|i|you) (?:did|had)\b"
    r"|\b(?:what|how|why|where|when|which|who)\b[^.?!\n]{0,60}\blast time\b"
    r"|\b(?:(?:in|from) (?:an?|the|our|my)|our|my) (?:earlier|previous|past|last)"
    r" (?:session|conversation|chat)s?\b"
    r"|\b(?:did|have|had|haven't|hadn't|didn't) (?:we|i) (?:already|ever)\b"
    rf"|\b(?:did|have|had|haven't|hadn't|didn't) (?:we|i|you)\b[^.?!\n]{{0,80}}{_AGO}"
    rf"|\b(?:we|i|you)(?:'ve)? (?:have |had |already )*{_DID}\b[^.?!\n]{{0,60}}{_AGO}"
    r"|(?:이전|지난|저번)\s?(?:세션|대화)(?:에|때)|[가-힣]\s적이?\s?있"
    r"|(?:저번|지난\s?(?:번|주|달|해)|예전|이전|작년|(?<!기)(?<!기\s)\b전)에?\b[^.?!\n]{0,60}"
    r"(?:했|었|았|였|봤|썼|갔|렸|냈|꿨)"
)
"""Questions about earlier work, in lower case."""

_TOOLS: dict[Intent, tuple[str, ...]] = {
    Intent.RESUMING: ("load/checkpoint", "load/context", "save/decision"),
    Intent.DECIDING: ("save/decision", "save/insight", "search/by_context", "load/checkpoint"),
    Intent.EARLIER: ("mind_sessions", "search/by_context", "mind_search", "save/decision"),
}
"""The tools for an intent, with those that are always listed, the most important first."""


class Exposure(NamedTuple):
    """The intent of a prompt and the tools that fit it; once written, also its session and time."""

    intent: Intent
    confidence: float
    """0..1: how certain the intent is."""
    tools: tuple[str, ...] | None
    """Canonical names, the most important first; None for every tool."""
    session: str = ""
    """The client's own name of the session."""
    at: datetime = _NEVER
    """Time zone aware, UTC."""


def classify(prompt: str, *, has_sessions: bool = False) -> Exposure:
    """Returns the tools that fit a prompt; those for earlier sessions only if they are kept.

    Text in backticks is not read, because code contains words such as `continue`. Every tool fits
    if no rule matches, or if the confidence is below `SURE`.
    """
    text = prompt[:_MAX_READ]
    if "`" in text:
        text = compiled(_QUOTED).sub(" ", text)
    lower = text.lower()
    intents = [i for i, words in _WORDS.items() if any(map(lower.__contains__, words))]
    is_asked = bool(intents) and _is_asked(intents[0], lower)
    resumes = is_asked and intents[0] is Intent.RESUMING
    if has_sessions and not resumes and compiled(_EARLIER).search(lower):
        intents, is_asked = [Intent.EARLIER], True
    if not intents and about(text, onward=False) in (About.LATEST, About.NEXT):
        intents, is_asked = [Intent.RESUMING], True
    if not intents:
        return Exposure(intent=Intent.OTHER, confidence=1.0, tools=None)
    if not is_asked and intents[0] in _PATTERNS:
        return Exposure(intent=intents[0], confidence=_UNSURE, tools=None)
    # One word means less beside words of other intents, and in a long text, where any word may
    # appear by chance: a tenth less for each 25 words after the first 25.
    extra = max(0, (len(text.split()) - 25) // 25)
    confidence = round(max(0.0, 0.95 - 0.1 * (len(intents) - 1) - 0.1 * extra), 2)
    tools = _TOOLS.get(intents[0]) if confidence >= SURE else None
    return Exposure(intent=intents[0], confidence=confidence, tools=tools)


def _is_asked(intent: Intent, lower: str) -> bool:
    """Returns whether a prompt asks for what an intent is, and does not only have a word of it."""
    pattern = _PATTERNS.get(intent)
    if pattern is None or compiled(_SUBJECTS).search(lower):
        return False
    return compiled(pattern).search(lower) is not None


def write(root: Path, exposure: Exposure) -> None:
    """Replaces the last exposure. Raises `StorageFailed`."""
    data = {
        "session": exposure.session[:_MAX_LENGTH],
        "intent": exposure.intent.value,
        "confidence": exposure.confidence,
        "tools": exposure.tools,
        "at": exposure.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
    }
    _FILE.write(root, PLACE, data)


def read(root: Path) -> Exposure | None:
    """Returns the exposure of the newest prompt; None if there is no file that can be read."""
    return _FILE.read(root, PLACE)


def _parsed(data: Any) -> Exposure:
    """Returns the exposure in a file's data. Raises `ValueError` if a value is out of range."""
    session, confidence, tools = data["session"], data["confidence"], data["tools"]
    at = datetime.fromisoformat(data["at"])
    if tools is not None and not (isinstance(tools, list) and len(tools) <= _MAX_TOOLS):
        raise ValueError(data)
    texts = [session, *(tools or ())]
    if not all(isinstance(text, str) and len(text) <= _MAX_LENGTH for text in texts):
        raise ValueError(data)
    if type(confidence) not in (int, float) or not 0 <= confidence <= 1 or at.tzinfo is None:
        raise ValueError(data)
    return Exposure(
        intent=Intent(data["intent"]),
        confidence=float(confidence),
        tools=None if tools is None else tuple(tools),
        session=session,
        at=at.astimezone(UTC),
    )


_FILE = StateFile(_parsed, limit=_MAX_BYTES)
