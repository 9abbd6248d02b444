// Package deploy is a deployment, whole: what runs on a machine, what a plan of it decides, and what an apply does.
//
//   - plan.go, wish.go, steps.go and plan_*.go: Decide, its values, and its rules; look.go and look_*.go ask the server what Decide needs.
//   - deploy.go, undeploy.go, bootiso.go, adopt.go, rescue.go, ready.go and quarantine.go: do the steps.
//   - outcome.go: After, which decides what an update leaves in the state when its steps have ended, also by a failure.
//   - reserve.go, content.go, runs.go, bootrecord.go and vifs*.go: what Ironic calls the instance of a node: its reservation, what it was
//     deployed with (instance_info and the provider's marker), the live ISO that it was booted with, and its VIFs.
//   - image*.go: names, formats and checksums of images, and whether the server of a live ISO has finished writing it.
//
// Package bootiso decides which machines restart with a new live ISO, and package deployinterface knows what each deploy interface needs.
package deploy
