SELECT L.id, R.id AS other, S.n FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))) L, (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))) R,
  (SELECT COUNT(*) AS n, window_start, window_end FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end) S
WHERE L.window_start = R.window_start AND L.window_end = R.window_end AND R.window_start = S.window_start AND R.window_end = S.window_end
  AND L.amount + 1 = R.id AND L.customer = 'ann' AND R.price IS NOT NULL AND S.n > 1
