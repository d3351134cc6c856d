"""`mind config`: see and change settings."""

from typing import Annotated

from mimo.commands.spec import Arg, Effect, Needs, Surface, command
from mimo.commands.types import Json, Out
from mimo.domain.policy import Operation
from mimo.errors import Invalid, StorageFailed
from mimo.frozen import frozen
from mimo.mind import Mind
from mimo.services import settings
from mimo.settings import SETTINGS, Setting, setting


@frozen
class SettingRow:
    """A setting as it is in force."""

    key: str
    value: Annotated[Json, Out("The value in force")]
    origin: Annotated[str, Out("Whose file it is from, or `default`")]
    help: str


@frozen
class Settings:
    """The settings in force."""

    settings: tuple[SettingRow, ...]
    warnings: tuple[str, ...]


@command(
    "mind_config",
    cli="config",
    effect=Effect.WRITE,
    idempotent=True,
    toolset="extra",
    needs_project=False,
    surfaces=Surface.CLI,
    needs=Needs(Operation.WRITE, person=True),
    errors=(Invalid, StorageFailed),
    examples=(
        "mind config",
        "mind config decay.rate 0.05",
        "mind config include 'docs/decisions/*.md'",
        "mind config decay.rate --unset",
    ),
)
def config(
    mind: Mind,
    key: Annotated[str | None, Arg("Name of the setting", complete="setting")] = None,
    value: Annotated[str | None, Arg("New value; commas part the items of a list")] = None,
    *,
    user: Annotated[bool, Arg("Change it for all projects of this user")] = False,
    unset: Annotated[bool, Arg("Go back to the default")] = False,
) -> Settings:
    """Show or change settings

    A setting is written to the project's `.mind/config.toml`, or with `--user` to the user's own
    file, where comments and everything else stay as they are.
    """
    if key is None:
        return _rows(mind, SETTINGS)
    known = setting(key)
    if value is None and not unset:
        return _rows(mind, (known,))
    changed = settings.change(mind, known, value, user=user)
    return _rows(changed, (known,))


def _rows(mind: Mind, wanted: tuple[Setting, ...]) -> Settings:
    values = mind.config
    rows = tuple(
        SettingRow(
            key=known.key,
            value=_plain(values[known.key]),
            origin=values.origins[known.key],
            help=known.help,
        )
        for known in wanted
    )
    return Settings(settings=rows, warnings=values.warnings)


def _plain(value: object) -> Json:
    return list(value) if isinstance(value, tuple) else value  # type: ignore[return-value]
