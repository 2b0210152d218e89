"""What is said of tables: schemas, descriptors, options, and how they print themselves as Flink's do."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pytest

from rayflink.common.config_options import ConfigOptions
from rayflink.common.errors import ConfigError, InvalidTypesError
from rayflink.table import (
    DataTypes,
    FormatDescriptor,
    Schema,
    SqlError,
    TableConfig,
    TableDescriptor,
    TableSchema,
    descriptors,
)

FLAG = ConfigOptions.key("flag").boolean_type().no_default_value()
KEY_FORMAT = ConfigOptions.key("key.format").string_type().no_default_value()


def test_a_schema_prints_itself_as_flinks_does():
    older = Schema.new_builder().column("id", DataTypes.INT()).primary_key_named("one_id", "id").build()
    builder = Schema.new_builder().from_schema(older).column("who", "ROW<name STRING>")
    builder.column_by_metadata("topic", DataTypes.STRING(), None, True)
    builder.column_by_expression("ts", "at - INTERVAL '1' DAY")
    schema = builder.column_by_metadata("at", DataTypes.TIMESTAMP(3), "timestamp").watermark("ts", "ts").build()
    assert str(schema) == (
        "(\n  `id` INT NOT NULL,\n  `who` [ROW<name STRING>],\n  `topic` STRING METADATA VIRTUAL,\n"
        "  `ts` AS [at - INTERVAL '1' DAY],\n  `at` TIMESTAMP(3) METADATA FROM 'timestamp',\n"
        "  WATERMARK FOR `ts` AS [ts],\n  CONSTRAINT `one_id` PRIMARY KEY (`id`) NOT ENFORCED\n)"
    )
    assert str(Schema.new_builder().column("a", "INT").column("b", "INT").primary_key("a", "b").build()).endswith(
        "CONSTRAINT `PK_a_b` PRIMARY KEY (`a`, `b`) NOT ENFORCED\n)"
    )
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_a_descriptor_prints_itself_and_masks_secrets():
    csv = FormatDescriptor.for_format("csv").option(FLAG, False).build()
    builder = TableDescriptor.for_connector("filesystem").schema(Schema.new_builder().column("a", "INT").build())
    table = builder.partitioned_by("a").option("password", "x").format(csv).comment("it's").build()
    assert str(csv) == "csv[{flag=false}]"
    assert str(table) == (
        "(\n  `a` [INT]\n)\nCOMMENT 'it''s'\nPARTITIONED BY (`a`)\nWITH (\n  'connector' = 'filesystem',\n"
        "  'password' = '******',\n  'format' = 'csv',\n  'csv.flag' = 'false'\n)"
    )


def test_a_descriptor_without_columns_has_no_schema():
    assert TableDescriptor.for_connector("print").build().get_schema() is None
    assert TableDescriptor.for_connector("print").schema(Schema()).build().get_schema() == Schema()


def test_options_are_written_as_ddl_has_them():
    json = FormatDescriptor.for_format("json").option(FLAG, True).option("n", 4).build()
    builder = TableDescriptor.for_connector("kafka").option(FLAG, False).option("wait", True).format("csv")
    options = builder.format(json, KEY_FORMAT).build().get_options()
    assert options == {
        "connector": "kafka", "flag": "false", "wait": "true", "format": "csv", "key.format": "json",
        "key.json.flag": "true", "key.json.n": "4",
    }  # fmt: skip
    with pytest.raises(InvalidTypesError, match="'topic' is no option for a format"):
        builder.format(json, "topic")
    with pytest.raises(ConfigError, match="flag"):
        builder.option(FLAG, "perhaps")


def test_a_table_schema_is_a_row_that_is_not_null_and_prints_a_tree():
    schema = TableSchema(["a"], [DataTypes.INT()])
    assert schema.to_row_data_type() == DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())], False)
    assert str(schema) == "root\n |-- a: INT\n"
    with pytest.raises(TypeError, match="a column is a number or a name, found None"):
        schema.get_field_data_type(None)


def test_the_retention_of_idle_state_is_the_option_for_it():
    config = TableConfig()
    assert config.get_idle_state_retention() == timedelta(0)
    config.set_idle_state_retention(timedelta(hours=36))
    assert (config.get("table.exec.state.ttl"), config.get_idle_state_retention()) == ("36 h", timedelta(hours=36))
    with pytest.raises(ConfigError, match=r"table\.exec\.state\.ttl"):
        config.set_idle_state_retention(timedelta(-1))


def test_properties_describe_columns():
    rowtime = descriptors.Rowtime().timestamps_from_field("at").watermarks_periodic_bounded(5000)
    schema = descriptors.Schema(fields={"id": DataTypes.STRING(), "at": "SQL_TIMESTAMP"}).from_origin_field("t")
    schema.field("rt", DataTypes.TIME()).rowtime(rowtime).field("pt", "BIGINT").proctime()
    assert schema.to_properties() == {
        "schema.0.name": "id", "schema.0.data-type": "VARCHAR(2147483647)",
        "schema.1.name": "at", "schema.1.data-type": "TIMESTAMP(3)", "schema.1.from": "t",
        "schema.2.name": "rt", "schema.2.data-type": "TIME(0)", "schema.2.rowtime.timestamps.type": "from-field",
        "schema.2.rowtime.timestamps.from": "at", "schema.2.rowtime.watermarks.type": "periodic-bounded",
        "schema.2.rowtime.watermarks.delay": "5000",
        "schema.3.name": "pt", "schema.3.data-type": "BIGINT", "schema.3.proctime": "true",
    }  # fmt: skip
    replaced = schema.schema(TableSchema(["a"], [DataTypes.INT()])).to_properties()
    assert replaced == {"schema.0.name": "a", "schema.0.data-type": "INT"}
    ascending = descriptors.Rowtime().timestamps_from_source().watermarks_periodic_ascending()
    assert ascending.to_properties() == {
        "rowtime.timestamps.type": "from-source", "rowtime.watermarks.type": "periodic-ascending",
    }  # fmt: skip
    assert ascending.watermarks_from_source().to_properties()["rowtime.watermarks.type"] == "from-source"


def test_wrong_properties_are_errors():
    with pytest.raises(SqlError, match="two columns are named 'a'"):
        descriptors.Schema().field("a", "INT").field("a", "INT")
    with pytest.raises(SqlError, match="there is no column of which something could be said"):
        descriptors.Schema().proctime()
    with pytest.raises(TypeError, match="the columns are a dict of names and types"):
        descriptors.Schema().fields([("a", "INT")])
