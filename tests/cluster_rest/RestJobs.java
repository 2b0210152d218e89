import java.time.Duration;
import java.util.Map;
import org.apache.flink.api.common.accumulators.IntCounter;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.util.ParameterTool;

/** The jobs whose answers are recorded: events, parsed, summed by key in windows; the same as those of jobs_of_tests.py. */
public final class RestJobs {
    static final class Parse extends RichMapFunction<Long, Long> {
        private final long broken;
        private final IntCounter parsed = new IntCounter();

        Parse(long broken) {
            this.broken = broken;
        }

        @Override
        public void open(OpenContext context) {
            getRuntimeContext().addAccumulator("parsed", parsed);
        }

        @Override
        public Long map(Long number) {
            if (number == broken) {
                throw new RuntimeException("record " + number + " is broken", new IllegalStateException("price is -1"));
            }
            parsed.add(1);
            return number;
        }
    }

    public static void main(String[] arguments) throws Exception {
        String kind = arguments[0];
        Configuration options = new Configuration();
        boolean restarts = kind.equals("restarting");
        options.setString("restart-strategy.type", restarts ? "fixed-delay" : "none");
        if (restarts) {
            options.setString("restart-strategy.fixed-delay.attempts", "3");
            options.setString("restart-strategy.fixed-delay.delay", "1 h");
        }
        if (kind.equals("running")) {
            options.setString("execution.checkpointing.interval", "500 ms");
            options.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(options);
        env.setParallelism(2);
        env.getConfig().setGlobalJobParameters(ParameterTool.fromMap(Map.of("kind", kind)));
        long count = kind.equals("running") ? 1_000_000_000_000L : 200;
        long broken = kind.equals("failed") || restarts ? 50 : -1;
        DataGeneratorSource<Long> numbers =
                new DataGeneratorSource<>(number -> number, count, RateLimiterStrategy.perSecond(200), Types.LONG);
        WatermarkStrategy<Long> watermarks =
                WatermarkStrategy.<Long>forMonotonousTimestamps().withTimestampAssigner((number, before) -> number * 10);
        env.fromSource(numbers, watermarks, "events")
                .map(new Parse(broken))
                .name("parse")
                .keyBy(number -> number % 7, Types.LONG)
                .window(TumblingEventTimeWindows.of(Duration.ofSeconds(1)))
                .reduce((left, right) -> left + right)
                .name("sum")
                .sinkTo(new DiscardingSink<>())
                .name("discard");
        env.execute(kind + " job");
    }
}
