import type { EngineModule } from '../../core/engines/contract.ts'
import { schemes } from './schemes.ts'

/** The engine on NATS JetStream. The client is loaded once an address is given. */
export default {
	schemes,
	async open(request) {
		const { openStore } = await import('./open-store.ts')
		return openStore(request)
	},
	async openMember(options) {
		const { openMember } = await import('./forwarding/member.ts')
		return openMember(options)
	},
} satisfies EngineModule
