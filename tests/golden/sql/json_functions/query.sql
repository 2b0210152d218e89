SELECT id, JSON_VALUE('{"a": {"b": "' || product || '"}}', '$.a.b') AS v, JSON_EXISTS('{"a": 1}', '$.b') AS e, JSON_QUERY('{"a": [1, 2]}', '$.a') AS q,
  JSON_OBJECT('id' VALUE id, 'product' VALUE product ABSENT ON NULL) AS o, JSON_ARRAY(id, customer NULL ON NULL) AS a, product IS JSON AS j
FROM orders WHERE id > 9 OR id = 4
