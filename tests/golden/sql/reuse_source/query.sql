SELECT product AS w FROM orders WHERE id > 8 UNION ALL SELECT customer FROM orders WHERE amount > 3
