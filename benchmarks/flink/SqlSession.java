import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.LookupTableSource;
import org.apache.flink.table.connector.source.lookup.LookupFunctionProvider;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.LookupFunction;
import org.apache.flink.types.RowKind;

/**
 * Queries of SQL over several sets of data, one after the other in one JVM: of each set a SCRIPT, its folder and how many
 * events it has.
 *
 * <p>A script holds statements, each ended by a line ";;". Those before the first line "== NAME" are for all; those behind it
 * are the query's, options of Flink as "SET name = value" among them, the last one its INSERT. The first set warms the JVM up;
 * of the others seconds and CPU seconds are told.
 */
public final class SqlSession {
    private static final String FOLD = "FOLD INTO ";
    private static final String SET = "SET ";

    public static void main(String[] args) throws Exception {
        double spawned = Double.parseDouble(System.getenv("RAYFLINK_BENCH_SPAWNED"));
        var os = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        var told = new ArrayList<String>();
        for (int set = 0; set < args.length; set += 3) {
            String[] sections = Files.readString(Path.of(args[set])).split("(?m)^== ");
            for (int at = 1; at < sections.length; at++) {
                int line = sections[at].indexOf('\n');
                String[] own = sections[at].substring(line + 1).split("(?m)^;;$");
                var env = environment(own);
                run(env, sections[0].split("(?m)^;;$"), args[set + 1]);
                for (int number = 0; number < own.length - 2; number++) {
                    if (!own[number].strip().startsWith(SET)) {
                        env.executeSql(own[number].strip());
                    }
                }
                double begun = System.nanoTime() / 1e9, cpu = os.getProcessCpuTime() / 1e9;
                String last = own[own.length - 2].strip();
                if (last.startsWith(FOLD)) {
                    fold(env, last);
                } else {
                    env.executeSql(last).await();
                }
                double seconds = System.nanoTime() / 1e9 - begun;
                double busy = os.getProcessCpuTime() / 1e9 - cpu;
                String name = sections[at].substring(0, line).strip();
                if (set > 0) {
                    told.add(String.format(Locale.ROOT,
                            "{\"query\": \"%s\", \"events\": %s, \"seconds\": %.3f, \"cpu_seconds\": %.3f}",
                            name, args[set + 2], seconds, busy));
                }
                System.err.printf(Locale.ROOT, "%s of %s: %.2f s, %.2f CPU%n", name, args[set + 1], seconds, busy);
            }
        }
        double total = System.currentTimeMillis() / 1e3 - spawned;
        System.out.printf(Locale.ROOT, "%n{\"seconds_total\": %.3f, \"jobs\": [%s]}%n", total, String.join(", ", told));
    }

    /** Applies the changes of a query, which is behind the first line, and writes the rows that are left to its file. */
    private static void fold(TableEnvironment env, String statement) throws Exception {
        int line = statement.indexOf('\n');
        var rows = new TreeMap<String, Integer>();
        try (var results = env.executeSql(statement.substring(line + 1)).collect()) {
            while (results.hasNext()) {
                var row = results.next();
                var text = new StringBuilder();
                for (int at = 0; at < row.getArity(); at++) {
                    Object value = row.getField(at);
                    text.append(at > 0 ? "," : "").append(value == null ? "" : quoted(value.toString()));
                }
                boolean isGone = row.getKind() == RowKind.UPDATE_BEFORE || row.getKind() == RowKind.DELETE;
                rows.merge(text.toString(), isGone ? -1 : 1, Integer::sum);
            }
        }
        Path path = Path.of(statement.substring(FOLD.length(), line));
        Files.createDirectories(path.getParent());
        try (var writer = Files.newBufferedWriter(path)) {
            for (var entry : rows.entrySet()) {
                for (int times = 0; times < entry.getValue(); times++) {
                    writer.write(entry.getKey() + "\n");
                }
            }
        }
    }

    private static String quoted(String value) {
        boolean isPlain = value.indexOf(',') < 0 && value.indexOf('"') < 0 && value.indexOf('\n') < 0;
        return isPlain ? value : '"' + value.replace("\"", "\"\"") + '"';
    }

    /**
     * The connector "side-input": a table of a number and a string in one CSV file, read as a whole into a map of each
     * subtask. Flink's CSV tables could be looked up so before 1.15, when q13 was written; its file systems cannot.
     */
    public static final class SideInput implements DynamicTableSourceFactory {
        private static final ConfigOption<String> PATH = ConfigOptions.key("path").stringType().noDefaultValue();

        @Override
        public String factoryIdentifier() {
            return "side-input";
        }

        @Override
        public Set<ConfigOption<?>> requiredOptions() {
            return Set.of(PATH);
        }

        @Override
        public Set<ConfigOption<?>> optionalOptions() {
            return Set.of();
        }

        @Override
        public DynamicTableSource createDynamicTableSource(Context context) {
            var helper = FactoryUtil.createTableFactoryHelper(this, context);
            helper.validate();
            return new Lookups(helper.getOptions().get(PATH));
        }
    }

    private record Lookups(String path) implements LookupTableSource {
        @Override
        public LookupRuntimeProvider getLookupRuntimeProvider(LookupContext context) {
            return LookupFunctionProvider.of(new RowsOfFile(path));
        }

        @Override
        public DynamicTableSource copy() {
            return this;
        }

        @Override
        public String asSummaryString() {
            return "side input";
        }
    }

    /** The row of a number. */
    public static final class RowsOfFile extends LookupFunction {
        private final String path;
        private transient Map<Long, Collection<RowData>> rows;

        RowsOfFile(String path) {
            this.path = path;
        }

        @Override
        public void open(FunctionContext context) throws Exception {
            rows = new HashMap<>();
            for (String line : Files.readAllLines(Path.of(path))) {
                long key = Long.parseLong(line.substring(0, line.indexOf(',')));
                var value = StringData.fromString(line.substring(line.indexOf(',') + 1));
                rows.put(key, List.of(GenericRowData.of(key, value)));
            }
        }

        @Override
        public Collection<RowData> lookup(RowData key) {
            return rows.getOrDefault(key.getLong(0), List.of());
        }
    }

    private static TableEnvironment environment(String[] statements) {
        var options = new Configuration();
        options.setString("parallelism.default", "2");
        options.setString("table.local-time-zone", "UTC");
        options.setString("table.exec.mini-batch.enabled", "true");
        options.setString("table.exec.mini-batch.allow-latency", "2 s");
        options.setString("table.exec.mini-batch.size", "50000");
        options.setString("table.optimizer.distinct-agg.split.enabled", "true");
        for (String statement : statements) {
            if (statement.strip().startsWith(SET)) {
                String[] option = statement.strip().substring(SET.length()).split(" = ", 2);
                options.setString(option[0], option[1]);
            }
        }
        return TableEnvironment.create(
                EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(options).build());
    }

    private static void run(TableEnvironment env, String[] statements, String path) {
        for (String statement : statements) {
            if (!statement.isBlank()) {
                env.executeSql(statement.strip().replace("{path}", path));
            }
        }
    }
}
