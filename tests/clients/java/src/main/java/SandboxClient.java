import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.Watch;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** What a Java program does to a cluster: create, watch over a WebSocket, apply on the server, inform, delete. */
public class SandboxClient {
  public static void main(String[] arguments) throws Exception {
    try (KubernetesClient client = new KubernetesClientBuilder().build()) {
      BlockingQueue<String> seen = new LinkedBlockingQueue<>();
      Watcher<ConfigMap> watcher = new Watcher<>() {
        @Override
        public void eventReceived(Action action, ConfigMap map) {
          if (map.getMetadata().getName().equals("java")) {
            seen.add(action + " " + map.getData().get("key"));
          }
        }

        @Override
        public void onClose(WatcherException cause) {}
      };
      try (Watch watch = client.configMaps().inNamespace("default").watch(watcher)) {
        client.resource(map("1")).create();
        expect(seen, "ADDED 1");
        client.resource(map("2")).fieldManager("java").forceConflicts().serverSideApply();
        expect(seen, "MODIFIED 2");
        client.configMaps().inNamespace("default").withName("java").delete();
        expect(seen, "DELETED 2");
      }
      BlockingQueue<String> informed = new LinkedBlockingQueue<>();
      try (var informer = client.configMaps().inNamespace("default").inform(new Handler(informed))) {
        client.resource(map("3")).create();
        expect(informed, "ADDED 3");
      }
      System.out.println("done");
    }
  }

  private static ConfigMap map(String value) {
    return new ConfigMapBuilder().withNewMetadata().withName("java").withNamespace("default").endMetadata()
        .addToData("key", value).build();
  }

  private static void expect(BlockingQueue<String> seen, String wanted) throws InterruptedException {
    String found = seen.poll(20, TimeUnit.SECONDS);
    if (!wanted.equals(found)) {
      throw new IllegalStateException("expected " + wanted + ", got " + found);
    }
  }

  private record Handler(BlockingQueue<String> seen)
      implements io.fabric8.kubernetes.client.informers.ResourceEventHandler<ConfigMap> {
    public void onAdd(ConfigMap map) {
      if (map.getMetadata().getName().equals("java")) {
        seen.add("ADDED " + map.getData().get("key"));
      }
    }

    public void onUpdate(ConfigMap before, ConfigMap map) {}

    public void onDelete(ConfigMap map, boolean isUnknown) {}
  }
}
