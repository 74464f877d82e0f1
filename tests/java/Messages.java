import com.datastax.oss.pulsar.jms.shaded.com.fasterxml.jackson.core.JsonGenerator;
import com.datastax.oss.pulsar.jms.shaded.com.fasterxml.jackson.databind.JsonNode;
import com.datastax.oss.pulsar.jms.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import com.datastax.oss.pulsar.jms.shaded.com.fasterxml.jackson.databind.SerializationFeature;
import com.datastax.oss.pulsar.jms.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import com.datastax.oss.pulsar.jms.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import jakarta.jms.BytesMessage;
import jakarta.jms.CompletionListener;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageProducer;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * The language of Peer and GoldenFiles: builds JMS messages from JSON descriptions and describes messages in JSON.
 *
 * <p>A value is {"t": type, "v": text}: integers and booleans as text, floats and doubles as the hex digits of their
 * bits, byte arrays as hex, strings as they are ("times": n repeats them), {"t": "null"},
 * a list of values, in answers a map of them. A message is
 * {"kind", "body", "headers": {correlation_id | correlation_id_bytes, reply_to, type}, "properties": {name: value}}.
 * Bodies: text and object: a value; bytes: a list of values, written one after the other; stream: a list of values;
 * map: a list of [string value, value]. A destination is {"kind": "queue" | "topic", "name"}.
 */
final class Messages {
  static final ObjectMapper JSON = new ObjectMapper();

  static {
    JSON.getFactory().configure(JsonGenerator.Feature.ESCAPE_NON_ASCII, true); // lone surrogates stay readable
    JSON.configure(SerializationFeature.ORDER_MAP_ENTRIES_BY_KEYS, true);
  }

  private Messages() {}

  // ------------------------------------------------------------------------------------------------------- values

  /** The Java value of a description. */
  static Object value(JsonNode node) {
    String text = node.path("v").asText();
    String type = node.get("t").asText();
    switch (type) {
      case "null":
        return null;
      case "boolean":
        return Boolean.valueOf(text);
      case "byte":
        return Byte.valueOf(text);
      case "short":
        return Short.valueOf(text);
      case "char":
        return text.charAt(0);
      case "int":
        return Integer.valueOf(text);
      case "long":
        return Long.valueOf(text);
      case "float":
        return Float.intBitsToFloat(Integer.parseUnsignedInt(text, 16));
      case "double":
        return Double.longBitsToDouble(Long.parseUnsignedLong(text, 16));
      case "string":
        return text.repeat(node.path("times").asInt(1));
      case "bytes":
        return HexFormat.of().parseHex(text);
      case "list":
        ArrayList<Object> list = new ArrayList<>();
        node.get("v").forEach(item -> list.add(value(item)));
        return list;
      default:
        throw new IllegalArgumentException("no such type: " + type);
    }
  }

  /** The description of a Java value; an object of another class is {"t": "java", "class", "v": its text}. */
  static ObjectNode describe(Object value) {
    ObjectNode node = JSON.createObjectNode();
    if (value == null) {
      return node.put("t", "null");
    } else if (value instanceof Boolean) {
      return node.put("t", "boolean").put("v", value.toString());
    } else if (value instanceof Byte) {
      return node.put("t", "byte").put("v", value.toString());
    } else if (value instanceof Short) {
      return node.put("t", "short").put("v", value.toString());
    } else if (value instanceof Character) {
      return node.put("t", "char").put("v", value.toString());
    } else if (value instanceof Integer) {
      return node.put("t", "int").put("v", value.toString());
    } else if (value instanceof Long) {
      return node.put("t", "long").put("v", value.toString());
    } else if (value instanceof Float) {
      return node.put("t", "float").put("v", HexFormat.of().toHexDigits(Float.floatToRawIntBits((Float) value)));
    } else if (value instanceof Double) {
      return node.put("t", "double").put("v", HexFormat.of().toHexDigits(Double.doubleToRawLongBits((Double) value)));
    } else if (value instanceof String) {
      return node.put("t", "string").put("v", (String) value);
    } else if (value instanceof byte[]) {
      return node.put("t", "bytes").put("v", HexFormat.of().formatHex((byte[]) value));
    } else if (value instanceof List) {
      ArrayNode items = node.put("t", "list").putArray("v");
      ((List<?>) value).forEach(item -> items.add(describe(item)));
      return node;
    } else if (value instanceof Map) {
      ObjectNode items = node.put("t", "map").putObject("v");
      ((Map<?, ?>) value).forEach((name, item) -> items.set(name.toString(), describe(item)));
      return node;
    }
    return node.put("t", "java").put("class", value.getClass().getName()).put("v", value.toString());
  }

  static Destination destination(Session session, JsonNode node) throws JMSException {
    String name = node.get("name").asText();
    return "topic".equals(node.get("kind").asText()) ? session.createTopic(name) : session.createQueue(name);
  }

  static JsonNode describe(Destination destination) throws JMSException {
    if (destination instanceof Topic) {
      return JSON.createObjectNode().put("kind", "topic").put("name", ((Topic) destination).getTopicName());
    } else if (destination != null) {
      return JSON.createObjectNode().put("kind", "queue").put("name", ((Queue) destination).getQueueName());
    }
    return JSON.nullNode();
  }

  // ----------------------------------------------------------------------------------------------------- building

  static Message build(Session session, JsonNode description) throws JMSException {
    Message message = withBody(session, description.get("kind").asText(), description.get("body"));
    JsonNode headers = description.path("headers");
    for (Map.Entry<String, JsonNode> header : headers.properties()) {
      switch (header.getKey()) {
        case "correlation_id":
          message.setJMSCorrelationID(header.getValue().asText());
          break;
        case "correlation_id_bytes":
          message.setJMSCorrelationIDAsBytes(HexFormat.of().parseHex(header.getValue().asText()));
          break;
        case "reply_to":
          message.setJMSReplyTo(destination(session, header.getValue()));
          break;
        case "type":
          message.setJMSType(header.getValue().asText());
          break;
        default:
          throw new IllegalArgumentException("no such header: " + header.getKey());
      }
    }
    for (Map.Entry<String, JsonNode> property : description.path("properties").properties()) {
      setProperty(message, property.getKey(), value(property.getValue()));
    }
    return message;
  }

  private static Message withBody(Session session, String kind, JsonNode body) throws JMSException {
    switch (kind) {
      case "text":
        TextMessage text = session.createTextMessage();
        text.setText((String) value(body));
        return text;
      case "bytes":
        BytesMessage bytes = session.createBytesMessage();
        for (JsonNode item : body) {
          bytes.writeObject(value(item));
        }
        return bytes;
      case "map":
        MapMessage map = session.createMapMessage();
        for (JsonNode pair : body) {
          map.setObject((String) value(pair.get(0)), value(pair.get(1)));
        }
        return map;
      case "stream":
        StreamMessage stream = session.createStreamMessage();
        for (JsonNode item : body) {
          stream.writeObject(value(item));
        }
        return stream;
      case "object":
        ObjectMessage object = session.createObjectMessage();
        object.setObject((Serializable) value(body));
        return object;
      case "header":
        return session.createMessage();
      default:
        throw new IllegalArgumentException("no such kind: " + kind);
    }
  }

  private static void setProperty(Message message, String name, Object value) throws JMSException {
    if (value instanceof Boolean) {
      message.setBooleanProperty(name, (Boolean) value);
    } else if (value instanceof Byte) {
      message.setByteProperty(name, (Byte) value);
    } else if (value instanceof Short) {
      message.setShortProperty(name, (Short) value);
    } else if (value instanceof Integer) {
      message.setIntProperty(name, (Integer) value);
    } else if (value instanceof Long) {
      message.setLongProperty(name, (Long) value);
    } else if (value instanceof Float) {
      message.setFloatProperty(name, (Float) value);
    } else if (value instanceof Double) {
      message.setDoubleProperty(name, (Double) value);
    } else if (value instanceof String) {
      message.setStringProperty(name, (String) value);
    } else {
      message.setObjectProperty(name, value);
    }
  }

  /** Send with the description's options: delivery_mode, priority, time_to_live and delivery_delay in milliseconds. */
  static void send(MessageProducer producer, Destination destination, Message message, JsonNode options)
      throws JMSException {
    send(producer, destination, message, options, null);
  }

  /** The same without waiting; the listener hears of its end. */
  static void send(
      MessageProducer producer, Destination destination, Message message, JsonNode options, CompletionListener listener)
      throws JMSException {
    producer.setDeliveryDelay(options.path("delivery_delay").asLong(0));
    producer.setDisableMessageTimestamp(options.path("disable_timestamp").asBoolean(false));
    int mode = options.path("delivery_mode").asInt(2);
    int priority = options.path("priority").asInt(4);
    long timeToLive = options.path("time_to_live").asLong(0);
    if (listener == null) {
      producer.send(destination, message, mode, priority, timeToLive);
    } else {
      producer.send(destination, message, mode, priority, timeToLive, listener);
    }
  }

  /** Send {"message", "options"} without waiting for each, so that the producer can batch them; returns their headers. */
  static ArrayNode sendAll(Session session, MessageProducer producer, Destination destination, JsonNode items)
      throws Exception {
    List<CompletableFuture<Message>> sent = new ArrayList<>();
    for (JsonNode item : items) {
      CompletableFuture<Message> future = new CompletableFuture<>();
      CompletionListener listener =
          new CompletionListener() {
            @Override
            public void onCompletion(Message message) {
              future.complete(message);
            }

            @Override
            public void onException(Message message, Exception error) {
              future.completeExceptionally(error);
            }
          };
      Message message = build(session, item.get("message"));
      send(producer, destination, message, item.path("options"), listener);
      sent.add(future);
    }
    ArrayNode headers = JSON.createArrayNode();
    for (CompletableFuture<Message> future : sent) {
      headers.add(headers(future.get(60, TimeUnit.SECONDS)));
    }
    return headers;
  }

  // --------------------------------------------------------------------------------------------------- describing

  static ObjectNode describe(Message message) throws JMSException {
    ObjectNode node = JSON.createObjectNode();
    node.put("kind", kind(message));
    node.set("body", body(message));
    node.set("headers", headers(message));
    ObjectNode properties = node.putObject("properties");
    for (Enumeration<?> names = message.getPropertyNames(); names.hasMoreElements(); ) {
      String name = (String) names.nextElement();
      properties.set(name, describe(message.getObjectProperty(name)));
    }
    return node;
  }

  static ObjectNode headers(Message message) throws JMSException {
    ObjectNode node = JSON.createObjectNode();
    node.put("message_id", message.getJMSMessageID());
    node.put("timestamp", message.getJMSTimestamp());
    node.put("correlation_id", message.getJMSCorrelationID());
    byte[] correlation = message.getJMSCorrelationIDAsBytes();
    node.put("correlation_id_bytes", correlation == null ? null : HexFormat.of().formatHex(correlation));
    node.set("reply_to", describe(message.getJMSReplyTo()));
    node.set("destination", describe(message.getJMSDestination()));
    node.put("delivery_mode", message.getJMSDeliveryMode());
    node.put("redelivered", message.getJMSRedelivered());
    node.put("type", message.getJMSType());
    node.put("expiration", message.getJMSExpiration());
    node.put("delivery_time", message.getJMSDeliveryTime());
    node.put("priority", message.getJMSPriority());
    return node;
  }

  private static String kind(Message message) {
    return message instanceof TextMessage ? "text"
        : message instanceof BytesMessage ? "bytes"
        : message instanceof MapMessage ? "map"
        : message instanceof StreamMessage ? "stream"
        : message instanceof ObjectMessage ? "object"
        : "header";
  }

  private static JsonNode body(Message message) throws JMSException {
    if (message instanceof TextMessage) {
      return describe(((TextMessage) message).getText());
    } else if (message instanceof ObjectMessage) {
      return describe(((ObjectMessage) message).getObject());
    } else if (message instanceof BytesMessage) {
      BytesMessage bytes = (BytesMessage) message;
      byte[] content = new byte[(int) bytes.getBodyLength()];
      bytes.readBytes(content);
      bytes.reset();
      ArrayNode list = JSON.createArrayNode();
      list.add(describe(content));
      return list;
    }
    ArrayNode list = JSON.createArrayNode();
    if (message instanceof MapMessage) {
      MapMessage map = (MapMessage) message;
      for (Enumeration<?> names = map.getMapNames(); names.hasMoreElements(); ) {
        String name = (String) names.nextElement();
        list.add(JSON.createArrayNode().add(describe(name)).add(describe(map.getObject(name))));
      }
    } else if (message instanceof StreamMessage) {
      StreamMessage stream = (StreamMessage) message;
      while (true) {
        try {
          list.add(describe(stream.readObject()));
        } catch (MessageEOFException end) {
          return list;
        }
      }
    }
    return list;
  }
}
