"""CAST and TRY_CAST: which types can become which, for single values, collections and times."""
