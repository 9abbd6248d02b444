// Package simulate_test lets the provider's protocol server live whole lives on a fake Ironic, in virtual time: a driver does what
// Terraform's core does, and kills, stops and disturbs the provider.
package simulate_test
