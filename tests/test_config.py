"""Settings and where they are taken from."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo import config as settings_file
from mimo.config import SETTINGS, load, other_machine, setting
from mimo.errors import Invalid


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
    assert {key: setting(key).parse(text) for key, text in fallbacks.items()} == RESTRICTIVE


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


@pytest.mark.parametrize(
    ("url", "place", "passwords"),
    [
        ("postgresql://ana@db.example.org/mind", "db.example.org/mind", ()),
        ("postgres://db:5433,[::1]:5434/mind?sslmode=require", "db:5433,[::1]:5434/mind", ()),
        ("postgresql:///mind", "this machine/mind", ()),
        ("postgresql:///mind?host=%2Frun%2Fpostgresql", "/run/postgresql/mind", ()),
        ("postgresql://ana@/?host=db&port=5433&dbname=mind", "db:5433/mind", ()),
        ("postgresql://db/mind?dbname=other", "db/other", ()),
        ("postgresql:///?service=mind%20test", "service mind test", ()),
        ("postgresql://ana:hunter2@db/mind", "db/mind", ("hunter2",)),
        ("postgresql://ana:hunter:2@db/mind", "db/mind", ("hunter:2",)),
        ("postgresql://ana:hunter%2F2@db", "db", ("hunter%2F2", "hunter/2")),
        ("postgresql://ana@db/mind?password=hunter2", "db/mind", ("hunter2",)),
        ("postgresql://db/mind?user=ana&pass%77ord=hunter2", "db/mind", ("hunter2",)),
        ("postgresql://db/mind?sslkey=/a&sslpassword=hunter2", "db/mind", ("hunter2",)),
    ],
)
def test_a_url_has_a_place_and_passwords(url, place, passwords):
    parsed = settings_file.database_url(url)

    assert parsed.place == place
    assert set(parsed.passwords) == set(passwords)
    if passwords:
        with pytest.raises(Invalid, match="has a password"):
            setting("index.url").check(url)
    else:
        assert setting("index.url").check(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:hun/ter2@db/mind",
        "postgresql://ana:12/hunter2@db/mind",
        "postgresql://ana:hun?ter2@db/mind",
        "postgresql://ana:hun#ter2@db/mind",
        "postgresql://ana:hun@ter2@db/mind",
        "postgresql://ana:hunter2%@db/mind",
        "postgresql://ana:hunter 2@db/mind",
        "postgresql://ana@db:hunter2/mind",
        "host=db password=hunter2",
        "mysql://ana:hunter2@db/mind",
        "hunter2",
    ],
)
def test_a_url_that_can_be_misread_is_refused_without_naming_any_part(url):
    with pytest.raises(Invalid) as caught:
        setting("index.url").check(url)

    assert "hun" not in f"{caught.value.wire()}{caught.value!r}"
    assert "ter2" not in f"{caught.value.wire()}"
    assert caught.value.hint
    assert caught.value.__context__ is None
