import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;

/** Runs statements by Flink's JDBC driver and prints what comes: host:port, then "all" or "endless". */
public class JdbcProgram {
    public static void main(String[] arguments) throws Exception {
        Class.forName("org.apache.flink.table.jdbc.FlinkDriver");
        String url = "jdbc:flink://" + arguments[0] + "?table.local-time-zone=Asia/Tokyo";
        try (Connection connection = DriverManager.getConnection(url); Statement statement = connection.createStatement()) {
            if (arguments[1].equals("endless")) {
                readWithoutEnd(statement);
            } else {
                readAll(connection, statement);
            }
        }
    }

    private static void readAll(Connection connection, Statement statement) throws SQLException {
        DatabaseMetaData about = connection.getMetaData();
        System.out.println("at " + connection.getCatalog() + "." + connection.getSchema());
        print(about.getCatalogs());
        print(about.getSchemas());
        statement.execute("SET 'execution.runtime-mode' = 'batch'");
        statement.execute("CREATE VIEW t AS SELECT * FROM (VALUES (1, 'x'), (2, CAST(NULL AS STRING))) AS v(a, b)");
        statement.execute("CREATE TABLE bh (a INT) WITH ('connector' = 'blackhole')");
        statement.execute("INSERT INTO bh SELECT a FROM t");
        System.out.println("job " + statement.getResultSet().next());
        print(statement.executeQuery("SELECT a, b, CAST(a AS DECIMAL(10, 2)) AS d, a > 1 AS c FROM t"));
        print(statement.executeQuery("SELECT DATE '2024-01-02' AS da, TIMESTAMP '2024-01-02 03:04:05.120' AS ts, "
                + "CAST(TIMESTAMP '2024-01-02 03:04:05' AS TIMESTAMP_LTZ(3)) AS l, CAST(1.5 AS DOUBLE) AS f, "
                + "CAST(7 AS BIGINT) AS g, MAP['k', 1] AS m"));
        try {
            statement.executeQuery("SELECT nosuch FROM t");
        } catch (SQLException | RuntimeException error) {
            Throwable cause = error;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            System.out.println("error " + cause.getMessage().contains("there is no column 'nosuch'"));
        }
        System.out.println("zone " + connection.getClientInfo("table.local-time-zone"));
    }

    private static void readWithoutEnd(Statement statement) throws SQLException {
        statement.execute("CREATE TABLE endless (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000')");
        ResultSet rows = statement.executeQuery("SELECT a FROM endless");
        for (long count = 0; rows.next(); count++) {
            if (count == 0) {
                System.out.println("first row");
            }
        }
    }

    private static void print(ResultSet rows) throws SQLException {
        ResultSetMetaData columns = rows.getMetaData();
        StringBuilder names = new StringBuilder();
        for (int index = 1; index <= columns.getColumnCount(); index++) {
            names.append(columns.getColumnName(index)).append(" ").append(columns.getColumnTypeName(index)).append(", ");
        }
        System.out.println(names);
        while (rows.next()) {
            StringBuilder line = new StringBuilder("  ");
            for (int index = 1; index <= columns.getColumnCount(); index++) {
                line.append(rows.getObject(index)).append(", ");
            }
            System.out.println(line);
        }
        rows.close();
    }
}
