-- table.exec.state.ttl: 2 d
SELECT /*+ STATE_TTL('o' = '1 d', 'c' = '0 s') */ o.id, c.id AS click FROM orders AS o JOIN clicks AS c ON o.customer = c.who
