"""The workloads as a user of each peer writes them; every module runs in its peer's own virtual environment."""
