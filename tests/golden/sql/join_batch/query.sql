-- mode: batch
SELECT L.id, R.id AS other, L.customer FROM orders L LEFT JOIN orders R ON L.customer = R.customer AND L.amount < R.amount ORDER BY id, other
