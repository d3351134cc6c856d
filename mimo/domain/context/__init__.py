"""What an agent is shown of a memory that it did not ask for: notes, cut short and labelled."""
