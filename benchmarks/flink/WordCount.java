import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.LongAdder;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.io.DelimitedInputFormat;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * W1 on Flink's JVM: the same job several times on a local cluster in this process, so that all but the first find
 * compiled code. Arguments: data file, source (file-source or read-file), jobs. Parallelism 2, object reuse off, heap
 * state, no checkpoints. Prints one JSON line.
 */
public final class WordCount {
    private static final int PARALLELISM = 2;
    private static final LongAdder words = new LongAdder();
    private static volatile long firstLineMillis;
    private static volatile long checkpoints;

    /** Lines of a file that all readers share; Flink 2 ships no splittable text format of its own. */
    private static final class SharedLines extends DelimitedInputFormat<String> {
        private static final long serialVersionUID = 1L;

        SharedLines(String path) {
            super(new Path(path), null);
        }

        @Override
        public String readRecord(String reuse, byte[] bytes, int offset, int length) {
            return new String(bytes, offset, length, StandardCharsets.UTF_8);
        }
    }

    private static DataStream<String> lines(StreamExecutionEnvironment env, String path, String source) {
        switch (source) {
            case "file-source":
                var files = FileSource.forRecordStreamFormat(new TextLineInputFormat(), new Path(path)).build();
                return env.fromSource(files, WatermarkStrategy.noWatermarks(), "lines");
            case "read-file":
                return env.readFile(new SharedLines(path), path);
            default:
                throw new IllegalArgumentException("source is " + source + ", wanted file-source or read-file");
        }
    }

    /** The user's function; it also hears of complete checkpoints, which are numbered from 1 on. */
    private static final class Split implements FlatMapFunction<String, Tuple2<String, Integer>>, CheckpointListener {
        private static final long serialVersionUID = 1L;

        @Override
        public void flatMap(String line, Collector<Tuple2<String, Integer>> out) {
            if (firstLineMillis == 0) {
                firstLineMillis = System.currentTimeMillis();
            }
            String[] found = line.split(" ");
            for (String word : found) {
                out.collect(Tuple2.of(word, 1));
            }
            words.add(found.length);
        }

        @Override
        public void notifyCheckpointComplete(long checkpointId) {
            checkpoints = checkpointId;
        }
    }

    public static void main(String[] args) throws Exception {
        double spawned = Double.parseDouble(System.getenv("RAYFLINK_BENCH_SPAWNED"));
        double startup = 0;
        double total = 0;
        List<String> warm = new ArrayList<>();
        int jobs = Integer.parseInt(args[2]);
        for (int job = 0; job < jobs; job++) {
            words.reset();
            firstLineMillis = 0;
            checkpoints = 0;
            var options = new Configuration();
            if (args.length > 3) {
                options.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofMillis(Long.parseLong(args[3])));
                options.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, new java.io.File(args[4]).toURI().toString());
            }
            var env = StreamExecutionEnvironment.createLocalEnvironment(PARALLELISM, options);
            lines(env, args[0], args[1])
                    .flatMap(new Split())
                    .returns(Types.TUPLE(Types.STRING, Types.INT))
                    .keyBy(pair -> pair.f0)
                    .sum(1)
                    .sinkTo(new DiscardingSink<>());
            env.execute("w1");
            double done = System.currentTimeMillis() / 1e3;
            if (job == 0) {
                startup = firstLineMillis / 1e3 - spawned;
                total = done - spawned;
            } else {
                warm.add(String.format(Locale.ROOT, "%.3f", done - firstLineMillis / 1e3));
            }
        }
        System.out.printf(
                Locale.ROOT,
                "%n{\"rows\": %d, \"seconds_total\": %.3f, \"seconds_startup\": %.3f, \"seconds_warm\": %s, "
                        + "\"checkpoints\": %d}%n",
                words.sum(), total, startup, warm, checkpoints);
    }
}
