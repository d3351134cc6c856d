"""The readers of the clients' transcripts, one module for each client."""
