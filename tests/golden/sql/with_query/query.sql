WITH teas AS (SELECT * FROM orders WHERE product = 'tea'), cheap(n) AS (SELECT id FROM teas WHERE price < 2.6) SELECT n FROM cheap
