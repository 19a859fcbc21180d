import { readFileSync, statSync } from 'node:fs'
import type { EngineModule } from '../../core/engines/contract.ts'
import { schemes } from './schemes.ts'

/** The engine on NATS JetStream. The client is loaded once an address is given. */
export default {
	schemes,
	async open({ store: { url, format, ...store }, home, ...request }) {
		const { openNats } = await import('./nats/open.ts')
		return openNats({ ...store, ...request, url: url as string, wantedFormat: format, home: homeIdentity(home) })
	},
	async openMember(options) {
		const { openMember } = await import('./forwarding/member.ts')
		return openMember(options)
	},
} satisfies EngineModule

/**
 * What distinguishes this home from any other, also from a copy of it: a process that holds its lock need not wait for an
 * earlier one that was killed. Undefined where the system does not tell.
 */
function homeIdentity(home: string): string | undefined {
	try {
		const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
		const { dev, ino } = statSync(home)
		return `${boot} ${dev} ${ino}`
	} catch {
		return undefined
	}
}
