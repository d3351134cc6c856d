"""Policy commands: showing, checking and explaining what tools may do."""
