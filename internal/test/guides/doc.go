// Package guides tests what users copy: the examples, the configurations of the guides, and the modules. Each is applied as it is.
package guides
