-- mode: batch
SELECT word, COUNT(*) AS c, SUM(n) AS s FROM (VALUES ('a', 1), ('b', 2), ('c', 3), ('a', 4)) AS v(word, n) GROUP BY word
