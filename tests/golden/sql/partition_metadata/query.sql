SELECT id, file FROM sales WHERE file = 'b.json'
