"""What benchmarks read: files and topics that are made once and kept, and the sources that draw records in memory.

`words.py` belongs to word count, `bids.py`, `sql_events.py` and `changing_rows.py` to SQL, `nexmark*.py` to the
queries of Nexmark, `cep_events.py` to patterns, `json_events.py`, `kafka_events.py` and `kafka_stamps.py` to messages.
`one_split.py` is a source of one split for those that draw their records. Ours and the peers read the same.
"""
