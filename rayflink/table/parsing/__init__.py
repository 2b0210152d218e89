"""Text to statements: Flink's SQL on sqlglot's parser."""
