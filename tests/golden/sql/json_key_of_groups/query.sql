-- fold: true
SELECT JSON_VALUE(doc, '$.p') AS product, COUNT(*) AS n, SUM(CAST(JSON_VALUE(doc, '$.n') AS INT)) AS total FROM (
  SELECT JSON_OBJECT('p' VALUE product, 'n' VALUE amount) AS doc FROM orders) GROUP BY JSON_VALUE(doc, '$.p')
