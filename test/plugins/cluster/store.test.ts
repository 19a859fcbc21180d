import t from 'tap'
import { openNats } from '../../../plugins/cluster/nats/open.ts'
import type { Engine } from '../../../core/store/ports.ts'
import { storeSuite } from '../../contracts/store.ts'
import { startNats, withoutNats } from '../../support/nats.ts'

const count = process.env.SVC_TEST_CLUSTER === 'all' ? 3 : 1
const skip = withoutNats()

void t.test(`the engine on ${count} server(s) of NATS`, { skip }, async (t) => {
	const cluster = await startNats(count)
	t.teardown(() => cluster[Symbol.asyncDispose]())
	const prefixes = new Map<Engine, string>()
	let number = 0
	const openAt = async (prefix: string): Promise<Engine> => {
		const engine = await openNats({ url: cluster.url, prefix, replicas: count })
		prefixes.set(engine, prefix)
		return engine
	}
	storeSuite(t, () => openAt(`t${number++}`), {
		async reopen(engine) {
			await engine[Symbol.asyncDispose]()
			return openAt(prefixes.get(engine) as string)
		},
	})
})
