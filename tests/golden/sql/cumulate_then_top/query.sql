-- fold: true
SELECT window_end, product, n FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n DESC, product) AS place FROM (
    SELECT window_start, window_end, product, SUM(amount) AS n
    FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '40' SECOND))
    GROUP BY window_start, window_end, product)) WHERE place = 1
