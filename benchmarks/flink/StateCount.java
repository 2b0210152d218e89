import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * Counts of keys in a ValueState on RocksDB, parallelism 1, in one JVM. Each key comes once; when RocksDB has come to
 * rest, keys are drawn uniformly, and the updates of a fixed window behind a warm-up are counted. Arguments: keys, warm
 * seconds, window seconds, managed memory in MiB, options as key=value, directory for its files. Object reuse off, no
 * checkpoints. Prints one JSON line.
 */
public final class StateCount {
    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static final double IDLE_CORES = 0.05;
    private static final int IDLE_SECONDS = 3;
    private static final CompletableFuture<Mark[]> measured = new CompletableFuture<>();
    private static volatile boolean filled;
    private static volatile double restedSeconds;

    /** What had been done at one moment. */
    private static final class Mark {
        final double seconds = System.nanoTime() / 1e9;
        final double cpu = SYSTEM.getProcessCpuTime() / 1e9;
        final double diskReadBytes = readBytes();
        final long updates;

        Mark(long updates) {
            this.updates = updates;
        }

        private static double readBytes() {
            try {
                return Files.readAllLines(Path.of("/proc/self/io")).stream()
                        .filter(line -> line.startsWith("read_bytes:"))
                        .mapToDouble(line -> Double.parseDouble(line.substring(11).trim()))
                        .sum();
            } catch (java.io.IOException absent) {
                return Double.NaN;
            }
        }
    }

    /** Index to (key, 1): each key once, then drawn ones. */
    private static final class Keys implements MapFunction<Long, Tuple2<Long, Long>> {
        private static final long serialVersionUID = 1L;
        private final long keys;
        private transient SplittableRandom random;

        Keys(long keys) {
            this.keys = keys;
        }

        @Override
        public Tuple2<Long, Long> map(Long index) throws Exception {
            if (index < keys) {
                return Tuple2.of(index, 1L);
            }
            if (random == null) {
                random = new SplittableRandom(20260101);
                rest();
            }
            return Tuple2.of(random.nextLong(keys), 1L);
        }

        /** Returns when all keys are there and flushes and compactions have ended. */
        private static void rest() throws InterruptedException {
            double before = System.nanoTime() / 1e9;
            int idle = 0;
            while (idle < IDLE_SECONDS) {
                long cpu = SYSTEM.getProcessCpuTime();
                Thread.sleep(1000);
                boolean quiet = (SYSTEM.getProcessCpuTime() - cpu) / 1e9 < IDLE_CORES;
                idle = filled && quiet ? idle + 1 : 0;
            }
            restedSeconds = System.nanoTime() / 1e9 - before;
        }
    }

    /** The user's function, which also marks the ends of the window. */
    private static final class Count extends KeyedProcessFunction<Long, Tuple2<Long, Long>, Long> {
        private static final long serialVersionUID = 1L;
        private final long keys;
        private final double warm;
        private final double window;
        private transient ValueState<Long> count;
        private transient long newKeys;
        private transient long updates;
        private transient double began;
        private transient Mark first;

        Count(long keys, double warm, double window) {
            this.keys = keys;
            this.warm = warm;
            this.window = window;
        }

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
        }

        @Override
        public void processElement(Tuple2<Long, Long> record, Context context, Collector<Long> out) throws Exception {
            if (!filled) {
                count.update(0L);
                filled = ++newKeys == keys;
                return;
            }
            count.update(count.value() + 1);
            if ((++updates & 255) == 0) {
                look();
            }
        }

        private void look() {
            double now = System.nanoTime() / 1e9;
            if (began == 0) {
                began = now;
            } else if (first == null && now - began >= warm) {
                first = new Mark(updates);
            } else if (first != null && now - first.seconds >= window && !measured.isDone()) {
                measured.complete(new Mark[] {first, new Mark(updates)});
            }
        }
    }

    private static double peakMemoryMb() throws java.io.IOException {
        return Files.readAllLines(Path.of("/proc/self/status")).stream()
                .filter(line -> line.startsWith("VmHWM:"))
                .mapToDouble(line -> Double.parseDouble(line.replaceAll("[^0-9]", "")) / 1024)
                .sum();
    }

    /** Flink's own shutdown removes files in the same folder at the same time. */
    private static void delete(Path folder) throws InterruptedException {
        for (int turn = 0; turn < 50 && Files.exists(folder); turn++) {
            try (var paths = Files.walk(folder)) {
                for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
                    Files.deleteIfExists(path);
                }
            } catch (java.io.IOException | java.io.UncheckedIOException removedMeanwhile) {
                Thread.sleep(100);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        double spawned = Double.parseDouble(System.getenv("RAYFLINK_BENCH_SPAWNED"));
        long keys = Long.parseLong(args[0]);
        var options = new Configuration();
        options.setString("state.backend.type", "rocksdb");
        options.setString("taskmanager.memory.managed.size", args[3] + "m");
        var folder = Path.of(args[args.length - 1], Long.toString(ProcessHandle.current().pid()));
        options.setString("io.tmp.dirs", folder.toString());
        for (String option : List.of(args).subList(4, args.length - 1)) {
            options.setString(option.substring(0, option.indexOf('=')), option.substring(option.indexOf('=') + 1));
        }
        var env = StreamExecutionEnvironment.createLocalEnvironment(1, options);
        env.fromSequence(0, Long.MAX_VALUE - 1)
                .map(new Keys(keys))
                .returns(Types.TUPLE(Types.LONG, Types.LONG))
                .keyBy(record -> record.f0)
                .process(new Count(keys, Double.parseDouble(args[1]), Double.parseDouble(args[2])))
                .sinkTo(new DiscardingSink<>());
        var client = env.executeAsync("State count");
        client.getJobExecutionResult().whenComplete((result, failure) -> {
            if (failure != null) {
                measured.completeExceptionally(failure);
            }
        });
        Mark[] marks = measured.get();
        long updates = marks[1].updates - marks[0].updates;
        double seconds = marks[1].seconds - marks[0].seconds;
        client.cancel().get();
        try {
            client.getJobExecutionResult().get(60, TimeUnit.SECONDS); // it removes its database
        } catch (ExecutionException cancelled) {
            assert measured.isDone();
        }
        System.out.printf(
                Locale.ROOT,
                "%n{\"rows\": %d, \"seconds_total\": %.3f, \"updates_per_second\": %.1f, \"cores_busy\": %.3f, "
                        + "\"disk_read_bytes_an_update\": %.1f, \"memory_mb\": %.1f, \"seconds_at_rest\": %.1f}%n",
                updates, System.currentTimeMillis() / 1e3 - spawned, updates / seconds,
                (marks[1].cpu - marks[0].cpu) / seconds,
                (marks[1].diskReadBytes - marks[0].diskReadBytes) / updates, peakMemoryMb(), restedSeconds);
        System.out.flush();
        delete(folder);
        Runtime.getRuntime().halt(0);
    }
}
