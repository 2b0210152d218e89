"""The dispatcher: accepts jobs, keeps their registry, looks after them, brings them back, archives their ends.

Submissions and requests enter, jobs leave. It runs in a process of its own, or in a detached actor of Ray.

How a job runs does not belong here, nor how a request arrives.
"""
