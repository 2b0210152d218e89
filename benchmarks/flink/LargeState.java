import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.SplittableRandom;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * The job of large_state.py. Arguments: keys, updates a second, bytes a value, parallelism of the operator with the
 * state, folder for what the sinks have reached. Without end; all else is configuration of the cluster.
 */
public final class LargeState {
    private static final int TOLD_EVERY = 64;

    /** Index to (key, index): each key once, then drawn ones by the clock, whose beginning survives failures. */
    private static final class Updates implements MapFunction<Long, Tuple2<Long, Long>>, CheckpointedFunction {
        private static final long serialVersionUID = 1L;
        private final long keys;
        private final double rate;
        private transient SplittableRandom random;
        private transient ListState<Long> kept;
        private transient long beganMillis;

        Updates(long keys, double rate) {
            this.keys = keys;
            this.rate = rate;
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            random = new SplittableRandom();
            kept = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("began", Types.LONG));
            for (long began : kept.get()) {
                beganMillis = began;
            }
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            kept.clear();
            kept.add(beganMillis);
        }

        @Override
        public Tuple2<Long, Long> map(Long index) throws InterruptedException {
            if (index < keys) {
                return Tuple2.of(index, index);
            }
            if (beganMillis == 0) {
                beganMillis = System.currentTimeMillis();
            }
            while ((System.currentTimeMillis() - beganMillis) * rate < (index - keys) * 1000.0) {
                Thread.sleep(1);
            }
            return Tuple2.of(random.nextLong(keys), index);
        }
    }

    /** Sets the value of the key, and tells the number of some records. */
    private static final class Values extends KeyedProcessFunction<Long, Tuple2<Long, Long>, Long> {
        private static final long serialVersionUID = 1L;
        private final int valueBytes;
        private transient SplittableRandom random;
        private transient ValueState<byte[]> value;
        private transient long seen;

        Values(int valueBytes) {
            this.valueBytes = valueBytes;
        }

        @Override
        public void open(OpenContext context) {
            random = new SplittableRandom();
            var bytes = PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO;
            value = getRuntimeContext().getState(new ValueStateDescriptor<>("values", bytes));
        }

        @Override
        public void processElement(Tuple2<Long, Long> record, Context context, Collector<Long> out) throws IOException {
            byte[] noise = new byte[valueBytes];
            random.nextBytes(noise);
            value.update(noise);
            if (++seen % TOLD_EVERY == 0) {
                out.collect(record.f1);
            }
        }
    }

    /** Keeps in a file of its own the highest number that has come. */
    private static final class Reached implements SinkWriter<Long> {
        private final ByteBuffer number = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        private final FileChannel file;
        private long highest = -1;

        Reached(String folder, int subtask) throws IOException {
            String name = subtask + "-" + ProcessHandle.current().pid() + "-" + System.nanoTime();
            file = FileChannel.open(Path.of(folder, name), StandardOpenOption.WRITE, StandardOpenOption.CREATE);
        }

        @Override
        public void write(Long value, Context context) throws IOException {
            if (value > highest) {
                highest = value;
                file.write(number.clear().putLong(value).flip(), 0);
            }
        }

        @Override
        public void flush(boolean endOfInput) {}

        @Override
        public void close() throws IOException {
            file.close();
        }
    }

    public static void main(String[] args) throws Exception {
        long keys = Long.parseLong(args[0]);
        String folder = args[4];
        var env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(1).setMaxParallelism(128);
        env.fromSequence(0, Long.MAX_VALUE - 1)
                .map(new Updates(keys, Double.parseDouble(args[1])))
                .returns(Types.TUPLE(Types.LONG, Types.LONG))
                .keyBy(record -> record.f0)
                .process(new Values(Integer.parseInt(args[2])))
                .name("values")
                .setParallelism(Integer.parseInt(args[3]))
                .sinkTo(context -> new Reached(folder, context.getTaskInfo().getIndexOfThisSubtask()))
                .name("reached")
                .setParallelism(Integer.parseInt(args[3]));
        env.execute("large state");
    }
}
