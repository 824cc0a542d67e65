// kube contains the components of a cluster in one binary: its first argument selects the component.
//
// One binary has a quarter of the size of separate ones, and is linked in a quarter of the time.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// Long-running components by name.
var servers = map[string]func() *cobra.Command{
	"kube-apiserver":          func() *cobra.Command { return apiserver.NewAPIServerCommand() },
	"kube-controller-manager": func() *cobra.Command { return controllers.NewControllerManagerCommand() },
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

func main() {
	if len(os.Args) < 2 {
		fail("usage: kube COMPONENT")
	}
	// Each component reads its name and flags from os.Args.
	os.Args = os.Args[1:]
	name := os.Args[0]
	if server, known := servers[name]; known {
		os.Exit(cli.Run(server()))
	}
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kubectl":
		util.CheckErr(cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()))
	default:
		fail(fmt.Sprintf("kube: unknown component %q, available: %s", name, strings.Join(names(), ", ")))
	}
}

func names() []string {
	all := []string{"etcd", "kubectl"}
	for name := range servers {
		all = append(all, name)
	}
	sort.Strings(all)
	return all
}

func fail(reason string) {
	fmt.Fprintln(os.Stderr, reason)
	os.Exit(2)
}
