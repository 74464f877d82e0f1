import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.metadata.api.GetResult;
import org.apache.pulsar.metadata.api.MetadataStore;
import org.apache.pulsar.metadata.api.MetadataStoreConfig;
import org.apache.pulsar.metadata.api.MetadataStoreFactory;

/**
 * Deletes the ephemeral nodes of a killed broker's session from its metadata.
 *
 * <p>A metadata service does this when a session ends; the store inside a standalone broker does not. Run
 * from its source, with the broker's jars on the class path.
 */
public final class EndSessions {
    private static final int TIMEOUT_SECONDS = 30;

    private final MetadataStore store;

    private EndSessions(MetadataStore store) {
        this.store = store;
    }

    /** The argument is the metadata folder. */
    public static void main(String[] arguments) throws Exception {
        MetadataStoreConfig config = MetadataStoreConfig.builder().build();
        try (MetadataStore store = MetadataStoreFactory.create("rocksdb:" + arguments[0], config)) {
            new EndSessions(store).endBelow("/");
        }
    }

    private void endBelow(String folder) throws Exception {
        String prefix = folder.equals("/") ? folder : folder + "/";
        for (String name : store.getChildren(folder).get(TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
            String path = prefix + name;
            endBelow(path);
            Optional<GetResult> found = store.get(path).get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            if (found.isPresent() && found.get().getStat().isEphemeral()) {
                store.delete(path, Optional.empty()).get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            }
        }
    }
}
