"""Object stores as places of files: S3 and stores with its protocol, Google Cloud Storage, Azure.

`object_paths` are addresses that know their store, `object_store` makes the requests and repeats those that fail,
`store_errors` explains what a store refuses. `object_listing` finds objects, `object_reading` reads them as files with
read-ahead. `uploads` are objects that appear whole, at a commit: `s3_uploads`, `azure_uploads`, elsewhere
`staged_uploads`. What is in a file, and which files a source or a sink has, is decided above.
"""
