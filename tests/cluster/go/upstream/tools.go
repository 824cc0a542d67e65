//go:build tools

// Programs that are built with the suite: the parallel runner, and the one that runs in the pods of the specs.
package upstream

import (
	_ "github.com/onsi/ginkgo/v2/ginkgo"
	_ "k8s.io/kubernetes/test/images/agnhost"
)
