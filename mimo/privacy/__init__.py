"""Detection of secrets and personal data in texts and values; pure functions."""
