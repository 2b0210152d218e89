SELECT A.product, A.n, A.e FROM (
  SELECT product, COUNT(*) AS n, window_start AS s, window_end AS e
  FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)) GROUP BY product, window_start, window_end) AS A
JOIN (SELECT MAX(C.n) AS most, C.s, C.e FROM (
    SELECT COUNT(*) AS n, window_start AS s, window_end AS e
    FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)) GROUP BY product, window_start, window_end) AS C
  GROUP BY C.s, C.e) AS B
ON A.s = B.s AND A.e = B.e AND A.n >= B.most
