SELECT a.id, b.id AS other, b.ts FROM orders a, orders b
WHERE a.amount = CAST(b.id AS INT) AND a.ts + INTERVAL '8' SECOND >= b.ts AND a.ts - INTERVAL '5' SECOND < b.ts AND a.customer = 'ann' AND b.product = 'cake'
