import { readFileSync, statSync } from 'node:fs'
import type { EngineModule } from '../../core/engines/contract.ts'
import { schemes } from './schemes.ts'

/** The engine on NATS JetStream. Its client is loaded only when needed. */
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
 * Identifies this home, and distinguishes it from copies. A process that holds the home's lock need not wait for the lease of an
 * earlier process of the same home that was killed. Undefined on systems other than Linux.
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
