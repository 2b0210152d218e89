"""The picture of a plan in docs/sql-plans.md."""

from __future__ import annotations

from rayflink.table import EnvironmentSettings, TableEnvironment


def plan_picture() -> str:
    """A statement set: orders are counted by product for two tables, and copied to a third."""
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.execute_sql("CREATE TABLE orders (id BIGINT, customer STRING, product STRING) WITH ('connector' = 'datagen')")
    for name in ("counts", "often"):
        t_env.execute_sql(f"CREATE TABLE {name} (product STRING, n BIGINT) WITH ('connector' = 'print')")
    t_env.execute_sql("CREATE TABLE copies (customer STRING, id BIGINT) WITH ('connector' = 'print')")
    statements = t_env.create_statement_set()
    query = "SELECT product, COUNT(*) FROM orders GROUP BY product"
    statements.add_insert_sql(f"INSERT INTO counts {query}")
    statements.add_insert_sql(f"INSERT INTO often {query} HAVING COUNT(*) > 2")
    statements.add_insert_sql("INSERT INTO copies SELECT customer, id FROM orders")
    return statements.draw_plan().svg
