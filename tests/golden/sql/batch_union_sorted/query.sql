-- mode: batch
SELECT id, product FROM orders WHERE id < 4 UNION ALL SELECT -id, customer FROM orders WHERE id > 10 ORDER BY id
