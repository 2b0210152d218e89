-- table.exec.state.ttl: 2 d
SELECT /*+ MULTI_JOIN(o, c, p), STATE_TTL('o' = '1 d', 'c' = '0 s') */ o.id, c.id AS click, p.id AS other
FROM orders AS o JOIN clicks AS c ON o.customer = c.who JOIN orders AS p ON p.customer = c.who AND p.product = o.product
