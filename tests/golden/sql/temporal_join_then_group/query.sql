-- fold: true
SELECT t.symbol, COUNT(r.price) AS n, SUM(r.price * t.tax) AS total FROM ticker AS t
LEFT JOIN rates FOR SYSTEM_TIME AS OF t.ts AS r ON t.symbol = r.symbol WHERE t.tax < 3 GROUP BY t.symbol
