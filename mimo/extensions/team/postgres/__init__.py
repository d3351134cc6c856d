"""The shared index: a mirror of many projects' indexes on PostgreSQL, with pgvector."""
