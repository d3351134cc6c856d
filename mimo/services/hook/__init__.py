"""What `mind hook` does at each moment of a client's session.

It reads the index as it finds it and refreshes nothing: it runs before every prompt, and must be
done before anybody notices. Nothing heavy is imported here but where a summary is written.
"""
