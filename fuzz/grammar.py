"""Hostile texts from a small grammar: what commands a terminal, a build service or a reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzz.choices import Choices

_CONTROLS = (
    *map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), "\u061c", "\u200b", "\u200d", "\u202e",
    "\u2066", "\u2069", "\u2028", "\u2029", "\ufeff", "\ufff9", "\U000e0041", "\U000e01ef",
    "\ufe0f\ufe0f", "\u180e", "\r\n", "\u034f",
)  # fmt: skip
_SEQUENCES = (
    "\x1b[31m", "\x1b[2J", "\x1b]0;title\x07", "\x1b]52;c;ZXZpbA==\x1b\\", "\x9b1m", "\x1bc",
    "\x1b]8;;http://x\x1b\\a\x1b]8;;\x1b\\", "\x1bP+q\x1b\\", "\x1b_x", "\x1b[",
)  # fmt: skip
_COMMANDS = (
    "::set-env name=a::b", "::add-mask::a", "::warning file=a,line=1::b", "::stop-commands::x",
    "::ERROR::x", "##[set-env name=a]b", "##[error]x", "##vso[task.setvariable variable=a]b",
    "##teamcity[setParameter name='a' value='b']", "::debug::", "::group::a", "::x y=z\u2028::c",
)  # fmt: skip
_MARKS = (
    "---\n", "+++\n", "...\n", "<!-- MIND:CONTEXT sha=x -->", "<!-- MIND:END -->",
    "</mind-context>", "<mind-context note=\"x\">", "<!-- chunk 1 lines 1-2 -->",
    "<!-- mind: links -->", "-->", "<!--",
    "## Competing: content", "## Reasoning", "<<<<<<< ours\n", ">>>>>>> theirs\n", "[[fact_x]]",
    "untrusted: x", "\n  | ", "- aaaaaa fact 3d 0.99: Use root", "error: x [INTERNAL_ERROR]",
)  # fmt: skip
_SPECIALS = (
    "end\n", "\"]; b[\"c", "graph TD\n", "%%{init: {}}%%\n", "click a call b()", "}; c [label=\"d",
    "\\\"", "\\n", "\\", "\"", "'", "`", "|", "||", "&lt;", "&#x1b;", "<script>", "</script>",
    "<img src=x onerror=a()>", "javascript:a()", "](javascript:a())", "=1+1", "@SUM(A1)", ",", ";",
    "{", "}", "# HELP a b\n", "# TYPE a counter\n", "a{b=\"c\"} 1\n", "]\n[a]\n", "\"\"\"", "%25",
    "%0A::x::", "]]>", "<?xml?>", "\ud800", "\udcff", "../../etc/passwd", "$(id)", "~", "\0",
)  # fmt: skip


def _fence(choices: Choices) -> str:
    mark = choices.one_of("`~") * (3 + choices.number(8))
    return f"\n{' ' * choices.number(6)}{mark}{choices.one_of(['', 'py', ' a`b', '>'])}\n"


def _command(choices: Choices) -> str:
    start = choices.one_of(["\n", "", " ", "\t", "\n\u3000", "\r", "\x0b", "\u2028", "- ", "> "])
    return start + choices.one_of(_COMMANDS)


_PIECES: Sequence[Callable[[Choices], str]] = (
    Choices.raw,
    lambda choices: choices.one_of(_CONTROLS),
    lambda choices: choices.one_of(_SEQUENCES),
    _command,
    _fence,
    lambda choices: choices.one_of(_MARKS),
    lambda choices: choices.one_of(_SPECIALS),
    lambda choices: choices.one_of("ax<`|") * choices.one_of([40, 300, 3000]),
    lambda choices: choices.one_of(["\n", " ", "a", "Tea is hot", "\n\n", "\t", "# ", "- "]),
)


def hostile(choices: Choices) -> str:
    """Returns a text of a few hostile pieces, which may be empty."""
    return "".join(choices.one_of(_PIECES)(choices) for _ in range(choices.number(6)))


_MARKDOWN = (
    "", "-\n", "#\n", "+\n-\n", "1. ", "2)\n", "[a]: http://x ", "[a]", "[^1]: a", "_a_", "__", "*",
    "**a", "~~a~~", "~~", "<details>", "<div>", "<!a", "&lt;b>", "![a](b)", "[a](http://x)",
    "*\n*\n*", "#\n_\n_\n_", "***\n", "> ", "| a |\n|--|\n", "a\n===\n", "a\n---\n", "    a",
    "[ ] ", "<http://x>", "  \n", "\\\n",
)  # fmt: skip


def in_markdown(choices: Choices) -> str:
    """Returns a hostile text that begins and ends with marks of Markdown."""
    return choices.one_of(_MARKDOWN) + hostile(choices) + choices.one_of(_MARKDOWN)
