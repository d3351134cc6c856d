"""Actions on an opened `Mind` that several features share."""
