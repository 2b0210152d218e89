SELECT product, COUNT(*) AS n, SUM(amount) AS amount, AVG(price) AS price, MIN(price) AS least, MAX(ts) AS newest,
  STDDEV_POP(price) AS spread
FROM orders GROUP BY product
