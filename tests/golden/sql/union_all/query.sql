SELECT id, product FROM orders WHERE id < 3 UNION ALL SELECT id * 100, customer FROM orders WHERE id > 10
