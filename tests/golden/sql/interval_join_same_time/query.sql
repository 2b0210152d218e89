SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.ts = b.ts AND a.id >= b.id
