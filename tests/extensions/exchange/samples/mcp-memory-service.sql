CREATE TABLE memories (
id INTEGER PRIMARY KEY AUTOINCREMENT,
content_hash TEXT UNIQUE NOT NULL,
content TEXT NOT NULL,
tags TEXT,
memory_type TEXT,
metadata TEXT,
created_at REAL,
updated_at REAL,
created_at_iso TEXT,
updated_at_iso TEXT,
deleted_at REAL DEFAULT NULL
, store TEXT DEFAULT 'default', parent_id TEXT, version INTEGER DEFAULT 1, confidence REAL DEFAULT 1.0, last_accessed INTEGER, superseded_by TEXT, embedding_pending INTEGER NOT NULL DEFAULT 0);
INSERT INTO "memories" VALUES (1, 'b22a301d2256cddc852ca38e59dd12bbf7ec1426fffe8abc516f193e20bb39e9', 'The staging database is reset every Sunday at 03:00 UTC', 'staging,ops', 'note', '{"source": "runbook"}', 1795451744.29182, 1795451744.29182, '2026-11-23T16:35:44.291820Z', '2026-11-23T16:35:44.291820Z', NULL, 'default', NULL, 1, 1.0, NULL, NULL, 0);
INSERT INTO "memories" VALUES (2, '06e281bf573d052b7448a533554fad8a7642360c9a5d7db490f7df5a819074b3', 'Decided to use uv instead of pip in CI', 'ci', 'decision', '{"author": "ana"}', 1.79545174432163810729e+09, 1.79545174432163810729e+09, '2026-11-23T16:35:44.321638Z', '2026-11-23T16:35:44.321638Z', NULL, 'default', NULL, 1, 1.0, NULL, NULL, 0);
CREATE TABLE memory_graph (
source_hash TEXT NOT NULL,
target_hash TEXT NOT NULL,
similarity REAL NOT NULL,
connection_types TEXT NOT NULL,  -- JSON array: ["semantic", "temporal", "causal", "thematic"]
metadata TEXT,                   -- JSON object: {discovery_date, confidence, context}
created_at REAL NOT NULL, relationship_type TEXT DEFAULT 'related',
PRIMARY KEY (source_hash, target_hash)
);
