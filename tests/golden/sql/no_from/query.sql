SELECT 1 + 1 AS two, 'it''s' AS text
