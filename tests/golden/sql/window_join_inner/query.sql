SELECT L.id, R.id AS other, L.product, L.window_end FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))) L
JOIN (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))) R
ON L.product = R.product AND L.window_start = R.window_start AND L.window_end = R.window_end AND L.id < R.id
