import jakarta.jms.JMSException;
import java.util.Map;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.filter.BooleanExpression;
import org.apache.activemq.filter.MessageEvaluationContext;
import org.apache.activemq.selector.SelectorParser;

/** Answers invalid, error, true, false or unknown as activemq-client's selector engine does. */
public final class ActiveMQAnswers {
  private ActiveMQAnswers() {}

  public static void main(String[] arguments) throws Exception {
    Request.serve(ActiveMQAnswers::answer);
  }

  private static String answer(Request request) {
    BooleanExpression expression;
    try {
      SelectorParser.clearCache();
      expression = SelectorParser.parse(request.selector);
    } catch (JMSException refused) {
      return "invalid";
    }
    try {
      MessageEvaluationContext context = new MessageEvaluationContext();
      context.setMessageReference(message(request.values));
      Object result = expression.evaluate(context);
      return result == null ? "unknown" : result.toString();
    } catch (Exception failed) {
      return "error";
    }
  }

  private static ActiveMQMessage message(Map<String, Object> values) throws Exception {
    ActiveMQMessage message = new ActiveMQMessage();
    for (Map.Entry<String, Object> entry : values.entrySet()) {
      Object value = entry.getValue();
      switch (entry.getKey()) {
        case "JMSPriority":
          message.setPriority(((Number) value).byteValue());
          break;
        case "JMSTimestamp":
          message.setTimestamp((Long) value);
          break;
        case "JMSDeliveryMode":
          message.setPersistent("PERSISTENT".equals(value));
          break;
        case "JMSType":
          message.setType((String) value);
          break;
        case "JMSCorrelationID":
          message.setCorrelationId((String) value);
          break;
        case "JMSMessageID":
          message.setJMSMessageID((String) value);
          break;
        default:
          message.setProperty(entry.getKey(), value);
      }
    }
    return message;
  }
}
