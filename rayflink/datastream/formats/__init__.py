"""The forms of files and messages, under PyFlink's module paths: csv, json, parquet, orc; and arrow."""
