import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** Serves HDFS from a folder until its standard input ends; prints its URL. */
public final class Hdfs {
    private Hdfs() {}

    public static void main(String[] args) throws Exception {
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(new Configuration(), new File(args[0])).build();
        System.out.println(cluster.getURI());
        while (System.in.read() != -1) {}
        cluster.shutdown(true);
    }
}
