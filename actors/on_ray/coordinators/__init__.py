"""The processes of coordinators: one of a job alone, or one that the jobs of a session cluster share.

`coordinator_home` is what a coordinator needs of its process. `coordinator_host` is the process of many, as Flink's
JobManager; `shared_hosts` finds one for a job, `job_places` notes in the control service (GCS) of Ray in which a job
is, and `hosted_coordinator` makes its calls. `find_coordinator` finds the coordinator of a job, wherever it lives.
"""
