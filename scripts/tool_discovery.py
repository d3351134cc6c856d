"""Measures whether the texts of the list of tools lead to the right tool, without a model.

Agents choose tools with a language model, which this machine does not have. These matchers are
weaker, and equally weak for any texts: they show which tools the texts hardly separate.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mimo.index.cosine import cosines
from mimo.index.embedding import ENCODED_LENGTH
from mimo.index.embedding.encoder import packaged_encoder
from mimo.text.tokens import tokenize
from scripts.tool_asks import asks

Scores = Mapping[str, float]
Matcher = Callable[[str], Scores]

NOT_FOR = re.compile(r"(?s)Don't use for:.*|Not for .*")
"""Texts about other tools, which only a reader of sentences can use."""


def name_of(tool: Mapping[str, Any]) -> str:
    """Returns the words of a tool's name: `listMemory` -> `list memory`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", tool["name"]).lower()


def described(tool: Mapping[str, Any]) -> str:
    """Returns the name of a tool with its purpose."""
    return f"{name_of(tool)}. {NOT_FOR.sub('', tool['description'])}"


def whole(tool: Mapping[str, Any]) -> str:
    """Returns also its arguments."""
    fields = tool["inputSchema"]["properties"]
    return ". ".join(
        [
            described(tool),
            *(f"{name.replace('_', ' ')} {f.get('description', '')}" for name, f in fields.items()),
        ]
    )


TEXTS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "name": name_of,
    "name, description": described,
    "name, description, inputs": whole,
}


def by_words(texts: Mapping[str, str]) -> Matcher:
    """Returns a matcher by words, as Okapi BM25 weighs them."""
    counts = {name: Counter(tokenize(text)) for name, text in texts.items()}
    mean = sum(map(Counter.total, counts.values())) / len(counts)
    frequency = Counter(word for each in counts.values() for word in each)

    def match(ask: str) -> Scores:
        return {
            name: sum(
                math.log(1 + (len(counts) - frequency[word] + 0.5) / (frequency[word] + 0.5))
                * has[word]
                * 2.2
                / (has[word] + 1.2 * (0.25 + 0.75 * has.total() / mean))
                for word in set(tokenize(ask))
            )
            for name, has in counts.items()
        }

    return match


def by_meaning(texts: Mapping[str, str]) -> Matcher:
    """Returns a matcher by the cosine of the packaged encoder's vectors."""
    encoder = packaged_encoder()
    vectors = encoder.encode_many(list(texts.values()))

    def match(ask: str) -> Scores:
        return dict(zip(texts, cosines(encoder.encode(ask), vectors, ENCODED_LENGTH), strict=True))

    return match


def both(matchers: Sequence[Matcher]) -> Matcher:
    """Returns a matcher that adds the scores of several, each as a share of its best one."""

    def match(ask: str) -> Scores:
        total: Counter[str] = Counter()
        for each in matchers:
            scores = each(ask)
            best = max(scores.values()) or 1.0
            total.update({name: score / best for name, score in scores.items()})
        return total

    return match


def ranks(matcher: Matcher) -> list[tuple[str, str, list[str]]]:
    """Returns each ask, its tool, and the tools as the matcher orders them."""
    ordered = []
    for ask, tool in asks():
        scores = matcher(ask)
        ordered.append((ask, tool, sorted(scores, key=lambda name: -scores[name])))
    return ordered


def share(ordered: Iterable[tuple[str, str, list[str]]], most: int) -> str:
    hits = [tool in order[:most] for _, tool, order in ordered]
    return f"{sum(hits) / len(hits):.0%}"


def measured(tools: Sequence[Mapping[str, Any]]) -> str:
    """Returns the tables of docs/lab/tools.md."""
    lines = [
        (
            "| texts | by words: first | first three | by meaning: first | first three"
            " | both: first | first three |"
        ),
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    last: list[tuple[str, str, list[str]]] = []
    for label, text in TEXTS.items():
        texts = {tool["name"]: text(tool) for tool in tools}
        matchers = [by_words(texts), by_meaning(texts)]
        cells = []
        for matcher in (*matchers, both(matchers)):
            last = ranks(matcher)
            cells += [share(last, 1), share(last, 3)]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    lines += ["", f"{len(last)} asks. Those of each tool, by both, with its inputs:", ""]
    lines += ["| asked for | right | first three | else mostly |", "|---|---:|---:|---|"]
    for tool in dict.fromkeys(tool for _, tool, _ in last):
        own = [each for each in last if each[1] == tool]
        wrong = Counter(order[0] for _, _, order in own if order[0] != tool)
        instead = ", ".join(f"`{name}` {count}" for name, count in wrong.most_common(2))
        first = sum(order[0] == tool for _, _, order in own)
        three = sum(tool in order[:3] for _, _, order in own)
        lines.append(f"| `{tool}` | {first} of {len(own)} | {three} | {instead} |")
    return "\n".join(lines)
