SELECT id, price * amount AS worth, window_start, window_end
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '20' SECOND))
WHERE amount IS NOT NULL
QUALIFY ROW_NUMBER() OVER (PARTITION BY window_start, window_end, UPPER(product) ORDER BY price * amount DESC) < 2
