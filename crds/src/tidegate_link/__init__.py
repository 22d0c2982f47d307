"""The little of Kubernetes that data planes need: one ConfigMap at a time, and a Lease.

The full client costs 126 MB on disk and is not in the sidecar's and runtime's images. Everything
here works with the pod's own service-account token, which is read anew for every request since the
kubelet rotates it, and with a Role limited to the named objects.
"""
