SELECT B.id, B.price, B.ts FROM orders B JOIN (
  SELECT MAX(price) AS most, window_end AS ts FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end) W
ON B.price = W.most WHERE B.ts BETWEEN W.ts - INTERVAL '10' SECOND AND W.ts
