import com.datastax.oss.pulsar.jms.PulsarConnectionFactory;
import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * Sends text messages in transactions. The arguments are the factory's configuration in JSON and the full name of a
 * topic; each line on standard input is done and answered by itself: COMMIT, ROLLBACK, or a text to send.
 */
public final class Transactions {
  private Transactions() {}

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err); // logging must not mix with the answers
    @SuppressWarnings("unchecked")
    Map<String, Object> configuration = Messages.JSON.readValue(arguments[0], HashMap.class);
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    try (PulsarConnectionFactory factory = new PulsarConnectionFactory(configuration);
        Connection connection = factory.createConnection();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED)) {
      Destination topic = session.createTopic(arguments[1]);
      MessageProducer producer = session.createProducer(topic);
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        switch (line) {
          case "COMMIT" -> session.commit();
          case "ROLLBACK" -> session.rollback();
          default -> producer.send(session.createTextMessage(line));
        }
        answers.println(line);
      }
    }
    System.exit(0); // threads of the client would keep the process
  }
}
