"""The laws of keyed state backends, one function each; `rayflink.testing.check_backend` holds a backend to them."""
