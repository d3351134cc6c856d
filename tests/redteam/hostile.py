"""Small files that have stopped programs: bytes for every place that mind reads."""

import os
from pathlib import Path

DEEP = 3_000

FILES: dict[str, bytes] = {
    "empty": b"",
    "one newline": b"\n",
    "a link to nothing": b'---\nid: fact_x\ntype: fact\nlinks:\n  - {to: ""}\n---\nTea\n',
    "one NUL": b"\0",
    "NULs": b"\0" * 4096,
    "carriage return in an item": b"- one\rtwo",
    "carriage return in a decision": b"- decided: one\rtwo\rthree",
    "carriage returns only": b"\r" * 500,
    "CR CR LF": b"- decided: use it\r\r\n\r\r\n- learned: that\r\r\n",
    "mixed line ends": b"# a\r\n- b\n- c\r- decided: d\n\r",
    "vertical tabs and form feeds": b"- decided: a\x0bb\x0cc\x1cd\x1de\x1ef\x85g\xe2\x80\xa8h\n"
    * 9,
    "line separators": "- decided: a\u2028b\u2029c\u0085d\n".encode() * 9,
    "byte order mark": b"\xef\xbb\xbf",
    "byte order mark and text": b"\xef\xbb\xbf- decided: x over y",
    "UTF-16": "- decided: x over y\n{}".encode("utf-16"),
    "UTF-32": "[1]".encode("utf-32"),
    "invalid UTF-8": b"- decided: \xff\xfe\xc0\x80 over \xed\xa0\x80\n",
    "encoded surrogates": b"\xed\xa0\xbd\xed\xb8\x80",
    "escaped surrogate": b'{"a": "\\ud800", "path": "\\udfff"}',
    "YAML escaped surrogate": b'---\ntitle: "\\uD800"\n---\n\\ud800\n',
    "TOML escaped NUL": b'a = "\\u0000"\n"\\u0000" = 1\n',
    "noncharacters": "\ufffe\uffff\U0010ffff- decided: \u202e\u2066 over".encode(),
    "combining marks": ("e" + "\u0301" * 3000).encode(),
    "escape sequences": b"\x1b]52;c;aGk=\x07- decided: \x1b[2J over \x9b",
    "deep JSON list": b"[" * DEEP + b"]" * DEEP,
    "deep JSON object": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "unclosed JSON": b'{"a":[' * DEEP,
    "long JSON list": b"[" + b"0," * 5000 + b"0]",
    "JSON of another shape": b'[{"path": 1, "name": [], "added": {}}, null, 7, "x", [[]]]',
    "JSON null": b"null",
    "JSON number": b"17",
    "JSON text": b'"text"',
    "JSON infinity": b'{"a": Infinity, "b": -Infinity, "c": NaN, "format": 1e999}',
    "JSON long number": b'{"a": ' + b"9" * 5000 + b"}",
    "JSON duplicate keys": b'{"a": 1, "a": [2]}',
    "JSON lines": b'{"a": 1}\n[]\nnull\n"x"\n{"a":\n',
    "JSON of dates": b'[{"path": "/", "name": "x", "added": "9999-12-31T23:59:59-23:59"}]',
    "JSON path with NUL": b'[{"path": "/a\\u0000b", "name": "x", "added": null}]',
    "JSON path too long": b'[{"path": "/' + b"a" * 5000 + b'", "name": "x", "added": null}]',
    "JSON relative path": b'[{"path": "../..", "name": "x"}, {"path": "", "name": ""}]',
    "deep TOML array": b"a = " + b"[" * DEEP + b"]" * DEEP,
    "deep TOML table": b"a = " + b"{a=" * DEEP + b"1" + b"}" * DEEP,
    "deep TOML dotted key": b".".join([b"a"] * DEEP) + b" = 1\n",
    "deep TOML header": b"[" + b".".join([b"a"] * DEEP) + b"]\nb = 1\n",
    "TOML long number": b"format = 1\nrows = " + b"9" * 5000 + b"\n",
    "TOML long hexadecimal": b"rows = 0x" + b"f" * 5000 + b"\n",
    "TOML odd values": b"format = inf\ninclude = nan\ncomments = 1979-05-27\nsearch = 07:32:00\n",
    "TOML empty keys": b'"" = 1\n[""]\n"" = {"" = 1}\n[a."".b]\n',
    "TOML known keys of other types": b"include = 1\ncomments = [[]]\nembedding = 4\n",
    "TOML format too large": b"format = 99999999999999999999999\ncommits = -9223372036854775809\n",
    "TOML globs": b'include = ["", "/", "**/**/**", "[", "[!", "\\u0000", "a//b", "../x"]\n',
    "deep YAML flow": b"a: " + b"[" * DEEP + b"]" * DEEP,
    "deep YAML block": b"\n".join(b" " * n + b"a:" for n in range(300)),
    "YAML anchors": b"a: &a [x]\n" + b"".join(b"b%d: [*a, *a]\n" % n for n in range(9)),
    "YAML tags": b"a: !!python/object/apply:os.system [x]\nb: !!int x\nc: !!timestamp x\n",
    "YAML odd keys": b"? [1]\n: 2\n{a: b}: c\n~: d\n<<: {x: y}\n",
    "YAML odd dates": b"created: 0000-00-00\ndate: 99999-99-99\nupdated: .inf\n1: .nan\n",
    "YAML documents": b"--- a\n--- b\n...\n%YAML 9.9\n---\n",
    "front matter only": b"---\n---\n",
    "front matter unclosed": b"---\nid: x\ntype: fact",
    "front matter of a list": b"---\n- a\n- b\n---\ntext\n",
    "front matter deep": b"---\na: " + b"[" * DEEP + b"]" * DEEP + b"\n---\nx\n",
    "front matter of wrong types": (
        b"---\nid: [x]\ntype: {a: b}\ntitle: 7\ntopic: [a]\ntags: {a: 1}\nimportance: high\n"
        b"confidence: 1e999\noutcome: 3\ncreated: soon\nlinks: [{to: []}, 4, null]\n---\nx\n"
    ),
    "front matter of large numbers": (
        b"---\nid: fact_x\ntype: fact\nimportance: " + b"9" * 90 + b"\nconfidence: -1\n"
        b"created: 9999-12-31T23:59:59-23:59\n---\nx\n"
    ),
    "front matter of an early date": (
        b"---\nid: fact_y\ntype: fact\ncreated: 0001-01-01T00:00:00+14:00\n---\nx\n"
    ),
    "TOML front matter": b"+++\ntitle = " + b"9" * 5000 + b"\n+++\nx\n",
    "TOML front matter deep": b"+++\na = " + b"[" * DEEP + b"]" * DEEP + b"\n+++\nx\n",
    "TOML front matter of dates": b"+++\ndate = 0001-01-01T00:00:00+14:00\n+++\nx\n",
    "values file": b"---\nnamespace: user\nkey: x\n---\n```json\n" + b"[" * DEEP + b"\n```\n",
    "values file with a long number": b'```json\n{"a": ' + b"9" * 5000 + b"}\n```\n",
    "chunks": b"---\nid: s\n---\n" + b"<!-- chunk 1 lines 9-1 -->\nx\n<!-- chunk 1 lines 0-0 -->\n",
    "chunk of a long number": b"<!-- chunk " + b"9" * 5000 + b" lines 1-2 -->\nx\n",
    "log state": b"## Project State\n- Goal:\n- Stack: ,,,\n- Blocked: \n- goal: \x00\n",
    "log dates": b"## 0000-00-00 | x\n## 9999-99-99 | y | mood:\n## 2026-02-30\n- decided: z\n",
    "log tables and quotes": b"> " * 300 + b"decided: x\n|a|b|\n|-|-|\n|decided: y|z|\n",
    "log deep list": b"".join(b" " * (2 * n) + b"- decided: a over b\n" for n in range(300)),
    "log of links": b"[[" * 2000 + b"]]" * 2000,
    "log of brackets": b"[" * 4000 + b"](" * 2000,
    "log of emphasis": b"*a_ " * 4000,
    "log of backticks": b"".join(b"`" * n + b" " for n in range(1, 120)),
    "log comment unclosed": b"<!-- " + b"- decided: x\n" * 20,
    "log fence unclosed": b"~~~\n" + b"- decided: x\n" * 20,
    "gotcha": b"## Gotchas\n- when: `(((` then: \n- **when** /(a+)+$/ **then** x\n  - y\rz\n",
    "procedure": b"---\nname: x\nversion: 1.0\nstates: [[[]]]\n---\n```yaml\na: [1]\n```\n",
    "git settings": b"[core]\n\thooksPath = /\n[include]\n\tpath = /dev/zero\n",
    "gitdir": b"gitdir: /a\x00b\n",
    "gitdir too long": b"gitdir: " + b"a" * 9000,
    "one long line": b"x" * 200_000,
    "many lines": b"- decided: a over b\n" * 300,
    "merge conflict": b"<<<<<<< ours\n- decided: x\n=======\n- decided: y\n>>>>>>> theirs\n",
    "SQLite header": b"SQLite format 3\0" + b"\xff" * 200,
    "short SQLite header": b"SQLite format 3\0",
}


def plant_journal(database: Path, *, deletes: Path) -> None:
    """Creates a file, and a journal of a database for which SQLite would delete that file."""
    deletes.write_text("precious")
    magic, name = bytes.fromhex("d9d505f920a163d7"), os.fsencode(deletes)
    pages = database.stat().st_size // 4096
    numbers = (0, 1234, pages, 512, 4096)
    header = magic + b"".join(number.to_bytes(4, "big") for number in numbers)
    last = [(0x40000000 // 4096 + 1).to_bytes(4, "big"), name]
    last += [number.to_bytes(4, "big") for number in (len(name), sum(name))]
    journal = database.with_name(f"{database.name}-journal")
    journal.write_bytes(header.ljust(512, b"\0") + b"".join(last) + magic)
