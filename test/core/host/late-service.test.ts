/** A plugin's service as its own routes have it. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { Instance } from '../../../core/host/instance.ts'
import type { Host } from '../../../core/host/instance.ts'
import { openLog } from '../../../core/log/log.ts'
import { eventually } from '../../support/wait.ts'

class Counter {
	#count = 0
	readonly made: WeakRef<() => void>[] = []

	count(): number {
		return ++this.#count
	}

	/** Another function each time. */
	get callback(): () => void {
		const made = (): void => void this.#count
		this.made.push(new WeakRef(made))
		return made
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

void t.test('a method is bound once, and has the private fields of the service', async (t) => {
	const { late } = await started()
	t.equal(late.count, late.count)
	t.equal(late.count(), 1)
	t.equal(late.count(), 2)
})

void t.test('functions that a getter makes are not kept', async (t) => {
	const { counter, late } = await started()
	setFlagsFromString('--expose-gc')
	t.teardown(() => setFlagsFromString('--no-expose-gc'))
	const collect = runInNewContext('gc') as () => void
	for (let n = 0; n < 100; n++) late.callback()
	t.equal(counter.made.length, 100)
	const left = (): number => counter.made.filter((made) => made.deref()).length
	await eventually(
		() => {
			collect()
			return left()
		},
		(count) => count <= 1,
	)
	t.equal(late.count(), 1, 'while the service serves')
})
