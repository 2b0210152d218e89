import java.util.Locale;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

/** One statement of SQL over a file of bids: DATA, the DDL and the INSERT with {path} in them, and the file's rows. */
public final class SqlJob {
    public static void main(String[] args) throws Exception {
        double spawned = Double.parseDouble(System.getenv("RAYFLINK_BENCH_SPAWNED"));
        var env = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
        var config = env.getConfig();
        config.set("parallelism.default", "2");
        config.set("table.local-time-zone", "UTC");
        config.set("table.exec.mini-batch.enabled", "true");
        config.set("table.exec.mini-batch.allow-latency", "1 s");
        config.set("table.exec.mini-batch.size", "5000");
        for (String statement : args[1].split(";")) {
            env.executeSql(statement.replace("{path}", args[0]));
        }
        double begun = System.currentTimeMillis() / 1e3;
        env.executeSql(args[2]).await();
        double done = System.currentTimeMillis() / 1e3;
        System.out.printf(
                Locale.ROOT,
                "%n{\"rows\": %s, \"seconds_total\": %.3f, \"seconds_startup\": %.3f, \"seconds_job\": %.3f}%n",
                args[3], done - spawned, begun - spawned, done - begun);
    }
}
