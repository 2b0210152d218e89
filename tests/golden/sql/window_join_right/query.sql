SELECT L.id, L.product, R.id AS other FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) WHERE amount > 1) L
RIGHT OUTER JOIN (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))) R
ON L.customer = R.customer AND L.window_start = R.window_start AND L.window_end = R.window_end AND L.price > R.price
