-- fold: true
SELECT o.id, JSON_VALUE(c.doc, '$.ms' RETURNING INTEGER) AS ms FROM orders AS o JOIN (
  SELECT JSON_OBJECT('who' VALUE who, 'ms' VALUE ms) AS doc FROM clicks WHERE id < 4) AS c ON o.customer = JSON_VALUE(c.doc, '$.who')
