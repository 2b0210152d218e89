"""The driver's side of a job on Ray: what runs in the user's program.

`ray_connection` finds or starts a cluster, `ray_cluster` submits jobs and follows them, `ray_job_board` lists
them. `terminal` and `driver_output` bring what tasks print to the user's terminal. `user_program` and
`ray_python_files` take the user's code to the nodes; `ray_frames`, `ray_dataset` and `ray_cache` move whole
tables through the object store.
"""
