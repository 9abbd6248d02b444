package ironic

import "github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

// Project returns the ID of the project that Keystone has authenticated the client for: Ironic makes it the owner of what its users create.
// It is empty without Keystone, with another scope, and before the first request.
func (c *Client) Project() string {
	service := c.connected()
	if service == nil || service.ProviderClient == nil {
		return ""
	}
	result, ok := service.GetAuthResult().(interface {
		ExtractProject() (*tokens.Project, error)
	})
	if !ok {
		return ""
	}
	project, err := result.ExtractProject()
	if err != nil || project == nil {
		return ""
	}
	return project.ID
}
