import com.datastax.oss.pulsar.jms.selectors.SelectorSupport;
import jakarta.jms.JMSException;
import java.util.function.Function;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;
import org.apache.activemq.selector.SelectorParser;

/**
 * Answers invalid, error, true, false or unknown as Starlight's selector support does with the look-up that its broker
 * plugin gives it: defaults for the headers that are always there, null for the rest.
 *
 * <p>The support answers "selects" or "does not"; what neither S nor NOT (S) selects is unknown.
 */
public final class StarlightAnswers {
  private static final String CONVERT = "convert_string_expressions:";

  private StarlightAnswers() {}

  public static void main(String[] arguments) throws Exception {
    Request.serve(StarlightAnswers::answer);
  }

  private static String answer(Request request) {
    Function<String, Object> values = name -> value(request, name);
    try {
      if (selects(request.selector, values)) {
        return "true";
      }
    } catch (JMSException refused) {
      return "invalid";
    } catch (RuntimeException failed) {
      return "error";
    }
    try {
      return selects(negated(request.selector), values) ? "false" : "unknown";
    } catch (JMSException refused) {
      return "invalid";
    } catch (RuntimeException failed) {
      return "false";
    }
  }

  private static String negated(String selector) {
    return selector.startsWith(CONVERT)
        ? CONVERT + "NOT (" + selector.substring(CONVERT.length()) + ")"
        : "NOT (" + selector + ")";
  }

  private static boolean selects(String selector, Function<String, Object> values) throws JMSException {
    SelectorParser.clearCache();
    return SelectorSupport.build(selector, true).matches(values);
  }

  private static Object value(Request request, String name) {
    Object value = request.values.get(name);
    switch (name) {
      case "JMSDeliveryMode":
        return "NON_PERSISTENT".equals(value) ? 1 : 2;
      case "JMSPriority":
        return value == null ? (Object) 4 : value;
      case "JMSTimestamp":
        return value == null ? (Object) 0L : value;
      case "JMSXGroupID":
        return value == null ? "" : value;
      case "JMSReplyTo":
      case "JMSDestination":
        return destination((String) value);
      default:
        return value;
    }
  }

  private static Object destination(String text) {
    if (text == null) {
      return null;
    }
    return text.startsWith("topic://")
        ? new ActiveMQTopic(text.substring("topic://".length()))
        : new ActiveMQQueue(text.substring("queue://".length()));
  }
}
