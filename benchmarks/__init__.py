"""Rayflink and its peers, measured on the same files in the same hour; see README.md beside this file."""
