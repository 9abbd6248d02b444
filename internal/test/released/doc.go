// Package released keeps, for each release, a state that it has written, and the requests with which it has made what the state describes.
// Each later version must plan no change of it.
package released
