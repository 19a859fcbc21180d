import fc from 'fast-check'
import t from 'tap'
import { isIdle, plan } from '../../../core/host/plan.ts'
import type { PlanItem } from '../../../core/host/plan.ts'

const item = (name: string, fingerprint = '1', needs: string[] = []): PlanItem => ({ name, fingerprint, needs })

void t.test('keeps what is equal, replaces what changed, starts what is new, stops what is gone', async (t) => {
	const todo = plan([item('a'), item('b'), item('c')], [item('a'), item('b', '2'), item('d')])
	t.strictSame([...todo.keep], ['a'])
	t.strictSame([...todo.replace], ['b'])
	t.strictSame([...todo.start], ['d'])
	t.strictSame(todo.stop, ['c'])
	t.notOk(isIdle(todo))
	t.ok(isIdle(plan([item('a')], [item('a')])))
})

void t.test('puts what is needed first, and stops dependants first', async (t) => {
	const items = [item('c', '1', ['b']), item('b', '1', ['a']), item('a')]
	t.strictSame(plan([], items).order, ['a', 'b', 'c'])
	t.strictSame(plan(items, []).stop, ['c', 'b', 'a'])
})

void t.test('names a need that nobody fills', async (t) => {
	t.throws(() => plan([], [item('chat', '1', ['channels'])]), {
		code: 'plugin_invalid',
		message: /"chat" needs plugin "channels".*plugins\.channels to true/,
	})
})

void t.test('prints a ring', async (t) => {
	t.throws(() => plan([], [item('a', '1', ['b']), item('b', '1', ['c']), item('c', '1', ['a'])]), {
		message: /a → b → c → a/,
	})
})

void t.test('refuses a name that is there twice', async (t) => {
	t.throws(() => plan([], [item('a'), item('a')]), { message: /two plugins are named "a"/ })
})

void t.test(
	'for any two sets, every name is in exactly one place and needs stand before those who need them',
	async (t) => {
		const names = ['a', 'b', 'c', 'd', 'e', 'f']
		// A plugin may need those before it in the alphabet, so there is no ring; it is wanted only if all it needs are.
		const set = fc
			.record(
				Object.fromEntries(
					names.map((name) => [
						name,
						fc.record({
							on: fc.boolean(),
							fingerprint: fc.constantFrom('1', '2'),
							needs: fc.subarray(names.slice(0, names.indexOf(name))),
						}),
					]),
				),
			)
			.map((draft) => {
				const items: PlanItem[] = []
				for (const name of names) {
					const { on, fingerprint, needs } = draft[name] as { on: boolean; fingerprint: string; needs: string[] }
					if (on && needs.every((need) => items.some((one) => one.name === need)))
						items.push({ name, fingerprint, needs })
				}
				return items
			})
		fc.assert(
			fc.property(set, set, (running, wanted) => {
				const todo = plan(running, wanted)
				const all = [...todo.keep, ...todo.replace, ...todo.start]
				t.strictSame(all.toSorted(), wanted.map((one) => one.name).toSorted())
				t.strictSame(todo.order.toSorted(), all.toSorted())
				t.ok(todo.stop.every((name) => running.some((one) => one.name === name) && !all.includes(name)))
				for (const one of wanted)
					for (const need of one.needs) t.ok(todo.order.indexOf(need) < todo.order.indexOf(one.name))
			}),
		)
	},
)
