-- fold: true
SELECT window_end, product, customer, n FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n DESC, product, customer) AS place FROM (
    SELECT window_start, window_end, product, customer, COUNT(*) AS n
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))
    GROUP BY window_start, window_end, GROUPING SETS ((product), (customer), ())))
WHERE place <= 3
