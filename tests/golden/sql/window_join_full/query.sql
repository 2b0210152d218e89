SELECT L.id, R.id AS other, COALESCE(L.window_end, R.window_end) AS window_end FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) WHERE amount > 1) L
FULL OUTER JOIN (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) WHERE price < 3) R
ON L.customer = R.customer AND L.window_start = R.window_start AND L.window_end = R.window_end
