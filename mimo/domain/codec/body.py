r"""A body taken apart into its content and the fixed sections, line by line.

In a file of mind's own a line `## Reasoning` (`## Outcome`, `## Open files`, `## Next steps`)
begins a section. A line of somebody's text that reads so gets a backslash before it (`\## Outcome`,
which Markdown shows as the plain words), one that has backslashes already gets one more, and
reading takes one away: an exact inverse. Only blank lines around a text are not kept.

After them stand the versions that a merge could not decide between, in any file under `.mind/`:
each under a line `## Competing: ` with the name of the field.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import pairwise

from mimo.domain.memory import Section, Version
from mimo.frozen import frozen

_NAMES = "|".join(re.escape(section.value) for section in Section)
_COMPETING = r"Competing: (\S(?:.*\S)?)"
_HEADING = re.compile(rf"## (?:({_NAMES})|{_COMPETING})[ \t\r]*")
_LOOKS_LIKE_HEADING = re.compile(rf"\\*## (?:{_NAMES}|{_COMPETING})[ \t\r]*")
_ESCAPED = re.compile(rf"\\+## (?:{_NAMES}|{_COMPETING})[ \t\r]*")
_BLANK = " \t\r\n"


@frozen
class Part:
    """A stretch of lines: `start` to `end` without the blank lines around it."""

    start: int
    end: int
    text: str
    heading: int | None = None
    """The line of its heading; None for the content."""


@frozen
class Layout:
    """The lines of a body, without their ends, and which belong to what."""

    lines: Sequence[str]
    content: Part
    sections: Mapping[Section, Part] = field(default_factory=dict)
    competing: Sequence[tuple[str, Part]] = ()
    """The field of each version, and where it stands."""

    @property
    def texts(self) -> dict[Section, str]:
        """Returns the text of each section that has any."""
        return {section: part.text for section, part in self.sections.items() if part.text}

    @property
    def versions(self) -> tuple[Version, ...]:
        """Returns the competing versions, each once."""
        found = (Version(field=name, text=part.text) for name, part in self.competing)
        return tuple(dict.fromkeys(found))


def layout(body: str, *, newline: str, sections: bool, competing: bool = True) -> Layout:
    """Returns the parts of a body; without `sections`, its content is what stands in it.

    Without `competing` as well, that is all of it.
    """
    lines = body.split(newline) if newline == "\n" else body.replace(newline, "\n").split("\n")
    starts: dict[Section, int] = {}
    versions: list[tuple[str, int]] = []
    for number, line in enumerate(lines):
        if not line.startswith("## ") or not (found := _HEADING.fullmatch(line)):
            continue
        if found[1] is None and competing:
            versions.append((found[2], number))
        elif found[1] and sections:
            # A second heading of the same name is text: nothing of it may be lost.
            starts.setdefault(Section(found[1]), number)
    bounds = [*sorted([*starts.values(), *(number for _, number in versions)]), len(lines)]
    ends = dict(pairwise(bounds))
    return Layout(
        lines=lines,
        content=_part(lines, 0, bounds[0], escaped=sections),
        sections={s: _part(lines, n + 1, ends[n], heading=n) for s, n in starts.items()},
        competing=[(name, _part(lines, n + 1, ends[n], heading=n)) for name, n in versions],
    )


def render(
    content: str,
    sections: Mapping[Section, str],
    competing: Sequence[Version] = (),
    *,
    escaped: bool = True,
) -> str:
    """Returns the body of a new file: the content, then each section under its heading."""
    parts = [escape(content) if escaped else content] if content else []
    parts += [f"## {name}\n{escape(sections[name])}" for name in Section if sections.get(name, "")]
    parts += ["\n".join(_competing(one)) for one in competing]
    return "\n\n".join(parts) + "\n" if parts else ""


def _competing(version: Version) -> Sequence[str]:
    heading = f"## Competing: {version.field}"
    return (heading, escape(version.text)) if version.text else (heading,)


def trim(text: str) -> str:
    """Returns `text` without the blank lines around it."""
    lines = text.split("\n")
    start, end = _extent(lines, 0, len(lines))
    return "\n".join(lines[start:end])


def escape(text: str) -> str:
    """Returns `text` with a backslash before each line that would begin a section."""
    return "\n".join(
        f"\\{line}" if _LOOKS_LIKE_HEADING.fullmatch(line) else line for line in text.split("\n")
    )


def unescape(line: str) -> str:
    """Returns a line as it was before `escape`."""
    return line[1:] if _ESCAPED.fullmatch(line) else line


def _part(
    lines: Sequence[str], start: int, end: int, *, heading: int | None = None, escaped: bool = True
) -> Part:
    start, end = _extent(lines, start, end)
    inner = lines[start:end]
    text = "\n".join(map(unescape, inner) if escaped else inner)
    return Part(start=start, end=end, text=text, heading=heading)


def _extent(lines: Sequence[str], start: int, end: int) -> tuple[int, int]:
    """Returns `start` and `end` moved over blank lines; an empty part is the place it began."""
    first, last = start, end
    while first < last and not lines[first].strip(_BLANK):
        first += 1
    while last > first and not lines[last - 1].strip(_BLANK):
        last -= 1
    return (first, last) if first < last else (start, start)
