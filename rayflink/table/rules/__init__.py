"""Rewrites of logical plans, one a file; each gives a plan with the same rows. `phases.py` has their order."""
