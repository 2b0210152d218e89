"""The runners of a cluster: on Ray, where each job has a coordinator of its own, and in this process.

Stored submissions enter, jobs that can be read and asked leave.

Which jobs there should be is not decided here, but by the dispatcher.
"""
