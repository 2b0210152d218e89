"""The laws of keyed state backends, one function each; `rayflink.testing.check_backend` checks a backend against
them.
"""
