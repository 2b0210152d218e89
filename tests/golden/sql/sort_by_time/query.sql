SELECT id, customer, ts FROM orders WHERE product IS NOT NULL ORDER BY ts, customer DESC, id
