SELECT id FROM orders WHERE product IN ('tea', 'milk') AND id BETWEEN 3 AND 9
