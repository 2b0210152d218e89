"""All that a job leaves for those that ask after it: what can be read of it when it has ended, and notes of its starts.

- `job_archive`: an ended job as one JSON document, and its encoded form.
- `registry_notes`: the files of a job in the registry of its cluster.
- `plain_values`: values of programs as JSON can have them.

The status, the description, the checkpoints and the accumulators of a job enter; bytes for a storage leave, and come
back. Coordinators write them, and dispatchers and history servers read them.

Which storage that is, and how long it keeps them, is not decided here.
"""
