"""The programs that mind can be installed into, and how their configuration is changed.

A configuration belongs to somebody else: it is never written anew from what was parsed. Every
change cuts text out or puts text in at one place, and is then held against the parsed document:
nothing but our own entry may differ.
"""
