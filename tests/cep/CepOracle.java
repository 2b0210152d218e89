import java.io.BufferedReader;
import java.io.PrintWriter;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.state.KeyedStateStore;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.typeutils.base.IntSerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.cep.nfa.NFA;
import org.apache.flink.cep.nfa.NFAState;
import org.apache.flink.cep.nfa.State;
import org.apache.flink.cep.nfa.StateTransition;
import org.apache.flink.cep.nfa.StateTransitionAction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.nfa.aftermatch.SkipToFirstStrategy;
import org.apache.flink.cep.nfa.aftermatch.SkipToLastStrategy;
import org.apache.flink.cep.nfa.compiler.NFACompiler;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBuffer;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBufferAccessor;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.WithinType;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.cep.time.TimerService;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * Finds the matches of patterns in streams with Flink's automaton. Arguments: a file with one JSON object a line, as
 * tests/cep/random_patterns.py describes it; the file to write, one line each: the matches and the partial matches that
 * timed out, in order, or an error, and the windows between two events by state. Time passes millisecond by millisecond.
 */
public final class CepOracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int MOST_PARTIAL_MATCHES = 400;

    /** Letters, numbers and timestamps of the stream at hand; an event is its place in it. */
    private static String letters;
    private static int[] numbers;
    private static long[] times;

    public static void main(String[] arguments) throws Exception {
        try (BufferedReader in = Files.newBufferedReader(Path.of(arguments[0]));
                PrintWriter out =
                        new PrintWriter(Files.newBufferedWriter(Path.of(arguments[1]), StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                ArrayNode found = JSON.createArrayNode();
                ObjectNode answer = JSON.createObjectNode();
                try {
                    answer.set("found", found);
                    findMatches(JSON.readTree(line), found, answer);
                } catch (Throwable error) {
                    Throwable root = error;
                    while (root.getCause() != null) {
                        root = root.getCause();
                    }
                    answer.put("error", root.getClass().getSimpleName() + ": " + root.getMessage());
                }
                out.println(answer);
            }
        }
    }

    private static void findMatches(JsonNode pair, ArrayNode found, ObjectNode answer) throws Exception {
        readEvents(pair.get("events").asText());
        Pattern<Integer, ?> pattern = sequence(pair.get("steps"), skipStrategy(pair.get("skip")));
        AfterMatchSkipStrategy skip = pattern.getAfterMatchSkipStrategy();
        NFA<Integer> nfa = NFACompiler.compileFactory(pattern, true).createNFA();
        Field windows = NFA.class.getDeclaredField("windowTimes");
        windows.setAccessible(true);
        if (!((Map<?, ?>) windows.get(nfa)).isEmpty()) {
            answer.set("windows", JSON.valueToTree(windows.get(nfa)));
        }
        for (State<Integer> state : nfa.getStates()) {
            refuseCircle(state, new ArrayDeque<>());
        }
        SharedBuffer<Integer> buffer = new SharedBuffer<>(statesInMemory(), IntSerializer.INSTANCE);
        try {
            NFAState state = nfa.createInitialNFAState();
            long now = times.length == 0 ? 0 : times[0];
            for (int event = 0; event < times.length; event++) {
                now = passTime(nfa, buffer, state, skip, now, times[event], found);
                try (SharedBufferAccessor<Integer> accessor = buffer.getAccessor()) {
                    addMatches(nfa.process(accessor, state, event, now, skip, Clock.INSTANCE), "" + event, found);
                }
                if (state.getPartialMatches().size() > MOST_PARTIAL_MATCHES) {
                    throw new IllegalStateException("more than " + MOST_PARTIAL_MATCHES + " partial matches");
                }
            }
            passTime(nfa, buffer, state, skip, now, now + pair.get("rest").asLong(), found);
        } finally {
            buffer.releaseCacheStatisticsTimer();
        }
    }

    /** Refuses an automaton on which Flink would not end: with a circle of PROCEED edges. */
    private static void refuseCircle(State<Integer> state, Deque<State<Integer>> path) {
        if (path.contains(state)) {
            throw new IllegalStateException("circle of PROCEED edges");
        }
        path.push(state);
        for (StateTransition<Integer> edge : state.getStateTransitions()) {
            if (edge.getAction() == StateTransitionAction.PROCEED) {
                refuseCircle(edge.getTargetState(), path);
            }
        }
        path.pop();
    }

    private static long passTime(
            NFA<Integer> nfa,
            SharedBuffer<Integer> buffer,
            NFAState state,
            AfterMatchSkipStrategy skip,
            long from,
            long to,
            ArrayNode found)
            throws Exception {
        for (long now = from + 1; now <= to; now++) {
            try (SharedBufferAccessor<Integer> accessor = buffer.getAccessor()) {
                Tuple2<Collection<Map<String, List<Integer>>>, Collection<Tuple2<Map<String, List<Integer>>, Long>>>
                        over = nfa.advanceTime(accessor, state, now, skip);
                addMatches(over.f0, "at " + now, found);
                for (Tuple2<Map<String, List<Integer>>, Long> partial : over.f1) {
                    found.add("over " + partial.f1 + text(partial.f0));
                }
            }
        }
        return to;
    }

    private static void addMatches(Collection<Map<String, List<Integer>>> matches, String when, ArrayNode found) {
        for (Map<String, List<Integer>> match : matches) {
            found.add(when + text(match));
        }
    }

    private static String text(Map<String, List<Integer>> match) {
        StringBuilder text = new StringBuilder();
        for (Map.Entry<String, List<Integer>> step : match.entrySet()) {
            text.append(' ').append(step.getKey()).append('=');
            for (int place = 0; place < step.getValue().size(); place++) {
                text.append(place == 0 ? "" : ",").append(step.getValue().get(place));
            }
        }
        return text.toString();
    }

    private static void readEvents(String text) {
        String[] events = text.isEmpty() ? new String[0] : text.split(" ");
        StringBuilder read = new StringBuilder();
        numbers = new int[events.length];
        times = new long[events.length];
        for (int place = 0; place < events.length; place++) {
            String[] event = events[place].split("@");
            read.append(event[0].charAt(0));
            numbers[place] = Integer.parseInt(event[0].substring(1));
            times[place] = Long.parseLong(event[1]);
        }
        letters = read.toString();
    }

    private static AfterMatchSkipStrategy skipStrategy(JsonNode skip) {
        boolean fails = skip.size() > 2;
        switch (skip.get(0).asText()) {
            case "no_skip":
                return AfterMatchSkipStrategy.noSkip();
            case "skip_to_next":
                return AfterMatchSkipStrategy.skipToNext();
            case "skip_past_last_event":
                return AfterMatchSkipStrategy.skipPastLastEvent();
            case "skip_to_first":
                SkipToFirstStrategy first = AfterMatchSkipStrategy.skipToFirst(skip.get(1).asText());
                return fails ? first.throwExceptionOnMiss() : first;
            default:
                SkipToLastStrategy last = AfterMatchSkipStrategy.skipToLast(skip.get(1).asText());
                return fails ? last.throwExceptionOnMiss() : last;
        }
    }

    private static Pattern<Integer, ?> sequence(JsonNode steps, AfterMatchSkipStrategy skip) {
        Pattern<Integer, ?> pattern = null;
        for (JsonNode step : steps) {
            pattern = append(pattern, step, skip);
        }
        return pattern;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Pattern<Integer, ?> append(Pattern before, JsonNode step, AfterMatchSkipStrategy skip) {
        String how = step.get("how").asText();
        Pattern pattern;
        if (step.has("group")) {
            Pattern group = sequence(step.get("group"), skip);
            switch (how) {
                case "begin":
                    pattern = Pattern.begin(group, skip);
                    break;
                case "next":
                    pattern = before.next(group);
                    break;
                case "followed_by":
                    pattern = before.followedBy(group);
                    break;
                default:
                    pattern = before.followedByAny(group);
            }
        } else {
            pattern = named(before, how, step.get("name").asText(), skip);
        }
        for (JsonNode call : step.get("calls")) {
            pattern = apply(pattern, call);
        }
        return pattern;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Pattern named(Pattern before, String how, String name, AfterMatchSkipStrategy skip) {
        switch (how) {
            case "begin":
                return Pattern.begin(name, skip);
            case "next":
                return before.next(name);
            case "followed_by":
                return before.followedBy(name);
            case "followed_by_any":
                return before.followedByAny(name);
            case "not_next":
                return before.notNext(name);
            default:
                return before.notFollowedBy(name);
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Pattern apply(Pattern pattern, JsonNode call) {
        switch (call.get(0).asText()) {
            case "where":
                return pattern.where(condition(call.get(1)));
            case "or_":
                return pattern.or(condition(call.get(1)));
            case "until":
                return pattern.until(condition(call.get(1)));
            case "one_or_more":
                return pattern.oneOrMore(length(call.get(1)));
            case "times_or_more":
                return pattern.timesOrMore(call.get(1).asInt(), length(call.get(2)));
            case "times":
                return pattern.times(call.get(1).asInt(), length(call.get(2)));
            case "times_range":
                return pattern.times(call.get(1).asInt(), call.get(2).asInt(), length(call.get(3)));
            case "optional":
                return pattern.optional();
            case "greedy":
                return pattern.greedy();
            case "consecutive":
                return pattern.consecutive();
            case "allow_combinations":
                return pattern.allowCombinations();
            case "within":
                return pattern.within(length(call.get(1)));
            case "within_previous":
                return pattern.within(length(call.get(1)), WithinType.PREVIOUS_AND_CURRENT);
            default:
                throw new IllegalArgumentException("no such call: " + call);
        }
    }

    private static Duration length(JsonNode ms) {
        return ms.isNull() ? null : Duration.ofMillis(ms.asLong());
    }

    private static IterativeCondition<Integer> condition(JsonNode condition) {
        String kind = condition.get(0).asText();
        String operand = condition.get(1).asText();
        int bound = condition.size() > 2 ? condition.get(2).asInt() : 0;
        switch (kind) {
            case "letter":
                return new Letter(operand);
            case "least":
                return new Least(condition.get(1).asInt());
            case "rising":
                return new Rising(operand);
            default:
                return new Fewer(operand, bound);
        }
    }

    /** The event has one of some letters. */
    private static final class Letter extends SimpleCondition<Integer> {
        private final String accepted;

        Letter(String accepted) {
            this.accepted = accepted;
        }

        @Override
        public boolean filter(Integer event) {
            return accepted.indexOf(letters.charAt(event)) >= 0;
        }
    }

    /** The event's number is not below a bound. */
    private static final class Least extends SimpleCondition<Integer> {
        private final int bound;

        Least(int bound) {
            this.bound = bound;
        }

        @Override
        public boolean filter(Integer event) {
            return numbers[event] >= bound;
        }
    }

    /** The event's number is above those of the events that a step has so far. */
    private static final class Rising extends IterativeCondition<Integer> {
        private final String step;

        Rising(String step) {
            this.step = step;
        }

        @Override
        public boolean filter(Integer event, Context<Integer> context) throws Exception {
            for (Integer other : context.getEventsForPattern(step)) {
                if (numbers[other] >= numbers[event]) {
                    return false;
                }
            }
            return true;
        }
    }

    /** A step has fewer events so far than a bound. */
    private static final class Fewer extends IterativeCondition<Integer> {
        private final String step;
        private final int bound;

        Fewer(String step, int bound) {
            this.step = step;
            this.bound = bound;
        }

        @Override
        public boolean filter(Integer event, Context<Integer> context) throws Exception {
            int count = 0;
            for (Integer ignored : context.getEventsForPattern(step)) {
                count++;
            }
            return count < bound;
        }
    }

    private enum Clock implements TimerService {
        INSTANCE;

        @Override
        public long currentProcessingTime() {
            return 0;
        }
    }

    /** Returns a store whose map states are maps; the automaton needs no others. */
    private static KeyedStateStore statesInMemory() {
        Class<?>[] store = {KeyedStateStore.class};
        return (KeyedStateStore)
                Proxy.newProxyInstance(
                        CepOracle.class.getClassLoader(),
                        store,
                        (proxy, method, arguments) -> {
                            if (method.getReturnType() == MapState.class) {
                                return new MapInMemory<>();
                            }
                            throw new UnsupportedOperationException(method.getName());
                        });
    }

    private static final class MapInMemory<K, V> implements MapState<K, V> {
        private final Map<K, V> entries = new HashMap<>();

        @Override
        public V get(K key) {
            return entries.get(key);
        }

        @Override
        public void put(K key, V value) {
            entries.put(key, value);
        }

        @Override
        public void putAll(Map<K, V> map) {
            entries.putAll(map);
        }

        @Override
        public void remove(K key) {
            entries.remove(key);
        }

        @Override
        public boolean contains(K key) {
            return entries.containsKey(key);
        }

        @Override
        public Iterable<Map.Entry<K, V>> entries() {
            return entries.entrySet();
        }

        @Override
        public Iterable<K> keys() {
            return entries.keySet();
        }

        @Override
        public Iterable<V> values() {
            return entries.values();
        }

        @Override
        public Iterator<Map.Entry<K, V>> iterator() {
            return entries.entrySet().iterator();
        }

        @Override
        public boolean isEmpty() {
            return entries.isEmpty();
        }

        @Override
        public void clear() {
            entries.clear();
        }
    }
}
