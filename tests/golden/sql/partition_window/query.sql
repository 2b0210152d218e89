SELECT country, `year`, window_end, MAX(price) AS top FROM TABLE(TUMBLE(TABLE sales, DESCRIPTOR(`at`), INTERVAL '1' DAY)) GROUP BY country, `year`, window_start, window_end
