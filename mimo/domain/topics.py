"""Topics: what decisions are about, and by which decisions of one topic replace each other."""

import re
import unicodedata


def topic_key(topic: str) -> str:
    """Returns what all spellings of a topic have in common.

    `Auth strategy`, `auth-strategy` and `auth_strategy` are one topic. A text without a word has
    an empty key.
    """
    plain = unicodedata.normalize("NFKC", topic).casefold()
    return re.sub(r"[\s_-]+", "_", plain).strip("_")
