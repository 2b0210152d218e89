import java.time.Duration;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.RowKind;

/**
 * How long after a window its results are there: DDL, query, windows to leave out, mini-batch, a query without one, and one
 * whose results change, with the seconds to leave out and the buffer timeout.
 */
public final class SqlLatency {
    public static void main(String[] args) throws Exception {
        var env = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
        var config = env.getConfig();
        config.set("parallelism.default", "2");
        config.set("table.local-time-zone", "UTC");
        config.set("table.exec.mini-batch.enabled", args[3]);
        config.set("table.exec.mini-batch.allow-latency", "1 s");
        config.set("table.exec.mini-batch.size", "5000");
        env.executeSql(args[0]);
        long begun = System.currentTimeMillis();
        long first;
        try (var rows = env.executeSql(args[4]).collect()) {
            rows.next();
            first = System.currentTimeMillis() - begun;
        }
        LocalDateTime from = null;
        List<Long> delays = new ArrayList<>();
        try (var rows = env.executeSql(args[1]).collect()) {
            while (rows.hasNext()) {
                var row = rows.next();
                LocalDateTime end = row.getFieldAs(0);
                if (from == null) {
                    from = end.plusSeconds(Long.parseLong(args[2]));
                }
                if (!end.isBefore(from)) {
                    delays.add(Duration.between(end, (LocalDateTime) row.getFieldAs(1)).toMillis());
                }
            }
        }
        Collections.sort(delays);
        config.set("execution.buffer-timeout.interval", args[7]);
        List<Long> changes = changes(env, args[5], Long.parseLong(args[6]));
        System.out.printf(
                Locale.ROOT,
                "%n{\"results\": %d, \"p50_ms\": %d, \"p99_ms\": %d, \"max_ms\": %d, \"first_row_s\": %.3f, "
                        + "\"changes\": %d, \"changes_p50_ms\": %d, \"changes_p99_ms\": %d, \"changes_max_ms\": %d}%n",
                delays.size(), at(delays, 0.5), at(delays, 0.99), at(delays, 1.0), first / 1e3,
                changes.size(), at(changes, 0.5), at(changes, 0.99), at(changes, 1.0));
    }

    /** From the time of a row to the change that it made. */
    private static List<Long> changes(TableEnvironment env, String query, long warmSeconds) {
        LocalDateTime from = null;
        List<Long> delays = new ArrayList<>();
        try (var rows = env.executeSql(query).collect()) {
            while (rows.hasNext()) {
                var row = rows.next();
                if (row.getKind() == RowKind.UPDATE_BEFORE) {
                    continue;
                }
                LocalDateTime time = row.getFieldAs(0);
                if (from == null) {
                    from = time.plusSeconds(warmSeconds);
                }
                if (!time.isBefore(from)) {
                    delays.add(Duration.between(time, (LocalDateTime) row.getFieldAs(1)).toMillis());
                }
            }
        } catch (Exception failure) {
            throw new IllegalStateException(failure);
        }
        Collections.sort(delays);
        return delays;
    }

    private static long at(List<Long> sorted, double share) {
        return sorted.get(Math.max((int) Math.ceil(sorted.size() * share) - 1, 0));
    }
}
