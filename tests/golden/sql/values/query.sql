SELECT n, w FROM (VALUES (1, 'a'), (2, NULL), (3, 'ccc')) AS t(n, w) WHERE n <> 2
