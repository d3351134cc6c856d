"""Edits of a project's files, by mind and by hand. Each word that they write is unique."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from mimo.call import Call
from mimo.errors import Invalid
from mimo.features.decisions.commands import outcome, supersede
from mimo.features.ingest.commands import ingest
from mimo.features.values.commands import put_value
from mimo.memory.model import Kind, Link, Outcome, Record, Section
from mimo.operations import finding, removing, saving

_HEADER = re.compile(r"\A(\ufeff?---\r?\n)(.*?)(^---\r?\n)", re.DOTALL | re.MULTILINE)
_PROCEDURE = """\
---
name: {name}
version: 1.0
description: {word}
timeout_ms: 1000
max_retries: 1
---
# {word}

```yaml
initial_state: done
states:
  done: {{}}
```
"""


class Words:
    """The unique words of a history, and random texts of them."""

    def __init__(self, chance: random.Random) -> None:
        """Starts with the first word."""
        self.chance = chance
        self._numbers = itertools.count(1)

    def __call__(self) -> str:
        """Returns a new word."""
        return f"w{next(self._numbers)}"

    def line(self) -> str:
        """Returns a sentence."""
        return f"{self.chance.choice(('Use', 'Keep', 'The', 'A'))} {self()} and {self()}."

    def text(self) -> str:
        """Returns a few paragraphs."""
        return "\n\n".join(
            "\n".join(self.line() for _ in range(self.chance.randint(1, 2)))
            for _ in range(self.chance.randint(1, 3))
        )


class Edits:
    """Edits of the files of a project."""

    def __init__(self, words: Words) -> None:
        """Takes the source of words."""
        self.words, self.chance = words, words.chance

    # By mind.

    def by_mind(self, call: Call, *, add: bool = True, remove: bool = True) -> None:
        """Does one thing with mind: of `add`, new memories too; of `remove`, removals too."""
        kinds: list[Callable[[Call], None]] = [*[self._change] * 6, *[self._conclude] * 2]
        if add:
            kinds += [self.store, self._supersede, self.ingest, self._value]
        if remove:
            kinds.append(self._remove)
        with suppress(Invalid):  # such as a second outcome that is the same
            self.chance.choice(kinds)(call)

    def store(self, call: Call) -> None:
        """Adds a memory."""
        word, chance = self.words(), self.chance
        kind = chance.choice([Kind.DECISION, Kind.DECISION, Kind.FACT, Kind.INSIGHT])
        sections = {Section.REASONING: self.words.text()} if chance.random() < 0.4 else {}
        tags = tuple(self.words() for _ in range(chance.randint(0, 2)))
        topic = f"topic {word}" if kind is Kind.DECISION else None
        confidence = chance.choice([None, 0.3, 0.7])
        text = self.words.text()
        saving.store(
            call,
            saving.draft(
                kind, text, topic=topic, tags=tags, sections=sections, confidence=confidence
            ),
        )

    def _records(self, call: Call) -> list[Record]:
        records = finding.listing(call).records
        mine = [r for r in records if r.place.owned and not r.parent and "chunk" not in r.memory.id]
        return sorted(
            (r for r in mine if not r.place.path.startswith((".mind/sources/", ".mind/MEMORY"))),
            key=lambda record: record.place.path,
        )

    def _any(self, call: Call) -> Record:
        return self.chance.choice(self._records(call))

    def _change(self, call: Call) -> None:
        record, chance = self._any(call), self.chance
        memory = record.memory
        paragraphs = memory.content.split("\n\n")
        at = chance.randrange(len(paragraphs))
        choices: list[dict[str, Any]] = [
            {"tags": (*memory.tags, self.words())},
            {"tags": memory.tags[1:]},
            {"confidence": chance.choice((0.1, 0.4, 0.9))},
            {"importance": chance.choice((0.2, 0.9))},
            {"outcome": chance.choice(list(Outcome))},
            {"topic": f"topic {self.words()}"},
            {"links": (*memory.links, Link(to=self._any(call).memory.id, type="refines"))},
            {"links": memory.links[1:]},
            {"content": "\n\n".join([*paragraphs[:at], self.words.line(), *paragraphs[at + 1 :]])},
            {"content": "\n\n".join([*paragraphs[:at], self.words.line(), *paragraphs[at:]])},
            {"content": f"{memory.content}\n{self.words.line()}"},
            {"sections": {**memory.sections, Section.REASONING: self.words.text()}},
            {"sections": {**memory.sections, Section.OUTCOME: f"- {self.words()}"}},
        ]  # fmt: skip
        saving.edit(call, record, **chance.choice(choices))

    def _conclude(self, call: Call) -> None:
        decisions = [r for r in self._records(call) if r.memory.type is Kind.DECISION]
        if decisions:
            result: Any = self.chance.choice(["SUCCESS", "FAILED", "PARTIAL"])
            outcome(call, self.chance.choice(decisions).memory.id, result, f"it {self.words()}")

    def _supersede(self, call: Call) -> None:
        decisions = [r for r in self._records(call) if r.memory.type is Kind.DECISION]
        if decisions:
            old = self.chance.choice(decisions).memory.id
            supersede(call, old, self.words.line(), reasoning=self.words.line())

    def _remove(self, call: Call) -> None:
        records = self._records(call)
        if len(records) > 3:
            removing.remove(call, self.chance.choice(records).memory.id)

    def ingest(self, call: Call) -> None:
        """Ingests the document again, or for the first time."""
        document = call.mind.project.root / "docs" / "guide.md"
        document.parent.mkdir(exist_ok=True)
        before = document.read_text("utf-8") if document.exists() else "# Guide\n"
        document.write_text(f"{before}\n## Part\n\n{self.words.line()}\n", "utf-8")
        ingest(call, str(document))

    def _value(self, call: Call) -> None:
        put_value(call, "shop", self.chance.choice("ab"), {"text": self.words()})

    # By hand.

    def by_hand(self, root: Path, *, rename: bool = True, remove: bool = True) -> None:
        """Edits one file as a person does in an editor."""
        chance = self.chance
        files = memory_files(root)
        path = chance.choice(files)
        kind = chance.random()
        if kind < 0.06 and rename:
            name = f"renamed-{self.words()}.md"
            folder = chance.choice([path.parent, root / ".mind" / "archive"])
            folder.mkdir(exist_ok=True)
            path.rename(folder / name)
        elif kind < 0.1 and remove and len(files) > 3:
            path.unlink()
        elif kind < 0.18:
            log = root / ".mind" / "MEMORY.md"
            append(log, f"- {self.words.line()}\n")
        elif kind < 0.22 and rename:
            note = root / ".mind" / "notes" / f"{self.words()}.md"
            note.parent.mkdir(exist_ok=True)
            note.write_text(f"# {self.words()}\n\n{self.words.text()}\n", "utf-8")
        elif kind < 0.25 and rename:
            name = self.words()
            procedure = root / ".mind" / "procedures" / f"{name}@1.0.md"
            procedure.parent.mkdir(exist_ok=True)
            procedure.write_text(_PROCEDURE.format(name=name, word=self.words()), "utf-8")
        else:
            self._edit(path)

    def _edit(self, path: Path) -> None:
        data = path.read_bytes()
        text = data.decode()
        if "\r\n" in text and text.count("\r\n") == text.count("\n"):
            edited = self._edited(text.replace("\r\n", "\n")).replace("\n", "\r\n")
        else:
            edited = self._edited(text)
        path.write_bytes(edited.encode())

    def _edited(self, text: str) -> str:
        match = _HEADER.match(text)
        if match and self.chance.random() < 0.5:
            header = self._header(match[2].splitlines(keepends=True))
            return f"{match[1]}{''.join(header)}{match[3]}{text[match.end() :]}"
        start = match.end() if match else 0
        return text[:start] + self._body(text[start:])

    def _header(self, lines: list[str]) -> list[str]:
        chance = self.chance
        keys = [number for number, line in enumerate(lines) if re.match(r"[a-z_]+:", line)]
        fixed = ("id:", "type:", "created:", "links:")
        edits = [number for number in keys if not lines[number].startswith(fixed)]
        kind = chance.randrange(6)
        if kind == 0:
            lines.insert(chance.choice(keys), f"# {self.words()}\n")
        elif kind == 1 and edits:
            number = chance.choice(edits)
            lines[number] = f"{lines[number].rstrip()}  # {self.words()}\n"
        elif kind == 2:
            self._set(lines, chance.choice(["owner", "team", self.words()]), self.words())
        elif kind == 3:
            self._set(lines, "topic", f"topic {self.words()}")
        elif kind == 4:
            self._set(lines, "confidence", chance.choice(["0.2", "0.6", "0.8"]))
        else:
            self._tag(lines)
        return lines

    def _set(self, lines: list[str], key: str, value: str) -> None:
        for number, line in enumerate(lines):
            if line.startswith(f"{key}:"):
                comment = re.search(r"  # .*", line)
                lines[number] = f"{key}: {value}{comment[0] if comment else ''}\n"
                return
        lines.append(f"{key}: {value}\n")

    def _tag(self, lines: list[str]) -> None:
        for number, line in enumerate(lines):
            if match := re.match(r"tags: \[(.*?)\](.*)", line):
                lines[number] = f"tags: [{match[1]}, {self.words()}]{match[2]}\n"
                return
            if line == "tags:\n":
                lines.insert(number + 1, f"- {self.words()}\n")
                return
        new = self.words()
        lines += self.chance.choice([[f"tags: [{new}]\n"], ["tags:\n", f"- {new}\n"]])

    def _body(self, text: str) -> str:
        chance, line = self.chance, self.words.line()
        lines = text.split("\n")
        prose = [n for n, row in enumerate(lines) if row.strip() and not row.startswith("## ")]
        at = chance.choice(prose) if prose else 0
        kind = chance.randrange(9)
        if kind == 0:
            lines[at] = line
        elif kind == 1:
            lines[at] = f"{lines[at]} {self.words()}"
        elif kind == 2:
            lines[at:at] = [line, ""]
        elif kind == 3 and len(prose) > 2:
            del lines[at]
        elif kind == 4:
            heading = chance.choice(["## Outcome", "## Next steps", "## Reasoning"])
            return f"{text.rstrip()}\n\n{heading}\n{line}\n" if heading not in text else text + line
        elif kind == 5:
            return text.rstrip("\n")
        elif kind == 6:
            return f"{text}{line}\n"
        elif kind == 7:
            return "\n".join([*lines[:at], *([] if at else [""]), "", "", *lines[at:]])
        else:
            lines[at] = f"{lines[at]}\n{line}"
        return "\n".join(lines)

    def bytes_of(self, root: Path) -> None:
        """Changes the line ends of a file, or its byte order mark."""
        path = self.chance.choice(memory_files(root))
        data = path.read_bytes()
        if self.chance.random() < 0.5:
            mark = b"\xef\xbb\xbf"
            path.write_bytes(data.removeprefix(mark) if data.startswith(mark) else mark + data)
        elif b"\r\n" in data:
            path.write_bytes(data.replace(b"\r\n", b"\n"))
        else:
            path.write_bytes(data.replace(b"\n", b"\r\n"))


def append(path: Path, text: str) -> None:
    """Adds text at the end of a file."""
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(text)


def memory_files(root: Path) -> list[Path]:
    """Returns the files of memories, without ingested ones, logs, values and procedures."""
    apart = ("sources", "values", "procedures", ".index", ".local", "private")
    return [
        path
        for path in sorted((root / ".mind").rglob("*.md"))
        if path.relative_to(root / ".mind").parts[0] not in (*apart, "MEMORY.md")
    ]
