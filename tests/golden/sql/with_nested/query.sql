WITH teas AS (SELECT * FROM orders WHERE product = 'tea'),
  counted AS (SELECT customer, window_start, window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE teas, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY customer, window_start, window_end),
  most AS (SELECT window_start, window_end, MAX(n) AS n, COUNT(*) AS customers FROM counted GROUP BY window_start, window_end)
SELECT n, customers, window_end FROM most WHERE customers > 0
