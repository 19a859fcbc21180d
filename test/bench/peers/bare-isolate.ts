/** The bare counterpart of a skill call: isolated-vm in a separate process, with a new isolate for each call. */
import ivm from 'isolated-vm'
import { answerWith } from '../peer.ts'

answerWith({
	async call({ code, args }: { code: string; args: unknown }): Promise<unknown> {
		const isolate = new ivm.Isolate({ memoryLimit: 64 })
		const context = await isolate.createContext()
		const program = await isolate.compileModule(code)
		await program.instantiate(context, () => {
			throw new Error('it imports nothing')
		})
		await program.evaluate()
		const run = (await program.namespace.get('default', { reference: true })) as ivm.Reference
		const value: unknown = await run.apply(undefined, [args], {
			arguments: { copy: true },
			result: { copy: true, promise: true },
		})
		isolate.dispose()
		return value
	},
})
