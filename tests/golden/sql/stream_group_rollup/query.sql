SELECT product, customer, COUNT(*) AS n, GROUPING(product) AS g FROM orders GROUP BY ROLLUP(product, customer)
