SELECT * FROM (SELECT id, product, window_start, window_end FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))) L
FULL JOIN (SELECT amount, product, window_start, window_end FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) WHERE amount > 2) R
USING (product, window_start, window_end)
