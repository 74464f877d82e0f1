import com.datastax.oss.pulsar.jms.PulsarConnectionFactory;
import com.datastax.oss.pulsar.jms.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * What the Java client does where it leaves the rules of JMS, seen once each. The arguments are the factory's
 * configuration in JSON and the start of its queues' names; the answer is one JSON object on standard output.
 */
public final class Faults {
  private final Connection connection;
  private final String prefix;
  private final ObjectNode seen = Messages.JSON.createObjectNode();

  private Faults(Connection connection, String prefix) {
    this.connection = connection;
    this.prefix = prefix;
  }

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err); // logging must not mix with the answer
    @SuppressWarnings("unchecked")
    Map<String, Object> configuration = Messages.JSON.readValue(arguments[0], HashMap.class);
    try (PulsarConnectionFactory factory = new PulsarConnectionFactory(configuration);
        Connection connection = factory.createConnection()) {
      Faults faults = new Faults(connection, arguments[1]);
      faults.exceptionListener(); // sets the listener, so it goes first
      faults.timeToLive();
      faults.receiveZero();
      faults.listenersOfOneSession();
      faults.completions();
      faults.expired();
      answers.println(Messages.JSON.writeValueAsString(faults.seen));
    }
    System.exit(0); // threads of the client would keep the process
  }

  /** Whether the ExceptionListener is told of a listener that throws. */
  private void exceptionListener() throws Exception {
    AtomicInteger told = new AtomicInteger();
    CountDownLatch thrown = new CountDownLatch(1);
    connection.setExceptionListener(error -> told.incrementAndGet());
    connection.start();
    try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
      Queue queue = session.createQueue(prefix + "listener");
      MessageConsumer consumer = session.createConsumer(queue);
      consumer.setMessageListener(
          message -> {
            thrown.countDown();
            throw new IllegalStateException("of the application");
          });
      session.createProducer(queue).send(session.createTextMessage("fails"));
      seen.put("listenerThrew", thrown.await(20, TimeUnit.SECONDS));
      Thread.sleep(500);
    }
    seen.put("exceptionListenerTold", told.get());
  }

  /** JMSExpiration of a message that a producer with a time to live sent. */
  private void timeToLive() throws Exception {
    try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
      MessageProducer producer = session.createProducer(session.createQueue(prefix + "ttl"));
      producer.setTimeToLive(60_000);
      Message message = session.createTextMessage("lives for a minute");
      producer.send(message);
      seen.put("expiration", message.getJMSExpiration());
    }
  }

  /** Whether receive(0), which waits without end, comes back without a message. */
  private void receiveZero() throws Exception {
    try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
      MessageConsumer consumer = session.createConsumer(session.createQueue(prefix + "zero"));
      Thread watch = Thread.currentThread();
      Thread guard =
          new Thread(
              () -> {
                try {
                  Thread.sleep(10_000);
                  watch.interrupt();
                } catch (InterruptedException over) {
                  return; // receive came back
                }
              });
      guard.setDaemon(true);
      guard.start();
      try {
        seen.put("receiveZeroCameBack", consumer.receive(0) == null);
      } catch (Exception interrupted) {
        seen.put("receiveZeroCameBack", false);
      }
      guard.interrupt();
    }
  }

  /** The most listeners of one session that ran at the same time. */
  private void listenersOfOneSession() throws Exception {
    AtomicInteger running = new AtomicInteger();
    AtomicInteger most = new AtomicInteger();
    CountDownLatch together = new CountDownLatch(1); // the first waits for another one, for a while
    CountDownLatch heard = new CountDownLatch(20);
    try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
      for (String name : new String[] {"one", "two"}) {
        Queue queue = session.createQueue(prefix + name);
        MessageConsumer consumer = session.createConsumer(queue);
        MessageProducer producer = session.createProducer(queue);
        for (int number = 0; number < 10; number++) {
          producer.send(session.createTextMessage("overlaps"));
        }
        consumer.setMessageListener(
            message -> {
              int now = running.incrementAndGet();
              most.accumulateAndGet(now, Math::max);
              try {
                if (now > 1 || !together.await(20, TimeUnit.SECONDS)) {
                  together.countDown();
                }
              } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
              }
              running.decrementAndGet();
              heard.countDown();
            });
      }
      seen.put("listenersHeardAll", heard.await(60, TimeUnit.SECONDS));
    }
    seen.put("listenersAtOnce", most.get());
  }

  /** How many of 1,000 completions were told when each of five sessions was closed right after its 200 sends. */
  private void completions() throws Exception {
    AtomicInteger told = new AtomicInteger();
    CompletionListener listener =
        new CompletionListener() {
          @Override
          public void onCompletion(Message message) {
            told.incrementAndGet();
          }

          @Override
          public void onException(Message message, Exception error) {
            told.incrementAndGet();
          }
        };
    for (int round = 0; round < 5; round++) {
      Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      MessageProducer producer = session.createProducer(session.createQueue(prefix + "completions"));
      for (int number = 0; number < 200; number++) {
        producer.send(session.createTextMessage("completes"), listener);
      }
      session.close();
    }
    Thread.sleep(1_000);
    seen.put("completionsTold", told.get());
  }

  /** Leaves an expired message on a queue, which a consumer had three seconds to remove. */
  private void expired() throws Exception {
    try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE)) {
      Queue queue = session.createQueue(prefix + "expired");
      MessageConsumer consumer = session.createConsumer(queue);
      session
          .createProducer(queue)
          .send(session.createTextMessage("expires"), DeliveryMode.PERSISTENT, 4, 1);
      Thread.sleep(100);
      seen.put("expiredReceived", consumer.receive(3_000) != null);
    }
  }
}
