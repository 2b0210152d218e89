-- fold: true
SELECT o.id, c.id AS click FROM orders AS o
JOIN clicks AS c ON UPPER(o.customer) = UPPER(c.who) AND o.id + 4 = c.id
