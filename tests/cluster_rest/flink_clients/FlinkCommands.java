import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.flink.client.cli.CliFrontend;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.GlobalConfiguration;

/** Runs commands of Flink's own command line, one a line of the input, in one process. */
public class FlinkCommands {
    public static void main(String[] arguments) throws Exception {
        Configuration configuration = GlobalConfiguration.loadConfiguration(arguments[0]);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println("$ " + line);
            CliFrontend frontend =
                    new CliFrontend(configuration, CliFrontend.loadCustomCommandLines(configuration, arguments[0]));
            int code = frontend.parseAndRun(line.split(" "));
            System.out.println("exit " + code);
            System.out.flush();
        }
    }
}
