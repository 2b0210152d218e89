SELECT who, total + 1 AS more FROM (SELECT customer AS who, price * amount AS total FROM orders) AS t WHERE total > 5
