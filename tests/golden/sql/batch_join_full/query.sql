-- mode: batch
SELECT L.id, R.id AS other FROM (SELECT * FROM orders WHERE id < 6) AS L FULL JOIN (SELECT * FROM orders WHERE id > 3) AS R ON L.product = R.product AND L.id < R.id ORDER BY id NULLS LAST, other NULLS LAST
