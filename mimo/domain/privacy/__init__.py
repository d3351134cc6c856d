"""What should not be remembered, or not be shown: secrets and personal data.

Pure functions over texts and values; `mimo.guard.privacy` decides what is done about it. Only the
names of what every command needs are loaded here: personal data concern the value tools alone.
"""

from mimo.domain.privacy.model import APART, Finding, excerpts, mark, without
from mimo.domain.privacy.secrets import ALLOWED, secrets_in
from mimo.domain.privacy.texts import texts_of

__all__ = [
    "ALLOWED",
    "APART",
    "Finding",
    "excerpts",
    "mark",
    "secrets_in",
    "texts_of",
    "without",
]
