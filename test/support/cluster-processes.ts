/** Gateways of one cluster in separate processes, for tests that kill them. */
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeHome } from './gateway.ts'
import type { GatewayOptions } from './gateway.ts'
import { spawnGateway } from './process.ts'
import type { GatewayProcess, SpawnOptions } from './process.ts'

export interface MemberProcess extends GatewayProcess {
	home: string
}

/** `env`: for all of them. */
export function openMembers(env: NodeJS.ProcessEnv = {}) {
	const homes: string[] = []
	const started: MemberProcess[] = []
	return {
		/** From the second one on, it has the keys of the first one, whose gateway must have been started before. */
		newHome(options: Pick<GatewayOptions, 'config' | 'files'>): string {
			const home = makeHome(options)
			if (homes[0] !== undefined) cpSync(join(homes[0], 'keys'), join(home, 'keys'), { recursive: true })
			homes.push(home)
			return home
		},
		/** Settles once it listens. */
		async start(home: string, options: SpawnOptions & { env?: NodeJS.ProcessEnv } = {}): Promise<MemberProcess> {
			const member = { ...(await spawnGateway(home, { ...env, ...options.env }, options)), home }
			started.push(member)
			return member
		},
		/** Kills all of them. */
		async kill(): Promise<void> {
			await Promise.all(started.map((member) => member.kill().catch(() => {})))
		},
	}
}

/** `working` or `waiting`, as the runtime file of a home states; empty without that file. */
export function roleOf(home: string): string {
	try {
		return (JSON.parse(readFileSync(join(home, 'run/gateway.json'), 'utf8')) as { role: string }).role
	} catch {
		return ''
	}
}
