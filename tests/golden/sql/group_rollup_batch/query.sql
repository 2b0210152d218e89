-- mode: batch
SELECT customer, product, COUNT(*) AS n, GROUPING_ID(customer, product) AS g FROM orders GROUP BY ROLLUP (customer, product)
