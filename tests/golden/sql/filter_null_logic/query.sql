SELECT id FROM orders WHERE NOT (price > 3 AND amount < 3)
