//go:build tools

// What is built beside the suite: the program that runs specs side by side, and that which their pods run.
package upstream

import (
	_ "github.com/onsi/ginkgo/v2/ginkgo"
	_ "k8s.io/kubernetes/test/images/agnhost"
)
