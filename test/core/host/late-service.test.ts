/** The service of a plugin, as its own routes get it. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { Instance } from '../../../core/host/instance.ts'
import type { Host } from '../../../core/host/instance.ts'
import { openLog } from '../../../core/log/log.ts'
import { eventually } from '../../support/wait.ts'

class Counter {
	#count = 0
	readonly callbacks: WeakRef<() => void>[] = []

	count(): number {
		return ++this.#count
	}

	/** A new function each time. */
	get callback(): () => void {
		const callback = (): void => void this.#count
		this.callbacks.push(new WeakRef(callback))
		return callback
	}
}

async function started() {
	const log = openLog({ level: 'silent', format: 'json' })
	const definition = { plugin: { name: 'counter', start: () => new Counter() }, source: '', config: {} }
	const host = { shared: { log, events: {}, store: {} }, lookup: () => instance }
	const instance: Instance = new Instance(definition as never, host as unknown as Host)
	await instance.start()
	return { counter: instance.service as Counter, late: instance.lateService() as Counter }
}

void t.test('a method is bound once, and can use private fields of the service', async (t) => {
	const { late } = await started()
	t.equal(late.count, late.count)
	t.equal(late.count(), 1)
	t.equal(late.count(), 2)
})

void t.test('functions that a getter returns are not retained', async (t) => {
	const { counter, late } = await started()
	setFlagsFromString('--expose-gc')
	t.teardown(() => setFlagsFromString('--no-expose-gc'))
	const collect = runInNewContext('gc') as () => void
	for (let n = 0; n < 100; n++) late.callback()
	t.equal(counter.callbacks.length, 100)
	const retained = (): number => counter.callbacks.filter((callback) => callback.deref()).length
	await eventually(
		() => {
			collect()
			return retained()
		},
		(count) => count <= 1,
	)
	t.equal(late.count(), 1, 'the service still works')
})
