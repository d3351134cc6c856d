"""An entry is added or removed; everything else stays byte for byte."""

import pytest

from mimo.errors import Conflict, Invalid
from mimo.features.clients import json_file
from mimo.features.clients.edits import Entry, Format, Hook, has_other_hook, load, put_in, take_out

SERVER = {"command": "mind", "args": ["mcp"]}
ENTRY = Entry(path=("mcpServers", "mind"), value=SERVER)
TABLE = Entry(path=("mcp_servers", "mind"), value=SERVER)
HOOK = Hook(path=("hooks", "Start"), value={"command": "mind hook codex", "timeout": 5})


def test_a_hook_with_odd_arguments_stays() -> None:
    before = '{"hooks": {"Start": [{"command": "x", "args": 5}]}}'

    after = put_in(Format.JSON, before, [HOOK])

    assert load(Format.JSON, after)["hooks"]["Start"] == [{"command": "x", "args": 5}, HOOK.value]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "m": 1\n}\n'),
        ("{}", '{\n  "m": 1\n}'),
        ("{ }\n", '{\n  "m": 1\n}\n'),
        ('{"a": 1}', '{"a": 1, "m": 1}'),
        ("[]", None),
        ('{"a": 1,}', '{"a": 1, "m": 1,}'),
        ('{\n\t"a": 1\n}\n', '{\n\t"a": 1,\n\t"m": 1\n}\n'),
        ('{\r\n  "a": 1\r\n}', '{\r\n  "a": 1,\r\n  "m": 1\r\n}'),
        ('{\n  "a": 1 // one\n}', '{\n  "a": 1, // one\n  "m": 1\n}'),
        ('{\n  "a": 1, // one\n}', '{\n  "a": 1, // one\n  "m": 1,\n}'),
        ('{\n  // "b": 2\n}', '{\n  // "b": 2\n  "m": 1\n}'),
        ("{ /* none */ }", '{ /* none */\n  "m": 1\n}'),
        ('{\n  "m": [1, 2]\n}', '{\n  "m": 1\n}'),
    ],
)
def test_a_member_is_added_in_the_style_of_the_file(before: str, after: str | None) -> None:
    if after is None:
        with pytest.raises(Invalid, match="not an object"):
            json_file.put(before, ("m",), 1)
    else:
        assert json_file.put(before, ("m",), 1) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"m": 1}', "{}"),
        ('{\n  "m": 1\n}\n', "{}\n"),
        ('{"a": 1, "m": 1}', '{"a": 1}'),
        ('{"m": 1, "a": 1}', '{ "a": 1}'),
        ('{\n  "a": 1,\n  "m": 1\n}\n', '{\n  "a": 1\n}\n'),
        ('{\n  "a": 1,\n  "m": 1,\n}\n', '{\n  "a": 1,\n}\n'),
        ('{\n  "m": 1,\n  "z": 1\n}\n', '{\n  "z": 1\n}\n'),
        ('{\n  "a": 1, // one\n  "m": 1}', '{\n  "a": 1 // one\n  }'),
        ('{\n  // one\n  "m": 1\n  , "z": 1\n}', '{\n  // one\n   "z": 1\n}'),
        ('{"other": 1}', '{"other": 1}'),
    ],
)
def test_a_member_is_removed_with_its_comma(before: str, after: str) -> None:
    assert json_file.drop(before, ("m",)) == after
    json_file.load(after)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3"),
        ('{"a": }', "line 1, column 7"),
        (f'{{"a": {"9" * 5_000}}}', "line 1, column 7"),
        ('{"a": 1', "line 1, column 8"),
        ("{'a': 1}", "line 1, column 2"),
        ('{"a" 1}', "line 1, column 6"),
        ('{"a": "open\n"}', "line 1, column 7"),
        ('{"a": "\\q"}', "line 1, column 8"),
        ("{} x", "line 1, column 4"),
        ("{ /* open", "line 1, column 3"),
        ("[" * 300, "line 1"),
        ('{"a": 1,,}', "line 1, column 9"),
    ],
)
def test_a_malformed_file_is_refused_with_line_and_column(text: str, place: str) -> None:
    with pytest.raises(Invalid, match=place):
        json_file.load(text)


def test_a_duplicate_key_is_refused() -> None:
    with pytest.raises(Invalid, match="twice"):
        json_file.put('{"m": {}, "m": {}}', ("m", "x"), 1)


def test_other_hooks_stay_and_ours_is_added_once() -> None:
    theirs = '{\n  "hooks": {\n    "Start": [\n      {"command": "say hi"}\n    ]\n  }\n}\n'
    once = put_in(Format.JSON, theirs, [HOOK])

    assert '"say hi"' in once
    assert once.count("mind hook codex") == 1
    assert put_in(Format.JSON, once, [HOOK]) == once
    assert take_out(Format.JSON, once, [HOOK], original=theirs) == theirs


@pytest.mark.parametrize(
    "command",
    ["mind hook codex", "/usr/bin/mind hook codex --x", '"/opt/my tools/mind" hook codex'],
)
def test_a_changed_hook_is_still_ours(command: str) -> None:
    text = json_file.append("{}", HOOK.path, {"hooks": [{"command": command, "timeout": 99}]})

    assert put_in(Format.JSON, text, [HOOK]) == text
    assert take_out(Format.JSON, text, [HOOK], original=None) == "{}"


LINT = {"command": "./lint.sh"}
GROUP = Hook(path=("hooks", "Start"), value={"matcher": "x", "hooks": [HOOK.value]})


@pytest.mark.parametrize("format", [Format.JSON, Format.TOML])
@pytest.mark.parametrize("hooks", [[HOOK.value, LINT], [LINT, HOOK.value]])
def test_a_hook_that_the_user_added_to_our_group_stays_alone(
    format: Format, hooks: list[dict[str, object]]
) -> None:
    other = Hook(path=GROUP.path, value={"hooks": [LINT, LINT]})
    mixed = Hook(path=GROUP.path, value={**GROUP.value, "hooks": hooks})
    text = put_in(format, put_in(format, "", [other]), [mixed])

    assert load(format, text)["hooks"]["Start"] == [other.value, mixed.value]
    assert put_in(format, text, [GROUP], force=True) == text
    assert not has_other_hook(load(format, text), GROUP)
    left = load(format, take_out(format, text, [GROUP], original=None))
    assert left == {"hooks": {"Start": [other.value, {"matcher": "x", "hooks": [LINT]}]}}


def test_a_changed_hook_in_a_group_with_others_is_replaced_by_force() -> None:
    old = {"matcher": "x", "hooks": [{**HOOK.value, "timeout": 9}, LINT]}
    text = json_file.append("{}", HOOK.path, old)

    assert has_other_hook(load(Format.JSON, text), GROUP)
    assert put_in(Format.JSON, text, [GROUP]) == text
    forced = load(Format.JSON, put_in(Format.JSON, text, [GROUP], force=True))
    assert forced == {"hooks": {"Start": [{**old, "hooks": [LINT]}, GROUP.value]}}


@pytest.mark.parametrize("command", ["remind hook x", "mindful hook", "echo mind"])
def test_a_hook_of_another_program_is_not_ours(command: str) -> None:
    text = json_file.append("{}", HOOK.path, {"command": command})
    assert take_out(Format.JSON, text, [HOOK], original=None) == text


@pytest.mark.parametrize("original", [None, ""])
def test_a_container_that_is_empty_already_stays(original: str | None) -> None:
    text = '{"hooks": {\n // to be filled\n "Start": [], "Stop": []}, "mcpServers": {}}'

    assert take_out(Format.JSON, text, [ENTRY, HOOK], original=original) == text


def test_an_entry_of_another_program_is_neither_replaced_nor_removed() -> None:
    text = '{"mcpServers": {"mind": {"command": "other-mind", "args": ["serve"]}}}'

    with pytest.raises(Conflict, match="other-mind serve"):
        put_in(Format.JSON, text, [ENTRY])
    assert take_out(Format.JSON, text, [ENTRY], original=None) == text
    assert "other-mind" not in put_in(Format.JSON, text, [ENTRY], force=True)


def test_a_changed_entry_of_ours_is_replaced_only_by_force() -> None:
    text = '{"mcpServers": {"mind": {"command": "/x/mind", "args": ["mcp", "--toolsets", "all"]}}}'

    assert put_in(Format.JSON, text, [ENTRY]) == text
    forced = put_in(Format.JSON, text, [ENTRY], force=True)
    assert json_file.load(forced) == {"mcpServers": {"mind": SERVER}}


TOML = """\
# my own
model = "o5"   # fast

[mcp_servers.docs]
command = "docs" # keep
"""


def test_a_table_is_added_at_the_end_and_removed() -> None:
    after = put_in(Format.TOML, TOML, [TABLE])

    assert after == TOML + '\n[mcp_servers.mind]\ncommand = "mind"\nargs = ["mcp"]\n'
    assert put_in(Format.TOML, after, [TABLE]) == after
    assert take_out(Format.TOML, after, [TABLE], original=None) == TOML


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "[mcp_servers]\n# mine go below\n",
        "[mcp_servers] # mine\n\n# other\n[other]\na = 1\n",
        '[mcp_servers.other]\ncommand = "x"\n\n[mcp_servers]\n# mine go below\n',
    ],
)
def test_an_empty_table_of_the_user_stays_with_its_comments(text: str, is_known: bool) -> None:
    original = text if is_known else None
    once = put_in(Format.TOML, text, [TABLE])
    assert take_out(Format.TOML, once, [TABLE], original=original) == text
    later = take_out(Format.TOML, f"{once}# later\n", [TABLE], original=original)
    assert later == f"{text}\n# later\n"


def test_a_table_is_removed_with_its_subtables() -> None:
    text = TOML + '\n[mcp_servers.mind]\ncommand = "mind"\nargs = ["mcp"]\n'
    text += '\n[mcp_servers.mind.env]\nX = "1"\n\n# about z\n[z]\na = 1\n'
    left = take_out(Format.TOML, text, [TABLE], original=None)

    assert left == TOML + "\n# about z\n[z]\na = 1\n"


@pytest.mark.parametrize("text", ["mcp_servers = {}\n", 'mcp_servers = {a = {command = "x"}}\n'])
def test_a_toml_file_with_inline_tables_is_refused_with_the_form_that_is_needed(text: str) -> None:
    with pytest.raises(Invalid, match=r"`mcp_servers\.mind`") as caught:
        put_in(Format.TOML, text, [TABLE])
    assert caught.value.hint.startswith("write its section as tables")


@pytest.mark.parametrize("command", ["x", "mind hook codex"])
def test_a_toml_file_with_a_list_in_brackets_is_refused_with_the_form_that_is_needed(
    command: str,
) -> None:
    text = f'[hooks]\nStart = [{{command = "{command}", timeout = 1}}]\n'
    with pytest.raises(Invalid, match=r"`hooks\.Start`") as caught:
        put_in(Format.TOML, text, [HOOK], force=True)
    assert caught.value.hint.startswith("write its section as tables")


def test_a_header_in_a_text_is_not_a_table() -> None:
    text = 'a = """\n[mcp_servers.mind]\nb = 1\n"""\n'
    after = put_in(Format.TOML, text, [TABLE])
    assert after == text + '\n[mcp_servers.mind]\ncommand = "mind"\nargs = ["mcp"]\n'


def test_a_malformed_toml_file_is_refused_with_its_line() -> None:
    with pytest.raises(Invalid, match="line 2"):
        load(Format.TOML, "a = 1\nb = = 2\n")


@pytest.mark.parametrize("text", ["a: [1\n", "a: 1\n b: 2\n", "- 1\n", "a: 1\n---\nb: 2\n"])
def test_a_malformed_yaml_file_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match=r"line \d|mapping"):
        load(Format.YAML, text)
