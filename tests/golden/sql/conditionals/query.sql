SELECT id, COALESCE(customer, product, 'none') AS c, NULLIF(product, 'tea') AS n, IFNULL(amount, -1) AS i, IF(price > 3, 'dear', 'cheap') AS p, GREATEST(amount, 3) AS g, LEAST(price, 2.6) AS l,
  CASE product WHEN 'tea' THEN 1 WHEN 'cake' THEN 2 END AS k
FROM orders
