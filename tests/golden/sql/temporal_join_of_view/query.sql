-- fold: true
SELECT t.symbol, t.ts, t.tax, r.price FROM (SELECT * FROM ticker WHERE tax > 1) AS t
JOIN rates FOR SYSTEM_TIME AS OF t.ts AS r ON t.symbol = r.symbol
