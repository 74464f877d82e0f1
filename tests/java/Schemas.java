import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.client.api.Consumer;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.client.api.Message;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.client.api.Producer;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.client.api.PulsarClient;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.client.api.Schema;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.client.api.SubscriptionInitialPosition;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.client.api.schema.GenericObject;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.client.impl.schema.generic.GenericAvroRecord;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.client.impl.schema.generic.GenericJsonRecord;
import com.datastax.oss.pulsar.jms.shaded.com.fasterxml.jackson.databind.JsonNode;
import com.datastax.oss.pulsar.jms.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import com.datastax.oss.pulsar.jms.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.common.schema.KeyValue;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.common.schema.KeyValueEncodingType;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.common.schema.SchemaInfo;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.common.schema.SchemaType;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.shade.org.apache.avro.generic.GenericDatumReader;
import org.apache.pulsar.shade.org.apache.avro.generic.GenericRecord;
import org.apache.pulsar.shade.org.apache.avro.io.DecoderFactory;

/**
 * Pulsar's own Java client with schemas, for Peer and Sides: it sends and receives values as programs do that don't know JMS.
 *
 * <p>A schema is {"type", "definition"}, {"type"} of a primitive, or {"type": "KEY_VALUE", "key", "value", "encoding"}.
 * A value of AVRO is in Avro's JSON encoding, one of JSON is itself, one of KEY_VALUE is {"key", "value"}, a time is its
 * ISO text, and every other one is as in Messages.
 */
final class Schemas implements AutoCloseable {
  private final PulsarClient client;
  private final Map<String, Consumer<?>> consumers = new ConcurrentHashMap<>();

  Schemas(String serviceUrl) throws Exception {
    client = PulsarClient.builder().serviceUrl(serviceUrl).build();
  }

  @Override
  public void close() throws Exception {
    client.close();
  }

  /**
   * Answer a request. {"op": "produce", "topic", "schema", "values", "properties"} sends values, {"op":
   * "subscribe_values", "topic", "schema"} subscribes, and {"op": "consume", "topic", "count", "timeout"} answers values.
   */
  JsonNode serve(JsonNode request) throws Exception {
    String topic = request.path("topic").asText();
    switch (request.get("op").asText()) {
      case "produce":
        produce(topic, request.get("schema"), request.get("values"), request.path("properties"));
        return Messages.JSON.nullNode();
      case "subscribe_values":
        subscribe(topic, request.get("schema"));
        return Messages.JSON.nullNode();
      case "consume":
        return consume(topic, request.get("count").asInt(), request.get("timeout").asInt());
      default:
        throw new IllegalArgumentException("no such request: " + request.get("op"));
    }
  }

  /** Send all values to a topic, with properties. */
  private void produce(String topic, JsonNode schema, JsonNode values, JsonNode properties) throws Exception {
    try (Producer<Object> producer = client.newProducer(schema(schema)).topic(topic).create()) {
      for (JsonNode each : values) {
        var message = producer.newMessage().value(value(schema, each));
        for (Map.Entry<String, JsonNode> property : properties.properties()) {
          message.property(property.getKey(), property.getValue().asText());
        }
        message.send();
      }
    }
  }

  /** Subscribe to a topic from its beginning: with a schema of one's own, or with that of each message if null. */
  private void subscribe(String topic, JsonNode schema) throws Exception {
    Schema<?> reader = schema == null || schema.isNull() ? Schema.AUTO_CONSUME() : schema(schema);
    consumers.put(
        topic,
        client
            .newConsumer(reader)
            .topic(topic)
            .subscriptionName("schemas")
            .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
            .subscribe());
  }

  /** The values of up to count messages, each as {"value", "properties"}. */
  private ArrayNode consume(String topic, int count, int timeout) throws Exception {
    ArrayNode found = Messages.JSON.createArrayNode();
    Consumer<?> consumer = consumers.get(topic);
    for (int number = 0; number < count; number++) {
      Message<?> message = consumer.receive(timeout, TimeUnit.MILLISECONDS);
      if (message == null) {
        break;
      }
      ObjectNode node = found.addObject();
      node.set("value", describe(message.getValue()));
      node.putPOJO("properties", message.getProperties());
      consumer.acknowledge(message);
    }
    return found;
  }

  private static JsonNode describe(Object value) throws Exception {
    if (value instanceof KeyValue) {
      ObjectNode pair = Messages.JSON.createObjectNode();
      pair.set("key", describe(((KeyValue<?, ?>) value).getKey()));
      pair.set("value", describe(((KeyValue<?, ?>) value).getValue()));
      return pair;
    } else if (value instanceof GenericAvroRecord) {
      return Messages.JSON.readTree(((GenericAvroRecord) value).getAvroRecord().toString());
    } else if (value instanceof GenericJsonRecord) {
      return Messages.JSON.readTree(((GenericJsonRecord) value).getJsonNode().toString());
    } else if (value instanceof GenericObject) {
      return describe(((GenericObject) value).getNativeObject());
    }
    return Messages.describe(value);
  }

  @SuppressWarnings("unchecked")
  private static Schema<Object> schema(JsonNode description) {
    SchemaType type = SchemaType.valueOf(description.get("type").asText());
    if (type == SchemaType.KEY_VALUE) {
      KeyValueEncodingType encoding = KeyValueEncodingType.valueOf(description.get("encoding").asText());
      return (Schema<Object>)
          (Schema<?>) Schema.KeyValue(schema(description.get("key")), schema(description.get("value")), encoding);
    } else if (type == SchemaType.AVRO || type == SchemaType.JSON) {
      return (Schema<Object>) (Schema<?>) Schema.generic(info(type, description.get("definition")));
    } else if (type == SchemaType.BYTES) {
      return (Schema<Object>) (Schema<?>) Schema.BYTES;
    }
    return (Schema<Object>) Schema.getSchema(info(type, null));
  }

  private static SchemaInfo info(SchemaType type, JsonNode definition) {
    byte[] data = definition == null ? new byte[0] : definition.toString().getBytes(StandardCharsets.UTF_8);
    return SchemaInfo.builder().name("test").type(type).schema(data).properties(Map.of()).build();
  }

  private static Object value(JsonNode schema, JsonNode value) throws Exception {
    switch (SchemaType.valueOf(schema.get("type").asText())) {
      case KEY_VALUE:
        return new KeyValue<>(
            value(schema.get("key"), value.get("key")), value(schema.get("value"), value.get("value")));
      case AVRO:
        if (value.isNull()) {
          return null;
        }
        var parser = new org.apache.pulsar.shade.org.apache.avro.Schema.Parser();
        var avro = parser.parse(schema.get("definition").toString());
        var decoder = DecoderFactory.get().jsonDecoder(avro, value.toString());
        GenericRecord read = new GenericDatumReader<GenericRecord>(avro).read(null, decoder);
        return new GenericAvroRecord(null, avro, List.of(), read);
      case JSON:
        var mapper = new org.apache.pulsar.shade.com.fasterxml.jackson.databind.ObjectMapper();
        return new GenericJsonRecord(null, List.of(), mapper.readTree(value.toString()), null);
      case DATE:
        return java.util.Date.from(Instant.parse(value.asText()));
      case TIME:
        return new java.sql.Time(Instant.parse(value.asText()).toEpochMilli());
      case TIMESTAMP:
        return java.sql.Timestamp.from(Instant.parse(value.asText()));
      case INSTANT:
        return Instant.parse(value.asText());
      case LOCAL_DATE:
        return LocalDate.parse(value.asText());
      case LOCAL_TIME:
        return LocalTime.parse(value.asText());
      case LOCAL_DATE_TIME:
        return LocalDateTime.parse(value.asText());
      default:
        return Messages.value(value);
    }
  }
}
