/** Gateways of one cluster in this process: one works, the others wait and forward requests. */
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { boot } from '../../core/boot.ts'
import type { Running } from '../../core/boot.ts'
import { makeHome, send } from './gateway.ts'
import type { Answer, Reply, RequestOptions } from './gateway.ts'
import type { NatsCluster } from './nats.ts'

export interface Member {
	home: string
	url: string
	/** The URL of the chat API's address; empty while it does not listen there. */
	legacy(): string
	/** Settles once it works. */
	works: Promise<Running>
	request(method: string, path: string, options?: RequestOptions): Promise<Reply<Answer>>
	stop(): Promise<void>
}

export interface MemberOptions {
	/** Appended to gateway.yaml. */
	config?: string
	/** A home whose keys are copied. */
	keysOf?: string
	env?: NodeJS.ProcessEnv
}

/** Settles once it listens. */
export async function startMember(
	cluster: NatsCluster,
	{ config = '', keysOf, env }: MemberOptions = {},
): Promise<Member> {
	const home = makeHome({ config: `server: { shutdown_grace_s: 0 }\n${config}` })
	if (keysOf !== undefined) cpSync(join(keysOf, 'keys'), join(home, 'keys'), { recursive: true })
	const end = new AbortController()
	let url: string | null = null
	let legacy: string | null = null
	const listens = Promise.withResolvers<void>()
	const works = boot({
		home,
		env: {
			SVC_CLUSTER: cluster.url,
			SVC_CLUSTER_REPLICAS: String(cluster.nodes.length),
			SVC_PORT: '0',
			SVC_LEGACY_PORT: '0',
			SVC_LOG_LEVEL: 'fatal',
			...env,
		},
		stopWaiting: end.signal,
		waiting(at) {
			url = at.url
			legacy = at.legacy_url
			listens.resolve()
		},
	})
	works.catch(() => {})
	await Promise.race([listens.promise, works])
	const status = url === null ? (await works).gateway.status : undefined
	const base = url ?? status?.url('main') ?? ''
	return {
		home,
		url: base,
		legacy: () => legacy ?? status?.url('legacy') ?? '',
		works,
		request: (method, path, options) => send(base + path, method, options),
		async stop() {
			end.abort()
			const running = await works.catch(() => undefined)
			await running?.stop()
			rmSync(home, { recursive: true, force: true })
		},
	}
}
