"""A team: the server over HTTP, the tokens of its users, and the index that projects share."""

from __future__ import annotations

from mimo.api import Extension

EXTENSION = Extension(
    commands={
        "Admin": {
            "token add": "mimo.extensions.team.commands",
            "token list": "mimo.extensions.team.commands",
            "token rotate": "mimo.extensions.team.commands",
            "token rm": "mimo.extensions.team.commands",
        }
    },
    groups={"token": "Manage the users of a team's server and their tokens"},
    shared_index="mimo.extensions.team.sharing",
    scopes={"org": "mimo.extensions.team.organisation:search_organisation"},
    serve="mimo.extensions.team.http:main",
    permissions="mimo.extensions.team.tokens:stated",
)
