"""What every call must pass: permissions, limits, privacy, the record of what was done."""
