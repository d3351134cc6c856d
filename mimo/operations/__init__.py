"""What people and agents want done, in terms of an opened Mind."""
