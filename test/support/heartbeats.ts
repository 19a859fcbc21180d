/** Changes heartbeats as the passing of time or a crash would. */
import { openEngine } from '../../core/engines/open.ts'
import { readConfig } from '../../core/host/config.ts'
import { openLog } from '../../core/log/log.ts'
import { clusterEnv } from './nats.ts'

/** Changes the records of all heartbeats in a home whose gateway is not running. */
export async function changeHeartbeats(
	home: string,
	change: (record: Record<string, unknown>) => Record<string, unknown>,
): Promise<void> {
	const log = openLog({ level: 'silent', format: 'json' })
	const { store } = readConfig({ home, env: await clusterEnv(home) })
	await using engine = await openEngine({ store, home, log })
	for await (const agent of engine.store.list<{ uid: string }>(['agents'])) {
		for await (const { key, value } of engine.store.list<Record<string, unknown>>([
			`agent:${agent.value.uid}`,
			'heartbeat',
		]))
			await engine.store.put(key, { ...value, ...change(value) })
	}
}
