"""Sources that replay a log of messages by position: enumerator, reader and the queue between reader and fetcher.

Redis Streams are such logs. A connector supplies splits, a fetcher that reads them in a thread of its own, and runs:
messages of one split that were fetched together. `log_splits` finds and distributes splits, `fetch_queue` is the
bounded queue, `log_reader` decodes runs, `outages` bounds the time for which an outside system may be away, and
`missing_messages` is the policy for messages that the log has deleted before they were read.
"""
