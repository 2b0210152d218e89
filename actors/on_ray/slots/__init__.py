"""The processes of slots: what runs in them, and which of them are shared.

`slot_actor` is the process of one slot, `slot_host` one of several slots, of a job or of many. Both have a `job_slot`
for each slot, which accepts deployments, and a `process_job` for each job, which its tasks share; `ray_task` steps a
task in a thread. `slot_hosts` is on the side of the coordinators: it finds a shared process with room, of which
`hosted_slot` is one slot as others call it.
"""
