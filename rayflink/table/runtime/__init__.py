"""Operators of the Table layer, on columns: no loop of Python goes over rows or keys here."""
