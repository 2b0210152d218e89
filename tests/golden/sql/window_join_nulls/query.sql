SELECT L.id, R.id AS other FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))) AS L JOIN (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))) AS R
ON L.customer IS NOT DISTINCT FROM R.customer AND L.window_start = R.window_start AND L.window_end = R.window_end AND L.id <= R.id
