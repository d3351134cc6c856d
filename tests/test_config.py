"""Settings and where they are taken from."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from mimo import config as settings_file
from mimo.config import SETTINGS, Scope, Setting, Unapproved, load, setting
from mimo.errors import Invalid
from mimo.index.embedding import other_machine


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_without_files_every_setting_has_its_default(tmp_path):
    config = load(user=tmp_path / "none.toml", project=None)

    assert config["decay.rate"] == 0.01
    assert set(config.origins.values()) == {"default"}


def test_the_projects_file_wins_over_the_users(tmp_path):
    user = write(tmp_path / "user.toml", "[decay]\nrate = 0.2\nfloor = 0.01\n")
    project = write(tmp_path / "project.toml", "format = 1\n[decay]\nrate = 0.3\n")

    config = load(user=user, project=project)

    assert (config["decay.rate"], config["decay.floor"]) == (0.3, 0.01)
    assert config.origins["decay.rate"] == "project"


def test_a_project_may_not_choose_the_model(tmp_path):
    """The project's file comes with a clone; a path in it could reach anywhere."""
    project = write(tmp_path / "project.toml", '[embedding]\nmodel = "/etc"\n')

    config = load(user=tmp_path / "none.toml", project=project)

    assert config["embedding.model"] == ""
    assert "user's config only" in config.warnings[0]


@pytest.mark.parametrize(
    "text",
    [
        "decay = 3",
        "[decay]\nrate = 7",
        "[decay]\nrate = 'x'",
        "nonsense = 1",
        "include = 4",
        f"include = {['x.md'] * 201}",
    ],
)
def test_an_invalid_setting_is_reported_and_ignored(tmp_path, text):
    config = load(user=tmp_path / "none.toml", project=write(tmp_path / "p.toml", text))

    assert config["decay.rate"] == 0.01
    assert len(config.warnings) == 1


@pytest.mark.parametrize("data", [b"include = [", b"\xff\xfe"])
def test_an_unparsable_file_is_reported_and_ignored(tmp_path, data):
    path = tmp_path / "p.toml"
    path.write_bytes(data)

    assert str(path) in load(user=tmp_path / "none.toml", project=path).warnings[0]


@pytest.mark.parametrize("name", ["x" * 300, "file"])
def test_a_home_that_cant_be_entered_is_reported_and_ignored(tmp_path, name):
    (tmp_path / "file").write_text("")
    path = tmp_path / name / "config.toml"

    (warning,) = load(user=path, project=tmp_path / "none.toml").warnings
    assert str(path) in warning
    assert "so it is not read" in warning


RESTRICTIVE = {
    "trust.only": ("<none>",),
    "trash.megabytes": 100_000,
    "trash.days": 36_500,
    "context.daemon": "off",
    "hook.context": "off",
    "hook.edges": "off",
    "hook.summaries": "off",
    "server.socket": "off",
}
RESTRICTIVE_OF_PROJECT = {"sessions.project": "off"}


@pytest.mark.parametrize(
    "data", [b"context.budget = 4000,\n", b"\xff\xfe", b"a." * 5000 + b"a = 1\n"]
)
def test_settings_that_restrict_are_at_their_strictest_if_the_file_is_broken(tmp_path, data):
    valid = b'trust.only = ["alice@x.org"]\n[hook]\ncontext = "off"\n'
    path = tmp_path / "user.toml"
    path.write_bytes(data + valid)

    config = load(user=path, project=None)

    assert {key: config[key] for key in RESTRICTIVE} == RESTRICTIVE
    assert "are strictest" in config.warnings[0]


def test_a_link_without_a_target_is_a_broken_file(tmp_path):
    path = tmp_path / "user.toml"
    path.symlink_to(tmp_path / "none")

    assert load(user=path, project=None)["trust.only"] == ("<none>",)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('trust.only = "alice@x.org"', "trust.only"),
        ("trust.only = [1]", "trust.only"),
        ('trust.only.a = "alice@x.org"', "trust.only"),
        ('trust = ["alice@x.org"]', "trust.only"),
        ("[hook]\ncontext = false", "hook.context"),
        ("hook = 'off'", "hook.summaries"),
        (f"trash.days = 0x1{'0' * 4000}", "trash.days"),
    ],
)
def test_an_invalid_value_of_a_setting_that_restricts_gets_the_strictest_one(tmp_path, text, key):
    config = load(user=write(tmp_path / "user.toml", text), project=None)

    assert config[key] == RESTRICTIVE[key]
    assert f"until this is corrected, `{key}` is `" in config.warnings[0]
    others = {"context.daemon", "server.socket"}
    assert {config[other] for other in others} == {"on"}


def test_the_projects_file_decides_about_its_own_settings_only(tmp_path):
    user = write(tmp_path / "user.toml", "trust.only = ['alice@x.org']\n")
    project = write(tmp_path / "project.toml", "hook.context = 'off\n")

    config = load(user=user, project=project)
    assert config["hook.context"] == "off"
    assert config["trust.only"] == ("alice@x.org",)
    assert config["server.socket"] == "on"

    write(project, "trust.only = 1\nhook.context = 'off'\n")
    assert load(user=user, project=project)["trust.only"] == ("alice@x.org",)


@pytest.mark.parametrize("id", ['""', "3", "[1]"])
def test_a_project_id_that_names_nothing_is_reported(tmp_path, id):
    config = load(user=None, project=write(tmp_path / "p.toml", f"id = {id}\n"))
    assert [text.partition(": ")[2] for text in config.warnings] == [
        "`id` must be a text that is not empty"
    ]


def test_a_newer_format_is_reported(tmp_path):
    project = write(tmp_path / "p.toml", "format = 2\n")

    assert "newer" in load(user=tmp_path / "none.toml", project=project).warnings[0]


def test_text_from_a_command_line_is_turned_into_the_settings_type():
    assert setting("decay.rate").parse("0.05") == 0.05
    assert setting("include").parse("docs/*.md, adr/*.md") == ("docs/*.md", "adr/*.md")
    with pytest.raises(Invalid, match="must be a number"):
        setting("decay.rate").parse("fast")
    with pytest.raises(Invalid, match="one of"):
        setting("mcp.tool_names").parse("camel")


@pytest.mark.parametrize(
    ("word", "on"),
    [("true", True), ("Yes", True), ("on", True), ("false", False), ("no", False), ("OFF", False)],
)
def test_the_usual_words_turn_a_setting_on_or_off(word, on):
    assert setting("autocommit").parse(word) is on
    assert setting("hook.edges").parse(word) == ("on" if on else "off")


@pytest.mark.parametrize(
    ("key", "text", "must"),
    [
        ("autocommit", "maybe", "must be true or false, not `maybe`"),
        ("decay.rate", "fast", "must be a number, not `fast`"),
        ("commits", "1.5", "must be a whole number, not `1.5`"),
        ("hook.edges", "maybe", "must be one of on, off, not `maybe`"),
    ],
)
def test_a_value_of_another_type_is_refused_in_plain_words(key, text, must):
    with pytest.raises(Invalid, match=must):
        setting(key).parse(text)


def test_a_settings_file_has_truth_values_of_toml_only(tmp_path):
    user = write(tmp_path / "u.toml", 'autocommit = "yes"\n')

    config = load(user=user, project=None)

    assert config["autocommit"] is False
    assert "must be true or false, not `yes`" in config.warnings[0]


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("colour", "`mind config --all` lists them all"),
        ("hook.edge", "did you mean `hook.edges`? `mind config --all` lists them all"),
    ],
)
def test_an_unknown_setting_is_refused_with_similar_ones(key: str, hint: str) -> None:
    with pytest.raises(Invalid, match=f"`{key}` is not a setting") as raised:
        setting(key)
    assert raised.value.hint == hint


def test_unknown_settings_of_a_file_are_not_compared_with_known_ones(tmp_path, monkeypatch):
    monkeypatch.setattr("difflib.get_close_matches", None)  # It takes 0.1 ms for each.
    project = write(tmp_path / "p.toml", "hook.edge = 'off'\n")

    assert load(user=None, project=project).warnings == (
        f"{project}: `hook.edge` is not a setting",
    )


def test_every_setting_has_a_default_of_its_own_type():
    for declared in SETTINGS:
        assert declared.check(declared.default) == declared.default


def test_every_fallback_is_a_value_of_its_setting():
    fallbacks = settings_file.FALLBACKS
    assert {key: setting(key).parse(text) for key, text in fallbacks.items()} == {
        **RESTRICTIVE,
        **RESTRICTIVE_OF_PROJECT,
    }


PLAIN_LINES = [
    "",
    "# a comment",
    "#\x07",
    "[hook]",
    "[hook.edges]",
    "[ hook ]",
    "  format = 1",
    "format = 01",
    "format = 1",
    "format=1",
    'hook = "x"',
    'encoder = "off"',
    'encoder = "o\\tf"',
    "edges = true",
    "a = 1.5",
    'encoder = "off" # why',
    "x = [1]",
    'y = "a"b"',
    'z = ""',
    "m = '''a'''",
    'w = """',
    "edges = 10",
    "é = 1",
    "q = -0",
    "format = 1\r",
    "rate = 0.2",
    "rate = 00.2",
]


@given(st.lists(st.sampled_from(PLAIN_LINES), max_size=5))
def test_plain_lines_are_read_as_the_parser_reads_them(lines: list[str]) -> None:
    text = "\n".join(lines)
    plain = settings_file._plain(text.encode())

    if plain is not None:
        assert plain == settings_file._flat(tomllib.loads(text))


def test_the_files_that_mind_writes_are_plain() -> None:
    assert settings_file._plain(b'# Settings\nformat = 1\n\n[embedding]\nencoder = "off"\n') == {
        "format": 1,
        "embedding.encoder": "off",
    }


@pytest.mark.parametrize(
    ("value", "host"),
    [
        ("on", ""),
        ("off", ""),
        ("~/models/e5", ""),
        ("http://localhost:11434/v1", ""),
        ("http://LOCALHOST/", ""),
        ("http://127.0.0.2/v1", ""),
        ("https://[::1]:8080/v1", ""),
        ("http://GPU.example.org:80/v1", "gpu.example.org"),
        ("http://127.evil.org/v1", "127.evil.org"),
        ("http://127.0.0.1.evil.org/v1", "127.0.0.1.evil.org"),
        ("http://192.168.1.2:11434/v1", "192.168.1.2"),
        ("http://[fe80::1]/v1", "fe80::1"),
    ],
)
def test_an_encoder_is_a_folder_or_an_address_whose_machine_is_known(value: str, host: str) -> None:
    assert setting("embedding.encoder").check(value) == value
    assert other_machine(value) == host


@pytest.mark.parametrize("text", ["web=shop,vault", "work/shop,blog", "work/", "/shop", "web:/a/b"])
def test_a_project_without_a_group_is_refused(tmp_path: Path, text: str) -> None:
    declared = setting("projects.groups")
    assert declared.parse("work/shop, work//srv/blog") == ("work/shop", "work//srv/blog")
    with pytest.raises(Invalid, match="no group in") as caught:
        declared.parse(text)
    assert "work/shop" in caught.value.hint
    config = tmp_path / "config.toml"
    config.write_text(f"[projects]\ngroups = {text.split(',')}\n", encoding="utf-8")
    loaded = load(user=config, project=None)
    assert loaded["projects.groups"] == ()
    assert "no group in" in loaded.warnings[0]


def test_a_relative_folder_of_an_encoder_is_refused() -> None:
    with pytest.raises(Invalid, match="relative") as raised:
        setting("embedding.encoder").check("./models/e5")

    assert str(Path.cwd() / "models/e5") in raised.value.hint
    assert setting("embedding.encoder").check("~/models/e5") == "~/models/e5"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "maybe",
        "http:///v1",
        "http://127.0.0.1@evil.org/",
        "http://me:pass@127.0.0.1/v1",
        "http://127.0.0.1:99999/v1",
        "http://[/v1",
        "ftp://127.0.0.1/",
    ],
)
def test_an_encoder_that_no_address_names_is_refused(value: str) -> None:
    with pytest.raises(Invalid, match="on, off, a folder or a URL"):
        setting("embedding.encoder").check(value)


def test_a_number_that_no_float_holds_is_refused() -> None:
    with pytest.raises(Invalid, match="must be a number"):
        setting("decay.rate").check(10**400)


def whole_text(values: dict[str, object]) -> bytes:
    """Returns a settings file with these values."""
    document = tomlkit.document()
    for key, value in values.items():
        document.append(tomlkit.key(key.split(".")), tomlkit.item(value))
    return document.as_string().encode()


def values_of(declared: Setting) -> st.SearchStrategy[object]:
    """Returns the possible values of a setting, as a settings file has them."""
    if isinstance(declared.default, tuple):
        return st.lists(st.sampled_from(["docs/*.md", "adr/*.md", "**/*.py"]), max_size=4)
    if isinstance(declared.default, str):
        return st.sampled_from(declared.allowed)
    kind = st.floats if isinstance(declared.default, float) else st.integers
    return kind(*declared.allowed)


OF_PROJECT = [declared for declared in SETTINGS if declared.scope is not Scope.USER]


def is_at_most(value: Any, approved: Any) -> bool:
    """Returns whether a value is not wider than the approved one of a setting that narrows."""
    if isinstance(value, tuple):
        return {*value} <= {*approved}
    return bool(value <= approved)


@pytest.mark.parametrize("declared", OF_PROJECT, ids=lambda declared: declared.key)
@given(data=st.data())
def test_an_unapproved_value_is_never_wider_than_the_approved_one(
    tmp_path_factory: pytest.TempPathFactory, declared: Setting, data: st.DataObject
) -> None:
    key = declared.key
    absent = st.none() | values_of(declared)
    users, latest, changed = (data.draw(absent, name) for name in ("user", "latest", "changed"))
    texts = [b"" if it is None else whole_text({key: it}) for it in (users, latest, changed)]
    folder = tmp_path_factory.mktemp("settings")
    user, project = folder / "user.toml", folder / "project.toml"
    user.write_bytes(texts[0])
    project.write_bytes(texts[1])
    approved = load(user=user, project=project)[key]
    project.write_bytes(texts[2])
    stated = load(user=user, project=project)[key]

    config = load(user=user, project=project, latest=texts[1])

    if declared.unapproved is Unapproved.NARROWS:
        assert is_at_most(config[key], approved)
    else:
        assert config[key] == (stated if declared.unapproved is Unapproved.APPLIES else approved)
    waits = [] if config[key] == stated else [(key, approved, stated)]
    assert [tuple(change) for change in config.waiting] == waits


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write(
        tmp_path / "project.toml",
        """\
        format = 1
        include = ["docs/*.md", "adr/*.md"]
        commits = 100
        decay.floor = 0.2
        [hook]
        edges = "off"
        [context]
        budget = 4000
        """,
    )


def test_of_an_unapproved_text_only_what_narrows_or_formats_applies(project: Path) -> None:
    latest = project.read_bytes()
    write(
        project,
        """\
        include = ["**/*.md", "adr/*.md"]
        comments = ["**/*.py"]
        commits = 20
        decay.floor = 0.3
        ingest.max_bytes = 99000000
        [hook]
        context = "off"
        """,
    )

    config = load(user=None, project=project, latest=latest)

    expected = {
        "include": ("adr/*.md",),
        "comments": (),
        "commits": 20,
        "decay.floor": 0.3,
        "ingest.max_bytes": 10 * 1024 * 1024,
        "context.budget": 4000,
        "hook.context": "on",
        "hook.edges": "off",
    }
    assert {key: config[key] for key in expected} == expected
    assert {change.key: (change.approved, change.value) for change in config.waiting} == {
        "include": (("docs/*.md", "adr/*.md"), ("**/*.md", "adr/*.md")),
        "comments": ((), ("**/*.py",)),
        "ingest.max_bytes": (10 * 1024 * 1024, 99_000_000),
        "context.budget": (4000, 6000),
        "hook.context": ("on", "off"),
        "hook.edges": ("off", "on"),
    }
    origins = {key: config.origins[key] for key in ("hook.edges", "hook.context", "decay.floor")}
    assert list(origins.values()) == ["project", "default", "project"]
    assert config.warnings == ()


def test_without_an_approved_text_the_users_settings_and_the_defaults_are_approved(
    tmp_path: Path, project: Path
) -> None:
    user = write(tmp_path / "user.toml", '[hook]\nedges = "off"\ncontext = "off"\n')
    write(project, 'comments = ["**/*.py"]\n[hook]\ncontext = "on"\n')

    config = load(user=user, project=project, latest=b"")

    assert (config["comments"], config["hook.edges"], config["hook.context"]) == ((), "off", "off")
    assert config.origins["hook.context"] == "user"
    assert [change.key for change in config.waiting] == ["comments", "hook.context"]


@pytest.mark.parametrize("data", [b"include = [", b"\xff\xfe", None])
def test_an_unapproved_file_that_cant_be_read_keeps_the_approved_values(
    project: Path, data: bytes | None
) -> None:
    latest = project.read_bytes()
    approved = load(user=None, project=project)
    project.unlink()
    project.mkdir() if data is None else project.write_bytes(data)

    config = load(user=None, project=project, latest=latest)

    assert (config.values, config.origins) == (approved.values, approved.origins)
    assert config.waiting == ()
    assert "is not read; until that is corrected, the approved settings" in config.warnings[0]


def test_an_unapproved_value_that_cant_be_used_keeps_the_approved_one(project: Path) -> None:
    latest = project.read_bytes()
    write(project, "include = 4\nhook = 'on'\nnonsense = 1\n")

    config = load(user=None, project=project, latest=latest)

    assert (config["include"], config["hook.edges"]) == (("docs/*.md", "adr/*.md"), "off")
    assert [warning.partition("; ")[2] for warning in config.warnings] == [
        *["until this is corrected, the approved value applies"] * 2,
        "",
    ]


def test_a_removed_file_keeps_the_approved_values(project: Path) -> None:
    latest = project.read_bytes()
    project.unlink()

    config = load(user=None, project=project, latest=latest)

    assert config["hook.edges"] == "off"
    assert config["commits"] == 100
    assert {change.key for change in config.waiting} == {"commits", "context.budget", "hook.edges"}


def test_the_format_of_an_unapproved_text_counts(project: Path) -> None:
    latest = project.read_bytes()
    write(project, "format = 2\n")

    config = load(user=None, project=project, latest=latest)

    assert config.format == 2
    assert "newer" in config.warnings[0]


def test_the_approved_text_is_not_compared(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_file, "_take_unapproved", None)
    latest = project.read_bytes()

    assert load(user=None, project=project, latest=latest) == load(user=None, project=project)
    project.unlink()
    assert load(user=None, project=project, latest=b"").waiting == ()
