SELECT product, customer, window_end, COUNT(*) AS n, GROUPING_ID(product, customer) AS id
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '20' SECOND)) WHERE id > 5 GROUP BY window_start, window_end, CUBE (product, customer)
