/** The maintenance of channels goes through all of them, whatever happens to one meanwhile. */
import t from 'tap'
import { Fault } from '../../../core/errors.ts'
import { maintain } from '../../../plugins/channels/maintenance.ts'

type Given = Parameters<typeof maintain>

void t.test('a channel that is deleted meanwhile does not keep the bindings of others', async (t) => {
	const swept: string[] = []
	const problems: unknown[] = []
	const deletedAgent = Promise.withResolvers<() => void>()
	const ctx = {
		log: { error: (fields: unknown) => problems.push(fields) },
		signal: new AbortController().signal,
		on: (_type: string, handle: () => void) => deletedAgent.resolve(handle),
		every: () => {},
		serving: new Promise(() => {}),
	} as unknown as Given[0]
	const done = Promise.withResolvers<void>()
	const parts = {
		directory: { list: async () => ['gone', 'one', 'other'].map((id) => ({ id })) },
		bindings: {
			async sweep(id: string) {
				if (id === 'gone') throw new Fault('not_found', 'there is no channel "gone"')
				swept.push(id)
				if (id === 'other') done.resolve()
			},
		},
		pairing: {},
	} as unknown as Given[2]
	maintain(ctx, {} as Given[1], parts)
	const handle = await deletedAgent.promise
	handle()
	await Promise.race([done.promise, new Promise((resolve) => setImmediate(resolve))])
	t.strictSame(swept, ['one', 'other'])
	t.strictSame(problems, [])
})
