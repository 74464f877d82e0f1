import com.datastax.oss.pulsar.jms.PulsarConnectionFactory;
import com.datastax.oss.pulsar.jms.shaded.com.fasterxml.jackson.databind.JsonNode;
import com.datastax.oss.pulsar.jms.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import com.datastax.oss.pulsar.jms.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.client.api.MessageId;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.client.api.PulsarClient;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.client.api.Reader;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.client.api.Schema;
import jakarta.jms.Connection;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/**
 * Writes golden files: what the real Java client puts on the wire for each described message.
 *
 * <p>Arguments: broker URL, web URL, a prefix for queue names, a folder with files of cases, the folder to write to. The
 * cases are a list of {"name", "message", "options", "forward"}; with "forward" the message is received and the received
 * object is sent on with these headers changed. Each case gets a "record" as Pulsar's own client reads it: payload in
 * hex (null: Pulsar's null value; above 8192 bytes its size and SHA-256), properties, key, event_time. Times are written
 * relative to the send time T (in full minutes), and the connection's id is replaced by a word, so that each run writes
 * the same.
 */
public final class GoldenFiles {
  private static final int LARGEST_IN_FULL = 8192;

  private final Session session;
  private final MessageProducer producer;
  private final PulsarClient pulsar;

  private GoldenFiles(Session session, PulsarClient pulsar) throws Exception {
    this.session = session;
    this.producer = session.createProducer(null);
    this.pulsar = pulsar;
  }

  public static void main(String[] arguments) throws Exception {
    System.setOut(System.err);
    Map<String, Object> configuration = new HashMap<>();
    configuration.put("brokerServiceUrl", arguments[0]);
    configuration.put("webServiceUrl", arguments[1]);
    try (PulsarConnectionFactory factory = new PulsarConnectionFactory(configuration);
        Connection connection = factory.createConnection();
        PulsarClient pulsar = PulsarClient.builder().serviceUrl(arguments[0]).build()) {
      connection.start();
      GoldenFiles files = new GoldenFiles(connection.createSession(false, Session.AUTO_ACKNOWLEDGE), pulsar);
      for (File file : Path.of(arguments[3]).toFile().listFiles()) {
        ArrayNode cases = (ArrayNode) Messages.JSON.readTree(file);
        files.run(arguments[2] + "-" + file.getName(), cases);
        write(cases, Path.of(arguments[4], file.getName()));
      }
    }
    System.exit(0); // threads of the client would keep the process
  }

  private void run(String prefix, ArrayNode cases) throws Exception {
    Queue direct = session.createQueue(prefix + "-direct");
    Queue forwarded = session.createQueue(prefix + "-forwarded");
    for (JsonNode item : cases) {
      send(direct, forwarded, item);
    }
    record(direct, cases, false);
    record(forwarded, cases, true);
  }

  private void send(Queue direct, Queue forwarded, JsonNode item) throws Exception {
    Message message = Messages.build(session, item.get("message"));
    JsonNode options = item.path("options");
    if (!item.has("forward")) {
      Messages.send(producer, direct, message, options);
      return;
    }
    Queue stage = session.createQueue(forwarded.getQueueName() + "-" + item.get("name").asText());
    try (MessageConsumer consumer = session.createConsumer(stage)) {
      Messages.send(producer, stage, message, options);
      Message received = consumer.receive(30_000);
      JsonNode changes = item.get("forward");
      if (changes.has("correlation_id")) {
        received.setJMSCorrelationID(changes.get("correlation_id").asText());
      }
      if (changes.has("type")) {
        received.setJMSType(changes.get("type").asText());
      }
      Messages.send(producer, forwarded, received, Messages.JSON.createObjectNode());
    }
  }

  /** Read the records of one topic back and put them to the cases that went there, in their order. */
  private void record(Queue queue, ArrayNode cases, boolean forwarded) throws Exception {
    Iterator<JsonNode> items = cases.elements();
    try (Reader<byte[]> reader =
        pulsar.newReader(Schema.BYTES).topic("persistent://public/default/" + queue.getQueueName())
            .startMessageId(MessageId.earliest).create()) {
      while (items.hasNext()) {
        ObjectNode item = (ObjectNode) items.next();
        if (item.has("forward") == forwarded) {
          var message = reader.readNext(30, TimeUnit.SECONDS);
          if (message == null) {
            throw new IllegalStateException("no record of " + item.get("name") + " in " + queue);
          }
          item.set("record", describe(message));
        }
      }
    }
  }

  private static ObjectNode describe(
      com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.client.api.Message<byte[]> message) throws Exception {
    ObjectNode record = Messages.JSON.createObjectNode();
    byte[] payload = message.getValue();
    if (payload == null) {
      record.putNull("payload");
    } else if (payload.length <= LARGEST_IN_FULL) {
      record.put("payload", HexFormat.of().formatHex(payload));
    } else {
      record.put("size", payload.length);
      record.put("sha256", HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(payload)));
    }
    if (message.hasKey()) {
      record.put("key", message.getKey());
    } else {
      record.putNull("key");
    }
    long sent = Long.parseLong(message.getProperty("JMSDeliveryTime"));
    record.put("event_time", relative(message.getEventTime(), sent));
    ObjectNode properties = record.putObject("properties");
    for (Map.Entry<String, String> property : new TreeMap<>(message.getProperties()).entrySet()) {
      properties.put(property.getKey(), normal(property.getKey(), property.getValue(), sent));
    }
    return record;
  }

  private static String normal(String name, String value, long sent) {
    switch (name) {
      case "JMSConnectionID":
        return "<connection>";
      case "JMSDeliveryTime":
      case "JMSExpiration":
        return relative(Long.parseLong(value), sent);
      case "JMSMessageId": // only forwarded messages have one, made of places in the broker
        return "<first id>";
      default:
        return value;
    }
  }

  private static String relative(long time, long sent) {
    long minutes = Math.round((time - sent) / 60_000.0);
    return time == 0 ? "0" : minutes == 0 ? "T" : "T+" + minutes + "min";
  }

  /** One case on a line, so that a difference is easy to see. */
  private static void write(ArrayNode cases, Path file) throws Exception {
    StringBuilder text = new StringBuilder("[\n");
    for (int index = 0; index < cases.size(); index++) {
      text.append(Messages.JSON.writeValueAsString(cases.get(index))).append(index + 1 < cases.size() ? ",\n" : "\n");
    }
    Files.writeString(file, text.append("]\n"));
  }
}
