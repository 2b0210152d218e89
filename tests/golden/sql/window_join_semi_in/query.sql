SELECT id, customer, window_end FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))) L
WHERE L.customer IN (SELECT customer FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))) R
  WHERE R.window_start = L.window_start AND R.window_end = L.window_end AND R.id <> L.id) AND amount > 0
