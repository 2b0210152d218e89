SELECT L.id, R.id AS other, L.window_end FROM (SELECT * FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '20' SECOND)) WHERE product = 'tea') AS L
LEFT JOIN (SELECT * FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '20' SECOND)) WHERE amount > 1) AS R
ON L.customer = R.customer AND L.window_start = R.window_start AND L.window_end = R.window_end AND L.id < R.id
