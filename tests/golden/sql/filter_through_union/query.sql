SELECT n + 1 AS m FROM (SELECT id AS n, product AS w FROM orders UNION ALL SELECT id + 100, customer FROM orders) WHERE n < 4 OR n > 110
