"""URLs of JDBC, which become connection strings of PostgreSQL's library."""
