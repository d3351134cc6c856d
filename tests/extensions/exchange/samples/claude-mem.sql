CREATE TABLE sdk_sessions (
id INTEGER PRIMARY KEY AUTOINCREMENT,
content_session_id TEXT NOT NULL,
memory_session_id TEXT UNIQUE,
project TEXT NOT NULL,
platform_source TEXT NOT NULL DEFAULT 'claude',
user_prompt TEXT,
started_at TEXT NOT NULL,
started_at_epoch INTEGER NOT NULL,
completed_at TEXT,
completed_at_epoch INTEGER,
status TEXT CHECK(status IN ('active', 'completed', 'failed')) NOT NULL DEFAULT 'active'
, worker_port INTEGER, prompt_counter INTEGER DEFAULT 0, custom_title TEXT, observed_model TEXT, observed_billing TEXT);
INSERT INTO "sdk_sessions" VALUES (1, 'content-1', 'mem-1', 'shop', 'claude', 'Make the checkout retry payments', '2026-11-23T16:36:24.606Z', 1795451784606, NULL, NULL, 'active', NULL, 0, 'Checkout retries', NULL, NULL);
CREATE TABLE "observations" (
id INTEGER PRIMARY KEY AUTOINCREMENT,
memory_session_id TEXT NOT NULL,
project TEXT NOT NULL,
text TEXT,
type TEXT NOT NULL,
title TEXT,
subtitle TEXT,
facts TEXT,
narrative TEXT,
concepts TEXT,
files_read TEXT,
files_modified TEXT,
prompt_number INTEGER,
created_at TEXT NOT NULL,
created_at_epoch INTEGER NOT NULL, discovery_tokens INTEGER DEFAULT 0, content_hash TEXT, generated_by_model TEXT, relevance_count INTEGER DEFAULT 0, merged_into_project TEXT, agent_type TEXT, agent_id TEXT, metadata TEXT, synced_at INTEGER, origin_device_id TEXT, origin_local_id TEXT, sync_rev TEXT NOT NULL DEFAULT '1',
FOREIGN KEY(memory_session_id) REFERENCES sdk_sessions(memory_session_id) ON DELETE CASCADE ON UPDATE CASCADE
);
INSERT INTO "observations" VALUES (1, 'mem-1', 'shop', NULL, 'decision', 'Retry payments three times', 'Exponential backoff', '["The first wait is 200 ms","A repeated key gives 409"]', 'The gateway drops one request in a thousand, so a retry is needed.', '["payments","retry"]', '["src/pay.py"]', '["src/retry.py"]', 1, '2026-01-09T09:13:20.000Z', 1767950000000, 0, '8beba14e8dfcc51d', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '1');
INSERT INTO "observations" VALUES (2, 'mem-1', 'shop', NULL, 'bugfix', 'Double charge fixed', NULL, '[]', 'The key was made anew on each try.', '["payments"]', '[]', '["src/pay.py"]', 1, '2026-01-09T09:23:20.000Z', 1767950600000, 0, '711728f1833f8fca', NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '1');
CREATE TABLE "session_summaries" (
id INTEGER PRIMARY KEY AUTOINCREMENT,
memory_session_id TEXT NOT NULL,
project TEXT NOT NULL,
request TEXT,
investigated TEXT,
learned TEXT,
completed TEXT,
next_steps TEXT,
files_read TEXT,
files_edited TEXT,
notes TEXT,
prompt_number INTEGER,
created_at TEXT NOT NULL,
created_at_epoch INTEGER NOT NULL, discovery_tokens INTEGER DEFAULT 0, merged_into_project TEXT, synced_at INTEGER, origin_device_id TEXT, origin_local_id TEXT, sync_rev TEXT NOT NULL DEFAULT '1',
FOREIGN KEY(memory_session_id) REFERENCES sdk_sessions(memory_session_id) ON DELETE CASCADE ON UPDATE CASCADE
);
INSERT INTO "session_summaries" VALUES (1, 'mem-1', 'shop', 'Make the checkout retry payments', 'How the gateway answers', '409 means that the key is known', 'Retries with a backoff', 'Measure the tail latency', '["src/pay.py"]', '["src/retry.py"]', NULL, 1, '2026-01-09T09:30:00.000Z', 1767951000000, 0, NULL, NULL, NULL, NULL, '1');
