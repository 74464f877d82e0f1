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
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * The real Java client, driven by another program: one JSON request on each line of standard input, one answer on
 * each line of standard output, {"ok": result} or {"error": text}. The argument is the factory's configuration in JSON;
 * "clientId" in it is set on the connection, "sessionMode" is the session's, by default AUTO_ACKNOWLEDGE.
 *
 * <p>Requests: {"op": "subscribe", "destination", "selector", "subscription", "mode", "no_local"} makes a consumer, with
 * mode one of "plain" (default), "durable", "shared", "shared_durable"; {"op": "selector", "destination"} answers the
 * selector that it tells; {"op": "send", "destination", "message", "options"}
 * answers the sent message's headers; {"op": "send_all", "destination", "items": [{"message", "options"}]} sends each
 * without waiting for the one before, and answers the headers of all; {"op": "receive", "destination", "count", "timeout"} answers the descriptions of
 * up to count messages, waiting timeout milliseconds for each; {"op": "unsubscribe", "destination"} closes the
 * consumer. {"op": "produce", "topic", "schema", "values", "properties"}, {"op": "subscribe_values", "topic", "schema"}
 * and {"op": "consume", "topic", "count", "timeout"} send and receive values with Pulsar's own client. The end of the
 * input ends the program. Descriptions: see Messages and Schemas.
 */
public final class Peer {
  private final Connection connection;
  private final Session session;
  private final MessageProducer producer;
  private final Map<String, MessageConsumer> consumers = new HashMap<>();
  private final Schemas schemas;

  private Peer(Connection connection, int mode, Schemas schemas) throws JMSException {
    this.connection = connection;
    this.schemas = schemas;
    this.session = connection.createSession(mode);
    this.producer = session.createProducer(null);
  }

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err); // logging must not mix with the answers
    @SuppressWarnings("unchecked")
    Map<String, Object> configuration = Messages.JSON.readValue(arguments[0], HashMap.class);
    String clientId = (String) configuration.remove("clientId");
    Integer mode = (Integer) configuration.remove("sessionMode");
    try (PulsarConnectionFactory factory = new PulsarConnectionFactory(configuration);
        Connection connection = factory.createConnection();
        Schemas schemas = new Schemas((String) configuration.get("brokerServiceUrl"))) {
      if (clientId != null) {
        connection.setClientID(clientId);
      }
      connection.start();
      Peer peer = new Peer(connection, mode == null ? Session.AUTO_ACKNOWLEDGE : mode, schemas);
      answers.println("{\"ok\":\"ready\"}");
      BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      for (String line = requests.readLine(); line != null; line = requests.readLine()) {
        answers.println(peer.answer(line));
      }
    }
    System.exit(0); // threads of the client would keep the process
  }

  private String answer(String line) throws Exception {
    ObjectNode answer = Messages.JSON.createObjectNode();
    try {
      answer.set("ok", serve(Messages.JSON.readTree(line)));
    } catch (Exception | StackOverflowError error) {
      answer.put("error", error.toString());
    }
    return Messages.JSON.writeValueAsString(answer);
  }

  private JsonNode serve(JsonNode request) throws Exception {
    JsonNode destination = request.get("destination");
    switch (request.get("op").asText()) {
      case "subscribe":
        consumers.put(destination.toString(), subscribe(request));
        return Messages.JSON.nullNode();
      case "selector":
        return Messages.JSON.getNodeFactory().textNode(consumers.get(destination.toString()).getMessageSelector());
      case "unsubscribe":
        consumers.remove(destination.toString()).close();
        return Messages.JSON.nullNode();
      case "send":
        Message message = Messages.build(session, request.get("message"));
        Messages.send(producer, Messages.destination(session, destination), message, request.path("options"));
        return Messages.headers(message);
      case "send_all":
        return Messages.sendAll(session, producer, Messages.destination(session, destination), request.get("items"));
      case "receive":
        return receive(request);
      default:
        return schemas.serve(request);
    }
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

  private ArrayNode receive(JsonNode request) throws JMSException {
    String key = request.get("destination").toString();
    MessageConsumer consumer = consumers.get(key);
    if (consumer == null) {
      consumer = subscribe(request);
      consumers.put(key, consumer);
    }
    ArrayNode received = Messages.JSON.createArrayNode();
    for (int number = 0; number < request.get("count").asInt(); number++) {
      Message message = consumer.receive(request.get("timeout").asLong());
      if (message == null) {
        break;
      }
      received.add(Messages.describe(message));
    }
    return received;
  }
}
