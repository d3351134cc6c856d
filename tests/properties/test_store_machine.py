"""The store behaves as a dict of memories does, whatever is done to it in whatever order."""

import shutil
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from mimo.errors import Conflict
from mimo.memory.codec.file import normal
from mimo.memory.model import Kind, Memory, Outcome, Problem, Section
from mimo.project.memories import MemoryStore

NOW = datetime(2026, 11, 20, tzinfo=UTC)
TEXT = st.text("ab#\\ \n\r:-", max_size=20)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "content": TEXT | st.just("## Outcome\nx"),
        "topic": st.none() | TEXT,
        "tags": st.lists(TEXT, max_size=3).map(tuple),
        "outcome": st.none() | st.sampled_from(Outcome),
        "sections": st.dictionaries(st.sampled_from(Section), TEXT, max_size=2),
    },
)


class StoreMachine(RuleBasedStateMachine):
    """A store beside the dict that it should be."""

    records = Bundle("records")

    def __init__(self):
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        (self.root / ".mind").mkdir()
        self.store = MemoryStore(self.root)
        # What survives a power cut is tested elsewhere; a thousand flushes would only be slow.
        self.unflushed = patch("os.fsync")
        self.unflushed.start()
        self.expected = {}

    def teardown(self):
        self.unflushed.stop()
        shutil.rmtree(self.root)

    @rule(
        target=records,
        name=st.sampled_from("abc"),
        kind=st.sampled_from((Kind.FACT, Kind.DECISION)),
        private=st.booleans(),
        changes=CHANGES,
    )
    def create(self, name, kind, private, changes):
        memory = replace(Memory(id=name, type=kind, content="x", created=NOW), **changes)
        folder = ".mind/private" if private else ".mind"
        path = f"{folder}/{kind.folder}/{name}.md"
        if path in self.expected:
            with pytest.raises(Conflict):
                self.store.create(memory, private=private)
            return multiple()
        record = self.store.create(memory, private=private)
        assert (record.place.path, record.memory) == (path, normal(memory))
        self.expected[path] = record
        return record

    @rule(target=records, record=consumes(records), changes=CHANGES)
    def update(self, record, changes):
        memory = replace(record.memory, **changes)
        if self.expected.get(record.place.path) != record:
            with pytest.raises(Conflict):
                self.store.update(record, memory)
            return multiple()
        updated = self.store.update(record, memory)
        assert updated.memory == normal(memory)
        self.expected[record.place.path] = updated
        return updated

    @rule(record=consumes(records))
    def delete(self, record):
        if self.expected.get(record.place.path) != record:
            with pytest.raises(Conflict):
                self.store.delete(record)
            return
        self.store.delete(record)
        del self.expected[record.place.path]

    @rule(record=records)
    def somebody_edits(self, record):
        path = self.root / record.place.path
        if path.exists():
            path.write_bytes(path.read_bytes() + b"by hand\n")
            found = self.store.read(record.place.path)
            assert not isinstance(found, Problem)
            (self.expected[record.place.path],) = found

    @invariant()
    def the_files_are_what_was_written(self):
        assert set(self.store.stamps()) == set(self.expected)
        for path, record in self.expected.items():
            assert self.store.read(path) == (record,)
        assert not list(self.root.rglob("*.tmp"))


StoreMachine.TestCase.settings = settings(stateful_step_count=20)
TestStore = StoreMachine.TestCase
