SELECT o.id, c.id AS click FROM orders AS o JOIN clicks AS c ON o.id > c.id AND o.customer <> c.who
