"""A project's memory for the viewer: decisions with versions, pitfalls, and a graph of any size."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

START = datetime(2026, 6, 2, 9, 0, tzinfo=UTC)

_MEMORIES: tuple[tuple[str, str, dict[str, object], str], ...] = (
    (
        "decision_auth_strategy_20260604_p2w9xa",
        "decision",
        {
            "title": "Keep server sessions in Redis",
            "topic": "auth_strategy",
            "tags": ["auth", "redis"],
            "outcome": "FAILED",
            "by": "claude-code",
        },
        """Server sessions in Redis, thirty days.

## Outcome

Sessions were lost whenever the second node restarted.""",
    ),
    (
        "decision_auth_strategy_20260811_m4t7qe",
        "decision",
        {
            "title": "Use JWT with a one-day lifetime",
            "topic": "auth_strategy",
            "tags": ["auth", "jwt"],
            "outcome": "PARTIAL",
            "by": "claude-code",
            "links": ["{to: decision_auth_strategy_20260604_p2w9xa, type: supersedes}"],
        },
        "Signed tokens, valid for a day.\n\n## Reasoning\n\nNo state on the server.",
    ),
    (
        "decision_auth_strategy_20261018_k3v7mq",
        "decision",
        {
            "title": "Use JWT with short access tokens and refresh tokens",
            "topic": "auth_strategy",
            "tags": ["auth", "jwt", "security"],
            "importance": 0.9,
            "outcome": "SUCCESS",
            "by": "ann",
            "links": [
                "{to: decision_auth_strategy_20260811_m4t7qe, type: supersedes}",
                "{to: insight_clock_drift_20260930_w8h3rb, type: builds_on}",
            ],
        },
        """Access tokens live **15 minutes**, refresh tokens 30 days; see
[RFC 6749](https://www.rfc-editor.org/rfc/rfc6749) and [[fact_login_20260921_d5j2sn]].

| token | lifetime | stored |
|---|---:|---|
| access | 15 min | memory |
| refresh | 30 days | cookie |

```python
def expires(now):
    return now + timedelta(minutes=15)
```

## Reasoning

A stolen access token is useless soon:

- rotation detects reuse
- *logout* revokes the refresh token""",
    ),
    (
        "decision_storage_20260715_c6f9zl",
        "decision",
        {"title": "PostgreSQL for orders, not MongoDB", "topic": "order_storage", "tags": ["db"]},
        "Orders need transactions.\n\n## Reasoning\n\nWe lost two orders to a partial write.",
    ),
    (
        "decision_queue_20260902_y7b4gk",
        "decision",
        {
            "title": "Use the database as the job queue",
            "topic": "job_queue",
            "tags": ["db", "jobs"],
            "links": ["{to: decision_storage_20260715_c6f9zl, type: builds_on}"],
        },
        "`SELECT … FOR UPDATE SKIP LOCKED` is enough for 200 jobs a second.",
    ),
    (
        "insight_clock_drift_20260930_w8h3rb",
        "insight",
        {"title": "Clocks of the build machines drift by minutes", "tags": ["ci", "auth"]},
        "Tokens that were valid for 60 seconds failed at random in CI: the clocks drift.",
    ),
    (
        "insight_proxy_limit_20261102_n3x8vd",
        "insight",
        {"title": "Flaky uploads came from the proxy’s body limit", "tags": ["ci", "uploads"]},
        "Not from our retry logic: nginx cuts bodies above 1 MB.",
    ),
    (
        "fact_login_20260921_d5j2sn",
        "fact",
        {"title": "The login page is served by the edge", "tags": ["auth", "cdn"]},
        "It is cached for an hour; purge it after a deployment.",
    ),
    (
        "checkpoint_payments_20261112_t9r6wf",
        "checkpoint",
        {
            "title": "Payments: refunds work, receipts are missing",
            "tags": ["payments"],
            "links": ["{to: decision_queue_20260902_y7b4gk, type: relates_to}"],
        },
        """Refunds are done.

## Open files

- src/payments/receipts.py

## Next steps

1. send receipts by mail
2. test with the sandbox of the bank""",
    ),
    (
        "issue_timezone_20261115_z5q2hc",
        "issue",
        {"title": "Reports of the day begin at midnight UTC", "tags": ["reports"]},
        "Customers in Seoul see yesterday’s numbers until nine.",
    ),
    (
        "edge_safari_cookies_20260820_j8m5tp",
        "edge",
        {
            "title": "Safari drops cookies that a script sets after 7 days",
            "tags": ["safari"],
            "severity": "critical",
            "workaround": "Set the cookie on the server",
        },
        "A login that a script keeps in a cookie ends after a week.",
    ),
)

_WORDS = (
    *("cache", "billing", "search", "export", "login", "deploy", "report", "upload", "mail"),
    *("queue", "schema", "index", "retry", "session", "webhook", "invoice", "locale", "theme"),
)
_TYPES = ("fact", "decision", "insight", "observation", "issue", "plan", "action")
_LINKS = ("relates_to", "builds_on", "supersedes", "refines", "implements", "follows")


def write_memory(
    root: Path, id: str, type: str, header: dict[str, object], body: str, *, created: datetime
) -> Path:
    """Writes one memory as its file has it, and returns the path."""
    lines = [f"id: {id}", f"type: {type}"]
    for name, value in header.items():
        if name == "links" and isinstance(value, list):
            lines += ["links:", *(f"  - {link}" for link in value)]
        elif isinstance(value, list):
            lines.append(f"{name}: [{', '.join(map(str, value))}]")
        else:
            lines.append(f"{name}: {value}" if not isinstance(value, str) else f"{name}: {value!r}")
    lines.append(f"created: {created:%Y-%m-%dT%H:%M:%SZ}")
    folder = root / ".mind" / f"{type}s"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{id}.md"
    path.write_text("---\n" + "\n".join(lines) + f"\n---\n{body}\n", encoding="utf-8")
    return path


def fill(root: Path) -> None:
    """Writes a small memory that has something for every view."""
    for place, (id, type, header, body) in enumerate(_MEMORIES):
        date = datetime.strptime(id.rsplit("_", 2)[1], "%Y%m%d").replace(tzinfo=UTC)
        created = date + timedelta(hours=9, minutes=7 * place)
        write_memory(root, id, type, header, body, created=created)


def fill_many(root: Path, count: int, *, linked: bool = True, seed: int = 7) -> None:
    """Writes many memories, most of them in groups of linked ones."""
    random = Random(seed)
    ids: list[str] = []
    for number in range(count):
        word, other = random.choice(_WORDS), random.choice(_WORDS)
        type = random.choice(_TYPES)
        id = f"{type}_{word}_{number:06}"
        header: dict[str, object] = {
            "title": f"{word.capitalize()} and {other}: note {number}",
            "tags": sorted({word, other}),
        }
        if type == "decision":
            header["topic"] = f"{word}_{number % 97}"
            header["outcome"] = random.choice(("SUCCESS", "FAILED", "PARTIAL"))
        if linked and ids and random.random() < 0.93:
            # Mostly near ones, so that groups of a project's size arise; hubs now and then.
            near = ids[-min(len(ids), 12) :]
            target = random.choice(ids[: len(ids) // 20 + 1] if random.random() < 0.08 else near)
            header["links"] = [f"{{to: {target}, type: {random.choice(_LINKS)}}}"]
        if linked and random.random() < 0.04:
            ids.clear()  # A new group.
        ids.append(id)
        body = f"About the {word} of the {other}: see what happened with number {number}."
        created = START + timedelta(minutes=97 * number)
        write_memory(root, id, type, header, body, created=created)
