"""Stream graphs and job graphs: from the steps of a program to vertices, chains and execution graphs.

Transformations of the API enter and a job graph leaves: operators chained into vertices, edges with their
partitioning, slot sharing and operator ids. Nothing here runs a job.
"""
