package ironic

import (
	"context"
	"net/http"
	"slices"
)

// VIFs returns the IDs of the VIFs that are attached to a node. The network interface noop keeps none.
func (c *Client) VIFs(ctx context.Context, node string) (ids []string, err error) {
	var answer struct {
		VIFs []struct{ ID string }
	}
	if err := c.Request(ctx, http.MethodGet, "nodes/"+node+"/vifs", nil, &answer); err != nil {
		return nil, err
	}
	for _, vif := range answer.VIFs {
		ids = append(ids, vif.ID)
	}
	return ids, nil
}

// AttachVIF attaches a VIF to the port of a node, or to a free port if the port's UUID is empty. It succeeds if the VIF is attached to
// the node already, also when the answer is lost.
func (c *Client) AttachVIF(ctx context.Context, node, vif, port string) error {
	body := map[string]any{"id": vif}
	if port != "" {
		body["port_uuid"] = port
	}
	err := c.Request(ctx, http.MethodPost, "nodes/"+node+"/vifs", body, nil)
	if IsTransient(err) || IsStatus(err, http.StatusConflict, "already attached") {
		if attached, rerr := c.VIFs(ctx, node); rerr == nil && slices.Contains(attached, vif) {
			return nil
		}
	}
	return err
}

// DetachVIF detaches a VIF from a node. It succeeds if the VIF is not attached.
func (c *Client) DetachVIF(ctx context.Context, node, vif string) error {
	err := c.Request(ctx, http.MethodDelete, "nodes/"+node+"/vifs/"+vif, nil, nil)
	if IsStatus(err, http.StatusBadRequest, "is not attached to it") {
		return nil
	}
	return err
}
