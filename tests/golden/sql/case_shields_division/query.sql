SELECT id, CASE WHEN amount <> 1 THEN 10 / (amount - 1) END AS share FROM orders
