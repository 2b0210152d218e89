SELECT id, s.item.name AS name, CARDINALITY(s.item.tags) AS tags, extra['gift'] AS gift FROM sales AS s WHERE s.item.name LIKE '%a%'
