"""What should not be remembered, or not be shown: secrets and personal data.

Pure functions over text; what is done about their findings is decided elsewhere.
"""

from mimo.domain.privacy.model import Finding, excerpt, mark, without
from mimo.domain.privacy.secrets import ALLOWED, secrets_in

__all__ = ["ALLOWED", "Finding", "excerpt", "mark", "secrets_in", "without"]
