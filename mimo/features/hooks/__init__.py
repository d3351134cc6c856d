"""Client hooks: what mind answers at each moment of a session."""
