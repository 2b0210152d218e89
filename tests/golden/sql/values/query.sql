SELECT n, w FROM (VALUES (1, 'a'), (2, CAST(NULL AS STRING)), (3, 'ccc')) AS t(n, w) WHERE n <> 2
