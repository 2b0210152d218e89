import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.LongAdder;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/**
 * In-flight data before functions that sleep, in one JVM. Arguments: microseconds of a record, exchanges, seconds to
 * watch, parallelism, whether buffers are debloated, directory for checkpoints and savepoints. Prints one JSON line.
 */
public final class InFlight {
    private static final int WARM_SECONDS = 3;
    private static final LongAdder PRODUCED = new LongAdder();
    private static final LongAdder TAKEN = new LongAdder();
    private static final List<Long> TOOK = Collections.synchronizedList(new ArrayList<>());
    private static volatile long countFrom = Long.MAX_VALUE;

    /** Counts what a step gives to the next exchange. */
    private static final class Count extends RichMapFunction<Long, Long> {
        @Override
        public Long map(Long number) {
            PRODUCED.increment();
            return number;
        }
    }

    /** Sleeps, and notes how long checkpoints take, by the time of their trigger. */
    private static final class Sleep extends RichMapFunction<Long, Long>
            implements CheckpointedFunction, CheckpointListener {
        private final long micros;
        private transient long newest;
        private transient long triggered;

        Sleep(long micros) {
            this.micros = micros;
        }

        @Override
        public Long map(Long number) throws Exception {
            TAKEN.increment();
            Thread.sleep(micros / 1000, (int) (micros % 1000) * 1000);
            return number;
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) {
            newest = context.getCheckpointId();
            triggered = context.getCheckpointTimestamp();
        }

        @Override
        public void initializeState(FunctionInitializationContext context) {}

        @Override
        public void notifyCheckpointComplete(long id) {
            if (id == newest && triggered > countFrom && getRuntimeContext().getTaskInfo().getIndexOfThisSubtask() == 0) {
                TOOK.add(System.currentTimeMillis() - triggered);
            }
        }
    }

    private static JobClient submit(String[] args) throws Exception {
        var conf = new Configuration();
        conf.setString("taskmanager.network.memory.buffer-debloat.enabled", args[4]);
        conf.setString("execution.checkpointing.interval", "1 s");
        conf.setString("execution.checkpointing.dir", "file://" + args[5] + "/checkpoints");
        conf.setString("execution.checkpointing.timeout", "10 min");
        conf.setString("taskmanager.numberOfTaskSlots", args[3]);
        var env = StreamExecutionEnvironment.createLocalEnvironment(Integer.parseInt(args[3]), conf);
        DataStream<Long> stream = env.fromSequence(0, Long.MAX_VALUE - 1);
        for (int hop = 0; hop < Integer.parseInt(args[1]); hop++) {
            stream = stream.map(new Count()).rebalance().map(new Sleep(Long.parseLong(args[0])));
        }
        stream.sinkTo(new DiscardingSink<>());
        return env.executeAsync("in-flight data");
    }

    private static double millis(long begunNanos) {
        return (System.nanoTime() - begunNanos) / 1e6;
    }

    public static void main(String[] args) throws Exception {
        var client = submit(args);
        long began = System.currentTimeMillis();
        countFrom = began + WARM_SECONDS * 1000L;
        long most = 0;
        while (System.currentTimeMillis() < began + Long.parseLong(args[2]) * 1000) {
            Thread.sleep(500);
            if (System.currentTimeMillis() > countFrom) {
                most = Math.max(most, PRODUCED.sum() - TAKEN.sum());
            }
        }
        countFrom = Long.MAX_VALUE;
        var took = new ArrayList<>(TOOK);
        Collections.sort(took);
        String folder = "file://" + args[5] + "/savepoints";
        long now = System.nanoTime();
        client.triggerSavepoint(folder, SavepointFormatType.CANONICAL).get();
        double savepoint = millis(now);
        now = System.nanoTime();
        client.stopWithSavepoint(false, folder, SavepointFormatType.CANONICAL).get();
        double stop = millis(now);
        client = submit(args);
        Thread.sleep(WARM_SECONDS * 1000L);
        now = System.nanoTime();
        client.cancel().get();
        try {
            client.getJobExecutionResult().get();
        } catch (java.util.concurrent.ExecutionException cancelled) {
            // that is how a cancelled job ends
        }
        double cancel = millis(now);
        System.out.printf(
                Locale.ROOT,
                "%n{\"records_in_flight\": %d, \"checkpoints\": %d, \"checkpoint_p50_ms\": %s, \"checkpoint_max_ms\": %s,"
                        + " \"savepoint_ms\": %.0f, \"stop_ms\": %.0f, \"cancel_ms\": %.0f}%n",
                most, took.size(), took.isEmpty() ? "NaN" : took.get(took.size() / 2),
                took.isEmpty() ? "NaN" : took.get(took.size() - 1), savepoint, stop, cancel);
        System.exit(0);
    }
}
