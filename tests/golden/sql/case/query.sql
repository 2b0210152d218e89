SELECT id, CASE WHEN amount >= 5 THEN 'many' WHEN amount >= 2 THEN 'some' ELSE 'few' END AS how FROM orders
