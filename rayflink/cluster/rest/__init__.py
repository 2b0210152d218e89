"""Flink's REST interface: from what is known of jobs and processes to Flink's answers.

Requests enter, documents leave: each endpoint is a function of `ClusterJobs` and `ClusterProcesses`. Tokens, bodies
and connections are those of `rayflink.serving`.

Source: apache/flink flink-runtime, package org.apache.flink.runtime.rest.messages.
"""
