// What a Go program does to a cluster: typed clients, which write protobuf, and a controller of controller-runtime.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(err)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	clients := kubernetes.NewForConfigOrDie(config)

	_, err = clients.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}},
	}, metav1.CreateOptions{})
	must(err)
	role, err := clients.RbacV1().ClusterRoles().Get(ctx, "reader", metav1.GetOptions{})
	must(err)
	expect("rules", role.Rules[0].Resources[0], "pods")

	maps := clients.CoreV1().ConfigMaps("default")
	applied := applycorev1.ConfigMap("go", "default").WithData(map[string]string{"key": "1"})
	_, err = maps.Apply(ctx, applied, metav1.ApplyOptions{FieldManager: "ann"})
	must(err)
	_, err = maps.Apply(ctx, applied.WithData(map[string]string{"key": "2"}), metav1.ApplyOptions{FieldManager: "bob"})
	expect("conflict", errors.IsConflict(err), true)
	read, err := maps.Get(ctx, "go", metav1.GetOptions{})
	must(err)
	extracted, err := applycorev1.ExtractConfigMap(read, "ann")
	must(err)
	expect("extracted", extracted.Data["key"], "1")

	defineWidgets(ctx, apiextensions.NewForConfigOrDie(config))
	config.ContentType = "application/json"
	widgets := dynamic.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{
		Group: "example.com", Version: "v1", Resource: "widgets"}).Namespace("default")
	_, err = widgets.Create(ctx, widget(), metav1.CreateOptions{})
	must(err)
	controller(ctx, widget())
	fmt.Println("done")
}

func defineWidgets(ctx context.Context, clients *apiextensions.Clientset) {
	keeps := true
	size := float64(10)
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com",
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", XPreserveUnknownFields: &keeps,
							Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer", Maximum: &size}}},
						"status": {Type: "object", XPreserveUnknownFields: &keeps},
					},
				}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
	_, err := clients.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, definition, metav1.CreateOptions{})
	must(err)
}

func widget() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]interface{}{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]interface{}{"name": "w", "namespace": "default"},
		"spec": map[string]interface{}{"size": int64(3)},
	}}
}

// controller reconciles widgets until the first of them has its status.
func controller(ctx context.Context, kind *unstructured.Unstructured) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	must(err)
	reconciled := make(chan string, 8)
	reconcile := func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		found := kind.DeepCopy()
		if err := manager.GetClient().Get(ctx, request.NamespacedName, found); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "of-" + found.GetName(), Namespace: found.GetNamespace()}}
		if _, err := ctrl.CreateOrUpdate(ctx, manager.GetClient(), made, func() error {
			return ctrl.SetControllerReference(found, made, manager.GetScheme())
		}); err != nil {
			return ctrl.Result{}, err
		}
		found.Object["status"] = map[string]interface{}{"ready": true}
		if err := manager.GetClient().Status().Update(ctx, found); err != nil {
			return ctrl.Result{}, err
		}
		reconciled <- found.GetName()
		return ctrl.Result{}, nil
	}
	must(ctrl.NewControllerManagedBy(manager).Named("widgets").For(kind.DeepCopy()).Owns(&corev1.ConfigMap{}).
		Complete(reconcileFunc(reconcile)))
	go func() { must(manager.Start(ctx)) }()
	select {
	case name := <-reconciled:
		expect("reconciled", name, "w")
	case <-ctx.Done():
		must(ctx.Err())
	}
}

type reconcileFunc func(context.Context, ctrl.Request) (ctrl.Result, error)

func (f reconcileFunc) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return f(ctx, request)
}

func expect[T comparable](what string, found, wanted T) {
	if found != wanted {
		panic(fmt.Sprintf("%s: expected %v, got %v", what, wanted, found))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
