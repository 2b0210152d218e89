import java.io.PrintWriter;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Runs queries of Flink SQL with one subtask. Arguments: a file with the statements that create the tables, a JSON list;
 * a file with one query a line, as a JSON string; the file to write, one line for each query: the "rows", each a list of
 * strings, numbers and nulls, or an "error".
 *
 * <p>Queries run together in jobs of several. Those of a job that fails run again, in halves. With -Dchanges=true a row is
 * a string with its kind, as Flink prints it, and with -Dbatch=true queries run in batch mode; -Dzone
 * is the time zone of the session, UTC without it.
 */
public final class SqlOracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss.SSS");
    private static final int TOGETHER = 25;

    public static void main(String[] arguments) throws Exception {
        JsonNode tables = JSON.readTree(Path.of(arguments[0]).toFile());
        List<String> queries = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(arguments[1]))) {
            queries.add(JSON.readTree(line).asText());
        }
        try (PrintWriter out =
                new PrintWriter(Files.newBufferedWriter(Path.of(arguments[2]), StandardCharsets.UTF_8))) {
            for (int first = 0; first < queries.size(); first += TOGETHER) {
                for (ObjectNode answer :
                        answers(tables, queries.subList(first, Math.min(first + TOGETHER, queries.size())))) {
                    out.println(answer);
                }
                System.err.printf("%d of %d queries%n", Math.min(first + TOGETHER, queries.size()), queries.size());
            }
        }
    }

    private static List<ObjectNode> answers(JsonNode tables, List<String> queries) throws Exception {
        List<ObjectNode> answers = new ArrayList<>();
        for (int number = 0; number < queries.size(); number++) {
            answers.add(JSON.createObjectNode());
        }
        try {
            run(tables, queries, answers);
        } catch (Exception failure) {
            if (queries.size() == 1) {
                answers.set(0, JSON.createObjectNode().put("error", message(failure)));
                return answers;
            }
            int half = queries.size() / 2;
            answers = answers(tables, queries.subList(0, half));
            answers.addAll(answers(tables, queries.subList(half, queries.size())));
        }
        return answers;
    }

    private static void run(JsonNode tables, List<String> queries, List<ObjectNode> answers) throws Exception {
        var env = StreamExecutionEnvironment.createLocalEnvironment(1, new Configuration());
        boolean isBatch = Boolean.getBoolean("batch");
        env.setRuntimeMode(isBatch ? RuntimeExecutionMode.BATCH : RuntimeExecutionMode.STREAMING);
        var sql = StreamTableEnvironment.create(
                env, isBatch ? EnvironmentSettings.inBatchMode() : EnvironmentSettings.inStreamingMode());
        sql.getConfig().set("table.local-time-zone", System.getProperty("zone", "UTC"));
        for (JsonNode table : tables) {
            sql.executeSql(table.asText());
        }
        DataStream<String> all = null;
        for (int number = 0; number < queries.size(); number++) {
            try {
                var table = sql.sqlQuery(queries.get(number));
                var streamed = Boolean.getBoolean("changes") ? sql.toChangelogStream(table) : sql.toDataStream(table);
                DataStream<String> rows = streamed.map(new AsText(number, Boolean.getBoolean("changes")));
                all = all == null ? rows : all.union(rows);
                answers.get(number).putArray("rows");
            } catch (Exception refused) {
                answers.get(number).put("error", message(refused));
            }
        }
        if (all == null) {
            return;
        }
        try (CloseableIterator<String> results = all.executeAndCollect()) {
            while (results.hasNext()) {
                ArrayNode row = (ArrayNode) JSON.readTree(results.next());
                int number = row.remove(0).asInt();
                ((ArrayNode) answers.get(number).get("rows")).add(row);
            }
        }
    }

    /** The number of the query and the values of a row as a JSON list. */
    private static final class AsText implements MapFunction<Row, String> {
        private final int number;
        private final boolean isChange;

        AsText(int number, boolean isChange) {
            this.number = number;
            this.isChange = isChange;
        }

        @Override
        public String map(Row row) {
            ArrayNode values = JSON.createArrayNode().add(number);
            if (isChange) {
                return values.add(row.toString()).toString();
            }
            for (int field = 0; field < row.getArity(); field++) {
                Object value = row.getField(field);
                if (value instanceof LocalDateTime) {
                    values.add(TIME.format((LocalDateTime) value));
                } else if (value instanceof BigDecimal) {
                    values.add(((BigDecimal) value).toPlainString());
                } else if (value instanceof Double) {
                    values.add((Double) value);
                } else if (value instanceof Integer || value instanceof Long) {
                    values.add(((Number) value).longValue());
                } else {
                    values.add(value == null ? null : value.toString());
                }
            }
            return values.toString();
        }
    }

    /** The first line of the innermost cause. */
    private static String message(Throwable error) {
        Throwable root = error;
        while (root.getCause() != null) {
            root = root.getCause();
        }
        return (root.getClass().getSimpleName() + ": " + root.getMessage()).lines().findFirst().orElse("");
    }
}
