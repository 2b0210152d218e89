SELECT product FROM orders WHERE id > 5 AND amount = 1 AND 3 > id
UNION ALL SELECT customer FROM orders WHERE id < 3 AND id <= 1
