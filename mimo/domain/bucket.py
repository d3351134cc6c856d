"""How often something was done lately, and whether it may be done once more.

A bucket of tokens allows a burst; the counts of the last minute enforce the sustained rate.
"""

from collections.abc import Mapping
from math import ceil

from mimo.domain.policy import WINDOW_SECONDS, Limit
from mimo.frozen import frozen


@frozen
class Bucket:
    """What is known of one limit; times are seconds since 1970."""

    tokens: float
    at: float
    """When it was last looked at."""
    counts: Mapping[int, int]
    """By second, how often it was done."""


def full(limit: Limit, now: float) -> Bucket:
    """Returns the bucket of what was not done lately."""
    return Bucket(tokens=limit.burst, at=now, counts={})


def take(bucket: Bucket, limit: Limit, now: float) -> tuple[Bucket, float]:
    """Returns the bucket after one more call, and 0; or as it is now, and the seconds to wait."""
    bucket = _advanced(bucket, limit, now)
    if wait := _wait(bucket, limit, now):
        return bucket, wait
    second = int(now)
    counts = {**bucket.counts, second: bucket.counts.get(second, 0) + 1}
    return Bucket(tokens=bucket.tokens - 1, at=now, counts=counts), 0


def _advanced(bucket: Bucket, limit: Limit, now: float) -> Bucket:
    """Returns a bucket at another time; a clock that went back neither fills nor blocks it."""
    back = max(0, bucket.at - now)
    shift = ceil(back)
    passed = 0 if back else now - bucket.at
    counts = {
        second - shift: count
        for second, count in bucket.counts.items()
        if second - shift > now - WINDOW_SECONDS
    }
    tokens = min(limit.burst, bucket.tokens + passed * limit.sustained)
    return Bucket(tokens=tokens, at=now, counts=counts)


def _wait(bucket: Bucket, limit: Limit, now: float) -> float:
    missing = max(0.0, 1 - bucket.tokens) / limit.sustained
    most = max(1, int(limit.sustained * WINDOW_SECONDS))
    over = sum(bucket.counts.values()) - most + 1
    waits = [missing]
    for second in sorted(bucket.counts):
        if over <= 0:
            break
        over -= bucket.counts[second]
        waits.append(second + WINDOW_SECONDS - now)
    wait = max(waits)
    return ceil(wait * 10) / 10 if wait > 1e-9 else 0
