package language

import (
	"fmt"
	"math/big"
	"net/netip"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

var (
	cidrHostFunction = function.New(&function.Spec{
		Params: []function.Parameter{{Name: "prefix", Type: cty.String}, {Name: "hostnum", Type: cty.Number}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			prefix, err := netip.ParsePrefix(args[0].AsString())
			if err != nil {
				return cty.NilVal, err
			}
			host, err := numbered(prefix, prefix.Addr().BitLen(), args[1])
			return cty.StringVal(host.Addr().String()), err
		},
	})
	cidrSubnetFunction = function.New(&function.Spec{
		Params: []function.Parameter{
			{Name: "prefix", Type: cty.String},
			{Name: "newbits", Type: cty.Number},
			{Name: "netnum", Type: cty.Number},
		},
		Type: function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			prefix, err := netip.ParsePrefix(args[0].AsString())
			if err != nil {
				return cty.NilVal, err
			}
			more, _ := args[1].AsBigFloat().Int64()
			subnet, err := numbered(prefix, prefix.Bits()+int(more), args[2])
			return cty.StringVal(subnet.String()), err
		},
	})
)

// numbered returns a part of a prefix by its length and number; a negative number counts from the end.
func numbered(prefix netip.Prefix, length int, number cty.Value) (netip.Prefix, error) {
	bits, all := length-prefix.Bits(), prefix.Addr().BitLen()
	n, accuracy := number.AsBigFloat().Int(nil)
	if bits < 0 || length > all || accuracy != big.Exact {
		return prefix, fmt.Errorf("%s has no part %v with the length %d", prefix, n, length)
	}
	if n.Sign() < 0 {
		n.Add(n, new(big.Int).Lsh(big.NewInt(1), uint(bits)))
	}
	if n.Sign() < 0 || n.BitLen() > bits {
		return prefix, fmt.Errorf("%s has fewer parts with the length %d", prefix, length)
	}
	base := new(big.Int).SetBytes(prefix.Masked().Addr().AsSlice())
	base.Add(base, n.Lsh(n, uint(all-length)))
	address, _ := netip.AddrFromSlice(base.FillBytes(make([]byte, all/8)))
	return netip.PrefixFrom(address, length), nil
}
