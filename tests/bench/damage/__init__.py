"""Damage of the index: every range, page and length of each of its files.

`python -m tests.bench.damage --minutes 30 --seed 1 --jobs 2`

A store of some 80 memories is indexed. Then each file that is made from memories is damaged in many
ways, one at a time, and questions of all kinds are asked: their answers must be those of a fresh
index. A *point* is one damage at one place.

`store` has the memories and the questions, `damages` the points, `examination` tries one of them.
"""
