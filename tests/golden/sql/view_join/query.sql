SELECT o.id, w.worth FROM orders AS o JOIN worths AS w ON o.customer = w.customer AND w.ts BETWEEN o.ts - INTERVAL '3' SECOND AND o.ts + INTERVAL '3' SECOND WHERE w.worth > 4
