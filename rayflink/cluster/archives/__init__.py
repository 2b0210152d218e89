"""Jobs that have ended: their last status, plan, checkpoints and exceptions, in storage.

An ended job enters, a `JobView` of it leaves, also in another process and after the cluster is gone. The history
server reads nothing else.

Jobs that run do not belong here.
"""
