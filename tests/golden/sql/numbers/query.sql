SELECT id, price * 3 AS p, price / 3 AS q, MOD(amount, 3) AS m, amount / 2 AS half, ROUND(price, 1) AS r, FLOOR(price) AS f, CEIL(price) AS c, ABS(-price) AS a, SIGN(amount - 2) AS s, POWER(amount, 2) AS w,
  TRUNCATE(price, 1) AS t, -amount AS negated, price + amount AS total
FROM orders
