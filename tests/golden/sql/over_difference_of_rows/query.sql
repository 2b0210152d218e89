-- fold: true
SELECT symbol, price - before_it AS change, ts FROM (
  SELECT symbol, price, ts, LAG(price) OVER (PARTITION BY symbol ORDER BY ts) AS before_it FROM ticker WHERE tax <> 3)
WHERE symbol = 'ACME'
