/** The maintenance of channels continues after an error of one channel. */
import t from 'tap'
import { Fault } from '../../../core/errors.ts'
import { maintain } from '../../../plugins/channels/maintenance.ts'

type MaintainArguments = Parameters<typeof maintain>

void t.test('bindings of other channels are swept after a channel is deleted meanwhile', async (t) => {
	const swept: string[] = []
	const problems: unknown[] = []
	const deletedAgent = Promise.withResolvers<() => void>()
	const ctx = {
		log: { error: (fields: unknown) => problems.push(fields) },
		signal: new AbortController().signal,
		on: (_type: string, handle: () => void) => deletedAgent.resolve(handle),
		every: () => {},
		serving: new Promise(() => {}),
	} as unknown as MaintainArguments[0]
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
	} as unknown as MaintainArguments[2]
	maintain(ctx, {} as MaintainArguments[1], parts)
	const handle = await deletedAgent.promise
	handle()
	await Promise.race([done.promise, new Promise((resolve) => setImmediate(resolve))])
	t.strictSame(swept, ['one', 'other'])
	t.strictSame(problems, [])
})
