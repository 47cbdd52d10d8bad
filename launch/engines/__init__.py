"""Cluster engines: the same units of work through datatrove, on Slurm or Ray, with the same bytes as a result.

``launch.engines.mapper.engine_mapper`` gives a stage its map; the other modules are what it is made of.
"""
