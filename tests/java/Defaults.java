import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.client.impl.conf.ClientConfigurationData;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.client.impl.conf.ConfigurationDataUtils;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.client.impl.conf.ConsumerConfigurationData;
import com.datastax.oss.pulsar.jms.shaded.org.apache.pulsar.client.impl.conf.ProducerConfigurationData;
import java.util.HashMap;
import java.util.Map;

/** Prints the complete configuration that the Java client uses by default, as a map of Starlight in JSON. */
public final class Defaults {
  public static void main(String[] arguments) throws Exception {
    var mapper = ConfigurationDataUtils.create();
    Map<String, Object> all = new HashMap<>(mapper.convertValue(new ClientConfigurationData(), Map.class));
    all.put("producerConfig", mapper.convertValue(new ProducerConfigurationData(), Map.class));
    all.put("consumerConfig", mapper.convertValue(new ConsumerConfigurationData<byte[]>(), Map.class));
    System.out.println(mapper.writeValueAsString(all));
  }
}
