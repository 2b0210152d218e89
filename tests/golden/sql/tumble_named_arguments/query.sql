SELECT window_end, COUNT(price) AS priced FROM TABLE(TUMBLE(DATA => TABLE orders, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '10' SECOND)) GROUP BY window_start, window_end
