import { Fault } from '../../errors.ts'
import type { Address } from '../../http/listening.ts'

/** The first descriptor in systemd's protocol (sd_listen_fds(3)). */
const FIRST = 3
const addresses: readonly Address[] = ['main', 'legacy']

/**
 * The listening sockets that were handed over to this process, as systemd does for a `.socket` unit: the descriptor for each
 * address. They are assigned by their names (`FileDescriptorName=main`, `legacy`), otherwise the first is `main`. Removes the
 * variables from the environment, since they are for this process only. Throws `config_invalid` for more sockets than addresses.
 */
export function handedSockets(env: NodeJS.ProcessEnv): ReadonlyMap<Address, number> {
	const { LISTEN_FDS = '', LISTEN_FDNAMES = '', LISTEN_PID } = env
	for (const name of ['LISTEN_FDS', 'LISTEN_FDNAMES', 'LISTEN_PID']) delete env[name]
	const count = /^\d{1,4}$/.test(LISTEN_FDS) ? Number(LISTEN_FDS) : 0
	if (count === 0 || (LISTEN_PID !== undefined && Number(LISTEN_PID) !== process.pid)) return new Map()
	if (count > addresses.length)
		throw new Fault(
			'config_invalid',
			`LISTEN_FDS hands over ${count} sockets; the gateway accepts two, with FileDescriptorName=main and legacy`,
		)
	const names = LISTEN_FDNAMES.split(':')
	const isNamed = names.length === count && names.every((name) => addresses.includes(name as Address))
	return new Map(
		addresses.slice(0, count).map((address, at) => [isNamed ? (names[at] as Address) : address, FIRST + at] as const),
	)
}
