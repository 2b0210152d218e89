"""Scalar functions by family; importing this makes all of them known."""
