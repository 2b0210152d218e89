SELECT d, n, s, t FROM (VALUES (DATE '2024-02-29', 1.50, 'a', TIME '10:00:00'), (DATE '1969-12-31', 22.25, 'longer', TIME '00:00:01')) AS v(d, n, s, t)
