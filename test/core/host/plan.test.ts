import fc from 'fast-check'
import t from 'tap'
import { inOrder, isIdle, plan } from '../../../core/host/plan.ts'
import type { Definition } from '../../../core/host/plan.ts'

const definition = (name: string, fingerprint = '1', needs: string[] = []): Definition => ({
	plugin: { name, needs },
	config: {},
	fingerprint,
	source: 'test',
})
const needing = (needs: Record<string, string[]>): Definition[] =>
	Object.entries(needs).map(([name, own]) => definition(name, '1', own))
const namesOf = (definitions: readonly Definition[]): string[] => definitions.map(({ plugin }) => plugin.name)

void t.test('keeps equal plugins, replaces changed ones, starts new ones and stops removed ones', async (t) => {
	const todo = plan(
		[definition('a'), definition('b'), definition('c')],
		[definition('a'), definition('b', '2'), definition('d')],
	)
	t.strictSame(todo, { start: ['d'], replace: ['b'], stop: ['c'] })
	t.notOk(isIdle(todo))
	t.ok(isIdle(plan([definition('a')], [definition('a')])))
})

void t.test('starts dependencies first, and stops dependants first', async (t) => {
	const { order, orphans, cycles } = inOrder(needing({ c: ['b'], b: ['a'], a: [] }))
	t.strictSame(namesOf(order), ['a', 'b', 'c'])
	t.equal(orphans.size + cycles.size, 0)
	t.strictSame(plan(order, []).stop, ['c', 'b', 'a'])
})

void t.test('omits plugins that need a missing one, directly or not', async (t) => {
	const { order, orphans } = inOrder(needing({ chat: ['channels'], bot: ['a', 'chat'], a: [] }))
	t.strictSame(namesOf(order), ['a'])
	t.match(
		[...orphans],
		[
			['chat', 'plugin "chat" needs plugin "channels", which failed'],
			['bot', 'plugin "bot" needs plugin "chat", which failed'],
		],
	)
})

void t.test('omits a cycle and reports it, without the plugins that only need a part of it', async (t) => {
	const { order, orphans, cycles } = inOrder(needing({ x: ['b'], a: ['b'], b: ['c'], c: ['missing', 'a'], d: [] }))
	t.strictSame(namesOf(order), ['d'])
	t.strictSame([...cycles.keys()].toSorted(), ['a', 'b', 'c'])
	t.match([...cycles.values()], [/in a cycle: b → c → a → b/, /in a cycle/, /in a cycle/])
	t.strictSame([...orphans.keys()], ['x'])
	t.strictSame(
		[...inOrder(needing({ self: ['self'] })).cycles.values()],
		[
			'the plugins need each other in a cycle: self → self; remove one of them from `needs`, and call ctx.use where its service is used',
		],
	)
})

/** Plugins a to f. Each needs only earlier ones, so there is no cycle. */
const definitions = fc
	.tuple(
		...['a', 'b', 'c', 'd', 'e', 'f'].map((name, at, names) =>
			fc.record({
				name: fc.constant(name),
				on: fc.boolean(),
				fingerprint: fc.constantFrom('1', '2'),
				needs: fc.subarray(names.slice(0, at)),
			}),
		),
	)
	.map((drafts) => drafts.filter(({ on }) => on).map((one) => definition(one.name, one.fingerprint, one.needs)))

void t.test('for any two sets, dependencies come first, and every name is in one list', async (t) => {
	fc.assert(
		fc.property(definitions, definitions, (before, after) => {
			const [running, wanted] = [inOrder(before).order, inOrder(after)]
			const order = namesOf(wanted.order)
			t.strictSame([...order, ...wanted.orphans.keys()].toSorted(), namesOf(after).toSorted())
			for (const [at, { plugin }] of wanted.order.entries())
				t.ok(plugin.needs?.every((need) => order.slice(0, at).includes(need)))
			for (const name of wanted.orphans.keys())
				t.ok(after.find(({ plugin }) => plugin.name === name)?.plugin.needs?.some((need) => !order.includes(need)))
			const { start, replace, stop } = plan(running, wanted.order)
			const same = namesOf(wanted.order.filter((one) => running.some((old) => isSame(old, one))))
			t.strictSame([...start, ...replace, ...same].toSorted(), order.toSorted())
			t.strictSame([...stop, ...replace, ...same].toSorted(), namesOf(running).toSorted())
		}),
	)
})

function isSame(a: Definition, b: Definition): boolean {
	return a.plugin.name === b.plugin.name && a.fingerprint === b.fingerprint
}
