"""Measures the processor time of reading transcripts, without masking and the index.

    python -m bench.sessions [--sessions N] [--turns N]

It makes transcripts whose bytes are divided as in those of Claude Code: most of them are prompts of
the system, requests and results of tools, and a tenth is what the user and the agent said.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mimo.extensions.sessions.model import Progress, Source
from mimo.extensions.sessions.readers import reader_of

_WORDS = "Let us page the orders by key because an offset takes four seconds on page 900. "
_CALLS = 8
"""Of ten turns, the calls of tools; one is the user's, one the agent's."""


def claude_code(turns: int) -> Iterator[dict[str, Any]]:
    """Yields the records of a session."""
    for n in range(turns):
        common = {
            "parentUuid": f"{n:036d}",
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/mina/shop",
            "sessionId": "1" * 36,
            "version": "2.1.332",
            "gitBranch": "trunk",
        }
        stamp = {"uuid": f"{n + 1:036d}", "timestamp": "2026-11-05T09:00:00.000Z"}
        if n % 10 == 0:
            yield {"type": "api-request-shape", "shape": {"system": _WORDS * 400}}
            prompt = {"type": "prompt_snapshot", "systemPrompt": [_WORDS * 400]}
            yield {**common, "attachment": prompt, "type": "attachment", **stamp}
            said: dict[str, Any] = {"role": "user", "content": f"{n} {_WORDS * 4}"}
            yield {**common, "type": "user", "message": said, **stamp}
        elif n % 10 <= _CALLS:
            call: dict[str, Any] = {"type": "tool_use", "id": f"toolu_{n}", "name": "Edit"}
            call["input"] = {"file_path": f"/home/mina/shop/{n}.py", "new_string": _WORDS * 4}
            yield {**common, "type": "assistant", "message": {"content": [call]}, **stamp}
            result = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": _WORDS * 10}
            file = {"toolUseResult": {"originalFile": _WORDS * 20}}
            said = {"role": "user", "content": [result]}
            yield {**common, "type": "user", "message": said, **file, **stamp}
        else:
            text = {"type": "text", "text": f"{n} {_WORDS * 10}"}
            yield {**common, "type": "assistant", "message": {"content": [text]}, **stamp}


def codex(turns: int) -> Iterator[dict[str, Any]]:
    """Yields the records of a rollout."""
    for n in range(turns):
        at = {"timestamp": "2026-11-05T09:00:00.000Z", "ordinal": n}
        if n % 10 == 0:
            yield {**at, "type": "compacted", "payload": {"message": _WORDS * 400}}
            text = f"{n} {_WORDS * 4}"
            item: dict[str, Any] = {"type": "UserMessage", "content": [{"text": text}]}
        elif n % 10 <= _CALLS:
            call = {"type": "function_call", "name": "exec_command", "call_id": f"c{n}"}
            call["arguments"] = json.dumps({"cmd": f"pytest {n}"})
            yield {**at, "type": "response_item", "payload": call}
            item = {"type": "CommandExecution", "id": f"c{n}", "command": f"pytest {n}"}
            item["aggregated_output"] = _WORDS * 20
        else:
            item = {"type": "AgentMessage", "content": [{"text": f"{n} {_WORDS * 10}"}]}
        event = {"type": "item_completed", "turn_id": f"{n // 10:036d}", "item": item}
        yield {**at, "type": "event_msg", "payload": event}


def measured(client: str, path: Path, sessions: int) -> tuple[float, float, int]:
    """Returns the seconds and megabytes of reading a transcript so many times, and its turns."""
    reader, size = reader_of(client), path.stat().st_size
    turns = 0
    start = time.process_time()
    for _ in range(sessions):
        parts = reader.read(Source(path, size=size), Progress())
        turns = sum(len(part.turns) for part in parts)
    return time.process_time() - start, size * sessions / 1e6, turns


def main() -> None:
    """Prints a line for each client."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--turns", type=int, default=200)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        for client, records in (("claude-code", claude_code), ("codex", codex)):
            path = Path(
                folder, f"rollout-2026-11-05T09-00-00-{'1' * 8}-1111-4111-8111-{'1' * 12}.jsonl"
            )
            lines = (json.dumps(record, separators=(",", ":")) for record in records(options.turns))
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            seconds, megabytes, turns = measured(client, path, options.sessions)
            print(
                f"{client}: {options.sessions:,} sessions of {turns} turns, {megabytes:,.0f} MB,"
                f" in {seconds:.1f} s of processor time, {megabytes / seconds:,.0f} MB/s"
            )


if __name__ == "__main__":
    main()
