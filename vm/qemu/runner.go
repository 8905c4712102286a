package qemu

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// runner is how a machine's runner script is started in QEMU's place. The script
// and what of the command line has spaces are handed over as further files.
func (m *machine) runner(l launch, files *[]*os.File) (binary string, args, env []string, err error) {
	opts, net, kernel := split(commandLine(l))
	hand := func(name, text string) (string, error) {
		f, err := memoryFile(name, text)
		if err != nil {
			return "", err
		}
		*files = append(*files, f)
		return fmt.Sprintf("/proc/self/fd/%d", len(*files)+2), nil
	}
	config, err := hand("machine", "[machine]\n  append = \""+kernel+"\"\n")
	if err != nil {
		return "", nil, nil, err
	}
	if binary, err = hand("runner", string(l.Spec.Runner)); err != nil {
		return "", nil, nil, err
	}
	opts = append(opts, "-readconfig", config)
	env = []string{"QEMU_OPTS=" + strings.Join(opts, " "), "QEMU_NET_OPTS=" + net,
		"AOE_TERRITORY_ID=" + m.cluster.name, "AOE_MACHINE=" + l.Spec.Name, "AOE_HOST=127.0.0.1"}
	for _, f := range l.Forwards {
		switch {
		case f.Guest == 22:
			env = append(env, "AOE_SSH_PORT="+strconv.Itoa(f.Host))
		case len(l.Spec.Forwards) > 0 && f.Guest == l.Spec.Forwards[0]:
			env = append(env, "AOE_SERVICE_PORT="+strconv.Itoa(f.Host))
		}
	}
	return binary, nil, env, nil
}

// split takes the user NIC, which is the runner's, and the kernel's command line out
// of QEMU's arguments.
func split(args []string) (opts []string, net, kernel string) {
	for i := 0; i < len(args); i++ {
		value := ""
		if i+1 < len(args) {
			value = args[i+1]
		}
		switch {
		case args[i] == "-append":
			kernel = value
		case args[i] == "-netdev" && strings.HasPrefix(value, userNIC):
			net = strings.TrimPrefix(value, userNIC)
		case args[i] == "-device" && strings.Contains(value, ",netdev=n0,"):
		default:
			opts = append(opts, args[i])
			continue
		}
		i++
	}
	return opts, net, kernel
}

const userNIC = "user,id=n0,"
