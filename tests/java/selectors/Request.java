import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Function;

/**
 * One line of the differential test: a selector and the values of its names.
 *
 * <p>Fields are separated by tabs: selector, then name, type and text of each value. In a field every character that is
 * not printable ASCII, and the backslash, is written as \\uXXXX (one UTF-16 unit). The answer to each line is one word.
 */
final class Request {
  final String selector;
  final Map<String, Object> values = new LinkedHashMap<>();

  private Request(String line) {
    String[] fields = line.split("\t", -1);
    selector = decoded(fields[0]);
    for (int i = 1; i < fields.length; i += 3) {
      values.put(decoded(fields[i]), typed(fields[i + 1], decoded(fields[i + 2])));
    }
  }

  /** Answers every line of standard input on standard output. */
  static void serve(Function<Request, String> answer) throws IOException {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    PrintStream out = new PrintStream(System.out, false, "US-ASCII");
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.println(answer.apply(new Request(line)));
    }
    out.flush();
  }

  private static String decoded(String field) {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < field.length(); i++) {
      char c = field.charAt(i);
      if (c == '\\') {
        c = (char) Integer.parseInt(field.substring(i + 2, i + 6), 16);
        i += 5;
      }
      text.append(c);
    }
    return text.toString();
  }

  private static Object typed(String type, String text) {
    switch (type) {
      case "boolean":
        return Boolean.valueOf(text);
      case "byte":
        return Byte.valueOf(text);
      case "short":
        return Short.valueOf(text);
      case "int":
        return Integer.valueOf(text);
      case "long":
        return Long.valueOf(text);
      case "float":
        return Float.valueOf(text);
      case "double":
        return Double.valueOf(text);
      default:
        return text;
    }
  }
}
