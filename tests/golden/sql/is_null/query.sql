SELECT id, customer IS NULL, price IS NOT NULL, amount IS NOT DISTINCT FROM 1 FROM orders WHERE customer IS NULL OR amount IS NULL
