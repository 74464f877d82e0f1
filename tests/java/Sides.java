import com.datastax.oss.pulsar.jms.PulsarConnectionFactory;
import com.datastax.oss.pulsar.jms.shaded.com.fasterxml.jackson.databind.JsonNode;
import com.datastax.oss.pulsar.jms.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import com.datastax.oss.pulsar.jms.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Many sessions of the real Java client in one process, each driven by another program, at the same time.
 *
 * <p>Each line of standard input is a request with an "id"; each line of standard output is an answer with the same id,
 * {"id", "ok": result} or {"id", "error": text}. {"op": "open", "session", "configuration", "mode"} opens a session,
 * with mode "auto", "client", "transacted" or its number; sessions with the same configuration share a connection, which has the
 * user and password of "credentials", if given. Every other
 * request names its session, and is made when the one before is answered. Descriptions: see Messages;
 * requests with schemas, which Pulsar's own client serves, and their values: see Schemas.
 */
public final class Sides {
  private static final Map<String, Side> SIDES = new ConcurrentHashMap<>();
  private static final Map<String, Connection> CONNECTIONS = new HashMap<>();
  private static Schemas schemas; // few sides need its client

  private Sides() {}

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err); // logging must not mix with the answers
    ExecutorService threads = Executors.newCachedThreadPool();
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      JsonNode request = Messages.JSON.readTree(line);
      threads.execute(() -> answers.println(answer(request)));
    }
    System.exit(0); // connections and all: the broker closes what is left
  }

  private static String answer(JsonNode request) {
    ObjectNode answer = Messages.JSON.createObjectNode();
    answer.set("id", request.get("id"));
    try {
      String name = request.get("session").asText();
      if (request.get("op").asText().equals("open")) {
        JsonNode configuration = request.get("configuration");
        Connection connection = connection(configuration, request.path("credentials"));
        SIDES.put(name, new Side(connection, request.get("mode").asText(), configuration));
      } else {
        answer.set("ok", SIDES.get(name).serve(request));
      }
    } catch (Exception | StackOverflowError | LinkageError error) {
      answer.put("error", error.toString());
    }
    try {
      return Messages.JSON.writeValueAsString(answer);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static Connection connection(JsonNode configuration, JsonNode credentials) throws Exception {
    synchronized (CONNECTIONS) {
      Connection connection = CONNECTIONS.get(configuration.toString());
      if (connection == null) {
        PulsarConnectionFactory factory = new PulsarConnectionFactory(map(configuration));
        connection =
            credentials.isEmpty()
                ? factory.createConnection()
                : factory.createConnection(credentials.get(0).asText(), credentials.get(1).asText());
        connection.start();
        CONNECTIONS.put(configuration.toString(), connection);
      }
      return connection;
    }
  }

  private static synchronized Schemas schemas(String serviceUrl) throws Exception {
    if (schemas == null) {
      schemas = new Schemas(serviceUrl);
    }
    return schemas;
  }

  @SuppressWarnings("unchecked")
  private static Map<String, Object> map(JsonNode configuration) {
    return Messages.JSON.convertValue(configuration, HashMap.class);
  }

  /** One session and its consumers. */
  private static final class Side {
    private final Session session;
    private final MessageProducer producer;
    private final Map<String, MessageConsumer> consumers = new HashMap<>();
    private final JsonNode configuration;
    private Message last;

    Side(Connection connection, String mode, JsonNode configuration) throws JMSException {
      this.configuration = configuration;
      int number =
          mode.equals("transacted") ? Session.SESSION_TRANSACTED
          : mode.equals("client") ? Session.CLIENT_ACKNOWLEDGE
          : mode.equals("auto") ? Session.AUTO_ACKNOWLEDGE
          : Integer.parseInt(mode);
      session = connection.createSession(number);
      producer = session.createProducer(null);
    }

    JsonNode serve(JsonNode request) throws Exception {
      switch (request.get("op").asText()) {
        case "send":
          return send(Messages.destination(session, request.get("destination")), request.get("items"));
        case "send_all":
          return Messages.sendAll(
              session, producer, Messages.destination(session, request.get("destination")), request.get("items"));
        case "subscribe":
          consumers.put(request.get("consumer").asText(), subscribe(request));
          return null;
        case "receive":
          return receive(consumers.get(request.get("consumer").asText()), request);
        case "close_consumer":
          consumers.remove(request.get("consumer").asText()).close();
          return null;
        case "unsubscribe":
          session.unsubscribe(request.get("subscription").asText());
          return null;
        case "browse":
          return browse((Queue) Messages.destination(session, request.get("destination")), request);
        case "temporary":
          boolean topic = request.get("kind").asText().equals("topic");
          return Messages.describe(topic ? session.createTemporaryTopic() : session.createTemporaryQueue());
        case "connect":
          return connect(request.get("credentials"));
        case "acknowledge":
          last.acknowledge();
          return null;
        case "recover":
          session.recover();
          return null;
        case "commit":
          session.commit();
          return null;
        case "rollback":
          session.rollback();
          return null;
        case "close":
          session.close();
          return null;
        default:
          return schemas(configuration.get("brokerServiceUrl").asText()).serve(request);
      }
    }

    private ArrayNode connect(JsonNode credentials) throws Exception {
      Map<String, Object> map = map(configuration);
      map.remove("jms.clientId"); // the connection of this session has it
      ArrayNode errors = Messages.JSON.createArrayNode();
      try (PulsarConnectionFactory factory = new PulsarConnectionFactory(map)) {
        for (JsonNode pair : credentials) {
          try {
            factory.createConnection(pair.get(0).asText(), pair.get(1).asText()).close();
            errors.add("");
          } catch (JMSException error) {
            errors.add(error.toString());
          }
        }
      }
      return errors;
    }

    private ArrayNode send(Destination destination, JsonNode items) throws JMSException {
      ArrayNode headers = Messages.JSON.createArrayNode();
      for (JsonNode item : items) {
        Message message = Messages.build(session, item.get("message"));
        Messages.send(producer, destination, message, item.path("options"));
        headers.add(Messages.headers(message));
      }
      return headers;
    }

    private MessageConsumer subscribe(JsonNode request) throws JMSException {
      Destination destination = Messages.destination(session, request.get("destination"));
      String selector = request.path("selector").asText(null);
      String name = request.path("subscription").asText(null);
      boolean noLocal = request.path("no_local").asBoolean(false);
      switch (request.path("mode").asText("plain")) {
        case "durable":
          return session.createDurableConsumer((Topic) destination, name, selector, noLocal);
        case "shared":
          return session.createSharedConsumer((Topic) destination, name, selector);
        case "shared_durable":
          return session.createSharedDurableConsumer((Topic) destination, name, selector);
        default:
          return session.createConsumer(destination, selector, noLocal);
      }
    }

    private ArrayNode receive(MessageConsumer consumer, JsonNode request) throws JMSException {
      ArrayNode received = Messages.JSON.createArrayNode();
      for (int number = 0; number < request.get("count").asInt(); number++) {
        Message message = consumer.receive(request.get("timeout").asLong());
        if (message == null) {
          break;
        }
        last = message;
        received.add(Messages.describe(message));
      }
      return received;
    }

    private ArrayNode browse(Queue queue, JsonNode request) throws JMSException {
      ArrayNode seen = Messages.JSON.createArrayNode();
      try (QueueBrowser browser = session.createBrowser(queue, request.path("selector").asText(null))) {
        for (Enumeration<?> messages = browser.getEnumeration(); messages.hasMoreElements(); ) {
          seen.add(Messages.describe((Message) messages.nextElement()));
        }
      }
      return seen;
    }
  }
}
