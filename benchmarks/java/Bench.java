import com.datastax.oss.pulsar.jms.PulsarConnectionFactory;
import com.sun.management.OperatingSystemMXBean;
import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * The Java peer of the benchmark: Starlight for JMS, the same workload as the Python rows.
 *
 * <p>Arguments: send|receive|latency|transactions, then name=value pairs. Prints one line "RESULT {json}" with the figures of the
 * last round, when the virtual machine is warm.
 */
public final class Bench {
  private final Map<String, String> options = new HashMap<>();
  private final OperatingSystemMXBean system =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private Bench(String[] arguments) {
    for (String argument : Arrays.asList(arguments).subList(1, arguments.length)) {
      int equals = argument.indexOf('=');
      options.put(argument.substring(0, equals), argument.substring(equals + 1));
    }
  }

  private int number(String name) {
    return Integer.parseInt(options.get(name));
  }

  private Map<String, Object> configuration() {
    Map<String, Object> producer = new HashMap<>();
    producer.put("batchingEnabled", true);
    producer.put("batchingMaxPublishDelayMicros", number("batchDelayMicros"));
    producer.put("batchingMaxMessages", number("batchMessages"));
    producer.put("maxPendingMessages", number("window"));
    producer.put("blockIfQueueFull", true);
    Map<String, Object> consumer = new HashMap<>();
    consumer.put("receiverQueueSize", number("window"));
    Map<String, Object> configuration = new HashMap<>();
    configuration.put("brokerServiceUrl", options.get("url"));
    configuration.put("webServiceUrl", options.get("webUrl"));
    configuration.put("producerConfig", producer);
    configuration.put("consumerConfig", consumer);
    if (options.containsKey("sessions")) {
      configuration.put("enableTransaction", true);
    }
    return configuration;
  }

  public static void main(String[] arguments) throws Exception {
    Bench bench = new Bench(arguments);
    String result = "";
    try (PulsarConnectionFactory factory = new PulsarConnectionFactory(bench.configuration());
        Connection connection = factory.createConnection()) {
      connection.start();
      for (int round = 0; round < bench.number("rounds"); round++) {
        String queue = bench.options.get("topic") + "-" + round;
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
          result =
              switch (arguments[0]) {
                case "send" -> bench.send(session, session.createQueue(queue));
                case "receive" -> bench.receive(session, session.createQueue(queue));
                case "transactions" -> bench.transactions(connection, session, session.createQueue(queue));
                case "latency" -> bench.latency(connection, session, session.createQueue(queue));
                default -> throw new IllegalArgumentException(arguments[0]);
              };
        }
      }
    }
    System.out.println("RESULT " + result);
    // Threads of the client may outlive its close.
    System.exit(0);
  }

  private static final class Confirmations implements CompletionListener {
    final CountDownLatch left;
    final AtomicInteger failed = new AtomicInteger();

    Confirmations(int count) {
      left = new CountDownLatch(count);
    }

    @Override
    public void onCompletion(Message message) {
      left.countDown();
    }

    @Override
    public void onException(Message message, Exception error) {
      failed.incrementAndGet();
      left.countDown();
    }
  }

  private TextMessage message(Session session, String text, int number) throws JMSException {
    TextMessage message = session.createTextMessage(text);
    message.setStringProperty("region", "EU");
    message.setIntProperty("amount", number);
    message.setStringProperty("kind", "order");
    return message;
  }

  private void sendAll(Session session, MessageProducer producer, int count) throws Exception {
    String text = "x".repeat(number("characters"));
    Confirmations confirmations = new Confirmations(count);
    for (int i = 0; i < count; i++) {
      producer.send(message(session, text, i), confirmations);
    }
    if (!confirmations.left.await(100, TimeUnit.SECONDS) || confirmations.failed.get() > 0) {
      throw new IllegalStateException("sends failed: " + confirmations.failed.get());
    }
  }

  private String send(Session session, Queue queue) throws Exception {
    int count = number("messages");
    try (MessageProducer producer = session.createProducer(queue)) {
      long cpu = system.getProcessCpuTime();
      long begin = System.nanoTime();
      sendAll(session, producer, count);
      return rate(count, System.nanoTime() - begin, system.getProcessCpuTime() - cpu);
    }
  }

  private String receive(Session session, Queue queue) throws Exception {
    int count = number("messages");
    // The subscription must exist before the backlog is written.
    session.createConsumer(queue).close();
    try (MessageProducer producer = session.createProducer(queue)) {
      sendAll(session, producer, count);
    }
    try (MessageConsumer consumer = session.createConsumer(queue)) {
      long begin = 0;
      long cpu = 0;
      long sum = 0;
      for (int i = 0; i < count; i++) {
        TextMessage message = (TextMessage) consumer.receive(30_000);
        if (message == null) {
          throw new IllegalStateException("message " + i + " did not come");
        }
        if (i == 0) {
          begin = System.nanoTime();
          cpu = system.getProcessCpuTime();
        }
        if (message.getText().length() != number("characters")) {
          throw new IllegalStateException("text of " + message.getText().length() + " characters");
        }
        sum += message.getIntProperty("amount");
      }
      long nanos = System.nanoTime() - begin;
      if (sum != (long) count * (count - 1) / 2) {
        throw new IllegalStateException("sum " + sum);
      }
      return rate(count, nanos, system.getProcessCpuTime() - cpu);
    }
  }

  private String rate(int count, long nanos, long cpuNanos) {
    return String.format(
        Locale.ROOT,
        "{\"per_second\": %.3f, \"wall_us\": %.6f, \"cpu_us\": %.6f}",
        count * 1e9 / nanos,
        nanos / 1e3 / count,
        cpuNanos / 1e3 / count);
  }

  /** A transacted session with a consumer of its queue and a producer. */
  private final class Unit {
    final Session session;
    final MessageConsumer consumer;
    final MessageProducer producer;

    Unit(Connection connection, Session plain, String name, Queue out) throws Exception {
      session = connection.createSession(true, Session.SESSION_TRANSACTED);
      Queue in = plain.createQueue(name);
      consumer = session.createConsumer(in);
      try (MessageProducer filling = plain.createProducer(in)) {
        sendAll(plain, filling, (number("each") + 1) * number("group"));
      }
      producer = session.createProducer(out);
    }

    void run(int count) throws Exception {
      int group = number("group");
      for (int i = 0; i < count; i++) {
        Confirmations confirmations = new Confirmations(group);
        for (int k = 0; k < group; k++) {
          TextMessage received = (TextMessage) consumer.receive(30_000);
          producer.send(session.createTextMessage(received.getText()), confirmations);
        }
        if (!confirmations.left.await(100, TimeUnit.SECONDS) || confirmations.failed.get() > 0) {
          throw new IllegalStateException("sends failed: " + confirmations.failed.get());
        }
        session.commit();
      }
    }

    void close() throws JMSException {
      session.close();
    }
  }

  private void runAll(List<Unit> units, int count) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(units.size());
    try {
      List<Callable<Void>> tasks = new ArrayList<>();
      for (Unit unit : units) {
        tasks.add(
            () -> {
              unit.run(count);
              return null;
            });
      }
      for (Future<Void> done : threads.invokeAll(tasks)) {
        done.get();
      }
    } finally {
      threads.shutdown();
    }
  }

  private String transactions(Connection connection, Session session, Queue queue) throws Exception {
    Queue out = session.createQueue(queue.getQueueName() + "-out");
    int sessions = number("sessions");
    int each = number("each");
    int group = number("group");
    List<Unit> units = new ArrayList<>();
    try (MessageConsumer receiver = session.createConsumer(out)) {
      for (int i = 0; i < sessions; i++) {
        units.add(new Unit(connection, session, queue.getQueueName() + "-" + i, out));
      }
      runAll(units, 1);
      long cpu = system.getProcessCpuTime();
      long begin = System.nanoTime();
      runAll(units, each);
      long nanos = System.nanoTime() - begin;
      cpu = system.getProcessCpuTime() - cpu;
      for (int i = 0; i < sessions * (each + 1) * group; i++) {
        if (receiver.receive(30_000) == null) {
          throw new IllegalStateException("message " + i + " did not come");
        }
      }
      return rate(sessions * each * group, nanos, cpu);
    } finally {
      for (Unit unit : units) {
        unit.close();
      }
    }
  }

  private String latency(Connection connection, Session session, Queue queue) throws Exception {
    int warm = number("warmMessages");
    int count = warm + number("latencyMessages");
    double gap = 1e9 / number("rate");
    long[] sent = new long[count];
    long[] late = new long[count];
    long[] latencies = new long[count];
    CountDownLatch left = new CountDownLatch(count);
    String text = "x".repeat(number("characters"));
    long cpu = 0;
    long measured = 0;
    try (Session receiving = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = receiving.createConsumer(queue);
        MessageProducer producer = session.createProducer(queue)) {
      Thread receiver =
          new Thread(
              () -> {
                try {
                  while (left.getCount() > 0) {
                    TextMessage received = (TextMessage) consumer.receive(30_000);
                    received.getText();
                    int i = received.getIntProperty("amount");
                    latencies[i] = System.nanoTime() - sent[i];
                    left.countDown();
                  }
                } catch (JMSException error) {
                  throw new IllegalStateException(error);
                }
              });
      receiver.start();
      Confirmations confirmations = new Confirmations(count);
      long begin = System.nanoTime();
      for (int i = 0; i < count; i++) {
        if (i == warm) {
          cpu = system.getProcessCpuTime();
          measured = System.nanoTime();
        }
        long due = begin + (long) (i * gap);
        long wait = due - System.nanoTime();
        if (wait > 0) {
          LockSupport.parkNanos(wait);
        }
        sent[i] = System.nanoTime();
        late[i] = sent[i] - due;
        producer.send(message(session, text, i), confirmations);
      }
      if (!left.await(30, TimeUnit.SECONDS)) {
        throw new IllegalStateException(left.getCount() + " messages did not come");
      }
      receiver.join();
      measured = System.nanoTime() - measured;
      cpu = system.getProcessCpuTime() - cpu;
    }
    long[] ordered = Arrays.copyOfRange(latencies, warm, count);
    Arrays.sort(ordered);
    long[] lateness = Arrays.copyOfRange(late, warm, count);
    Arrays.sort(lateness);
    return String.format(
        Locale.ROOT,
        "{\"p50_ms\": %.6f, \"p90_ms\": %.6f, \"p99_ms\": %.6f, \"max_ms\": %.6f, \"late_p99_ms\": %.6f, "
            + "\"cpu_percent\": %.3f, \"cpu_us\": %.6f}",
        part(ordered, 0.5),
        part(ordered, 0.9),
        part(ordered, 0.99),
        ordered[ordered.length - 1] / 1e6,
        part(lateness, 0.99),
        cpu * 100.0 / measured,
        cpu / 1e3 / ordered.length);
  }

  private static double part(long[] ordered, double part) {
    return ordered[Math.min(ordered.length - 1, (int) (part * ordered.length))] / 1e6;
  }
}
