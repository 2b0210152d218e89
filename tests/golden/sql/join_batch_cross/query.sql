-- mode: batch
SELECT L.id, R.id AS other, M.most FROM orders L CROSS JOIN orders R, (VALUES (3)) AS M(most)
WHERE L.id < R.id AND R.id <= M.most ORDER BY id, other
