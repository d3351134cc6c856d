"""What clients tell their hooks, and how they are answered: one dialect for each client."""
