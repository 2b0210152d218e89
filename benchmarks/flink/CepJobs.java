import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.util.Collector;

/**
 * Patterns of three steps over the events of benchmarks/inputs/cep_events.py, one job after the other in one JVM, parallelism
 * 1, heap state, no checkpoints. Arguments: accounts, events a millisecond, seconds of `within`, the DDL and the query
 * with {path} in them; then of each job a case, how many events, the share of relevant ones, the CSV file or "", and
 * "warm", if its time does not count, else "measured". The case "memory" has as many accounts as events, and each
 * begins a match.
 */
public final class CepJobs {
    private static final LongAdder matches = new LongAdder();
    private static volatile long heapBefore;
    private static volatile long heapAfter;

    /** Index to event. */
    private static final class Events implements MapFunction<Long, Tuple4<Long, Integer, Long, Long>> {
        private static final long serialVersionUID = 1L;
        private final long accounts;
        private final long eventsPerMs;
        private final int share;

        Events(long accounts, long eventsPerMs, int share) {
            this.accounts = accounts;
            this.eventsPerMs = eventsPerMs;
            this.share = share;
        }

        @Override
        public Tuple4<Long, Integer, Long, Long> map(Long number) {
            long account = number * 7919 % accounts;
            long turn = number / accounts;
            long block = scrambled(account << 20 | turn / 3);
            long draw = scrambled(number);
            int kind = 0;
            if ((block >> 1) % 100 < share) {
                kind = (int) (((block & 1) == 1 ? turn : draw) % 3) + 1;
            }
            return Tuple4.of(account, kind, draw % 1000, number / eventsPerMs);
        }

        private static long scrambled(long value) {
            long mixed = value + 0x9E3779B97F4A7C15L;
            mixed = (mixed ^ (mixed >>> 30)) * 0xBF58476D1CE4E5B9L;
            mixed = (mixed ^ (mixed >>> 27)) * 0x94D049BB133111EBL;
            return (mixed ^ (mixed >>> 31)) >>> 1;
        }
    }

    /** Number to the first event of a match, each of another account. */
    private static final class Beginnings implements MapFunction<Long, Tuple4<Long, Integer, Long, Long>> {
        private static final long serialVersionUID = 1L;

        @Override
        public Tuple4<Long, Integer, Long, Long> map(Long number) {
            return Tuple4.of(number, 1, number % 1000, number / 100);
        }
    }

    /** The user's function. */
    private static final class Paid extends PatternProcessFunction<Tuple4<Long, Integer, Long, Long>, Long> {
        private static final long serialVersionUID = 1L;

        @Override
        public void processMatch(
                Map<String, List<Tuple4<Long, Integer, Long, Long>>> match, Context context, Collector<Long> out) {
            matches.increment();
            out.collect(match.get("a").get(0).f2 + match.get("c").get(0).f2);
        }
    }

    /** Looks at the heap before the first event, and when all have been matched and the state is still there. */
    private static final class HeapWatch extends AbstractStreamOperator<Long>
            implements OneInputStreamOperator<Long, Long> {
        private static final long serialVersionUID = 1L;

        @Override
        public void open() throws Exception {
            super.open();
            heapBefore = usedHeap();
        }

        @Override
        public void processElement(StreamRecord<Long> element) {
            output.collect(element);
        }

        @Override
        public void finish() throws Exception {
            heapAfter = usedHeap();
            super.finish();
        }

        private static long usedHeap() throws InterruptedException {
            for (int round = 0; round < 3; round++) {
                System.gc();
                Thread.sleep(200);
            }
            return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
        }
    }

    public static void main(String[] args) throws Exception {
        double spawned = Double.parseDouble(System.getenv("RAYFLINK_BENCH_SPAWNED"));
        var os = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        var measured = new ArrayList<String>();
        double bytesPerKey = 0;
        for (int at = 5; at < args.length; at += 5) {
            String name = args[at];
            long events = Long.parseLong(args[at + 1]);
            matches.reset();
            var options = new Configuration();
            options.setString("taskmanager.numberOfTaskSlots", "1");
            var env = StreamExecutionEnvironment.createLocalEnvironment(1, options);
            if (name.startsWith("sql")) {
                querySql(env, args, args[at + 3]);
            } else {
                pattern(env, args, name, events, Integer.parseInt(args[at + 2]));
            }
            double begun = System.nanoTime() / 1e9, cpu = os.getProcessCpuTime() / 1e9;
            env.execute(name);
            double seconds = System.nanoTime() / 1e9 - begun;
            double busy = os.getProcessCpuTime() / 1e9 - cpu;
            System.err.printf(Locale.ROOT, "%s of %d: %.2f s, %.2f CPU, %d%n", name, events, seconds, busy, matches.sum());
            if (name.equals("memory")) {
                bytesPerKey = (heapAfter - heapBefore) / (double) events;
            } else if (!args[at + 4].equals("warm")) {
                measured.add(String.format(Locale.ROOT,
                        "{\"query\": \"%s\", \"events\": %d, \"seconds\": %.3f, \"cpu_seconds\": %.3f, \"matches\": %d}",
                        name, events, seconds, busy, matches.sum()));
            }
        }
        double total = System.currentTimeMillis() / 1e3 - spawned;
        System.out.printf(Locale.ROOT, "%n{\"seconds_total\": %.3f, \"bytes_a_key\": %.1f, \"jobs\": [%s]}%n",
                total, bytesPerKey, String.join(", ", measured));
    }

    private static void pattern(StreamExecutionEnvironment env, String[] args, String name, long count, int share) {
        boolean isMemory = name.equals("memory");
        var numbers = env.fromSequence(0, count - 1);
        MapFunction<Long, Tuple4<Long, Integer, Long, Long>> events = isMemory
                ? new Beginnings()
                : new Events(Long.parseLong(args[0]), Long.parseLong(args[1]), share);
        var stream = numbers.map(events)
                .returns(Types.<Tuple4<Long, Integer, Long, Long>>TUPLE(Types.LONG, Types.INT, Types.LONG, Types.LONG))
                .assignTimestampsAndWatermarks(WatermarkStrategy
                        .<Tuple4<Long, Integer, Long, Long>>forMonotonousTimestamps()
                        .withTimestampAssigner((event, before) -> event.f3));
        boolean isStrict = name.startsWith("strict");
        var first = Pattern.<Tuple4<Long, Integer, Long, Long>>begin("a").where(SimpleCondition.of(it -> it.f1 == 1));
        var second = (isStrict ? first.next("b") : first.followedBy("b")).where(SimpleCondition.of(it -> it.f1 == 2));
        var steps = (isStrict ? second.next("c") : second.followedBy("c")).where(SimpleCondition.of(it -> it.f1 == 3));
        if (!isMemory) {
            steps = steps.within(Duration.ofSeconds(Long.parseLong(args[2])));
        }
        DataStream<Long> results = CEP.pattern(stream.keyBy(it -> it.f0), steps).process(new Paid());
        if (isMemory) {
            results = results.transform("heap", Types.LONG, new HeapWatch());
        }
        results.sinkTo(new DiscardingSink<>());
    }

    private static void querySql(StreamExecutionEnvironment env, String[] args, String path) {
        var tables = StreamTableEnvironment.create(env);
        tables.getConfig().set("parallelism.default", "1");
        tables.getConfig().set("table.local-time-zone", "UTC");
        tables.executeSql(args[3].replace("{path}", path));
        tables.toDataStream(tables.sqlQuery(args[4]))
                .map(row -> {
                    matches.increment();
                    return 1L;
                })
                .returns(Types.LONG)
                .sinkTo(new DiscardingSink<>());
    }
}
