"""What a program has of JDBC: its URLs, as PostgreSQL's library takes them."""
