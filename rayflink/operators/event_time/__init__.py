"""Event time: timestamps, watermarks, idleness and alignment of sources.

`timestamp_assignment` stamps records, `watermark_operator` and `source_watermarks` generate watermarks, and
`watermark_valve` combines those of several channels. What a strategy is for the user is in
`rayflink.common.watermarks`.
"""
