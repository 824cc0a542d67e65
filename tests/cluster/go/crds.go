// Package cluster requires a module of which only the CRDs are read, without linking it.
package cluster

import _ "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
