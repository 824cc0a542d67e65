// kube is what a cluster consists of, in one file: its first argument names the program that it is to be.
//
// Linked together they are a quarter of the size, and are linked in a quarter of the time.
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

// What runs until it is told to end, by name.
var servers = map[string]func() *cobra.Command{
	"kube-apiserver":          func() *cobra.Command { return apiserver.NewAPIServerCommand() },
	"kube-controller-manager": func() *cobra.Command { return controllers.NewControllerManagerCommand() },
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

func main() {
	if len(os.Args) < 2 {
		fail("kube: say which program it is to be")
	}
	// Each of them reads its own name and flags off the process' arguments.
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
		fail(fmt.Sprintf("kube: no %q in here, but %s", name, strings.Join(names(), ", ")))
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

func fail(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(2)
}
