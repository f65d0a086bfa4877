// Answers scheduling problems with the code of a published kube-scheduler.
//
// Problems come as JSON lines on standard input, in the form of the recorded cases; answers go as JSON lines to standard
// output in any order, in the form of the recorded answers as far as the public functions of the framework tell. Feature
// gates are in the variable FEATURE_GATES. See ../fresh_cases.py.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/fake"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

const (
	timeout = time.Minute
	// Most of the time of an answer is spent waiting for informers, which look ten times in a second.
	workers = 16
)

// problem is a case, without its answer.
type problem struct {
	Name    string            `json:"name"`
	Kind    string            `json:"kind"`
	Config  json.RawMessage   `json:"config"`
	Objects []json.RawMessage `json:"objects"`
	Pod     string            `json:"pod"`
	Plugin  string            `json:"plugin"`
	Event   struct {
		Resource string `json:"resource"`
		Action   string `json:"action"`
	} `json:"event"`
	Old json.RawMessage `json:"oldObject"`
	New json.RawMessage `json:"newObject"`
}

type answer map[string]any

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	if err := utilfeature.DefaultMutableFeatureGate.Set(os.Getenv("FEATURE_GATES")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	problems, out := make(chan problem), json.NewEncoder(os.Stdout)
	var writing sync.Mutex
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for asked := range problems {
				given, err := solve(asked)
				if err != nil {
					given = answer{"cannot": err.Error()}
				}
				writing.Lock()
				err = out.Encode(map[string]any{"name": asked.Name, "expected": given})
				writing.Unlock()
				if err != nil {
					os.Exit(2)
				}
			}
		})
	}
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	for {
		var asked problem
		if err := in.Decode(&asked); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		problems <- asked
	}
	close(problems)
	working.Wait()
}

// solve brings up a scheduler with the problem's cluster, and asks the framework of the pod's profile.
func solve(asked problem) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	objects, pod, err := cluster(asked)
	if err != nil {
		return nil, err
	}
	settings, err := configuration(asked.Config)
	if err != nil {
		return nil, err
	}
	client := fake.NewSimpleClientset(objects...)
	informers := scheduler.NewInformerFactory(client, 0)
	recorders := profile.NewRecorderFactory(events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()}))
	made, err := scheduler.New(ctx, client, informers, nil, recorders, scheduler.WithProfiles(settings.Profiles...))
	if err != nil {
		return nil, err
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := made.WaitForHandlersSync(ctx); err != nil {
		return nil, err
	}
	chosen, found := made.Profiles[pod.Spec.SchedulerName]
	if !found {
		return nil, fmt.Errorf("no profile %q", pod.Spec.SchedulerName)
	}
	if asked.Kind == "hint" {
		return hint(ctx, chosen, asked, pod)
	}
	snapshot := chosen.SnapshotSharedLister().(*cache.Snapshot)
	if err := made.Cache.UpdateSnapshot(klog.Background(), snapshot); err != nil {
		return nil, err
	}
	given, err := decide(ctx, chosen, asked.Kind, pod)
	if result, asked := given["postFilter"].(answer); asked {
		result["deleted"] = deleted(client)
	}
	return given, err
}

// deleted names the pods that preemption deleted.
func deleted(client *fake.Clientset) []string {
	names := []string{}
	for _, action := range client.Actions() {
		if found, is := action.(clienttesting.DeleteAction); is && action.GetResource().Resource == "pods" {
			names = append(names, found.GetNamespace()+"/"+found.GetName())
		}
	}
	slices.Sort(names)
	return names
}

// cluster decodes the objects; pods that have ended are left out, which the fake server cannot do for its watchers.
func cluster(asked problem) ([]runtime.Object, *v1.Pod, error) {
	var objects []runtime.Object
	var pending *v1.Pod
	for _, raw := range asked.Objects {
		object, err := decoded(raw)
		if err != nil {
			return nil, nil, err
		}
		if pod, is := object.(*v1.Pod); is {
			ended := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
			if ended && pod.Spec.NodeName != "" {
				continue
			}
			if pod.Namespace+"/"+pod.Name == asked.Pod {
				pending = pod
			}
		}
		objects = append(objects, object)
	}
	if pending == nil {
		return nil, nil, fmt.Errorf("no pod %s", asked.Pod)
	}
	return objects, pending, nil
}

func decoded(raw json.RawMessage) (runtime.Object, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	object, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	return object, err
}

func configuration(raw json.RawMessage) (*config.KubeSchedulerConfiguration, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return latest.Default()
	}
	object, _, err := configscheme.Codecs.UniversalDecoder().Decode(raw, nil, nil)
	if err != nil {
		return nil, err
	}
	settings, is := object.(*config.KubeSchedulerConfiguration)
	if !is {
		return nil, fmt.Errorf("%T is no configuration", object)
	}
	return settings, nil
}

// verdict is a status in the form of the recorded ones; nil for success.
func verdict(status *fwk.Status) map[string]any {
	if status.IsSuccess() {
		return nil
	}
	reasons := slices.Sorted(slices.Values(status.Reasons()))
	return map[string]any{"plugin": status.Plugin(), "code": status.Code().String(), "reasons": reasons}
}

// decide runs the stages of a scheduling cycle one by one, on every node.
func decide(ctx context.Context, chosen framework.Framework, kind string, pod *v1.Pod) (answer, error) {
	nodes, err := chosen.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, err
	}
	state := framework.NewCycleState()
	narrowed, status, plugins := chosen.RunPreFilterPlugins(ctx, state, pod)
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus(), UnschedulablePlugins: plugins}
	verdicts := map[string]any{}
	given := answer{
		"preFilter": preFilter(status, narrowed, state), "filter": verdicts, "scores": answer{}, "message": "",
	}
	var feasible []fwk.NodeInfo
	switch {
	case status.IsSuccess():
		filterNominated(ctx, chosen, state, pod, diagnosis)
		feasible = filter(ctx, chosen, state, pod, nodes, narrowed, &diagnosis, given)
	case status.IsRejected():
		diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		diagnosis.PreFilterMsg = status.Message()
		diagnosis.AddPluginStatus(status)
	default:
		given["error"] = status.AsError().Error()
	}
	if !status.IsSuccess() {
		for _, node := range nodes {
			verdicts[node.Node().Name] = verdict(status)
		}
	}
	given["unschedulablePlugins"] = sets.List(diagnosis.UnschedulablePlugins)
	if _, failed := given["error"]; failed {
		return given, nil
	}
	if len(feasible) > 0 {
		score(ctx, chosen, state, pod, feasible, given)
		return given, nil
	}
	given["message"] = (&framework.FitError{Pod: pod, NumAllNodes: len(nodes), Diagnosis: diagnosis}).Error()
	if kind == "preemption" {
		result, status := chosen.RunPostFilterPlugins(ctx, state, pod, diagnosis.NodeToStatus)
		node, nomination := "", "keep"
		if result != nil && result.NominatingInfo != nil && result.Mode() == fwk.ModeOverride {
			node, nomination = result.NominatedNodeName, "clear"
			if node != "" {
				nomination = "set"
			}
		}
		given["postFilter"] = answer{
			"code": status.Code().String(), "plugin": status.Plugin(), "message": status.Message(),
			"nominatedNode": node, "nomination": nomination,
		}
	}
	return given, nil
}

func preFilter(status *fwk.Status, narrowed *fwk.PreFilterResult, state fwk.CycleState) answer {
	given := answer{
		"code": status.Code().String(), "plugin": "", "reasons": []string{}, "nodeNames": nil,
		"skipped": sets.List(state.GetSkipFilterPlugins()),
	}
	if !status.IsSuccess() {
		given["plugin"], given["reasons"] = status.Plugin(), status.Reasons()
	}
	if !narrowed.AllNodes() {
		given["nodeNames"] = sets.List(narrowed.NodeNames)
	}
	return given
}

// filterNominated asks about the nominated node first, as the scheduler does: what is said of it stays in the diagnosis
// even if PreFilter leaves the node out.
func filterNominated(
	ctx context.Context, chosen framework.Framework, state fwk.CycleState, pod *v1.Pod, diagnosis framework.Diagnosis,
) {
	node, err := chosen.SnapshotSharedLister().NodeInfos().Get(pod.Status.NominatedNodeName)
	if err != nil {
		return
	}
	status := chosen.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
	if status.IsRejected() {
		diagnosis.NodeToStatus.Set(node.Node().Name, status)
		diagnosis.AddPluginStatus(status)
	}
}

// filter returns the nodes that are left, and notes what was said of each.
func filter(
	ctx context.Context, chosen framework.Framework, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo,
	narrowed *fwk.PreFilterResult, diagnosis *framework.Diagnosis, given answer,
) []fwk.NodeInfo {
	var feasible []fwk.NodeInfo
	verdicts := given["filter"].(map[string]any)
	text := fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(diagnosis.UnschedulablePlugins))
	leftOut := fwk.NewStatus(fwk.UnschedulableAndUnresolvable, text)
	if !narrowed.AllNodes() {
		diagnosis.NodeToStatus.SetAbsentNodesStatus(leftOut)
	}
	for _, node := range nodes {
		name := node.Node().Name
		if !narrowed.AllNodes() && !narrowed.NodeNames.Has(name) {
			verdicts[name] = verdict(diagnosis.NodeToStatus.Get(name))
			continue
		}
		status := chosen.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
		verdicts[name] = verdict(status)
		switch {
		case status.IsSuccess():
			feasible = append(feasible, node)
		case status.Code() == fwk.Error:
			given["error"] = status.AsError().Error()
		default:
			diagnosis.NodeToStatus.Set(name, status)
			diagnosis.AddPluginStatus(status)
		}
	}
	return feasible
}

func score(
	ctx context.Context, chosen framework.Framework, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo, given answer,
) {
	scores := answer{}
	given["scores"] = scores
	if !chosen.HasScorePlugins() {
		for _, node := range nodes {
			scores[node.Node().Name] = answer{"plugins": map[string]int64{}, "total": 1}
		}
		return
	}
	if status := chosen.RunPreScorePlugins(ctx, state, pod, nodes); !status.IsSuccess() {
		given["error"] = status.AsError().Error()
		return
	}
	scored, status := chosen.RunScorePlugins(ctx, state, pod, nodes)
	if !status.IsSuccess() {
		given["error"] = status.AsError().Error()
		return
	}
	for _, node := range scored {
		plugins := map[string]int64{}
		for _, points := range node.Scores {
			plugins[points.Name] = points.Score
		}
		scores[node.Name] = answer{"plugins": plugins, "total": node.TotalScore}
	}
}

// hint asks the plugin about the event as the scheduling queue would.
func hint(ctx context.Context, chosen framework.Framework, asked problem, pod *v1.Pod) (answer, error) {
	before, err := decoded(asked.Old)
	if err != nil {
		return nil, err
	}
	after, err := decoded(asked.New)
	if err != nil {
		return nil, err
	}
	// A nil object in an interface is not nil: the functions ask for that.
	var from, to any
	if before != nil {
		from = before
	}
	if after != nil {
		to = after
	}
	given := answer{"hint": "QueueSkip"}
	for _, plugin := range chosen.EnqueueExtensions() {
		if plugin.Name() != asked.Plugin {
			continue
		}
		registered, err := plugin.EventsToRegister(ctx)
		if err != nil {
			return nil, err
		}
		for _, event := range happened(asked, before, after) {
			for _, wanted := range registered {
				if framework.MatchClusterEvents(wanted.Event, event) && says(wanted.QueueingHintFn, pod, from, to) {
					given["hint"] = "Queue"
				}
			}
		}
	}
	return given, nil
}

func says(ask fwk.QueueingHintFn, pod *v1.Pod, before, after any) bool {
	if ask == nil {
		return true
	}
	answer, err := ask(klog.Background(), pod, before, after)
	return err != nil || answer == fwk.Queue
}

var groups = map[string]string{
	"CSIDriver": "storage.k8s.io/", "CSINode": "storage.k8s.io/", "CSIStorageCapacity": "storage.k8s.io/",
	"StorageClass": "storage.k8s.io/", "VolumeAttachment": "storage.k8s.io/", "DeviceClass": "resource.k8s.io/",
	"ResourceClaim": "resource.k8s.io/", "ResourceSlice": "resource.k8s.io/",
}

// happened tells the events that the scheduler makes of a change.
func happened(asked problem, before, after runtime.Object) []fwk.ClusterEvent {
	resource := fwk.EventResource(groups[asked.Event.Resource] + asked.Event.Resource)
	switch asked.Event.Action {
	case "Add":
		return []fwk.ClusterEvent{{Resource: resource, ActionType: fwk.Add}}
	case "Delete":
		return []fwk.ClusterEvent{{Resource: resource, ActionType: fwk.Delete}}
	}
	switch changed := after.(type) {
	case *v1.Node:
		return framework.NodeSchedulingPropertiesChange(changed, before.(*v1.Node))
	case *v1.Pod:
		return framework.PodSchedulingPropertiesChange(changed, before.(*v1.Pod))
	}
	return []fwk.ClusterEvent{{Resource: resource, ActionType: fwk.Update}}
}
