// What a JavaScript program does to a cluster: create, watch, apply on the server, inform, delete.
import { CoreV1Api, KubeConfig, PatchStrategy, Watch, makeInformer, setHeaderOptions } from "@kubernetes/client-node";

const config = new KubeConfig();
config.loadFromFile(process.env.KUBECONFIG);
const core = config.makeApiClient(CoreV1Api);
const namespace = "default";

function map(value) {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "javascript", namespace }, data: { key: value } };
}

function expect(found, wanted) {
  if (found !== wanted) throw new Error(`expected ${wanted}, got ${found}`);
}

const seen = [];
let wake = () => {};
const told = (event) => { seen.push(event); wake(); };
async function next(wanted) {
  const limit = setTimeout(() => { throw new Error(`nothing came: expected ${wanted}`); }, 20000);
  while (!seen.length) await new Promise((resolve) => { wake = resolve; });
  clearTimeout(limit);
  expect(seen.shift(), wanted);
}

const isOurs = (object) => object.metadata.name === "javascript";
const request = await new Watch(config).watch(
  `/api/v1/namespaces/${namespace}/configmaps`, {},
  (type, object) => { if (isOurs(object)) told(`${type} ${object.data.key}`); }, () => {});
await core.createNamespacedConfigMap({ namespace, body: map("1") });
await next("ADDED 1");
await core.patchNamespacedConfigMap(
  { name: "javascript", namespace, body: map("2"), fieldManager: "javascript", force: true },
  setHeaderOptions("Content-Type", PatchStrategy.ServerSideApply));
await next("MODIFIED 2");
await core.deleteNamespacedConfigMap({ name: "javascript", namespace });
await next("DELETED 2");
request.abort();

const informer = makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`,
  () => core.listNamespacedConfigMap({ namespace }));
informer.on("add", (object) => { if (isOurs(object)) told(`informed ${object.data.key}`); });
await informer.start();
await core.createNamespacedConfigMap({ namespace, body: map("3") });
await next("informed 3");
await informer.stop();
console.log("done");
process.exit(0);
