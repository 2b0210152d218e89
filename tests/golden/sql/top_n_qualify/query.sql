SELECT product, window_start, COUNT(*) AS n,
       ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY COUNT(*) DESC, product) AS place
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY product, window_start, window_end
HAVING MAX(price) > 1
QUALIFY place = 1
