SELECT window_start, LISTAGG(product) AS p, LISTAGG(DISTINCT customer, '/') AS c FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
