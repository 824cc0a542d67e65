// Package cluster names what is read out of a module without being linked: the snapshotter's CRDs.
package cluster

import _ "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
